//! `postroom queues`: the queues of a router, listed and changed without training it again.

use std::path::{Path, PathBuf};

use anyhow::Context;
use candle_core::DType;
use clap::{Args, Subcommand};

use super::changing::Changing;
use super::common::{Progress, set_threads};
use super::data::{ColumnArgs, tell};
use super::output::{Said, percent, print_line};
use super::quantize;
use crate::artifact::{StoredRouter, load_router, load_router_in};
use crate::dataset::{self, Dataset, ReadOptions};
use crate::inference::DeviceChoice;
use crate::metrics::fewest_to_prove;
use crate::model::cpu::Precision;
use crate::queues::{Queue, QueueError, slug};
use crate::telemetry::{self, TelemetryConfig};
use crate::training::TrainingConfig;
use crate::training::queue_changes::{self, AddConfig, Added, NewQueue};

/// Arguments of `postroom queues`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  postroom queues list\n  postroom queues rename refunds --name 'Money back'\n  postroom queues merge order-changes late-deliveries --into refunds --out models/merged\n  postroom queues add gift-cards --name 'Gift cards' --description 'Buying or using a gift card.' --examples gift-cards.jsonl\n\nA change replaces the router whole, and only when the new one is written; --out writes it elsewhere. docs/queues.md says more."
)]
pub(super) struct QueuesArgs {
    #[command(subcommand)]
    change: Change,
    /// Directory of the router.
    #[arg(long, value_name = "DIR", default_value = "models/crumb", global = true)]
    router: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Change {
    /// Show the queues, with the held-out figures of the training.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Give a queue another name; its id stays.
    Rename {
        /// Id of the queue.
        #[arg(value_name = "ID")]
        queue: String,
        /// The new name.
        #[arg(long)]
        name: String,
        /// What the queue is for.
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        #[command(flatten)]
        to: OutArgs,
    },
    /// Make queues parts of another; mail labelled with their ids counts as the whole.
    Merge {
        /// Ids of the queues that go.
        #[arg(value_name = "FROM", required = true)]
        from: Vec<String>,
        /// Id of the queue that stays.
        #[arg(long, value_name = "ID")]
        into: String,
        #[command(flatten)]
        to: OutArgs,
    },
    /// Answer with a queue again.
    Enable {
        /// Id of the queue.
        #[arg(value_name = "ID")]
        queue: String,
        #[command(flatten)]
        to: OutArgs,
    },
    /// Never answer with a queue; its mail goes to a person.
    Disable {
        /// Id of the queue.
        #[arg(value_name = "ID")]
        queue: String,
        #[command(flatten)]
        to: OutArgs,
    },
    /// Take a queue out; its mail goes wherever it looks like.
    Remove {
        /// Id of the queue.
        #[arg(value_name = "ID")]
        queue: String,
        #[command(flatten)]
        to: OutArgs,
    },
    /// Add a queue by a few mails, or by its description alone.
    Add(Box<AddArgs>),
}

impl Change {
    /// Where the changed router goes; `None` where nothing is changed.
    fn to(&self) -> Option<&OutArgs> {
        match self {
            Self::List { .. } => None,
            Self::Rename { to, .. }
            | Self::Merge { to, .. }
            | Self::Enable { to, .. }
            | Self::Disable { to, .. }
            | Self::Remove { to, .. } => Some(to),
            Self::Add(add) => Some(&add.to),
        }
    }
}

#[derive(Debug, Args)]
struct OutArgs {
    /// Write the changed router here instead of replacing the old one.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct AddArgs {
    /// Id of the new queue, a slug such as gift-cards; it never changes.
    #[arg(value_name = "ID")]
    queue: String,
    /// Its name.
    #[arg(long)]
    name: String,
    /// What it is for, in a sentence or two; counts as one more example. Without --examples the queue is only suggested.
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,
    /// Mail of the new queue, in any format that `train` reads; labels are not looked at. A folder of .eml files will do.
    #[arg(long, value_name = "FILE")]
    examples: Option<PathBuf>,
    /// Labelled mail of the other queues to tell the new one from, in place of what the router remembers.
    #[arg(long, value_name = "FILE")]
    mail: Option<PathBuf>,
    #[command(flatten)]
    columns: ColumnArgs,
    #[command(flatten)]
    to: OutArgs,
    /// Where the network runs: auto, cpu or cuda:N.
    #[arg(long, default_value = "auto")]
    device: DeviceChoice,
    /// Threads of the network; 0 takes what the machine gives this process.
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

pub(super) fn run(args: &QueuesArgs) -> anyhow::Result<()> {
    telemetry::init(&TelemetryConfig { log: "warn".to_owned(), ..TelemetryConfig::default() })?;
    let mut changing = Changing::open(&args.router)?;
    let Some(to) = args.change.to() else {
        let Change::List { json } = args.change else { return Ok(()) };
        return list(&changing.router, json);
    };
    let out = to.out.as_deref();
    changing.check(out)?;
    let changed = change(&args.change, &mut changing)?;
    let decides_otherwise = matches!(args.change, Change::Merge { .. } | Change::Remove { .. } | Change::Add(_));
    let in_f32_again = decides_otherwise && quantize::forget(&mut changing.router);
    let (written, out) = changing.save(out)?;
    let mut said = Said::default();
    said.line(changed);
    if in_f32_again {
        said.line("it runs in f32 again: what int8 costs it now is to be measured with `postroom model quantize`");
    }
    said.line(format_args!("router {} {} written to {}", written.info.name, written.info.version, out.display()));
    said.end(format_args!("{} holds the changed router", out.display()))
}

/// Changes the router in memory and says what has changed.
fn change(change: &Change, Changing { router, place, .. }: &mut Changing) -> anyhow::Result<String> {
    Ok(match change {
        Change::List { .. } => String::new(),
        Change::Rename { queue, name, description, .. } => {
            queue_changes::rename(router, queue, name, description.as_deref())?;
            format!("`{queue}` is called {}", name.trim())
        }
        Change::Merge { from, into, .. } => {
            queue_changes::merge(router, from, into)?;
            format!("now part of `{into}`: `{}`", from.join("`, `"))
        }
        Change::Enable { queue, .. } => {
            queue_changes::set_enabled(router, queue, true)?;
            format!("`{queue}` is on")
        }
        Change::Disable { queue, .. } => {
            queue_changes::set_enabled(router, queue, false)?;
            format!("`{queue}` is off")
        }
        Change::Remove { queue, .. } => {
            queue_changes::remove(router, queue)?;
            format!("`{queue}` is gone")
        }
        Change::Add(add) => added(router, place, add)?,
    })
}

fn list(router: &StoredRouter, json: bool) -> anyhow::Result<()> {
    let manifest = &router.manifest;
    let held_out = |id: &str| manifest.figures.queues.get(id);
    let parts = |id: &str| -> Vec<&String> {
        manifest.aliases.iter().filter(|(_, queue)| *queue == id).map(|(old, _)| old).collect()
    };
    if json {
        let queues: Vec<serde_json::Value> = manifest
            .queues
            .iter()
            .map(|queue| {
                serde_json::json!({
                    "id": queue.id, "name": queue.name, "description": queue.description, "enabled": queue.enabled,
                    "suggest_only": queue.suggest_only, "aliases": parts(&queue.id), "held_out": held_out(&queue.id),
                })
            })
            .collect();
        let answer = serde_json::json!({"router": manifest.name, "version": manifest.version, "queues": queues});
        return print_line(serde_json::to_string_pretty(&answer)?);
    }
    let width = manifest.queues.iter().map(|queue| queue.id.len()).max().unwrap_or(0);
    for queue in &manifest.queues {
        let state = match (queue.enabled, queue.suggest_only) {
            (false, _) => "off",
            (true, true) => "suggested",
            (true, false) => "on",
        };
        let figures = held_out(&queue.id)
            .map_or_else(|| "-".to_owned(), |figures| format!("{} of {}", figures.right, figures.mails));
        let Queue { id, name, description, .. } = queue;
        print_line(format_args!("{id:<width$}  {state:<9}  {figures:>12}  {name}: {description}"))?;
        for old in parts(&queue.id) {
            print_line(format_args!("{:<width$}  with `{old}`", ""))?;
        }
    }
    Ok(())
}

/// Adds the queue and says how well it is known.
fn added(router: &mut StoredRouter, place: &Path, args: &AddArgs) -> anyhow::Result<String> {
    if slug(&args.queue) != args.queue {
        // Refused before any mail is read.
        return Err(QueueError::BadId(args.queue.clone()))
            .with_context(|| format!("`{}` cannot be an id; `{}` could", args.queue, slug(&args.queue)));
    }
    let read = |path: &Option<PathBuf>, one_label| path.as_deref().map(|path| mail(path, args, one_label)).transpose();
    let examples = read(&args.examples, Some(args.queue.as_str()))?.unwrap_or_default().examples;
    let others = read(&args.mail, None)?.map(|data| data.examples);
    set_threads(args.threads)?;
    let device = args.device.open()?;
    // In f32, whatever it runs in: the changed router does, and so do the mails that it remembers.
    let network =
        if device.is_cpu() { load_router_in(place, Precision::F32)? } else { load_router(place, DType::F32, &device)? };
    let new = NewQueue {
        id: &args.queue,
        name: &args.name,
        description: &args.description,
        examples: &examples,
        others: others.as_deref(),
    };
    let mut progress = Progress::new("reading mail");
    let mut told = |done, all| progress.tell(done, all);
    let added = queue_changes::add(router, &network, &new, &AddConfig::default(), &mut told)?;
    Ok(summary(&args.queue, &added))
}

/// Reads one of the files. Both may have formats of their own; `--format` is that of the examples.
fn mail(path: &Path, args: &AddArgs, one_label: Option<&str>) -> anyhow::Result<Dataset> {
    let options = args.columns.options(one_label);
    let same = args.examples.as_deref().is_none_or(|examples| examples.extension() == path.extension());
    let data = dataset::read(path, &ReadOptions { format: options.format.filter(|_| same), ..options })?;
    tell(&data.notes);
    Ok(data)
}

/// What the user should know of the new queue.
fn summary(id: &str, added: &Added) -> String {
    let Added { examples, others_right, others_moved, left_out, conflicts } = added;
    let mut lines: Vec<String> = conflicts
        .iter()
        .map(|conflict| {
            let why = match conflict.confidence {
                None => "the same text is mail of".to_owned(),
                Some(confidence) => format!("without it the router is {} sure of", percent(confidence)),
            };
            format!("warning: example {}: {why} `{}`; is it really mail of `{id}`?", conflict.mail, conflict.queue)
        })
        .collect();
    if *examples == 0 {
        lines.push(format!("`{id}` is known by its description: it is suggested and never routed alone"));
    } else {
        lines.push(format!("`{id}` learnt from {examples} mails"));
    }
    if let Some(left_out) = left_out {
        lines.push(format!("{} of {} examples go to it when they are left out", left_out.found, left_out.examples));
    }
    lines.push(format!("{others_moved} of {others_right} mails that other queues got rightly go to it now"));
    let rate = TrainingConfig::default().max_error_rate;
    if let Some(fewest) = fewest_to_prove(rate)
        && (1..fewest).contains(examples)
    {
        lines.push(format!(
            "NOT PROVEN: to promise at most {:.0}% wrong among its mail routed alone, at least {fewest} mails are needed; \
             the router's common threshold applies meanwhile",
            100.0 * rate
        ));
    }
    lines.join("\n")
}
