//! The model card that stands beside a router.

use std::fmt::{Display, Formatter, Write};
use std::path::Path;

use super::eval;
use crate::artifact::{EncoderChange, Figures, Manifest};
use crate::dataset::Closeness;
use crate::evaluation::Evaluation;
use crate::metrics::fewest_to_prove;
use crate::training::{Promise, Trained};

/// The held-out figures in one paragraph.
pub(super) fn held_out(trained: &Trained, max_error_rate: f64) -> String {
    let figures = &trained.figures;
    let promise = match budget(trained, max_error_rate) {
        Budget::Proven => "proven at 95% confidence (Clopper-Pearson)".to_owned(),
        Budget::NotProven { why, held: true } => {
            format!("not proven: {why}; it held on the mails that it was chosen on")
        }
        Budget::NotProven { why, held: false } => format!("not proven: {why}"),
        Budget::OfEachQueue => "for no queue: each has a budget of its own".to_owned(),
    };
    let right = share_right(figures).map_or_else(String::new, |right| format!(", {right} of it right"));
    let mut out = format!(
        "Held-out mail: {:.1}% right when every mail is routed (encoder alone {:.1}%, word counts alone {:.1}%); with the threshold {:.3} for a budget of {:.1}% wrong \
         ({promise}) {:.1}% is routed without a person{right}. Calibration error {:.4} (15 bins).",
        100.0 * figures.accuracy,
        100.0 * figures.accuracy_encoder_alone,
        100.0 * figures.accuracy_words_alone,
        trained.calibration.threshold,
        100.0 * max_error_rate,
        100.0 * figures.coverage,
        figures.ece,
    );
    for promise in &trained.promises {
        let _ = write!(out, "\n{promise}");
    }
    out
}

/// What held-out mail says of the common error budget.
#[derive(Debug)]
enum Budget {
    Proven,
    /// `held`: there is mail that the threshold was chosen on and that it lets go.
    NotProven {
        why: &'static str,
        held: bool,
    },
    /// There is no queue that it would speak of.
    OfEachQueue,
}

fn budget(trained: &Trained, max_error_rate: f64) -> Budget {
    if trained.budget_guaranteed {
        Budget::Proven
    } else if trained.promises.iter().any(Promise::is_common_budget) {
        let why = why_not_proven(trained.budget_solved_on, max_error_rate);
        // A threshold of 1 is closed.
        Budget::NotProven { why, held: trained.budget_solved_on > 0 && trained.calibration.threshold < 1.0 }
    } else {
        Budget::OfEachQueue
    }
}

/// How much of what is routed without a person is right, in percent; `None` where nothing is routed.
fn share_right(figures: &Figures) -> Option<String> {
    (figures.coverage > 0.0).then(|| format!("{:.1}%", 100.0 * figures.accuracy_when_routed))
}

/// What stands in the way of a proof of the common error budget on so many held-out mails.
fn why_not_proven(mails: usize, max_error_rate: f64) -> &'static str {
    match fewest_to_prove(max_error_rate) {
        None => "no number of mails proves a budget of 0%",
        Some(fewest) if mails < fewest => "too few mails",
        // So many right ones would have been enough, the surest first.
        Some(_) => "errors among the surest mails, so check their labels",
    }
}

/// What the card says of the mail that the router remembers.
pub(super) fn memory(kept: bool) -> &'static str {
    if kept {
        "\n## Memory\n\n`memory.safetensors` holds vectors derived from at most 32 mails of each queue, with their logits, so that \
         `postroom queues add` can tell a new queue from the others. It holds no text; still, treat it like the mail. \
         `postroom train --no-memory` leaves it out.\n"
    } else {
        "\n## Memory\n\nNone: nothing derived from single mails is stored. `postroom queues add` needs `--mail`.\n"
    }
}

/// Where some of the mail was written to teach: that no figure speaks of it.
fn only_trained_on(mails: usize) -> String {
    if mails == 0 {
        String::new()
    } else {
        format!(" ({mails} of them only trained on: no figure below speaks of them)")
    }
}

/// What became of the encoder, and how its tokens are read.
fn encoder(change: Option<&EncoderChange>) -> String {
    let attention = "each queue weighs the tokens of all windows by itself";
    match change {
        None => "is frozen; a linear head reads the pooled tokens of all windows".to_owned(),
        Some(EncoderChange::Lora(lora, _)) => {
            format!("is fine-tuned by low-rank adapters of rank {}; {attention}", lora.rank)
        }
        Some(EncoderChange::Full(_)) => format!("is fine-tuned in all layers; {attention}"),
    }
}

/// What the router did on mail that it was not trained on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Test<'a> {
    /// The file.
    pub(super) data: &'a Path,
    /// The directory that the router is written to.
    pub(super) router: &'a Path,
    /// How close that mail is to what was trained on.
    pub(super) closeness: Closeness,
    /// The figures.
    pub(super) evaluation: &'a Evaluation,
}

impl Display for Test<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { data, router, closeness, evaluation } = *self;
        let Closeness { repeats, near_repeats, of_known_groups } = closeness;
        writeln!(out, "## On `{}`\n", data.file_name().unwrap_or_default().to_string_lossy())?;
        if repeats == 0 {
            write!(out, "Never trained on.")?;
        } else {
            write!(out, "Without {repeats} of its mails, whose texts are trained on; the others never were.")?;
        }
        if near_repeats + of_known_groups > 0 {
            let mails = evaluation.mails;
            write!(
                out,
                " Of these {mails} mails {near_repeats} nearly repeat a mail that was, and {of_known_groups} are of a group \
                 (author, thread, sender) of such mail."
            )?;
        }
        let all = if repeats == 0 { "" } else { ", which judges all of them" };
        writeln!(out, " Shown again by `postroom eval {} --router {}`{all}.\n", data.display(), router.display())?;
        writeln!(out, "```text\n{}```", eval::table(evaluation))
    }
}

/// The whole card; with a test set, what the router did on it and the command that shows it again.
pub(super) fn card(manifest: &Manifest, trained: &Trained, max_error_rate: f64, test: Option<&Test<'_>>) -> String {
    let mut out = format!("# Router `{}`\n\n", manifest.name);
    let _ = writeln!(
        out,
        "Made by {} from {} mails{} of `{}` (sha256 {}), seed {}. The encoder `{}` {}{}.\n",
        manifest.provenance.program,
        manifest.provenance.mails,
        only_trained_on(manifest.provenance.mails_only_trained_on),
        manifest.provenance.data,
        &manifest.provenance.data_sha256,
        manifest.provenance.seed,
        manifest.encoder.name,
        encoder(trained.change.as_ref()),
        match &trained.lexical {
            Some(lexical) if lexical.gate.power > 0.0 => {
                ", and the logits of a linear model of word counts are added, the less the surer the encoder is"
            }
            Some(_) => ", and the logits of a linear model of word counts are added",
            None => "",
        },
    );
    let _ = writeln!(out, "## Queues\n\n| id | name | for |\n|---|---|---|");
    for queue in &manifest.queues {
        let _ = writeln!(out, "| `{}` | {} | {} |", queue.id, queue.name, queue.description);
    }
    let figures = &trained.figures;
    let _ = writeln!(
        out,
        "\n## Held-out figures\n\nEach mail was judged by a model trained on the other folds; whole groups were held out.\n\n\
         | | |\n|---|---|\n| right when every mail is routed | {:.1}% |\n\
         | the same, encoder alone | {:.1}% |\n| the same, word counts alone (baseline) | {:.1}% |\n\
         | the same, frozen encoder and word counts | {:.1}% |\n| threshold | {:.4} |\n\
         | routed without a person | {:.1}% |\n| of these right | {} |\n| calibration error (15 bins) | {:.4} |\n\
         | error budget proven | {} |",
        100.0 * figures.accuracy,
        100.0 * figures.accuracy_encoder_alone,
        100.0 * figures.accuracy_words_alone,
        100.0 * figures.accuracy_frozen,
        trained.calibration.threshold,
        100.0 * figures.coverage,
        share_right(figures).unwrap_or_else(|| "none is routed".to_owned()),
        figures.ece,
        match budget(trained, max_error_rate) {
            Budget::Proven => "yes, at 95% confidence".to_owned(),
            Budget::NotProven { why, .. } => format!("no: {why}"),
            Budget::OfEachQueue => "none: each queue has its own, below".to_owned(),
        },
    );
    let _ = writeln!(out, "\n## What it promises\n\nOf new mail like the held-out mail.\n");
    for promise in &trained.promises {
        let _ = writeln!(out, "- {promise}");
    }
    if let Some(test) = test {
        let _ = write!(out, "\n{test}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::{Calibration, HeadTensors};

    #[test]
    fn a_budget_is_not_proven_for_want_of_mails_only_where_they_are_too_few() {
        assert_eq!(why_not_proven(98, 0.03), "too few mails");
        assert!(why_not_proven(99, 0.03).contains("check their labels"));
        assert!(why_not_proven(5000, 0.0).contains("no number of mails"));
    }

    fn trained(threshold: f64, coverage: f64, promises: Vec<Promise>) -> Trained {
        Trained {
            queues: Vec::new(),
            head: HeadTensors { d_model: 1, query: Vec::new(), weight: Vec::new(), bias: Vec::new() },
            change: None,
            lexical: None,
            calibration: Calibration::new(1.0, threshold),
            losses_by_epoch: Vec::new(),
            budget_guaranteed: false,
            budget_solved_on: 40,
            promises,
            figures: Figures { coverage, ..Figures::default() },
            held_out: Vec::new(),
        }
    }

    #[test]
    fn where_nothing_is_routed_no_figure_of_it_is_made_up() {
        let common = Promise { about: "error budget".to_owned(), proven: false, words: String::new() };
        let said = held_out(&trained(1.0, 0.0, vec![common.clone()]), 0.03);
        assert!(said.contains("0.0% is routed without a person. Calibration"), "{said}");
        assert!(!said.contains("it held") && said.contains("(not proven: too few mails)"), "{said}");
        let said = held_out(&trained(0.9, 0.5, vec![common]), 0.03);
        assert!(said.contains("; it held on the mails") && said.contains("50.0% is routed"), "{said}");
        // No queue is left that the common budget speaks of.
        let said = held_out(&trained(0.9, 0.5, Vec::new()), 0.03);
        assert!(said.contains("each has a budget of its own") && !said.contains("not proven"), "{said}");
    }

    #[test]
    fn the_card_says_how_close_a_test_is_to_the_training_mail() {
        let evaluation = Evaluation {
            mails: 10,
            misrouted: Vec::new(),
            routed_alone: 8,
            routed_alone_wrong: 0,
            ece: 0.01,
            queues: Vec::new(),
            truncated: 0,
            threshold: None,
        };
        let said = |closeness| {
            let (data, router) = (Path::new("held/out.csv"), Path::new("models/mine"));
            Test { data, router, closeness, evaluation: &evaluation }.to_string()
        };
        let apart = said(Closeness::default());
        assert!(
            apart.starts_with(
                "## On `out.csv`\n\nNever trained on. Shown again by `postroom eval held/out.csv --router models/mine`.\n\n```text\n"
            ),
            "{apart}"
        );
        let close = said(Closeness { repeats: 2, near_repeats: 3, of_known_groups: 1 });
        assert!(!close.contains("Never trained on") && close.contains("Without 2 of its mails"), "{close}");
        assert!(close.contains("Of these 10 mails 3 nearly repeat") && close.contains("1 are of a group"), "{close}");
        assert!(close.contains("--router models/mine`, which judges all of them"), "{close}");
    }
}
