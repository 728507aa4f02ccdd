//! The two diagrams as inline SVG.

use super::super::Report;
use super::markup::{Html, Percent};

/// The plot's area in user units; labels stand left of and below it.
const LEFT: f64 = 54.0;
const TOP: f64 = 12.0;
const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 200.0;

/// A coordinate with one decimal.
fn at(out: &mut Html, value: f64) {
    out.text(format_args!("{value:.1}"));
}

fn x(share: f64) -> f64 {
    LEFT + WIDTH * share
}

fn y(share: f64) -> f64 {
    TOP + HEIGHT * (1.0 - share)
}

/// Five labelled lines each way; `top` is the value at the upper edge.
fn axes(out: &mut Html, top: f64, x_name: &'static str, y_name: &'static str) {
    for step in 0..=4 {
        let share = f64::from(step) / 4.0;
        line(out, "grid", (x(0.0), y(share)), (x(1.0), y(share)));
        label(out, "end", (LEFT - 6.0, y(share) + 4.0), &short(share * top));
        label(out, "middle", (x(share), TOP + HEIGHT + 16.0), &short(share));
    }
    label(out, "middle", (x(0.5), TOP + HEIGHT + 34.0), x_name);
    out.raw("<text class=\"label\" text-anchor=\"middle\" transform=\"translate(10 ");
    at(out, TOP + HEIGHT / 2.0);
    out.raw(") rotate(-90)\">").text(y_name).raw("</text>");
}

/// A percentage with no more decimals than it needs.
fn short(share: f64) -> String {
    let percent = 100.0 * share;
    if percent >= 10.0 || percent.fract().abs() < 1e-9 { format!("{percent:.0}%") } else { format!("{percent:.1}%") }
}

fn line(out: &mut Html, class: &'static str, from: (f64, f64), to: (f64, f64)) {
    out.raw("<line class=\"").raw(class);
    for (name, value) in [("\" x1=\"", from.0), ("\" y1=\"", from.1), ("\" x2=\"", to.0), ("\" y2=\"", to.1)] {
        out.raw(name);
        at(out, value);
    }
    out.raw("\"/>");
}

fn label(out: &mut Html, anchor: &'static str, place: (f64, f64), text: &str) {
    out.raw("<text class=\"label\" text-anchor=\"").raw(anchor).raw("\" x=\"");
    at(out, place.0);
    out.raw("\" y=\"");
    at(out, place.1);
    out.raw("\">").text(text).raw("</text>");
}

fn open(out: &mut Html, name: &'static str) {
    out.raw("<svg viewBox=\"0 0 376 252\" role=\"img\" aria-label=\"").raw(name).raw("\">");
}

/// Error among answered mail against the share that is answered, with the router's own choice as a dot.
pub(super) fn error_coverage(out: &mut Html, report: &Report) {
    let alone = &report.alone;
    let chosen = (alone.routed.rate.unwrap_or(0.0), alone.wrong.rate.unwrap_or(0.0));
    // The surest few mails may all be wrong by chance: the axis follows the curve where it means something.
    let settled = alone.curve.iter().filter(|point| point.coverage >= 0.1).map(|point| point.risk);
    let top = nice(settled.chain([chosen.1]).fold(0.0, f64::max));
    open(out, "Share of wrong answers by share of mail routed without a person");
    axes(out, top, "mail routed without a person", "of it wrong");
    out.raw("<polyline class=\"curve\" points=\"");
    let mut before = 0.0;
    for point in &alone.curve {
        // A step: no threshold lies between two points.
        let height = y((point.risk / top).min(1.0));
        for coverage in [before, point.coverage] {
            at(out, x(coverage));
            out.raw(",");
            at(out, height);
            out.raw(" ");
        }
        before = point.coverage;
    }
    out.raw("\"/>");
    if alone.routed.hits > 0 {
        out.raw("<circle class=\"chosen\" r=\"5\" cx=\"");
        at(out, x(chosen.0));
        out.raw("\" cy=\"");
        at(out, y((chosen.1 / top).min(1.0)));
        out.raw("\"><title>")
            .text(Percent(chosen.0))
            .raw(" routed, ")
            .text(Percent(chosen.1))
            .raw(" of it wrong</title>");
        out.raw("</circle>");
    }
    out.raw("</svg>\n");
}

/// The next round share above a value, at least 1%.
fn nice(value: f64) -> f64 {
    const STEPS: [f64; 8] = [0.01, 0.02, 0.04, 0.08, 0.12, 0.2, 0.4, 0.6];
    STEPS.into_iter().find(|&step| step >= value).unwrap_or(1.0)
}

/// Share of right answers by confidence, against the line where both are equal; below, how many mails stand where.
pub(super) fn reliability(out: &mut Html, report: &Report) {
    let bins = &report.trust.bins;
    let most = bins.iter().map(|bin| bin.mails).max().unwrap_or(0).max(1) as f64;
    open(out, "Share of right answers by confidence");
    axes(out, 1.0, "confidence", "right");
    for bin in bins.iter().filter(|bin| bin.mails > 0) {
        rect(out, "mails", (bin.above, bin.up_to), 0.15 * bin.mails as f64 / most);
        rect(out, "bin", (bin.above, bin.up_to), bin.accuracy);
    }
    line(out, "ideal", (x(0.0), y(0.0)), (x(1.0), y(1.0)));
    for bin in bins.iter().filter(|bin| bin.mails > 0) {
        // Area by number of mails, so that a bin of one mail does not look like evidence.
        out.raw("<circle class=\"point\" r=\"");
        at(out, 2.5 + 3.5 * (bin.mails as f64 / most).sqrt());
        out.raw("\" cx=\"");
        at(out, x(bin.confidence));
        out.raw("\" cy=\"");
        at(out, y(bin.accuracy));
        out.raw("\"><title>").text(bin.mails).raw(" mails, confidence ").text(Percent(bin.confidence));
        out.raw(", right ").text(Percent(bin.accuracy)).raw("</title></circle>");
    }
    out.raw("</svg>\n");
}

fn rect(out: &mut Html, class: &'static str, span: (f64, f64), height: f64) {
    out.raw("<rect class=\"").raw(class).raw("\" x=\"");
    at(out, x(span.0) + 1.0);
    out.raw("\" y=\"");
    at(out, y(height));
    out.raw("\" width=\"");
    at(out, (x(span.1) - x(span.0) - 2.0).max(0.5));
    out.raw("\" height=\"");
    at(out, HEIGHT * height);
    out.raw("\"/>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_ends_at_a_round_share_above_the_curve() {
        assert!(
            (nice(0.0) - 0.01).abs() < 1e-12 && (nice(0.059) - 0.08).abs() < 1e-12 && (nice(0.7) - 1.0).abs() < 1e-12
        );
    }

    #[test]
    fn labels_have_no_more_decimals_than_they_need() {
        assert_eq!([0.0, 0.005, 0.02, 0.125, 1.0].map(short), ["0%", "0.5%", "2%", "12%", "100%"]);
    }
}
