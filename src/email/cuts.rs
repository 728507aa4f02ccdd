//! What stays in the body and what is reported as cut.

use std::ops::Range;

use super::cleaned::{Cut, CutReason, ZoneKind};
use super::zones::Zoned;
use super::{AlignedText, CleanOptions};

/// The sender's own lines and the zones that the options keep, in order.
pub(super) fn kept_ranges(zoned: &Zoned, options: &CleanOptions) -> Vec<Range<usize>> {
    let switched_on = |kind| is_kept(kind, options);
    let mut kept = zoned.own.clone();
    kept.extend(zoned.zones.iter().filter(|zone| switched_on(zone.kind)).map(|zone| zone.range.clone()));
    kept.sort_by_key(|range| range.start);
    kept
}

/// Zones other than the sender's own text that the options keep.
fn is_kept(kind: ZoneKind, options: &CleanOptions) -> bool {
    match kind {
        ZoneKind::Text | ZoneKind::ForwardHeader | ZoneKind::Delimiter => false,
        ZoneKind::Quote | ZoneKind::QuoteHeader => options.keep_quotes,
        ZoneKind::Signature | ZoneKind::Disclaimer | ZoneKind::Banner => options.keep_signatures,
    }
}

/// What is taken out, in bytes of the posted text; neighbours of one reason are one cut.
pub(super) fn cuts(zoned: &Zoned, text: &AlignedText, truncated: bool, options: &CleanOptions) -> Vec<Cut> {
    let mut cuts: Vec<Cut> = Vec::new();
    for zone in &zoned.zones {
        let Some(why) = reason(zone.kind).filter(|_| !is_kept(zone.kind, options)) else {
            continue;
        };
        let Range { start, end } = text.posted_range(zone.range.clone());
        match cuts.last_mut() {
            Some(last) if last.why == why && last.end == start => last.end = end,
            _ => cuts.push(Cut { why, start, end }),
        }
    }
    let end = text.posted().len();
    let read = text.posted_range(0..text.text().len()).end;
    if truncated && read < end {
        cuts.push(Cut { why: CutReason::Limit, start: read, end });
    }
    cuts
}

fn reason(kind: ZoneKind) -> Option<CutReason> {
    match kind {
        ZoneKind::Text => None,
        ZoneKind::Quote | ZoneKind::QuoteHeader => Some(CutReason::Quote),
        ZoneKind::ForwardHeader => Some(CutReason::ForwardHeader),
        ZoneKind::Signature => Some(CutReason::Signature),
        ZoneKind::Disclaimer => Some(CutReason::Disclaimer),
        ZoneKind::Banner => Some(CutReason::Banner),
        ZoneKind::Delimiter => Some(CutReason::Delimiter),
    }
}
