//! The parts of the page, each from one part of the report.

use super::super::{Mistake, Rate, Report, Slice};
use super::charts;
use super::markup::{Html, Percent};

/// The four figures that matter most.
pub(super) fn cards(out: &mut Html, report: &Report) {
    let alone = &report.alone;
    out.raw("<div class=\"cards\">\n");
    card(out, "routed without a person", &alone.routed);
    card(out, "of that mail, wrong", &alone.wrong);
    card(out, "right if every mail were routed", &report.accuracy);
    match &report.baseline {
        Some(baseline) => card(out, "the same by word counts alone", baseline),
        None => {
            out.raw("<div class=\"card\"><strong>none</strong><span>this router counts no words: there is no baseline")
                .raw("</span></div>\n");
        }
    }
    out.raw("</div>\n");
}

fn card(out: &mut Html, name: &'static str, rate: &Rate) {
    out.raw("<div class=\"card\"><strong>");
    share(out, rate);
    out.raw("</strong><span>")
        .raw(name)
        .raw("</span><small>")
        .text(rate.hits)
        .raw(" of ")
        .text(rate.of)
        .raw("</small><small>95%: ");
    interval(out, rate);
    out.raw("</small></div>\n");
}

fn share(out: &mut Html, rate: &Rate) {
    match rate.rate {
        Some(rate) => out.text(Percent(rate)),
        None => out.raw("&ndash;"),
    };
}

fn interval(out: &mut Html, rate: &Rate) {
    out.text(format_args!("{:.1}", 100.0 * rate.low)).raw("&ndash;").text(Percent(rate.high));
}

pub(super) fn alone(out: &mut Html, report: &Report) {
    let alone = &report.alone;
    out.raw("<section>\n<h2>With and without a person</h2>\n<p>");
    out.text(alone.routed.hits).raw(" mails would be routed without a person, ").text(alone.wrong.hits);
    out.raw(" of them to a wrong queue. ").text(alone.to_a_person).raw(" would go to a person: ");
    out.text(alone.below_threshold).raw(" below the threshold, ").text(alone.out_of_scope).raw(" out of scope, ");
    out.text(alone.safety_queue)
        .raw(" stopped for a queue whose mail must not be missed (a mail may have several reasons).");
    out.raw("</p>\n<figure>\n");
    charts::error_coverage(out, report);
    out.raw("<figcaption>What each threshold would do. The dot is ");
    if alone.threshold_of_settings {
        // With all its digits: somebody chose them.
        out.raw("the choice of the settings (threshold ").text(alone.threshold);
    } else {
        out.raw("the router's choice (common threshold ").text(format_args!("{:.3}", alone.threshold));
    }
    out.raw("). Mean error over all thresholds (AURC) ");
    out.text(format_args!("{:.4}", alone.aurc)).raw(", of which ").text(format_args!("{:.4}", alone.excess_aurc));
    out.raw(" could be saved by a better order.</figcaption>\n</figure>\n</section>\n");
}

pub(super) fn trust(out: &mut Html, report: &Report) {
    let trust = &report.trust;
    out.raw("<section>\n<h2>Can the confidence be trusted?</h2>\n<figure>\n");
    charts::reliability(out, report);
    out.raw(
        "<figcaption>Points on the dashed line: of mail with 80% confidence, 80% is right. Below it the router is ",
    )
    .raw("too sure, above it too shy. Large points and high orange bars stand for many mails. Calibration error ");
    out.text(format_args!("{:.4}", trust.ece))
        .raw(" (15 equal bins), ")
        .text(format_args!("{:.4}", trust.adaptive_ece));
    out.raw(" (equally filled bins); Brier score ").text(format_args!("{:.4}", trust.brier));
    out.raw(".</figcaption>\n</figure>\n</section>\n");
}

pub(super) fn queues(out: &mut Html, report: &Report) {
    out.raw("<section>\n<h2>Queue by queue</h2>\n<p>If every mail were routed. <em>Precision</em>: of the mail sent there, ")
        .raw("what belongs there. <em>Recall</em>: of the mail that belongs there, what arrives. Intervals are 95%. ")
        .raw("Macro-F1 ")
        .text(format_args!("{:.3}", report.macro_f1))
        .raw(".</p>\n<div class=\"scroll\"><table>\n<thead><tr><th>queue</th><th>mails</th><th>precision</th><th>recall</th>")
        .raw("<th>F1</th><th>alone, right</th><th>alone, wrong</th></tr></thead>\n<tbody>\n");
    for queue in &report.queues {
        out.raw("<tr><th>").text(&queue.queue).raw("</th><td>").text(queue.mails).raw("</td>");
        rate_cell(out, &queue.precision);
        rate_cell(out, &queue.recall);
        out.raw("<td>");
        match queue.f1 {
            Some(f1) => out.text(format_args!("{f1:.3}")),
            None => out.raw("&ndash;"),
        };
        out.raw("</td><td>")
            .text(queue.routed_alone_right)
            .raw("</td><td>")
            .text(queue.routed_alone_wrong)
            .raw("</td></tr>\n");
    }
    out.raw("</tbody></table></div>\n</section>\n");
}

fn rate_cell(out: &mut Html, rate: &Rate) {
    out.raw("<td>");
    share(out, rate);
    out.raw(" <small>");
    interval(out, rate);
    out.raw("</small></td>");
}

pub(super) fn confusion(out: &mut Html, report: &Report) {
    out.raw("<section>\n<h2>What is taken for what</h2>\n<p>Rows: where the mail belongs. Columns: where it would go. Blue is ")
        .raw("right, orange is wrong; the darker, the larger the share of the row.</p>\n")
        .raw("<div class=\"scroll\"><table class=\"confusion\">\n<thead><tr><th></th>");
    for (index, queue) in report.queues.iter().enumerate() {
        out.raw("<th scope=\"col\" title=\"").text(&queue.queue).raw("\">").text(index + 1).raw("</th>");
    }
    out.raw("</tr></thead>\n<tbody>\n");
    for (row, counts) in report.confusion.iter().enumerate() {
        let whole: usize = counts.iter().sum();
        let name = report.queues.get(row).map_or("", |queue| queue.queue.as_str());
        out.raw("<tr><th scope=\"row\">").text(row + 1).raw(" ").text(name).raw("</th>");
        for (column, &count) in counts.iter().enumerate() {
            // Ten shades, a rare mistake still visible.
            let shade = (10 * count).div_ceil(whole.max(1));
            out.raw("<td class=\"").raw(if row == column { "right" } else { "wrong" }).raw(" s").text(shade).raw("\">");
            out.text(count).raw("</td>");
        }
        out.raw("</tr>\n");
    }
    out.raw("</tbody></table></div>\n");
    if !report.merges.is_empty() {
        out.raw("<h3>Queues to merge, if one team could take both</h3>\n<div class=\"scroll\"><table>\n<thead><tr><th>pair</th>")
            .raw("<th>first as second</th><th>second as first</th><th>accuracy gained</th></tr></thead>\n<tbody>\n");
        for merge in &report.merges {
            out.raw("<tr><th>").text(&merge.queues[0]).raw(" + ").text(&merge.queues[1]).raw("</th><td>");
            out.text(merge.mistaken[0]).raw("</td><td>").text(merge.mistaken[1]).raw("</td><td>+");
            out.text(Percent(merge.gain)).raw("</td></tr>\n");
        }
        out.raw("</tbody></table></div>\n");
    }
    out.raw("</section>\n");
}

pub(super) fn slices(out: &mut Html, report: &Report) {
    out.raw("<section>\n<h2>Long mail</h2>\n");
    slice_table(out, "length", &report.by_length);
    if !report.by_position.is_empty() {
        out.raw("<h3>By the place of the deciding sentence in the mail</h3>\n");
        slice_table(out, "place", &report.by_position);
    }
    out.raw("</section>\n");
}

fn slice_table(out: &mut Html, name: &'static str, slices: &[Slice]) {
    out.raw("<div class=\"scroll\"><table>\n<thead><tr><th>").raw(name);
    out.raw("</th><th>mails</th><th>right if routed</th></tr></thead>\n<tbody>\n");
    for slice in slices {
        out.raw("<tr><th>").text(&slice.name).raw("</th><td>").text(slice.accuracy.of).raw("</td>");
        rate_cell(out, &slice.accuracy);
        out.raw("</tr>\n");
    }
    out.raw("</tbody></table></div>\n");
}

pub(super) fn mistakes(out: &mut Html, report: &Report) {
    out.raw("<section>\n<h2>The surest mistakes</h2>\n");
    mistake_table(out, &report.worst);
    out.raw("<h2>Labels worth checking</h2>\n<p>Of each queue, the mails whose label the router believes least. Some of these ")
        .raw("labels are wrong; others are hard mails.</p>\n");
    mistake_table(out, &report.suspects);
    out.raw("</section>\n");
}

fn mistake_table(out: &mut Html, mistakes: &[Mistake]) {
    if mistakes.is_empty() {
        out.raw("<p>None.</p>\n");
        return;
    }
    out.raw(
        "<div class=\"scroll\"><table class=\"mistakes\">\n<thead><tr><th>mail</th><th>label</th><th>would go to</th>",
    )
    .raw("<th>sure</th><th>alone</th></tr></thead>\n<tbody>\n");
    for mistake in mistakes {
        out.raw("<tr><th><span class=\"id\">")
            .text(&mistake.id)
            .raw("</span> <bdi>")
            .text(subject(mistake))
            .raw("</bdi></th><td>");
        out.text(&mistake.target).raw("</td><td>").text(&mistake.predicted).raw("</td><td>");
        out.text(Percent(mistake.confidence)).raw("</td><td>").raw(if mistake.routed_alone { "yes" } else { "no" });
        out.raw("</td></tr>\n");
    }
    out.raw("</tbody></table></div>\n");
}

/// Subjects may be of any length.
fn subject(mistake: &Mistake) -> String {
    const MOST: usize = 100;
    match mistake.subject.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}\u{2026}", &mistake.subject[..end]),
        None => mistake.subject.clone(),
    }
}
