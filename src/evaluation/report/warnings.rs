//! What the reader must keep in mind: skew, queues without mail, mail left out.

use super::QueueReport;

/// The largest queue may have this many times the mail of the smallest before the figures deserve a warning.
const SKEW: usize = 10;

pub(super) fn of(queues: &[QueueReport], left_out: usize) -> Vec<String> {
    let mut warnings = Vec::new();
    if left_out > 0 {
        warnings.push(format!(
            "{left_out} mails were left out: their label or their numbers do not fit the router's queues."
        ));
    }
    let empty: Vec<&str> = queues.iter().filter(|queue| queue.mails == 0).map(|queue| queue.queue.as_str()).collect();
    if !empty.is_empty() {
        warnings.push(format!("No mail belongs to {}: nothing is known of how mail for it fares.", empty.join(", ")));
    }
    let with_mail = || queues.iter().filter(|queue| queue.mails > 0);
    if let (Some(most), Some(least)) =
        (with_mail().max_by_key(|queue| queue.mails), with_mail().min_by_key(|queue| queue.mails))
        && most.mails > SKEW * least.mails
    {
        warnings.push(format!(
            "Skewed: {} has {} mails, {} has {}. The accuracy speaks of the large queues; look at macro-F1 and at the \
             recall of the small ones.",
            most.queue, most.mails, least.queue, least.mails
        ));
    }
    warnings
}
