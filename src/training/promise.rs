//! What may be promised of a router, in words: with the counts it stands on, or with the number of mails that it lacks.

use serde::{Deserialize, Serialize};

use crate::metrics::{BudgetThreshold, RecallGuard, conformal_rank, fewest_to_cover, fewest_to_prove};

/// One statement about new mail like the held-out mail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    /// What it is about: `error budget`, `recall of allergy-questions` and so on.
    pub about: String,
    /// Whether the held-out mail shows it.
    pub proven: bool,
    /// The statement with its counts, or why it cannot be made.
    pub words: String,
}

/// What the promise of the common error budget is about.
const COMMON_BUDGET: &str = "error budget";

impl Promise {
    /// Whether this is the promise of the common error budget. There is none where every queue has a budget of its own.
    #[must_use]
    pub fn is_common_budget(&self) -> bool {
        self.about == COMMON_BUDGET
    }
}

impl std::fmt::Display for Promise {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let proven = if self.proven { "" } else { "NOT PROVEN, " };
        write!(formatter, "{}: {proven}{}", self.about, self.words)
    }
}

/// Among mail routed alone, at most `rate` wrong.
pub(super) fn of_budget(rate: f64, solved: &BudgetThreshold, some_have_their_own: bool) -> Promise {
    let whose = if some_have_their_own { " to queues without a budget of their own" } else { "" };
    budget(COMMON_BUDGET.to_owned(), whose, rate, solved)
}

/// The same where no held-out mail was predicted as a queue without a budget of its own: nothing is known of such mail.
pub(super) fn of_budget_without_mail(rate: f64) -> Promise {
    let words = format!(
        "no held-out mail was predicted as a queue without a budget of its own; to promise {}, {}",
        percent(rate),
        needed(rate)
    );
    Promise { about: COMMON_BUDGET.to_owned(), proven: false, words }
}

/// The same for mail routed to one queue.
pub(super) fn of_queue_budget(id: &str, rate: f64, solved: &BudgetThreshold) -> Promise {
    budget(format!("error budget of {id}"), "", rate, solved)
}

fn budget(about: String, whose: &str, rate: f64, solved: &BudgetThreshold) -> Promise {
    let BudgetThreshold { guaranteed, routed, errors, .. } = *solved;
    let words = if guaranteed {
        format!(
            "at most {} of mail routed alone{whose} is wrong, at 95% confidence: {errors} of {routed} held-out mails were",
            percent(rate)
        )
    } else {
        format!(
            "{errors} of {routed} held-out mails routed alone{whose} were wrong; to promise {}, {}",
            percent(rate),
            needed(rate)
        )
    };
    Promise { about, proven: guaranteed, words }
}

/// What it takes to prove an error budget.
fn needed(rate: f64) -> String {
    fewest_to_prove(rate).map_or_else(
        || "no number of mails can show it".to_owned(),
        |fewest| format!("at least {fewest} sure mails without one error are needed, more with errors"),
    )
}

/// At least `floor` of the queue's mail reaches the queue or a person.
pub(super) fn of_guard(id: &str, floor: f64, guard: &RecallGuard) -> Promise {
    let RecallGuard { proven, mails, caught, probability } = *guard;
    let seen = format!("{caught} of {mails} held-out mails did, with a guard of {probability:.4}");
    let floor_words = percent(floor);
    let words = if proven {
        format!("at least {floor_words} of its mail reaches it or a person, on average over trainings: {seen}")
    } else {
        match fewest_to_cover(floor) {
            Some(fewest) if mails < fewest => {
                format!("{seen}; to promise {floor_words}, {fewest} mails of the queue are needed, there are {mails}")
            }
            _ => format!("{seen}; to promise {floor_words} a guard would have to stop nearly every mail"),
        }
    };
    Promise { about: format!("recall of {id}"), proven, words }
}

/// At most `share` of known mail is taken for out of scope.
pub(super) fn of_scope(mails: usize, share: f64) -> Promise {
    let proven = scope_rank(mails, share).is_some();
    let words = if proven {
        format!("at most {} of known mail is taken for out of scope, on average over trainings", percent(share))
    } else {
        let fewest = (1.0 / share - 1.0 - 1e-9).ceil();
        format!("mail is not checked: {fewest} mails are needed to set aside {}, there are {mails}", percent(share))
    };
    Promise { about: "out of scope".to_owned(), proven, words }
}

/// Which of the smallest energies is the limit; `None` where it would be none.
pub(super) fn scope_rank(mails: usize, share: f64) -> Option<usize> {
    let rank = ((mails + 1) as f64 * share + 1e-9).floor() as usize;
    (rank > 0).then_some(rank)
}

/// Of mail handed to a person, all but `alpha` has its right queue in the set.
pub(super) fn of_set(mails: usize, alpha: f64) -> Promise {
    let proven = conformal_rank(mails, 1.0 - alpha) <= mails;
    let covered = percent(1.0 - alpha);
    let words = if proven {
        format!(
            "of mail handed to a person, {covered} has its right queue in the set, on average over trainings: {mails} held-out mails were handed over"
        )
    } else {
        let fewest = fewest_to_cover(1.0 - alpha).unwrap_or(usize::MAX);
        format!(
            "no set is shown: to promise {covered}, {fewest} held-out mails handed to a person are needed, there are {mails}"
        )
    };
    Promise { about: "candidate set".to_owned(), proven, words }
}

/// A share in percent without trailing zeros: 3%, 0.1%.
fn percent(share: f64) -> String {
    format!("{}%", (share * 1e8).round() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_written_as_people_write_them() {
        assert_eq!([0.03, 0.001, 0.99, 1.0 - 0.05].map(percent), ["3%", "0.1%", "99%", "95%"]);
    }

    #[test]
    fn a_budget_that_cannot_be_shown_says_how_many_mails_it_takes() {
        let solved = BudgetThreshold { threshold: 0.9, guaranteed: false, routed: 40, errors: 0 };
        let promise = of_queue_budget("allergy", 0.001, &solved);
        assert!(!promise.proven && promise.words.contains("2995 sure mails"), "{promise}");
        assert!(of_queue_budget("allergy", 0.0, &solved).words.contains("no number of mails"));
    }

    #[test]
    fn scope_needs_fifty_mails_for_two_percent() {
        assert_eq!((scope_rank(48, 0.02), scope_rank(49, 0.02), scope_rank(1140, 0.02)), (None, Some(1), Some(22)));
        assert!(of_scope(20, 0.02).words.contains("49 mails are needed"));
    }

    #[test]
    fn a_set_needs_nineteen_mails_for_95_percent() {
        assert!(of_set(18, 0.05).words.contains("19 held-out mails") && !of_set(18, 0.05).proven);
        assert!(of_set(19, 0.05).proven);
    }
}
