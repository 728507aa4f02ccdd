//! `postroom eval`: how good a router is on labelled mail.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use super::common::{ModelArgs, Progress, load};
use super::data::{DataArgs, tell};
use super::output::{print, print_line};
use crate::artifact::RouterInfo;
use crate::dataset::name_conflicts;
use crate::evaluation::report::{Origin, Report, ReportInput, write_report};
use crate::evaluation::{Evaluation, JudgedMail, evaluate, place_decisive};
use crate::queues::Queue;

/// Arguments of `postroom eval`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  postroom eval data/crumb/week.jsonl")]
pub(super) struct EvalArgs {
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    model: ModelArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Write report.html and report.json here; the page holds subjects of mails. docs/report.md explains it.
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
}

pub(super) fn run(args: &EvalArgs) -> anyhow::Result<()> {
    let config = args.model.quiet_config()?;
    let data = name_conflicts(args.data.read()?);
    tell(&data.notes);
    let router = load(&config.model)?;
    let mut progress = Progress::new("judging");
    let evaluated =
        evaluate(&router, &data.examples, &config.routing.email, &mut |done, all| progress.tell(done, all))?;
    let evaluation = evaluated.summary;
    if let Some(folder) = &args.report {
        let mut mails = evaluated.mails;
        place_decisive(&data.examples, &mut mails);
        report(folder, &router.info, &args.data.path, &mails)?;
    }
    if args.json { print_line(serde_json::to_string_pretty(&evaluation)?) } else { print(table(&evaluation)) }
}

fn report(folder: &Path, info: &RouterInfo, data: &Path, mails: &[JudgedMail]) -> anyhow::Result<()> {
    let queues: Vec<Queue> = info.queues.iter().cloned().collect();
    let report = Report::new(&ReportInput {
        router: &format!("{} {}", info.name, info.version),
        data: &data.file_name().unwrap_or_default().to_string_lossy(),
        origin: Origin::Labelled,
        queues: &queues,
        calibration: &info.calibration,
        mails,
    });
    Ok(write_report(folder, &report)?)
}

/// The figures for people.
pub(super) fn table(evaluation: &Evaluation) -> String {
    let mut out = String::new();
    let Evaluation { mails, misrouted, routed_alone, routed_alone_wrong, ece, .. } = evaluation;
    let _ = writeln!(out, "{} of {mails} misrouted when every mail is routed", misrouted.len());
    let _ = writeln!(out, "{routed_alone} of {mails} routed without a person, {routed_alone_wrong} of them wrong");
    let _ = writeln!(out, "expected calibration error {ece:.4} (15 bins)\n");
    let width = evaluation.queues.iter().map(|queue| queue.queue.len()).max().unwrap_or(0);
    let _ = writeln!(out, "{:<width$}  mails  right  false alarms", "queue");
    for queue in &evaluation.queues {
        let _ = writeln!(
            out,
            "{:<width$}  {:>5}  {:>5}  {:>12}",
            queue.queue, queue.mails, queue.right, queue.false_alarms
        );
    }
    out
}
