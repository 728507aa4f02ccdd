//! `postroom model quantize`: linear layers on bytes, and what they cost.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;

use super::changing::Changing;
use super::common::{Progress, set_threads};
use super::data::{ColumnArgs, tell};
use super::output::Said;
use crate::artifact::{QuantizationLoss, Quantized, QuantizedType, StoredRouter, load_router_in};
use crate::dataset::{self, name_conflicts};
use crate::evaluation::compare_precisions;
use crate::model::cpu::Precision;

/// Arguments of `postroom model quantize`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  postroom model quantize models/shop tickets.csv\n  postroom model quantize models/shop tickets.csv --out models/shop-int8\n  postroom model quantize models/shop --off\n\nSeveral sets of mail can be measured one after another. A router that loses more than 0.3 points on any of them is\nneither written nor loaded."
)]
pub(super) struct QuantizeArgs {
    /// Directory of the router.
    #[arg(value_name = "DIR")]
    router: PathBuf,
    /// Labelled mail that the router was not trained on, in any format.
    #[arg(value_name = "DATA", required_unless_present = "off")]
    data: Option<PathBuf>,
    #[command(flatten)]
    columns: ColumnArgs,
    /// Run in f32 again.
    #[arg(long, conflicts_with = "data")]
    off: bool,
    /// Write the changed router here instead of in its place.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Threads; 0: as many as cgroup and affinity allow.
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

pub(super) fn run(args: &QuantizeArgs) -> anyhow::Result<()> {
    set_threads(args.threads)?;
    let mut changing = Changing::open(&args.router)?;
    let out = args.out.as_deref();
    changing.check(out)?;
    let mut said = Said::default();
    let quantized = match &args.data {
        Some(data) => {
            let loss = measure(&changing.place, data, args)?;
            said.line(sentence(&loss));
            let quantized = with_loss(changing.router.manifest.quantize.take(), loss);
            if let Err(reason) = quantized.check() {
                bail!("{reason}; the router is as it was");
            }
            Some(quantized)
        }
        None => None,
    };
    set(&mut changing.router, quantized);
    let (written, out) = changing.save(out)?;
    let runs = written.classifier.encoder().engine();
    said.line(format_args!("router {} {} written to {}", written.info.name, written.info.version, out.display()));
    said.line(format_args!("on this machine it runs as {runs}"));
    said.end(format_args!("{} holds the changed router", out.display()))
}

/// Turns bytes on or off, on the card too.
fn set(router: &mut StoredRouter, quantized: Option<Quantized>) {
    router.card = with_section(&router.card, quantized.as_ref());
    router.manifest.quantize = quantized;
}

/// Back to f32, for a router whose measured figures are no longer its own. Whether it ran on bytes.
pub(super) fn forget(router: &mut StoredRouter) -> bool {
    let on = router.manifest.quantize.is_some();
    set(router, None);
    on
}

/// Asks the router in both precisions.
fn measure(place: &Path, data: &Path, args: &QuantizeArgs) -> anyhow::Result<QuantizationLoss> {
    let mail = name_conflicts(dataset::read(data, &args.columns.options(None))?);
    tell(&mail.notes);
    if mail.examples.is_empty() {
        bail!("{} holds no mail to measure with", data.display());
    }
    let on_bytes = load_router_in(place, Precision::Int8)?;
    if !on_bytes.classifier.encoder().runs_on_bytes() {
        bail!(
            "this machine has no instructions for int8 (AVX-512 VNNI or AVX-VNNI), so what it costs cannot be measured here; \
             run this on a machine that has them"
        );
    }
    let in_floats = load_router_in(place, Precision::F32)?;
    let name = data.file_name().unwrap_or_default().to_string_lossy();
    let mut progress = Progress::new("asking in both precisions");
    let mut told = |done, all| progress.tell(done, all);
    Ok(compare_precisions(&in_floats, &on_bytes, &name, &mail.examples, &mut told)?)
}

/// What was measured, this set's old figures replaced.
fn with_loss(before: Option<Quantized>, loss: QuantizationLoss) -> Quantized {
    let mut measured = before.map_or_else(Vec::new, |quantized| quantized.measured);
    measured.retain(|old| old.data != loss.data);
    measured.push(loss);
    Quantized { kind: QuantizedType::Int8, measured }
}

fn sentence(loss: &QuantizationLoss) -> String {
    let QuantizationLoss { data, mails, right_f32, right_int8, changed, smallest_cosine } = loss;
    format!(
        "{data}: {right_f32} of {mails} right in f32, {right_int8} on bytes, {changed} decided otherwise; pooled vectors at a cosine of \
         at least {smallest_cosine:.5} to each other"
    )
}

const TITLE: &str = "\n## Int8\n";

/// The card with what it says of bytes, instead of what it said of them before.
fn with_section(card: &str, quantized: Option<&Quantized>) -> String {
    let mut out = card.to_owned();
    if let Some(start) = out.find(TITLE) {
        let end = out[start + 1..].find("\n## ").map_or(out.len(), |next| start + 1 + next);
        out.replace_range(start..end, "");
    }
    if let Some(Quantized { measured, .. }) = quantized {
        let sets: String = measured.iter().map(|loss| format!("- {}\n", sentence(loss))).collect();
        out.push_str(&format!(
            "{TITLE}\nLinear layers run on bytes where the processor has instructions for it, and in f32 where it has not. Every mail routed:\n\n{sets}"
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(data: &str, right_int8: usize) -> QuantizationLoss {
        QuantizationLoss {
            data: data.to_owned(),
            mails: 10,
            right_f32: 9,
            right_int8,
            changed: 1,
            smallest_cosine: 0.9995,
        }
    }

    #[test]
    fn a_set_is_measured_once_more_in_place_of_its_old_figures() {
        let once = with_loss(None, loss("a.csv", 8));
        let more = with_loss(Some(with_loss(Some(once), loss("b.csv", 9))), loss("a.csv", 9));
        assert_eq!(more.measured, [loss("b.csv", 9), loss("a.csv", 9)]);
    }

    #[test]
    fn the_card_says_it_once_and_no_more_when_it_is_off() {
        let card = "# Router\n\n## Memory\n\nNone.\n";
        let on = with_section(card, Some(&with_loss(None, loss("a.csv", 8))));
        assert!(
            on.starts_with(card) && on.contains("a.csv: 9 of 10 right in f32, 8 on bytes, 1 decided otherwise"),
            "{on}"
        );
        let again = with_section(&on, Some(&with_loss(None, loss("a.csv", 9))));
        assert_eq!(again.matches("## Int8").count(), 1);
        assert!(again.contains("9 on bytes"), "{again}");
        assert_eq!(with_section(&again, None), card);
        let before_another = with_section(&format!("{on}\n## More\n\nText.\n"), None);
        assert_eq!(before_another, format!("{card}\n## More\n\nText.\n"));
    }
}
