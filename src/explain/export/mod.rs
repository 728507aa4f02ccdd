//! A map as a file: arrays for programs ([`npy`], [`safetensors`]), pictures for people ([`png()`], [`svg()`], [`html()`]).
//!
//! Every file says of which model it is, when it was made, and that attention is a clue. No file loads anything from elsewhere, and
//! the words of a mail, which may be hostile, are escaped in each.

mod arrays;
mod html;
mod png;
mod svg;

pub use self::arrays::{npy, safetensors};
pub use self::html::html;
pub use self::png::png;
pub use self::svg::svg;

use super::AttentionMap;

/// Said in every file and under every map.
pub const CLUE: &str = "Attention is a clue, not a proof: it has no sign and knows no queue.";

/// Largest side of a picture in pixels.
pub const MAX_SIDE: usize = 4096;

/// Why a file cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The picture would be too large.
    #[error("the picture would be {width} by {height} pixels, the limit is {MAX_SIDE} a side")]
    TooLarge {
        /// Pixels.
        width: usize,
        /// Pixels.
        height: usize,
    },
    /// The encoder of the format refused.
    #[error("the file cannot be written: {0}")]
    Format(String),
}

/// One window's map with the words on its axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Sheet {
    /// The weights, `[layer, head, query, key]`.
    pub map: AttentionMap,
    /// Names of the layers.
    pub layers: Vec<String>,
    /// Names of the heads.
    pub heads: Vec<String>,
    /// Words on the rows.
    pub rows: Vec<String>,
    /// Words on the columns.
    pub columns: Vec<String>,
    /// For each column where its word stands, in the unit of the answer; 0 and 0 for special tokens.
    pub offsets: Vec<[u32; 2]>,
}

/// What stands beside the maps in every file.
#[derive(Debug, Clone, PartialEq)]
pub struct Caption {
    /// Router and version.
    pub model: String,
    /// What the weights are: `alpha`, `norm`, `rollout`, `relevance`.
    pub kind: String,
    /// The queue that they are about, where they are about one.
    pub class: Option<String>,
    /// RFC 3339, UTC.
    pub made: String,
}

impl Caption {
    /// One line.
    #[must_use]
    pub fn line(&self) -> String {
        let class = self.class.as_ref().map_or_else(String::new, |class| format!(", queue {class}"));
        format!("{}{class}, model {}, made {}. Rows look at columns. {CLUE}", self.kind, self.model, self.made)
    }
}

/// Where the maps of a sheet stand in one picture: layers down, heads across.
fn panels(sheet: &Sheet) -> impl Iterator<Item = (usize, usize, &[f32])> {
    let [_, heads, queries, keys] = sheet.map.shape;
    let maps = sheet.map.data.chunks_exact((queries * keys).max(1));
    maps.enumerate().map(move |(index, map)| (index / heads.max(1), index % heads.max(1), map))
}

/// White to violet, `share` from 0 to 1: neutral, since attention is for nothing and against nothing. Square roots spread the many
/// small weights over the shades.
fn colour(share: f32) -> [u8; 3] {
    let level = share.clamp(0.0, 1.0).sqrt();
    let between = |light: f32, dark: f32| (light + (dark - light) * level).round() as u8;
    [between(255.0, 63.0), between(255.0, 32.0), between(255.0, 112.0)]
}

fn largest(map: &[f32]) -> f32 {
    map.iter().copied().fold(f32::MIN_POSITIVE, f32::max)
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Two heads of one layer, a hostile word on the axes.
    pub(crate) fn sheet() -> Sheet {
        let words = ["[CLS]", "</script><b>&\"", "cake"].map(str::to_owned);
        Sheet {
            map: AttentionMap { shape: [1, 2, 1, 3], data: vec![0.5, 0.25, 0.25, 0.0, 1.0, 0.0] },
            layers: vec!["5".to_owned()],
            heads: vec!["0".to_owned(), "1".to_owned()],
            rows: vec![words[0].clone()],
            columns: words.to_vec(),
            offsets: vec![[0, 0], [0, 14], [15, 19]],
        }
    }

    pub(crate) fn caption() -> Caption {
        Caption {
            model: "crumb 1".to_owned(),
            kind: "alpha".to_owned(),
            class: Some("refunds".to_owned()),
            made: "2026-01-05T10:12:00Z".to_owned(),
        }
    }
}
