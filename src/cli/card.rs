//! The model card that stands beside a router.

use std::fmt::Write;
use std::path::Path;

use super::eval;
use crate::artifact::{EncoderChange, Manifest};
use crate::evaluation::Evaluation;
use crate::training::Trained;

/// The held-out figures in one paragraph.
pub(super) fn held_out(trained: &Trained, max_error_rate: f64) -> String {
    let figures = &trained.figures;
    let promise = if trained.budget_guaranteed {
        "proven at 95% confidence (Clopper-Pearson)"
    } else {
        "not proven: too few mails; it held on the mails that it was chosen on"
    };
    let mut out = format!(
        "Held-out mail: {:.1}% right when every mail is routed (encoder alone {:.1}%, word counts alone {:.1}%); with the threshold {:.3} for a budget of {:.1}% wrong \
         ({promise}) {:.1}% is routed without a person, {:.1}% of it right. Calibration error {:.4} (15 bins).",
        100.0 * figures.accuracy,
        100.0 * figures.accuracy_encoder_alone,
        100.0 * figures.accuracy_words_alone,
        trained.calibration.threshold,
        100.0 * max_error_rate,
        100.0 * figures.coverage,
        100.0 * figures.accuracy_when_routed,
        figures.ece,
    );
    for promise in &trained.promises {
        let _ = write!(out, "\n{promise}");
    }
    out
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

/// The whole card; with a test set, what the router did on it and the command that shows it again.
pub(super) fn card(manifest: &Manifest, trained: &Trained, test: Option<(&Path, &Evaluation)>) -> String {
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
         | routed without a person | {:.1}% |\n| of these right | {:.1}% |\n| calibration error (15 bins) | {:.4} |\n\
         | error budget proven | {} |",
        100.0 * figures.accuracy,
        100.0 * figures.accuracy_encoder_alone,
        100.0 * figures.accuracy_words_alone,
        100.0 * figures.accuracy_frozen,
        trained.calibration.threshold,
        100.0 * figures.coverage,
        100.0 * figures.accuracy_when_routed,
        figures.ece,
        if trained.budget_guaranteed { "yes, at 95% confidence" } else { "no, too few mails" },
    );
    let _ = writeln!(out, "\n## What it promises\n\nOf new mail like the held-out mail.\n");
    for promise in &trained.promises {
        let _ = writeln!(out, "- {promise}");
    }
    if let Some((path, evaluation)) = test {
        let _ = writeln!(
            out,
            "\n## On `{}`\n\nNever trained on. Shown again by `postroom eval {}`.\n\n```text\n{}```",
            path.file_name().unwrap_or_default().to_string_lossy(),
            path.display(),
            eval::table(evaluation),
        );
    }
    out
}
