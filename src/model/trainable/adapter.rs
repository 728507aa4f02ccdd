//! Low-rank adapters (Hu et al. 2021): `W + alpha / rank * B A`, a few hundred kilobytes beside a frozen weight.

use candle_core::Tensor;
use serde::{Deserialize, Serialize};

/// Size of the adapters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoraConfig {
    /// Rank of the change.
    pub rank: usize,
    /// The change is scaled by `alpha / rank`.
    pub alpha: f64,
}

impl LoraConfig {
    /// `alpha / rank`.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.alpha / self.rank.max(1) as f64
    }
}

/// The adapter of one linear layer.
#[derive(Debug, Clone)]
pub struct Adapter {
    /// `A`, `[rank, inputs]`.
    pub down: Tensor,
    /// `B`, `[outputs, rank]`.
    pub up: Tensor,
    /// `alpha / rank`.
    pub scale: f64,
}
