//! The answer to a request for attention maps.

use serde::Serialize;
use serde_json::{Value, json};

use super::RoutingError;
use super::decision::ModelRef;
use super::service::Prepared;
use crate::artifact::RouterInfo;
use crate::collate::Pooling;
use crate::explain::{AttentionMap, Heads, Layers, Reduce, Rows, Special, Unit, word_units};
use crate::inference::Inference;
use crate::metrics::softmax;
use crate::tokenizer::{Field, OffsetIndex, OffsetUnit};

/// What to show. The default is small: the `[CLS]` row of the last layer, the mean of its heads, word by word.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionRequest {
    /// Layers.
    pub layers: Layers,
    /// Heads.
    pub heads: Heads,
    /// What is done over the heads.
    pub reduce: Reduce,
    /// Rows.
    pub rows: Rows,
    /// Whole words instead of pieces.
    pub words: bool,
    /// The columns of `[CLS]` and `[SEP]`.
    pub special: Special,
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
            offsets: OffsetUnit::default(),
            precision: 5,
        }
    }
}

impl AttentionRequest {
    /// What decides the size of the answer, as a caller would write it.
    fn query(&self) -> String {
        let list = |indices: &[usize]| indices.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let layers = match &self.layers {
            Layers::All => "all".to_owned(),
            Layers::Last => "last".to_owned(),
            Layers::List(layers) => list(layers),
        };
        let heads = match &self.heads {
            Heads::All => "all".to_owned(),
            Heads::List(heads) => list(heads),
        };
        let rows = match &self.rows {
            Rows::All => "all".to_owned(),
            Rows::Cls => "cls".to_owned(),
            Rows::List(rows) => list(rows),
        };
        let reduce = match self.reduce {
            Reduce::None => "none",
            Reduce::Mean => "mean",
            Reduce::Max => "max",
        };
        format!("layers={layers}&heads={heads}&reduce={reduce}&rows={rows}&words={}", self.words)
    }
}

/// Most weights that a JSON answer holds.
pub const MAX_JSON_CELLS: usize = 262_144;

/// Most weights that one request may make the network keep: 200 MB.
const MAX_KEPT_CELLS: usize = 50_000_000;

/// The axes that a request resolves to on a given router and mail.
pub(super) struct Plan {
    pub layers: Vec<usize>,
    heads: Vec<usize>,
    /// Units and rows of each window.
    windows: Vec<(Vec<Unit>, Vec<usize>)>,
}

/// Resolves a request and refuses it before the network runs.
pub(super) fn plan(request: &AttentionRequest, router: &RouterInfo, prepared: &Prepared) -> Result<Plan, RoutingError> {
    let plan = Plan::resolve(request, router, prepared)?;
    match plan.too_large(request, router, prepared) {
        None => Ok(plan),
        Some((cells, limit)) => {
            Err(RoutingError::MapTooLarge { cells, limit, fitting: fitting(request, router, prepared) })
        }
    }
}

impl Plan {
    fn resolve(request: &AttentionRequest, router: &RouterInfo, prepared: &Prepared) -> Result<Self, RoutingError> {
        let config = &router.encoder_config;
        let layers = request.layers.resolve(config.n_layers)?;
        let heads = request.heads.resolve(config.n_heads)?;
        let units: Vec<Vec<Unit>> = prepared
            .windowed
            .windows
            .iter()
            .map(|range| word_units(&prepared.encoded.tokens[range.clone()], request.words))
            .collect();
        // The last window of a long mail is shorter: a row must exist in some window, and is shown where it does.
        request.rows.resolve(units.iter().map(Vec::len).max().unwrap_or(0))?;
        let windows = units.into_iter().map(|units| {
            let rows = request.rows.within(units.len());
            (units, rows)
        });
        Ok(Self { layers, heads, windows: windows.collect() })
    }

    /// The weights asked for and the limit that they exceed: of the answer, or of what the network keeps for it.
    fn too_large(
        &self,
        request: &AttentionRequest,
        router: &RouterInfo,
        prepared: &Prepared,
    ) -> Option<(usize, usize)> {
        let Self { layers, heads, windows } = self;
        let shown_heads = if request.reduce == Reduce::None { heads.len() } else { 1 };
        let shown: usize =
            windows.iter().map(|(units, rows)| layers.len() * shown_heads * rows.len() * units.len()).sum();
        let longest = prepared.windowed.longest_window();
        let kept = windows.len() * layers.len() * router.encoder_config.n_heads * longest * longest;
        [(shown, MAX_JSON_CELLS), (kept, MAX_KEPT_CELLS)].into_iter().find(|(cells, limit)| cells > limit)
    }
}

/// Up to three queries near the one asked for that do fit this mail, nearest first.
fn fitting(request: &AttentionRequest, router: &RouterInfo, prepared: &Prepared) -> Vec<String> {
    let with = |change: fn(&mut AttentionRequest)| {
        let mut nearby = request.clone();
        change(&mut nearby);
        nearby
    };
    let candidates = [
        with(|nearby| nearby.reduce = Reduce::Mean),
        with(|nearby| nearby.rows = Rows::Cls),
        with(|nearby| (nearby.layers, nearby.reduce) = (Layers::Last, Reduce::Mean)),
        with(|nearby| (nearby.reduce, nearby.rows) = (Reduce::Mean, Rows::Cls)),
        with(|nearby| (nearby.layers, nearby.rows) = (Layers::Last, Rows::Cls)),
        with(|nearby| (nearby.layers, nearby.reduce, nearby.rows) = (Layers::Last, Reduce::Mean, Rows::Cls)),
        with(|nearby| (nearby.layers, nearby.reduce, nearby.rows) = (Layers::List(vec![0]), Reduce::Mean, Rows::Cls)),
    ];
    let mut queries: Vec<String> = Vec::new();
    for nearby in candidates {
        let fits = Plan::resolve(&nearby, router, prepared)
            .is_ok_and(|plan| plan.too_large(&nearby, router, prepared).is_none());
        let query = nearby.query();
        if fits && !queries.contains(&query) {
            queries.push(query);
        }
    }
    queries.truncate(3);
    queries
}

/// The answer, in the shape `attention/1`.
#[derive(Debug, Serialize)]
pub struct AttentionReply(Value);

impl AttentionReply {
    /// The answer as JSON.
    #[must_use]
    pub fn json(&self) -> &Value {
        &self.0
    }

    /// The answer itself.
    #[must_use]
    pub fn into_json(self) -> Value {
        self.0
    }
}

/// What the parts of an answer look at together.
struct Context<'a> {
    request: &'a AttentionRequest,
    router: &'a RouterInfo,
    prepared: &'a Prepared,
    plan: &'a Plan,
    subject: OffsetIndex,
    body: OffsetIndex,
}

pub(super) fn reply(
    request: &AttentionRequest,
    router: &RouterInfo,
    prepared: &Prepared,
    plan: &Plan,
    inference: &Inference,
) -> Result<AttentionReply, RoutingError> {
    let context = Context {
        request,
        router,
        prepared,
        plan,
        subject: OffsetIndex::new(prepared.email.subject.posted()),
        body: OffsetIndex::new(prepared.email.body.posted()),
    };
    let mut windows = Vec::new();
    for (index, maps) in inference.maps.iter().enumerate() {
        let map = AttentionMap::of_window(maps, &plan.layers, &plan.heads)?;
        windows.push(context.window(index, map)?);
    }
    let mut answer = json!({
        "schema": "attention/1",
        "model": context.model(),
        "prediction": prediction(router, &inference.logits),
        "text": context.text(),
    });
    // The first window stands at the top, so that readers of short mail never look further.
    for key in ["units", "attention"] {
        answer[key] = windows.first().map_or(Value::Null, |window| window[key].clone());
    }
    if windows.len() > 1 {
        answer["windows"] = windows.into();
    }
    answer["notes"] = context.notes().into();
    Ok(AttentionReply(answer))
}

fn prediction(router: &RouterInfo, logits: &[f32]) -> Value {
    let probabilities = softmax(logits, router.calibration.temperature);
    let mut scores: Vec<(usize, f64)> = probabilities.into_iter().enumerate().collect();
    scores.sort_by(|a, b| b.1.total_cmp(&a.1));
    let id = |index: usize| router.queues.get(index).map(|queue| queue.id.as_str());
    let best = scores.first().copied();
    json!({
        "queue": best.and_then(|(index, _)| id(index)),
        "confidence": best.map(|(_, p)| rounded(p, 6)),
        "scores": scores.iter().map(|&(index, p)| json!({
            "queue": id(index), "logit": rounded(f64::from(logits[index]), 6), "p": rounded(p, 6),
        })).collect::<Vec<_>>(),
    })
}

impl Context<'_> {
    fn model(&self) -> Value {
        let config = &self.router.encoder_config;
        let ModelRef { router, version, encoder } = self.prepared.model.clone();
        json!({
            "id": router, "revision": version, "encoder": encoder, "layers": config.n_layers, "heads": config.n_heads,
            "pooling": self.router.pooling_name(), "max_length": self.router.windows.max_length,
        })
    }

    fn index(&self, field: Field) -> &OffsetIndex {
        match field {
            Field::Subject => &self.subject,
            Field::Body => &self.body,
        }
    }

    fn offset(&self, field: Field, byte: usize) -> usize {
        self.index(field).convert(byte, self.request.offsets)
    }

    fn text(&self) -> Value {
        let Prepared { email, encoded, .. } = self.prepared;
        let length = |field, posted: &str| self.offset(field, posted.len());
        let unread: Vec<Value> = match encoded.tokens.last() {
            Some(token) if encoded.truncated() => {
                let text = if token.field == Field::Subject { &email.subject } else { &email.body };
                let end = text.posted_range(token.range.clone()).end;
                vec![json!({
                    "field": token.field,
                    "start": self.offset(token.field, end), "end": length(token.field, text.posted()),
                })]
            }
            _ => Vec::new(),
        };
        json!({
            "offset_unit": self.request.offsets,
            "length": length(Field::Body, email.body.posted()),
            "subject_length": length(Field::Subject, email.subject.posted()),
            "tokens_total": encoded.tokens_total, "tokens_used": encoded.tokens.len(),
            "unread": unread,
            "skipped": email.cut.iter().map(|cut| json!({
                "field": Field::Body, "why": cut.why,
                "start": self.offset(Field::Body, cut.start), "end": self.offset(Field::Body, cut.end),
            })).collect::<Vec<_>>(),
        })
    }

    fn unit(&self, index: usize, unit: &Unit, last: usize) -> Value {
        let pieces: Vec<usize> = unit.pieces.clone().collect();
        let Some((field, range)) = &unit.place else {
            let text = if index == last { "[SEP]" } else { "[CLS]" };
            return json!({"i": index, "text": text, "special": true, "field": null, "start": null, "end": null, "pieces": pieces});
        };
        let email = &self.prepared.email;
        let text = if *field == Field::Subject { &email.subject } else { &email.body };
        let posted = text.posted_range(range.clone());
        json!({
            "i": index, "text": text.posted().get(posted.clone()), "special": false, "field": field,
            "start": self.offset(*field, posted.start), "end": self.offset(*field, posted.end),
            "pieces": pieces, "unknown": unit.unknown,
        })
    }

    fn window(&self, index: usize, map: AttentionMap) -> Result<Value, RoutingError> {
        let (units, rows) = &self.plan.windows[index];
        let range = &self.prepared.windowed.windows[index];
        let last = units.len() - 1;
        let request = self.request;
        let special: Vec<bool> = units.iter().map(Unit::special).collect();
        let map = map.reduce_heads(request.reduce).merge(units, rows);
        let special_mass = map.mass_on(&special);
        let keys: Vec<usize> =
            (0..units.len()).filter(|&key| request.special == Special::Keep || !special[key]).collect();
        let map = if request.special == Special::Drop { map.without(&special) } else { map };
        let heads: Vec<String> = match request.reduce {
            Reduce::None => self.plan.heads.iter().map(ToString::to_string).collect(),
            Reduce::Mean => vec!["mean".to_owned()],
            Reduce::Max => vec!["max".to_owned()],
        };
        let [layers, shown_heads, queries, _] = map.shape;
        let per_row = |values: &[f32]| nested(values, &[layers, shown_heads, queries], request.precision);
        Ok(json!({
            "window": index, "tokens": {"start": range.start, "end": range.end},
            "units": units.iter().enumerate().map(|(i, unit)| self.unit(i, unit, last)).collect::<Vec<_>>(),
            "attention": {
                "kind": "alpha", "reduce": request.reduce, "class": null,
                "dims": ["layer", "head", "query", "key"], "shape": map.shape,
                "layers": self.plan.layers.iter().map(ToString::to_string).collect::<Vec<_>>(), "heads": heads,
                "queries": rows, "keys": keys,
                "row_sum": per_row(&map.row_sums()), "special_mass": per_row(&special_mass),
                "rows_that_can_matter": if self.router.pooling == Pooling::Cls { "cls_only_in_the_last_layer" } else { "all" },
                "encoding": "json", "data": nested(&map.data, &map.shape, request.precision),
            },
        }))
    }

    fn notes(&self) -> Vec<&'static str> {
        let mut notes = vec!["attention_is_a_clue"];
        if self.prepared.counts_words {
            notes.push("word_counts_decide_too");
        }
        if self.router.pooling == Pooling::Cls && self.plan.layers.contains(&(self.router.encoder_config.n_layers - 1))
        {
            notes.push("last_layer_cls_row_only");
        }
        if self.prepared.windowed.windows.len() > 1 {
            notes.push("each_window_has_its_own_map");
        }
        if self.prepared.encoded.truncated() {
            notes.push("truncated");
        }
        notes
    }
}

fn rounded(value: f64, decimals: u8) -> f64 {
    let scale = 10f64.powi(i32::from(decimals));
    (value * scale).round() / scale
}

/// Row-major values as nested arrays.
fn nested(values: &[f32], shape: &[usize], precision: u8) -> Value {
    match shape {
        [] => values.first().map_or(Value::Null, |&value| rounded(f64::from(value), precision).into()),
        [outer, inner @ ..] => {
            let step = values.len() / (*outer).max(1);
            (0..*outer)
                .map(|index| nested(&values[index * step..(index + 1) * step], inner, precision))
                .collect::<Vec<_>>()
                .into()
        }
    }
}
