//! `postroom eval`: how good a router is on labelled mail.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::common::{ModelArgs, Progress, at_least_one, load};
use super::data::{DataArgs, tell};
use super::output::{print, print_line};
use crate::artifact::{Router, RouterInfo};
use crate::dataset::{self, name_conflicts};
use crate::evaluation::report::{Origin, Report, ReportInput, write_report};
use crate::evaluation::{Evaluation, JudgedMail, Nobody, evaluate, place_decisive};
use crate::queues::Queue;
use crate::routing::RoutingConfig;
use crate::training::{BudgetTrials, budget_trials};

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
    /// Mail for none of the queues, in any format (labels are not read): how well it is told from the data.
    #[arg(long, value_name = "FILE")]
    nobody: Option<PathBuf>,
    /// Try an error budget on so many random halves of the data: solved on one, counted on the other.
    #[arg(long, value_name = "TRIALS", value_parser = at_least_one)]
    budget_trials: Option<usize>,
    /// The error budget of --budget-trials: a share between 0 and 1.
    #[arg(long, default_value_t = 0.02, value_parser = parse_budget, requires = "budget_trials")]
    budget: f64,
}

/// All that is printed.
#[derive(Serialize)]
struct Printed {
    #[serde(flatten)]
    evaluation: Evaluation,
    #[serde(skip_serializing_if = "Option::is_none")]
    nobody: Option<Nobody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_trials: Option<BudgetTrials>,
}

fn parse_budget(text: &str) -> Result<f64, String> {
    let budget: f64 = text.parse().map_err(|error: std::num::ParseFloatError| error.to_string())?;
    if budget > 0.0 && budget < 1.0 {
        Ok(budget)
    } else {
        Err("a budget is a share above 0 and below 1, such as 0.02 for 2%".to_owned())
    }
}

pub(super) fn run(args: &EvalArgs) -> anyhow::Result<()> {
    let config = args.model.quiet_config()?;
    let data = name_conflicts(args.data.read()?);
    tell(&data.notes);
    let router = load(&config.model)?;
    let mut progress = Progress::new("judging");
    // What is measured is what is served with these settings.
    let (email, threshold) = (&config.routing.email, config.routing.policy.threshold);
    let evaluated = evaluate(&router, &data.examples, email, threshold, &mut |done, all| progress.tell(done, all))?;
    let nobody = args.nobody.as_deref().map(|path| nobody(args, path, &router, &evaluated.mails, &config.routing));
    let queue_ids: Vec<String> = router.info.queues.iter().map(|queue| queue.id.clone()).collect();
    let trials = args.budget_trials.map(|trials| budget_trials(&evaluated.mails, &queue_ids, args.budget, trials, 0));
    let printed = Printed { evaluation: evaluated.summary, nobody: nobody.transpose()?, budget_trials: trials };
    if let Some(folder) = &args.report {
        let mut mails = evaluated.mails;
        place_decisive(&data.examples, &mut mails);
        report(folder, &router.info, threshold, &args.data.path, &mails)?;
    }
    if args.json {
        print_line(serde_json::to_string_pretty(&printed)?)
    } else {
        print(format_args!("{}{}", table(&printed.evaluation), more(&printed)))
    }
}

/// Asks the router about mail that is for nobody.
fn nobody(
    args: &EvalArgs,
    path: &Path,
    router: &Router,
    known: &[JudgedMail],
    config: &RoutingConfig,
) -> anyhow::Result<Nobody> {
    // The label is only there because mail that is judged has one; it is not looked at.
    let any = router.info.queues.get(0).map_or("", |queue| &queue.id);
    let data = dataset::read(path, &args.data.columns.options(Some(any)))?;
    let mut progress = Progress::new("judging mail for nobody");
    let threshold = config.policy.threshold;
    let nobodys =
        evaluate(router, &data.examples, &config.email, threshold, &mut |done, all| progress.tell(done, all))?;
    Ok(Nobody::of(&router.info, known, &nobodys.mails, threshold))
}

fn more(printed: &Printed) -> String {
    let mut out = String::new();
    if let Some(Nobody { mails, out_of_scope, routed_alone, auroc }) = &printed.nobody {
        let area = auroc.map_or_else(String::new, |area| format!("; told from the data with AUROC {area:.4}"));
        let _ = writeln!(
            out,
            "\nof {mails} mails for nobody {out_of_scope} called out of scope, {routed_alone} routed without a person{area}"
        );
    }
    if let Some(BudgetTrials { max_error_rate, trials, within, proven, worst, coverage }) = &printed.budget_trials {
        let _ = writeln!(
            out,
            "\na budget of {:.1}% was kept in {within} of {trials} random halves (proven in {proven}), at worst {:.2}% were wrong; \
             {:.1}% of mail was routed without a person",
            100.0 * max_error_rate,
            100.0 * worst,
            100.0 * coverage
        );
    }
    out
}

fn report(
    folder: &Path,
    info: &RouterInfo,
    threshold: Option<f64>,
    data: &Path,
    mails: &[JudgedMail],
) -> anyhow::Result<()> {
    let queues: Vec<Queue> = info.queues.iter().cloned().collect();
    let report = Report::new(&ReportInput {
        router: &format!("{} {}", info.name, info.version),
        data: &data.file_name().unwrap_or_default().to_string_lossy(),
        origin: Origin::Labelled,
        queues: &queues,
        calibration: &info.calibration,
        threshold,
        mails,
    });
    Ok(write_report(folder, &report)?)
}

/// The figures for people.
pub(super) fn table(evaluation: &Evaluation) -> String {
    let mut out = String::new();
    let Evaluation { mails, misrouted, routed_alone, routed_alone_wrong, ece, threshold, .. } = evaluation;
    let at = threshold.map_or_else(String::new, |threshold| format!(" at the threshold {threshold} of the settings"));
    let _ = writeln!(out, "{} of {mails} misrouted when every mail is routed", misrouted.len());
    let _ = writeln!(out, "{routed_alone} of {mails} routed without a person{at}, {routed_alone_wrong} of them wrong");
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
