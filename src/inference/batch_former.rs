//! Which waiting mails go into the next batch: a plain function of what waits and of the budget.

/// What the choice looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waiting {
    /// Tokens that the encoder will see.
    pub cost: usize,
}

/// Positions of the mails to run next, ascending; `waiting` is in order of arrival.
///
/// The oldest is always taken, so nothing starves and a mail larger than the budget still runs, alone. The others
/// follow in order of arrival while they fit: a long mail that does not fit is passed over by shorter ones behind it,
/// but only until it is the oldest itself.
pub(super) fn choose(waiting: impl IntoIterator<Item = Waiting>, max_batch_tokens: usize) -> Vec<usize> {
    let mut chosen = Vec::new();
    let mut used = 0usize;
    for (position, mail) in waiting.into_iter().enumerate() {
        if chosen.is_empty() || used + mail.cost <= max_batch_tokens {
            chosen.push(position);
            used = used.saturating_add(mail.cost);
        }
        if used >= max_batch_tokens {
            break;
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chosen(costs: &[usize], budget: usize) -> Vec<usize> {
        choose(costs.iter().map(|&cost| Waiting { cost }), budget)
    }

    #[test]
    fn nothing_waiting_nothing_chosen() {
        assert!(chosen(&[], 100).is_empty());
    }

    #[test]
    fn a_mail_over_the_budget_runs_alone() {
        assert_eq!(chosen(&[500, 10], 100), [0]);
    }

    #[test]
    fn short_mails_pass_a_long_one_that_does_not_fit() {
        assert_eq!(chosen(&[60, 90, 30, 20], 100), [0, 2]);
    }

    proptest! {
        #[test]
        fn the_oldest_always_runs_and_the_budget_holds(costs in prop::collection::vec(1usize..300, 1..50), budget in 1usize..500) {
            let chosen = chosen(&costs, budget);
            prop_assert_eq!(chosen[0], 0);
            let used: usize = chosen.iter().map(|&position| costs[position]).sum();
            prop_assert!(used <= budget.max(costs[0]));
            prop_assert!(chosen.is_sorted());
        }
    }
}
