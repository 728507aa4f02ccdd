//! Attention maps of one mail: what is asked for, whether it fits, and where it comes from.
//!
//! Plain weights come from the same pass that routes. What needs gradients, all layers at once or the vectors behind the weights is
//! asked of the readable network, window by window, as an explanation is.

mod deep;
mod limits;
mod reply;

pub use limits::MAX_JSON_CELLS;
pub use reply::AttentionReply;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::limits::plan;
use self::reply::{Basis, Pooled};
use super::explain::{Against, Classes, ExplainRequest};
use super::service::{Mail, RoutingService};
use super::{RoutingError, policy};
use crate::explain::{AttentionMap, Dtype, Heads, Layers, Reduce, Rows, Special};
use crate::inference::Caller;
use crate::model::KeepMaps;
use crate::tokenizer::OffsetUnit;

/// What a weight is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// The weight of the attention.
    #[default]
    Alpha,
    /// The weight times the length of what it lets through; rows do not sum to 1.
    Norm,
}

/// The form of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MapFormat {
    /// JSON, numbers and all.
    #[default]
    Json,
    /// One array for NumPy.
    Npy,
    /// All windows, with offsets and the JSON in the header.
    Safetensors,
    /// A picture without words.
    Png,
    /// A drawing with words.
    Svg,
    /// A page that needs nothing else.
    Html,
}

impl MapFormat {
    /// Every format, as it is spelled.
    pub const ALL: [(&'static str, Self); 6] = [
        ("json", Self::Json),
        ("npy", Self::Npy),
        ("safetensors", Self::Safetensors),
        ("png", Self::Png),
        ("svg", Self::Svg),
        ("html", Self::Html),
    ];

    /// Its media type.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Npy | Self::Safetensors => "application/octet-stream",
            Self::Png => "image/png",
            Self::Svg => "image/svg+xml",
            Self::Html => "text/html; charset=utf-8",
        }
    }

    /// As it is spelled.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, format)| *format == self).map_or("json", |(name, _)| name)
    }

    /// Whether it holds one map only, so that a mail of several windows must say which.
    fn holds_one_window(self) -> bool {
        matches!(self, Self::Npy | Self::Png | Self::Svg)
    }
}

/// What to show. The default is small: the `[CLS]` row of the last layer, the mean of its heads, word by word.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionRequest {
    /// Layers.
    pub layers: Layers,
    /// Heads.
    pub heads: Heads,
    /// What is done over the heads, or over everything.
    pub reduce: Reduce,
    /// Rows.
    pub rows: Rows,
    /// Whole words instead of pieces.
    pub words: bool,
    /// The columns of `[CLS]` and `[SEP]`.
    pub special: Special,
    /// What a weight is.
    pub weight: Weight,
    /// The queue of relevance; the likeliest where none is named.
    pub class: Option<String>,
    /// What its score is compared with.
    pub against: Against,
    /// The one window to show, of a mail that has several.
    pub window: Option<usize>,
    /// The form of the answer.
    pub format: MapFormat,
    /// How a binary form stores weights.
    pub dtype: Option<Dtype>,
    /// What offsets count.
    pub offsets: OffsetUnit,
    /// Decimals of each weight.
    pub precision: u8,
}

impl Default for AttentionRequest {
    fn default() -> Self {
        Self {
            layers: Layers::default(),
            heads: Heads::default(),
            reduce: Reduce::default(),
            rows: Rows::default(),
            words: true,
            special: Special::default(),
            weight: Weight::default(),
            class: None,
            against: Against::default(),
            window: None,
            format: MapFormat::default(),
            dtype: None,
            offsets: OffsetUnit::default(),
            precision: 5,
        }
    }
}

impl AttentionRequest {
    /// Refuses what means nothing together.
    fn check(&self) -> Result<(), RoutingError> {
        let refuse = |field, reason| Err(RoutingError::Contradiction { field, reason });
        let binary = matches!(self.format, MapFormat::Npy | MapFormat::Safetensors);
        if self.reduce.over_layers() && self.heads != Heads::All {
            return refuse("heads", "rollout and relevance run over all heads: leave `heads` out");
        }
        if self.reduce.over_layers() && matches!(self.layers, Layers::List(_)) {
            return refuse("layers", "rollout and relevance run over all layers: leave `layers` out");
        }
        if self.reduce != Reduce::Relevance && (self.class.is_some() || self.against != Against::None) {
            return refuse("class", "attention knows no queue: `class` and `against` need reduce=relevance");
        }
        if self.reduce.over_layers() && self.weight == Weight::Norm {
            return refuse("weight", "weight=norm is shown layer by layer: use reduce=none, mean or max");
        }
        if self.dtype.is_some() && !binary {
            return refuse("dtype", "`dtype` is for format=npy and format=safetensors");
        }
        if self.dtype == Some(Dtype::U8) && self.format == MapFormat::Npy {
            return refuse("dtype", "one byte a weight needs the scale of each row: use format=safetensors, or f16");
        }
        Ok(())
    }

    /// Whether the readable network is needed.
    fn deep(&self) -> bool {
        self.reduce.over_layers() || self.weight == Weight::Norm
    }
}

/// Answers a request.
pub(super) async fn attend(
    service: &Arc<RoutingService>,
    mail: Mail,
    request: AttentionRequest,
    caller: Caller,
) -> Result<AttentionReply, RoutingError> {
    request.check()?;
    let asked = ExplainRequest {
        classes: request.class.clone().map_or(Classes::Predicted, |class| Classes::List(vec![class])),
        against: request.against.clone(),
        ..ExplainRequest::default()
    };
    asked.check_names(service.router())?;
    let _turn = if request.deep() { Some(service.turn_to_explain()?) } else { None };
    let prepared = service.prepare(mail, caller.client).await?;
    if !policy::readable(&prepared.encoded) {
        return Err(RoutingError::NothingToRead);
    }
    let plan = plan(&request, service, &prepared)?;
    let keep = if request.deep() { KeepMaps::None } else { KeepMaps::Layers(plan.layers.clone()) };
    let answered = service.infer(&prepared, keep, caller).await?;
    let targets = asked.targets(service.router(), &answered.inference.logits)?;
    let Some(&target) = targets.first() else { return Err(RoutingError::NothingToRead) };
    let basis = if request.deep() {
        deep::maps(service, &prepared, &request, &plan, (target, answered.added.clone(), caller)).await?
    } else {
        let pooled = Pooled::of_inference(service.router(), &answered, target.class);
        Basis { maps: Vec::new(), pooled, target }
    };
    let this = Arc::clone(service);
    // Merging words over all heads and writing numbers takes milliseconds: not on a thread that serves others.
    let write = move || -> Result<AttentionReply, RoutingError> {
        let (mut basis, mut answered) = (basis, answered);
        if !request.deep() {
            for (index, maps) in std::mem::take(&mut answered.inference.maps).into_iter().enumerate() {
                let map = AttentionMap::of_window(maps, &plan.layers, &plan.heads)?;
                let (units, rows) = &plan.windows[index];
                basis.maps.push(map.reduce_heads(request.reduce).merge(units, rows));
            }
        }
        Ok(reply::reply(&request, this.router(), &prepared, &plan, &answered.inference.logits, basis))
    };
    tokio::task::spawn_blocking(write).await.map_err(|_| RoutingError::Panicked)?
}
