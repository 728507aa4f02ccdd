//! A share of counted mails, with the interval that so few mails leave open.

use serde::Serialize;

use crate::metrics::clopper_pearson_interval;

/// `hits` of `of` mails.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rate {
    /// Mails that count.
    pub hits: usize,
    /// Mails in all.
    pub of: usize,
    /// Their share; `None` of no mail.
    pub rate: Option<f64>,
    /// Lower end of the 95% interval (Clopper-Pearson, two-sided).
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Rate {
    /// A share with its interval.
    #[must_use]
    pub fn new(hits: usize, of: usize) -> Self {
        let (low, high) = clopper_pearson_interval(hits, of, 0.05);
        Self { hits, of, rate: (of > 0).then(|| hits as f64 / of as f64), low, high }
    }
}
