//! `postroom train`: labelled mail to a router.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use candle_core::DType;
use clap::Args;
use serde::Deserialize;

use super::card;
use super::checkpoints;
use super::common::{Progress, set_threads};
use super::data::{DataArgs, tell};
use super::output::Said;
use crate::artifact::{
    Calibration, EncoderDir, EncoderReference, Manifest, Provenance, ROUTER_SCHEMA, Router, RouterFiles, RouterTensors,
    check_place, find_encoder, find_model, load_router, record_probes, save_memory, save_router_and, sha256_file,
    write_card,
};
use crate::dataset::{Closeness, Example, group_names, unseen};
use crate::evaluation::report::{Origin, Report, ReportInput, write_report};
use crate::evaluation::{JudgedMail, evaluate};
use crate::inference::DeviceChoice;
use crate::queues::Queue;
use crate::telemetry::{self, TelemetryConfig};
use crate::training::queue_changes::remember;
use crate::training::{self, Backbone, Labelled, Method, Trained, TrainingConfig, TrainingError, train};

/// Arguments of `postroom train`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  postroom train data/crumb/train.jsonl --group-from-id - --queues data/crumb/queues.toml \\\n    --config data/crumb/training.toml --test data/crumb/week.jsonl --out models/crumb"
)]
pub(super) struct TrainArgs {
    #[command(flatten)]
    data: DataArgs,
    /// Directory to write the router to; an old router there is replaced only when the new one is whole.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Directory of the encoder; the router looks for it beside its own directory.
    #[arg(long, value_name = "DIR", default_value = "models/minilm-l6-v2")]
    encoder: PathBuf,
    /// Training settings; config/training.toml documents them.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Names and descriptions of the queues; where mails are few, they are trained on too.
    #[arg(long, value_name = "FILE")]
    queues: Option<PathBuf>,
    /// Labelled mail to judge the new router on, read by the same columns. It is never trained on; what repeats mail that is, is
    /// left out. The card states the result.
    #[arg(long, value_name = "FILE")]
    test: Option<PathBuf>,
    /// More labelled mail, read by the same columns, to train on but not to judge by: hard cases written to teach, which an
    /// inbox does not get in such numbers. Figures and thresholds come from DATA alone.
    #[arg(long, value_name = "FILE")]
    also: Vec<PathBuf>,
    /// Whether the encoder is fine-tuned; auto keeps that only where held-out mail says that it is better.
    #[arg(long, value_enum)]
    method: Option<Method>,
    /// Seed of everything random.
    #[arg(long)]
    seed: Option<u64>,
    /// Go on with a training that was stopped; the result is the same as without the stop.
    #[arg(long)]
    resume: bool,
    /// Write report.html and report.json on the training mail here, each mail judged by models that had not seen it; the
    /// page holds subjects of mails.
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Leave out memory.safetensors: at most 32 mails of each queue as vectors, which `postroom queues add` learns from.
    #[arg(long)]
    no_memory: bool,
    /// Where the network runs: auto, cpu or cuda:N.
    #[arg(long, default_value = "auto")]
    device: DeviceChoice,
    /// Threads of the network, and how many networks are fine-tuned at a time at most; 0 takes what the machine gives this process.
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueuesFile {
    queues: Vec<Queue>,
}

pub(super) fn run(args: &TrainArgs) -> anyhow::Result<()> {
    let mut config: TrainingConfig = match &args.config {
        Some(path) => read_toml(path)?,
        None => TrainingConfig::default(),
    };
    config.method = args.method.unwrap_or(config.method);
    config.seed = args.seed.unwrap_or(config.seed);
    telemetry::init(&TelemetryConfig { log: "warn".to_owned(), ..TelemetryConfig::default() })?;
    let data = args.data.read_with(&args.also)?;
    let groups = group_names(&data.examples);
    let data = data.for_training();
    tell(&data.notes);
    let test = args.test.as_deref().map(|path| read_test(args, path, &data.examples, &groups)).transpose()?;
    let mut labelled = Labelled::new(&data.examples)?;
    if let Some(path) = &args.queues {
        let described = labelled.described(read_toml::<QueuesFile>(path)?.queues);
        labelled = described.with_context(|| format!("{} does not fit the mail", path.display()))?;
    }
    set_threads(args.threads)?;
    let device = args.device.open()?;
    let encoder_path = find_model(&args.encoder);
    let encoder_dir = EncoderDir::open(&encoder_path, &BTreeMap::new())?;
    config.windows.check(encoder_dir.config.max_positions)?;
    // Minutes of training are lost if the router cannot be written, or does not find its encoder afterwards.
    check_place(&args.out)?;
    let checkpoints_folder = checkpoints::folder_of(&args.out);
    checkpoints::check(&checkpoints_folder)?;
    find_encoder(&args.out, &name_of(&encoder_path))?;
    let encoder = encoder_dir.batch_encoder(DType::F32, &device, None)?;
    let weights = encoder_dir.weights(DType::F32, &device)?;

    let backbone = Backbone { encoder: &encoder, weights: &weights, tokenizer: &encoder_dir.tokenizer };
    if !args.resume && checkpoints_folder.exists() {
        let said = format!(
            "note: a stopped training in {} is dropped; --resume would have gone on",
            checkpoints_folder.display()
        );
        // Where standard error is closed there is nobody to tell.
        let _ = writeln!(std::io::stderr().lock(), "{said}");
        checkpoints::remove(&checkpoints_folder)?;
    }
    let mut progress = Stages::default();
    let trained = train(backbone, labelled, &config, Some(&checkpoints_folder), &mut progress);
    if let (Err(error @ TrainingError::BelowBaseline { held_out, .. }), Some(folder)) = (&trained, &args.report) {
        // Here above all: it names the labels that are worth a look. The old router stays, and the state of the training too.
        let named = format!("{} (not written)", name_of(&args.out));
        let report = held_out_report(args, &named, &held_out.queues, &held_out.calibration, &held_out.mails);
        write_report(folder, &report).with_context(|| error.to_string())?;
        // Where standard error is closed there is nobody to tell.
        let _ = writeln!(std::io::stderr().lock(), "note: the report on held-out mail is in {}", folder.display());
    }
    let trained = trained?;
    // The router is worth more than these words: it is written whether or not they can be.
    let mut said = Said::default();
    said.line(card::held_out(&trained, config.max_error_rate));

    let manifest = manifest(args, &config, &trained, &encoder_path, &data.examples)?;
    let tensors = RouterTensors {
        head: &trained.head,
        lexical: trained.lexical.as_ref(),
        change: trained.change.as_ref(),
        memory: None,
    };
    let card_of = |test: Option<card::Test<'_>>| {
        card::card(&manifest, &trained, config.max_error_rate, test.as_ref()) + card::memory(!args.no_memory)
    };
    let finish = |written: &Path| -> anyhow::Result<Router> {
        let router = load_router(written, DType::F32, &device).context("the router that was just written")?;
        if !args.no_memory {
            let mut progress = Progress::new("remembering");
            let mut tell = |done, all| progress.tell(done, all);
            let memory = remember(&router, &data.examples, &config.email, config.seed, &mut tell)?;
            save_memory(written, &memory)?;
        }
        record_probes(written, &router)?;
        Ok(router)
    };
    let saved = save_router_and(&args.out, manifest.clone(), tensors, &card_of(None), finish);
    let router =
        saved.with_context(|| format!("the new router is not written; {} is as it was", args.out.display()))?;
    if let (Some(path), Some((mails, closeness))) = (&args.test, test) {
        let mut progress = Progress::new("judging");
        let evaluation =
            evaluate(&router, &mails, &config.email, None, &mut |done, all| progress.tell(done, all))?.summary;
        said.print(super::eval::table(&evaluation));
        let test = card::Test { data: path, router: &args.out, closeness, evaluation: &evaluation };
        write_card(&args.out, &card_of(Some(test)))?;
    }
    checkpoints::remove(&checkpoints_folder)?;
    if let Some(folder) = &args.report {
        let named = format!("{} {}", router.info.name, router.info.version);
        let report = held_out_report(args, &named, &trained.queues, &trained.calibration, &trained.held_out);
        write_report(folder, &report)?;
    }
    said.line(format_args!("router {} {} written to {}", router.info.name, router.info.version, args.out.display()));
    said.end(format_args!("the router is written to {}", args.out.display()))
}

/// A progress bar for each stage of a training.
#[derive(Default)]
struct Stages {
    current: Option<Progress>,
}

impl training::Progress for Stages {
    fn stage(&mut self, name: &str) {
        self.current = Some(Progress::new(name));
    }

    fn tell(&mut self, done: usize, all: usize) {
        if let Some(progress) = &mut self.current {
            progress.tell(done, all);
        }
    }

    fn note(&mut self, line: &str) {
        if let Some(progress) = &self.current {
            progress.note(line);
        }
    }
}

/// Reads the mail to judge by, before the training: minutes are lost if it cannot be read or all of it is trained on.
fn read_test(
    args: &TrainArgs,
    path: &Path,
    trained_on: &[Example],
    groups: &HashSet<String>,
) -> anyhow::Result<(Vec<Example>, Closeness)> {
    let (test, closeness) = unseen(args.data.read_test(path)?, trained_on, groups);
    tell(&test.notes);
    if test.examples.is_empty() {
        bail!("all mail of {} is trained on: name other mail with --test", path.display());
    }
    Ok((test.examples, closeness))
}

/// The report on the training mail, from the models of the other folds.
fn held_out_report(
    args: &TrainArgs,
    router: &str,
    queues: &[Queue],
    calibration: &Calibration,
    mails: &[JudgedMail],
) -> Report {
    let data = &name_of(&args.data.path);
    Report::new(&ReportInput { router, data, origin: Origin::HeldOut, queues, calibration, threshold: None, mails })
}

fn read_toml<T: serde::de::DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    toml::from_str(&text).with_context(|| format!("{} is not understood", path.display()))
}

/// The last component of a path.
fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn manifest(
    args: &TrainArgs,
    config: &TrainingConfig,
    trained: &Trained,
    encoder: &Path,
    examples: &[Example],
) -> anyhow::Result<Manifest> {
    let mut sha256 = BTreeMap::new();
    for file in ["config.json", "tokenizer.json", "model.safetensors"] {
        sha256.insert(file.to_owned(), sha256_file(&encoder.join(file))?);
    }
    Ok(Manifest {
        schema: ROUTER_SCHEMA.to_owned(),
        name: name_of(&args.out),
        version: String::new(),
        encoder: EncoderReference { name: name_of(encoder), sha256 },
        files: RouterFiles::default(),
        queues: trained.queues.clone(),
        members: Vec::new(),
        aliases: BTreeMap::new(),
        languages: config.languages.clone(),
        windows: config.windows,
        pooling: config.pooling,
        quantize: None,
        calibration: trained.calibration.clone(),
        provenance: Provenance {
            data: name_of(&args.data.path),
            data_sha256: args.data.sha256(examples)?,
            mails: examples.len(),
            mails_only_trained_on: examples.iter().filter(|example| example.only_trained_on).count(),
            seed: config.seed,
            program: concat!("postroom ", env!("CARGO_PKG_VERSION")).to_owned(),
        },
        figures: trained.figures.clone(),
    })
}
