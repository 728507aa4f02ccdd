//! Which logits of the network make up each queue.
//!
//! A merged queue keeps the logits of all queues that it was made of, and its probability is the sum of theirs: its logit is
//! `T ln sum exp(z / T)` over them. So the probabilities of the other queues, and the energy of the mail, stay as they were.

use crate::metrics::energy;

/// The logits of each queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogitGroups {
    /// By queue, in the router's order.
    members: Vec<Vec<usize>>,
    n_logits: usize,
}

impl LogitGroups {
    /// One logit for each queue, in their order.
    #[must_use]
    pub fn one_each(n_queues: usize) -> Self {
        Self { members: (0..n_queues).map(|logit| vec![logit]).collect(), n_logits: n_queues }
    }

    /// From the list of a manifest; empty means one each.
    ///
    /// # Errors
    /// What is wrong, where the lists do not deal out the logits `0, 1, 2 ...` to the queues.
    pub(super) fn new(members: Vec<Vec<usize>>, n_queues: usize) -> Result<Self, String> {
        if members.is_empty() {
            return Ok(Self::one_each(n_queues));
        }
        let mut dealt: Vec<usize> = members.iter().flatten().copied().collect();
        dealt.sort_unstable();
        let n_logits = dealt.len();
        let complete = members.len() == n_queues && members.iter().all(|logits| !logits.is_empty());
        if !complete || dealt.into_iter().ne(0..n_logits) {
            return Err(format!("members {members:?} does not deal out its logits to {n_queues} queues, each once"));
        }
        Ok(Self { members, n_logits })
    }

    /// How many logits the network gives.
    #[must_use]
    pub fn n_logits(&self) -> usize {
        self.n_logits
    }

    /// One logit for each queue. Logits that stand alone stay as they are, to the last bit.
    #[must_use]
    pub fn join(&self, logits: &[f32], temperature: f64) -> Vec<f32> {
        let of_queue = |members: &Vec<usize>| {
            let own: Vec<f32> = members.iter().filter_map(|&logit| logits.get(logit).copied()).collect();
            if let [alone] = own[..] { alone } else { energy(&own, temperature) as f32 }
        };
        self.members.iter().map(of_queue).collect()
    }

    /// The lists as a manifest holds them: none where each queue has its own logit, in order.
    #[must_use]
    pub fn into_members(self) -> Vec<Vec<usize>> {
        let plain = self.members.iter().enumerate().all(|(queue, logits)| logits[..] == [queue]);
        if plain { Vec::new() } else { self.members }
    }

    /// The logits of a queue; none where there is no such queue.
    #[must_use]
    pub fn of_queue(&self, queue: usize) -> &[usize] {
        self.members.get(queue).map(Vec::as_slice).unwrap_or_default()
    }

    /// Gives the logits of one queue to another; queues behind the first move up.
    #[must_use]
    pub fn merged(mut self, from: usize, into: usize) -> Self {
        let logits = std::mem::take(&mut self.members[from]);
        self.members[into].extend(logits);
        self.members[into].sort_unstable();
        self.members.remove(from);
        self
    }

    /// Takes a queue and its logits out; logits behind them move up.
    #[must_use]
    pub fn without(mut self, queue: usize) -> Self {
        let gone = self.members.remove(queue);
        for logit in self.members.iter_mut().flatten() {
            *logit -= gone.iter().filter(|&&gone| gone < *logit).count();
        }
        Self { n_logits: self.n_logits - gone.len(), ..self }
    }

    /// Adds a queue with a new logit, the last.
    #[must_use]
    pub fn with_one_more(mut self) -> Self {
        self.members.push(vec![self.n_logits]);
        Self { n_logits: self.n_logits + 1, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::softmax;

    #[test]
    fn probabilities_of_merged_queues_add_up_and_the_others_stay() {
        for temperature in [0.7, 1.0, 2.5] {
            let logits = [1.5, -0.5, 3.0, 0.25];
            let before = softmax(&logits, temperature);
            let groups = LogitGroups::one_each(4).merged(3, 0);
            let after = softmax(&groups.join(&logits, temperature), temperature);
            for (after, before) in after.iter().zip([before[0] + before[3], before[1], before[2]]) {
                assert!((after - before).abs() < 1e-7, "{after} {before}");
            }
            assert!(
                (energy(&groups.join(&logits, temperature), temperature) - energy(&logits, temperature)).abs() < 1e-6
            );
        }
    }

    #[test]
    fn queues_come_and_go_without_mixing_up_logits() {
        let groups = LogitGroups::one_each(4).merged(1, 3).with_one_more();
        assert_eq!(groups.clone().into_members(), [vec![0], vec![2], vec![1, 3], vec![4]]);
        let groups = groups.without(2);
        assert_eq!((groups.n_logits(), groups.of_queue(2)), (3, &[2][..]));
        assert!(groups.into_members().is_empty());
    }

    #[test]
    fn lists_that_do_not_deal_out_the_logits_are_refused() {
        for members in [vec![vec![0], vec![2]], vec![vec![0], vec![0, 1]], vec![vec![0, 1]], vec![vec![0, 1], vec![]]] {
            assert!(LogitGroups::new(members.clone(), 2).is_err(), "{members:?}");
        }
        assert!(LogitGroups::new(vec![vec![0, 2], vec![1]], 2).is_ok());
    }
}
