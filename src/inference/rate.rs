//! How fast the model has been of late, and what follows for those who wait.

use std::time::Duration;

/// Fewer tokens than this say nothing: the first mail of all runs alone, and slower for it.
const ENOUGH: f64 = 512.0;

/// Tokens and seconds of the last batches, each batch weighing nine tenths of the next: about ten batches count, and large
/// ones count for more, since a short batch says little of what a full one will take.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Rate {
    batches: f64,
    tokens: f64,
    seconds: f64,
}

impl Rate {
    pub(super) fn add(&mut self, tokens: usize, ran: Duration) {
        self.batches = 0.9 * self.batches + 1.0;
        self.tokens = 0.9 * self.tokens + tokens as f64;
        self.seconds = 0.9 * self.seconds + ran.as_secs_f64();
    }

    /// 0 until the first batch.
    pub(super) fn tokens_per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.tokens / self.seconds } else { 0.0 }
    }

    /// Tokens of a batch of late; 0 until the first one.
    pub(super) fn usual_batch(&self) -> usize {
        if self.batches > 0.0 { (self.tokens / self.batches).round() as usize } else { 0 }
    }

    /// How long this many tokens take; nothing is known before a fair number of them has run.
    pub(super) fn time_for(&self, tokens: usize) -> Option<Duration> {
        let rate = self.tokens_per_second();
        (self.tokens >= ENOUGH && rate > 0.0).then(|| Duration::from_secs_f64((tokens as f64 / rate).min(1e6)))
    }

    /// When to come back: after half the time that the waiting tokens need, in whole seconds from one to sixty.
    pub(super) fn retry_after(&self, waiting_tokens: usize) -> Duration {
        let seconds = self.time_for(waiting_tokens / 2).map_or(1.0, |time| time.as_secs_f64());
        Duration::from_secs_f64(seconds.clamp(1.0, 60.0).ceil())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_half_of_what_waits_at_the_measured_rate() {
        let mut rate = Rate::default();
        assert_eq!(rate.retry_after(1_000_000), Duration::from_secs(1));
        rate.add(4000, Duration::from_secs(1));
        assert_eq!(rate.retry_after(80_000), Duration::from_secs(10));
        assert_eq!(
            (rate.retry_after(8), rate.retry_after(10_000_000)),
            (Duration::from_secs(1), Duration::from_secs(60))
        );
    }

    /// A paused container or machine makes one batch seem to have taken a day.
    #[test]
    fn a_clock_that_leaps_within_a_batch_keeps_retry_after_in_its_bounds_and_is_forgotten() {
        let mut rate = Rate::default();
        let add = |rate: &mut Rate, batches| (0..batches).for_each(|_| rate.add(1000, Duration::from_millis(100)));
        add(&mut rate, 50);
        rate.add(1000, Duration::from_secs(86_400));
        assert_eq!(rate.retry_after(100_000), Duration::from_secs(60));
        add(&mut rate, 150);
        assert!((rate.tokens_per_second() - 10_000.0).abs() < 500.0, "{rate:?}");
        rate.add(1000, Duration::ZERO);
        rate.add(1000, Duration::MAX);
        assert_eq!(rate.retry_after(100_000), Duration::from_secs(60));
    }

    #[test]
    fn the_rate_follows_the_last_batches() {
        let mut rate = Rate::default();
        (0..50).for_each(|_| rate.add(1000, Duration::from_secs(1)));
        (0..50).for_each(|_| rate.add(1000, Duration::from_millis(100)));
        assert!((rate.tokens_per_second() - 10_000.0).abs() < 500.0, "{rate:?}");
    }
}
