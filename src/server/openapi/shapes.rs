//! Answers that are put together by hand, as types for the document.

#![expect(dead_code, reason = "only described")]

use schemars::JsonSchema;
use serde::Serialize;

use crate::email::CutReason;
use crate::tokenizer::{Field, OffsetUnit};

/// What became of a batch.
#[derive(Serialize, JsonSchema)]
pub(super) struct BatchReply {
    /// In the order of the mails.
    results: Vec<super::super::batch::Outcome>,
    /// How many got a problem.
    failed: usize,
}

/// What is loaded, and the limits in force.
#[derive(Serialize, JsonSchema)]
pub(super) struct ModelReply {
    router: String,
    version: String,
    encoder: EncoderShape,
    windows: WindowShape,
    /// How tokens are pooled.
    pooling: Pooling,
    /// How many queues.
    queues: usize,
    /// Languages that it was trained on (ISO 639-1); empty: any.
    languages: Vec<String>,
    temperature: f64,
    /// Least confidence for routing without a person.
    threshold: f64,
    device: String,
    /// Ways to explain that `/v1/explain` knows.
    methods: Vec<String>,
    limits: Limits,
}

/// Sizes of the encoder.
#[derive(Serialize, JsonSchema)]
pub(super) struct EncoderShape {
    name: String,
    layers: usize,
    heads: usize,
    d_model: usize,
    max_positions: usize,
    vocab_size: usize,
}

/// How mail is cut into windows, in tokens.
#[derive(Serialize, JsonSchema)]
pub(super) struct WindowShape {
    max_length: usize,
    stride: usize,
    max_tokens: usize,
}

/// How tokens are pooled.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Pooling {
    Mean,
    Cls,
    Attention,
}

/// Limits in force.
#[derive(Serialize, JsonSchema)]
pub(super) struct Limits {
    max_body_bytes: usize,
    max_batch_emails: usize,
    max_tokens: usize,
    max_json_cells: usize,
    max_waiting_mails: usize,
    max_waiting_maps: usize,
    explain: ExplainLimits,
    request_timeout_ms: u64,
    max_request_timeout_ms: u64,
}

/// Bounds of explanations.
#[derive(Serialize, JsonSchema)]
pub(super) struct ExplainLimits {
    max_running: usize,
    max_batch_tokens: usize,
    max_tokens: usize,
    max_sentences: usize,
    max_words: usize,
    max_binary_cells: usize,
}

/// Routers by name.
#[derive(Serialize, JsonSchema)]
pub(super) struct RoutersReply {
    /// The default one first.
    routers: Vec<RouterShape>,
}

/// A router; what is null could not be loaded yet.
#[derive(Serialize, JsonSchema)]
pub(super) struct RouterShape {
    /// What requests call it.
    name: String,
    default: bool,
    /// What it calls itself.
    router: Option<String>,
    version: Option<String>,
    /// How many queues.
    queues: Option<usize>,
}

/// What offsets point into.
#[derive(Serialize, JsonSchema)]
pub(super) struct ReadReply {
    subject: String,
    text: String,
}

/// The queues of the router.
#[derive(Serialize, JsonSchema)]
pub(super) struct QueuesReply {
    /// In the router's order.
    queues: Vec<QueueShape>,
}

/// A queue.
#[derive(Serialize, JsonSchema)]
pub(super) struct QueueShape {
    /// Stable id, a slug.
    id: String,
    name: String,
    description: String,
    /// A disabled queue is never an answer.
    enabled: bool,
    /// Never answered without a person.
    suggest_only: bool,
}

/// The process runs.
#[derive(Serialize, JsonSchema)]
pub(super) struct Alive {
    status: String,
}

/// Mail is answered.
#[derive(Serialize, JsonSchema)]
pub(super) struct ReadyReply {
    status: String,
    /// Mails waiting for the model.
    waiting: usize,
}

/// Attention maps of one mail.
#[derive(Serialize, JsonSchema)]
pub(super) struct AttentionReply {
    /// `attention/1`.
    schema: String,
    model: AttentionModel,
    prediction: AttentionPrediction,
    text: AttentionText,
    /// Number of the first window shown: the one asked for, otherwise 0.
    window: usize,
    /// Units of the first window shown; rows and columns of a map are numbers of these.
    units: Vec<UnitShape>,
    /// The map of the first window shown.
    attention: MapShape,
    /// What the units of the first window shown count in the pooling.
    pooling: PoolingShape,
    /// Every window, where several are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    windows: Option<Vec<WindowMap>>,
    /// What to keep in mind when reading the map.
    notes: Vec<String>,
}

/// The network that answered.
#[derive(Serialize, JsonSchema)]
pub(super) struct AttentionModel {
    id: String,
    revision: String,
    encoder: String,
    layers: usize,
    heads: usize,
    pooling: Pooling,
    max_length: usize,
    /// Ceiling on the tokens read of one mail.
    max_tokens: usize,
}

/// Scores of all queues.
#[derive(Serialize, JsonSchema)]
pub(super) struct AttentionPrediction {
    queue: Option<String>,
    confidence: Option<f64>,
    scores: Vec<AttentionScore>,
}

/// A queue's score.
#[derive(Serialize, JsonSchema)]
pub(super) struct AttentionScore {
    queue: Option<String>,
    logit: f64,
    p: f64,
}

/// What offsets count, and what was not read.
#[derive(Serialize, JsonSchema)]
pub(super) struct AttentionText {
    offset_unit: OffsetUnit,
    length: usize,
    subject_length: usize,
    tokens_total: usize,
    tokens_used: usize,
    /// How many windows the mail is read in.
    windows: usize,
    /// Text beyond the token ceiling.
    unread: Vec<Stretch>,
    /// Text that cleaning took out.
    skipped: Vec<Skipped>,
}

/// A stretch of the mail as posted.
#[derive(Serialize, JsonSchema)]
pub(super) struct Stretch {
    field: Field,
    start: usize,
    end: usize,
}

/// A stretch that was taken out, and why.
#[derive(Serialize, JsonSchema)]
pub(super) struct Skipped {
    field: Field,
    why: CutReason,
    start: usize,
    end: usize,
}

/// A word or a piece of one, or a special token, which has no place.
#[derive(Serialize, JsonSchema)]
pub(super) struct UnitShape {
    i: usize,
    text: Option<String>,
    special: bool,
    field: Option<Field>,
    start: Option<usize>,
    end: Option<usize>,
    /// Numbers of its tokens.
    pieces: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<bool>,
}

/// A map: layers, heads, queries, keys.
#[derive(Serialize, JsonSchema)]
pub(super) struct MapShape {
    kind: String,
    reduce: String,
    class: Option<String>,
    /// The queue that the score of `class` is compared with.
    against: Option<String>,
    dims: Vec<String>,
    #[schemars(length(min = 4, max = 4))]
    shape: Vec<usize>,
    layers: Vec<String>,
    heads: Vec<String>,
    /// Units of the rows.
    queries: Vec<usize>,
    /// Units of the columns.
    keys: Vec<usize>,
    /// Sums of the rows, by layer, head and query.
    row_sum: Vec<Vec<Vec<f64>>>,
    /// Weight on `[CLS]` and `[SEP]`, by layer, head and query.
    special_mass: Vec<Vec<Vec<f64>>>,
    rows_that_can_matter: String,
    encoding: String,
    /// Weights, nested as `dims` says.
    data: Vec<Vec<Vec<Vec<f64>>>>,
}

/// A window of a long mail.
#[derive(Serialize, JsonSchema)]
pub(super) struct WindowMap {
    window: usize,
    tokens: TokenRange,
    pooling: PoolingShape,
    units: Vec<UnitShape>,
    attention: MapShape,
}

/// How much each unit of a window counts for a queue.
#[derive(Serialize, JsonSchema)]
pub(super) struct PoolingShape {
    /// The queue: the one that relevance speaks of, otherwise the likeliest.
    class: String,
    /// The window's share; those of all windows of a mail sum to 1.
    sum: f64,
    /// For each unit.
    weights: Vec<f64>,
}

/// Tokens of a window.
#[derive(Serialize, JsonSchema)]
pub(super) struct TokenRange {
    start: usize,
    end: usize,
}
