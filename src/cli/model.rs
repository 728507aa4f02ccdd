//! `postroom model`: versions of a router side by side, and which of them is in force.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, bail};
use candle_core::{DType, Device};
use clap::{Args, Subcommand};

use super::common::set_threads;
use super::output::{Said, print_line};
use super::quantize::{self, QuantizeArgs};
use crate::artifact::{
    Action, Change, History, SelfTest, Version, VersionedRouter, changes, find_model, load_router, record_probes,
    resolve_router, self_test,
};
use crate::config::user;
use crate::telemetry::{self, TelemetryConfig};

/// Arguments of `postroom model`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  postroom model promote models/shop models/new\n  postroom model list models/shop\n  postroom model rollback models/shop\n  postroom serve --router models/shop\n\nA running service takes the version in force in within seconds. docs/routers.md says more."
)]
pub(super) struct ModelArgs {
    #[command(subcommand)]
    action: ModelAction,
}

#[derive(Debug, Subcommand)]
enum ModelAction {
    /// Show the versions, and who put them in force when.
    List {
        /// Directory with the versions.
        #[arg(value_name = "MODEL")]
        model: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Put a version in force: one of those that are there, or a router, which is copied to them. It is tested first.
    Promote {
        /// Directory with the versions; made where it is not there.
        #[arg(value_name = "MODEL")]
        model: PathBuf,
        /// A version by name, or the directory of a router.
        #[arg(value_name = "VERSION|DIR")]
        version: String,
    },
    /// Put the version before in force again. It is tested first.
    Rollback {
        /// Directory with the versions.
        #[arg(value_name = "MODEL")]
        model: PathBuf,
    },
    /// Load a router and compare its answers with those of the day when it was made.
    Verify {
        /// Directory of the router, or one with versions.
        #[arg(value_name = "DIR")]
        router: PathBuf,
        /// Take today's answers down as the right ones.
        #[arg(long)]
        record: bool,
    },
    /// Let a router's linear layers run on bytes, where the machine has instructions for it, and write down what that costs.
    Quantize(QuantizeArgs),
}

pub(super) fn run(args: &ModelArgs) -> anyhow::Result<()> {
    telemetry::init(&TelemetryConfig { log: "warn".to_owned(), ..TelemetryConfig::default() })?;
    match &args.action {
        ModelAction::List { model, json } => list(&VersionedRouter::open(&find_model(model))?, *json),
        ModelAction::Promote { model, version } => promote(&find_model(model), version),
        ModelAction::Quantize(args) => quantize::run(args),
        ModelAction::Rollback { model } => rollback(&VersionedRouter::open(&find_model(model))?),
        ModelAction::Verify { router, record } => {
            set_threads(0)?;
            let place = resolve_router(&find_model(router))?;
            if *record {
                let network = load_router(&place, DType::F32, &Device::Cpu)?;
                record_probes(&place, &network)?;
            }
            print_line(format_args!("{}: {}", place.display(), said(verified(&place)?)))
        }
    }
}

fn promote(model: &Path, version: &str) -> anyhow::Result<()> {
    set_threads(0)?;
    let made = !model.exists();
    let source = source(model, version)?;
    let router = VersionedRouter::open_or_create(model)?;
    let promoted = put_in_force(&router, version, source.as_deref());
    if made && promoted.is_err() {
        router.remove_unused();
    }
    promoted
}

/// The router to copy; `None` for a version that is there. Asked before anything is made: a name that means nothing
/// leaves no directory behind.
fn source(model: &Path, version: &str) -> anyhow::Result<Option<PathBuf>> {
    let Err(unknown) = VersionedRouter::open(model).and_then(|router| router.check(version)) else { return Ok(None) };
    let folder = find_model(Path::new(version));
    if folder.is_dir() {
        return Ok(Some(resolve_router(&folder)?));
    }
    if !model.exists() {
        bail!(
            "`{version}` is no directory, and {} is not there yet, without versions: name a router's directory",
            model.display()
        );
    }
    Err(unknown).context(format!("`{version}` is neither a version nor a directory"))
}

fn put_in_force(router: &VersionedRouter, version: &str, source: Option<&Path>) -> anyhow::Result<()> {
    let mut history = History::open(router)?;
    let (version, new) = match source {
        Some(source) => router.add(source)?,
        None => (version.to_owned(), false),
    };
    let tested = match verified(&router.path_of(&version)) {
        Ok(tested) => tested,
        Err(error) => {
            if new {
                router.remove(&version)?;
            }
            let before = matches!(router.current(), Ok(Some(_)));
            let goes_on = if before { "; the one before goes on" } else { "" };
            return Err(error.context(format!("version {version} is not put in force{goes_on}")));
        }
    };
    tell(&history.put_in_force(Action::Promote, &version, now(), user())?, tested)
}

fn rollback(router: &VersionedRouter) -> anyhow::Result<()> {
    set_threads(0)?;
    let mut history = History::open(router)?;
    let current = router.current()?;
    let Some(version) = history.previous(current.as_deref()) else {
        bail!(
            "no version before {} is written down; `postroom model promote {} VERSION` puts any version in force",
            current.as_deref().unwrap_or("the first"),
            router.root().display()
        );
    };
    router.check(&version)?;
    let tested = verified(&router.path_of(&version))
        .with_context(|| format!("version {version} is not put in force again; the one in force goes on"))?;
    tell(&history.put_in_force(Action::Rollback, &version, now(), user())?, tested)
}

fn verified(place: &Path) -> anyhow::Result<SelfTest> {
    let router = load_router(place, DType::F32, &Device::Cpu)?;
    Ok(self_test(place, &router)?)
}

fn said(tested: SelfTest) -> String {
    match tested.largest_difference {
        Some(difference) => {
            format!("whole; {} recorded answers given again, logits within {difference:.6}", tested.probes)
        }
        None => format!("whole; it answers {} texts, and no answers were recorded to compare with", tested.probes),
    }
}

fn tell(Change { from, to, .. }: &Change, tested: SelfTest) -> anyhow::Result<()> {
    let before =
        from.as_ref().filter(|from| *from != to).map_or_else(String::new, |from| format!(" in place of {from}"));
    let mut output = Said::default();
    output.line(format_args!("version {to}: {}", said(tested)));
    output.line(format_args!("{to} is in force{before}"));
    output.end(format_args!("{to} is in force"))
}

fn list(router: &VersionedRouter, json: bool) -> anyhow::Result<()> {
    let (current, changes, versions) = (router.current()?, changes(router)?, router.versions()?);
    if json {
        let versions: Vec<serde_json::Value> = versions
            .iter()
            .map(|Version { name, manifest }| {
                serde_json::json!({
                    "version": name, "in_force": current.as_ref() == Some(name),
                    "figures": manifest.as_ref().ok().map(|manifest| &manifest.figures),
                    "provenance": manifest.as_ref().ok().map(|manifest| &manifest.provenance),
                    "problem": manifest.as_ref().err().map(ToString::to_string),
                })
            })
            .collect();
        let answer = serde_json::json!({"current": current, "versions": versions, "changes": changes});
        return print_line(serde_json::to_string_pretty(&answer)?);
    }
    for Version { name, manifest } in &versions {
        let mark = if current.as_ref() == Some(name) { '*' } else { ' ' };
        match manifest {
            Ok(manifest) => print_line(format_args!(
                "{mark} {name}  {} queues, {} mails of {}, {:.1}% right on held-out mail",
                manifest.queues.len(),
                manifest.provenance.mails,
                manifest.provenance.data,
                100.0 * manifest.figures.accuracy
            ))?,
            Err(error) => print_line(format_args!("{mark} {name}  {error}"))?,
        }
    }
    for Change { at, action, from, to, who } in &changes {
        let action = if *action == Action::Promote { "promoted" } else { "rolled back to" };
        let before = from.as_deref().unwrap_or("none");
        print_line(format_args!("{at}  {who} {action} {to} (before: {before})"))?;
    }
    Ok(())
}

fn now() -> String {
    crate::routing::rfc3339(SystemTime::now())
}
