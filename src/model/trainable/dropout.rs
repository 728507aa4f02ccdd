//! Dropout whose masks are a function of seed and position, so that a resumed training draws the same ones.

use candle_core::{Result, Tensor};

use crate::random::SplitMix64;

/// Draws masks one after another.
#[derive(Debug, Clone)]
pub struct Dropout {
    rate: f64,
    random: SplitMix64,
}

impl Dropout {
    /// `rate` is the share of values that are zeroed, 0 to 1 (exclusive).
    #[must_use]
    pub fn new(rate: f64, seed: u64) -> Self {
        Self { rate, random: SplitMix64::seeded(seed) }
    }

    /// `x` with some values zeroed and the others scaled up, so that the expectation stays (Srivastava et al. 2014).
    ///
    /// # Errors
    /// Only candle's own (device) errors.
    pub fn apply(&mut self, x: &Tensor) -> Result<Tensor> {
        if !self.active() {
            return Ok(x.clone());
        }
        let mut mask = vec![0.0; x.elem_count()];
        self.fill(&mut mask);
        x * Tensor::from_vec(mask, x.shape(), x.device())?.to_dtype(x.dtype())?
    }

    /// Whether anything is dropped at all.
    #[must_use]
    pub fn active(&self) -> bool {
        self.rate > 0.0
    }

    /// Draws the next mask: 0 for what is dropped, `1 / (1 - rate)` for the rest.
    pub(super) fn fill(&mut self, mask: &mut [f32]) {
        let keep = (1.0 / (1.0 - self.rate)) as f32;
        let limit = (self.rate * f64::from(1u32 << 16)) as u64;
        for four in mask.chunks_mut(4) {
            // Four decisions of 16 bits a number: the rate is exact to 1/65536.
            let mut bits = self.random.next_u64();
            for value in four {
                *value = if bits & 0xFFFF < limit { 0.0 } else { keep };
                bits >>= 16;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::*;

    #[test]
    fn the_share_of_zeros_is_the_rate_and_the_mean_stays() {
        let x = Tensor::ones((100, 400), DType::F32, &Device::Cpu).unwrap();
        let y = Dropout::new(0.1, 7).apply(&x).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let zeros = y.iter().filter(|&&y| y == 0.0).count() as f64 / y.len() as f64;
        let mean = y.iter().map(|&y| f64::from(y)).sum::<f64>() / y.len() as f64;
        assert!((zeros - 0.1).abs() < 0.01 && (mean - 1.0).abs() < 0.01, "{zeros} {mean}");
    }

    #[test]
    fn the_same_seed_draws_the_same_masks() {
        let x = Tensor::ones(1000, DType::F32, &Device::Cpu).unwrap();
        let draw = |seed| {
            let mut dropout = Dropout::new(0.5, seed);
            (0..2).map(|_| dropout.apply(&x).unwrap().to_vec1::<f32>().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert_ne!(draw(1)[0], draw(1)[1]);
    }
}
