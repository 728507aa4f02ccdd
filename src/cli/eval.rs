//! `postroom eval`: how good a router is on labelled mail.

use std::fmt::Write;

use clap::Args;

use super::common::{ModelArgs, Progress, load};
use super::data::{DataArgs, tell};
use crate::dataset::name_conflicts;
use crate::evaluation::{Evaluation, evaluate};

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
}

pub(super) fn run(args: &EvalArgs) -> anyhow::Result<()> {
    let config = args.model.quiet_config()?;
    let data = name_conflicts(args.data.read()?);
    tell(&data.notes);
    let router = load(&config.model)?;
    let mut progress = Progress::new("judging");
    let evaluation =
        evaluate(&router, &data.examples, &config.routing.email, &mut |done, all| progress.tell(done, all))?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&evaluation)?);
    } else {
        print!("{}", table(&evaluation));
    }
    Ok(())
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
