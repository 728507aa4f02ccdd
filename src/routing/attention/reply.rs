//! The answer, in the shape `attention/1`, and the same as a file.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::super::RoutingError;
use super::super::explain::Target;
use super::super::service::{Answered, Prepared};
use super::super::view::{MailView, rounded};
use super::limits::{Plan, reduce_name};
use super::{AttentionRequest, MapFormat, Weight};
use crate::artifact::RouterInfo;
use crate::collate::Pooling;
use crate::explain::{
    AttentionMap, Caption, Dtype, ExportError, Reduce, Sheet, Special, Unit, html, npy, png, safetensors, svg,
};
use crate::metrics::softmax;

/// How much each token of each window counts in the pooling, for one queue.
pub(super) struct Pooled {
    pub windows: Vec<Vec<f64>>,
}

/// What the answer is made of.
pub(super) struct Basis {
    /// For each window the map, merged to units.
    pub maps: Vec<AttentionMap>,
    pub pooled: Pooled,
    pub target: Target,
}

impl Pooled {
    /// From a pass that routes: a merged queue weighs tokens as its members do, the likelier the more.
    pub(super) fn of_inference(router: &RouterInfo, answered: &Answered, class: usize) -> Self {
        let members = router.groups.of_queue(class);
        let logits: Vec<f32> = members.iter().filter_map(|&member| answered.sums.get(member).copied()).collect();
        let shares = softmax(&logits, router.calibration.temperature);
        let queues = router.groups.n_logits().max(1);
        let mut tokens = answered.inference.token_weights.chunks_exact(queues).map(|row| -> f64 {
            members.iter().zip(&shares).filter_map(|(&m, share)| Some(share * f64::from(*row.get(m)?))).sum()
        });
        let windows = answered.inference.maps.iter().map(|maps| tokens.by_ref().take(maps.tokens).collect());
        Self { windows: windows.collect() }
    }
}

/// An answer, which can be written in several forms.
#[derive(Debug, Clone)]
pub struct AttentionReply {
    /// All but the windows.
    head: Value,
    /// Each window without its weights, and its weights.
    windows: Vec<(Value, Sheet)>,
    caption: Caption,
    precision: u8,
    notes: Value,
}

impl AttentionReply {
    /// The answer as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        self.whole(true)
    }

    fn whole(&self, data: bool) -> Value {
        let mut answer = self.head.clone();
        let mut windows: Vec<Value> = self
            .windows
            .iter()
            .map(|(window, sheet)| {
                let mut window = window.clone();
                if data {
                    window["attention"]["data"] = nested(&sheet.map.data, &sheet.map.shape, self.precision);
                }
                window
            })
            .collect();
        // The first window shown stands at the top, so that readers of short mail never look further.
        let several = windows.len() > 1;
        for key in ["window", "units", "attention", "pooling"] {
            // Sums of many thousand rows: not copied where they are not needed twice.
            let first =
                windows.first_mut().map(|window| if several { window[key].clone() } else { window[key].take() });
            answer[key] = first.unwrap_or(Value::Null);
        }
        if several {
            answer["windows"] = windows.into();
        }
        answer["notes"] = self.notes.clone();
        answer
    }

    /// The answer as a file.
    ///
    /// # Errors
    /// [`RoutingError::Export`] where a picture would be too large.
    pub fn file(&self, format: MapFormat, dtype: Dtype) -> Result<Vec<u8>, RoutingError> {
        let first = || {
            let sheet = self.windows.first().map(|(_, sheet)| sheet);
            sheet.ok_or_else(|| RoutingError::Export(ExportError::Format("there is no window".to_owned())))
        };
        Ok(match format {
            MapFormat::Json => self.json().to_string().into_bytes(),
            MapFormat::Npy => npy(&first()?.map, dtype),
            MapFormat::Safetensors => {
                let sheets: Vec<&Sheet> = self.windows.iter().map(|(_, sheet)| sheet).collect();
                let mut meta = self.whole(false);
                meta["caption"] = self.caption.line().into();
                safetensors(&sheets, dtype, &meta.to_string())?
            }
            MapFormat::Png => png(first()?, &self.caption)?,
            MapFormat::Svg => svg(first()?, &self.caption)?.into_bytes(),
            MapFormat::Html => html(&self.json().to_string(), &self.caption).into_bytes(),
        })
    }
}

/// What the parts of an answer look at together.
struct Context<'a> {
    request: &'a AttentionRequest,
    plan: &'a Plan,
    view: MailView<'a>,
    target: Target,
}

pub(super) fn reply(
    request: &AttentionRequest,
    router: &RouterInfo,
    prepared: &Prepared,
    plan: &Plan,
    logits: &[f32],
    basis: Basis,
) -> AttentionReply {
    let Basis { maps, pooled, target } = basis;
    let context = Context { request, plan, view: MailView::new(router, prepared, request.offsets), target };
    let shown = maps.into_iter().zip(pooled.windows).enumerate().filter(|(index, _)| plan.shown.contains(index));
    let windows = shown.map(|(index, (map, pooling))| context.window(index, map, &pooling)).collect();
    let caption = Caption {
        model: format!("{} {}", prepared.model.router, prepared.model.version),
        kind: context.kind().to_owned(),
        class: context.class().map(str::to_owned),
        made: utc(SystemTime::now()),
    };
    AttentionReply {
        head: json!({
            "schema": "attention/1",
            "model": context.view.model(),
            "prediction": context.view.prediction(logits),
            "text": context.view.text(),
        }),
        windows,
        caption,
        precision: request.precision,
        notes: context.notes().into(),
    }
}

impl Context<'_> {
    fn kind(&self) -> &'static str {
        match (self.request.reduce, self.request.weight) {
            (Reduce::Rollout | Reduce::Relevance, _) => reduce_name(self.request.reduce),
            (_, Weight::Norm) => "norm",
            (_, Weight::Alpha) => "alpha",
        }
    }

    /// The queue that the weights are about.
    fn class(&self) -> Option<&str> {
        (self.request.reduce == Reduce::Relevance).then(|| self.view.queue(self.target.class))
    }

    fn unit(&self, index: usize, unit: &Unit, last: usize) -> Value {
        let pieces: Vec<usize> = unit.pieces.clone().collect();
        let Some((field, range)) = &unit.place else {
            let text = if index == last { "[SEP]" } else { "[CLS]" };
            return json!({"i": index, "text": text, "special": true, "field": null, "start": null, "end": null, "pieces": pieces});
        };
        let place = self.view.place(*field, range.clone());
        json!({
            "i": index, "text": place.text, "special": false, "field": field, "start": place.start, "end": place.end,
            "pieces": pieces, "unknown": unit.unknown,
        })
    }

    fn window(&self, index: usize, map: AttentionMap, pooling: &[f64]) -> (Value, Sheet) {
        let (units, rows) = &self.plan.windows[index];
        let range = &self.view.prepared.windowed.windows[index];
        let last = units.len() - 1;
        let request = self.request;
        let special: Vec<bool> = units.iter().map(Unit::special).collect();
        let special_mass = map.mass_on(&special);
        let keys: Vec<usize> =
            (0..units.len()).filter(|&key| request.special == Special::Keep || !special[key]).collect();
        let stochastic = self.kind() == "alpha" || request.reduce == Reduce::Rollout;
        let map = match request.special {
            Special::Keep => map,
            Special::Drop if stochastic => map.without(&special),
            Special::Drop => map.cut(&special),
        };
        let names = |indices: &[usize]| indices.iter().map(ToString::to_string).collect::<Vec<_>>();
        let heads = match request.reduce {
            Reduce::None => names(&self.plan.heads),
            reduce => vec![reduce_name(reduce).to_owned()],
        };
        let layers = if request.reduce.over_layers() { vec!["all".to_owned()] } else { names(&self.plan.layers) };
        let [n_layers, n_heads, queries, _] = map.shape;
        let per_row = |values: &[f32]| nested(values, &[n_layers, n_heads, queries], request.precision);
        let described: Vec<Value> = units.iter().enumerate().map(|(i, unit)| self.unit(i, unit, last)).collect();
        let of_unit =
            |unit: &Unit| -> f64 { pooling.get(unit.pieces.clone()).map_or(0.0, |pieces| pieces.iter().sum()) };
        let attention = json!({
            "kind": self.kind(), "reduce": request.reduce, "class": self.class(),
            "against": self.target.against.map(|other| self.view.queue(other)),
            "dims": ["layer", "head", "query", "key"], "shape": map.shape, "layers": layers, "heads": heads,
            "queries": rows, "keys": keys,
            "row_sum": per_row(&map.row_sums()), "special_mass": per_row(&special_mass),
            "rows_that_can_matter":
                if self.view.router.pooling == Pooling::Cls { "cls_only_in_the_last_layer" } else { "all" },
            "encoding": request.format.name(),
        });
        let window = json!({
            "window": index, "tokens": {"start": range.start, "end": range.end},
            "pooling": {
                "class": self.view.queue(self.target.class), "sum": rounded(pooling.iter().sum(), 6),
                "weights": units.iter().map(|unit| rounded(of_unit(unit), 6)).collect::<Vec<_>>(),
            },
            "units": &described, "attention": attention,
        });
        let sheet = self.sheet(map, &described, rows, &keys, &window["attention"]);
        (window, sheet)
    }

    fn sheet(&self, map: AttentionMap, units: &[Value], rows: &[usize], keys: &[usize], attention: &Value) -> Sheet {
        let text = |unit: &usize| units[*unit]["text"].as_str().unwrap_or_default().to_owned();
        let offset = |unit: usize, key: &str| {
            units[unit][key].as_u64().and_then(|offset| u32::try_from(offset).ok()).unwrap_or(0)
        };
        let names = |axis: &str| -> Vec<String> {
            let names = attention[axis].as_array().map_or(&[][..], Vec::as_slice);
            names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
        };
        Sheet {
            map,
            layers: names("layers"),
            heads: names("heads"),
            rows: rows.iter().map(text).collect(),
            columns: keys.iter().map(text).collect(),
            offsets: keys.iter().map(|&key| [offset(key, "start"), offset(key, "end")]).collect(),
        }
    }

    fn notes(&self) -> Vec<&'static str> {
        let (view, plan) = (&self.view, self.plan);
        let cls_only = view.router.pooling == Pooling::Cls
            && plan.layers.contains(&(view.router.encoder_config.n_layers - 1))
            && !self.request.reduce.over_layers();
        let noted = [
            (true, "attention_is_a_clue"),
            (view.prepared.counts_words, "word_counts_decide_too"),
            (cls_only, "last_layer_cls_row_only"),
            (view.prepared.windowed.windows.len() > 1, "each_window_has_its_own_map"),
            (view.prepared.encoded.truncated(), "truncated"),
        ];
        noted.into_iter().filter(|(holds, _)| *holds).map(|(_, note)| note).collect()
    }
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

/// RFC 3339 to the second. Days to a date as in "chrono-Compatible Low-Level Date Algorithms" (Hinnant).
fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March, so that the leap day is the last of its year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(UNIX_EPOCH + Duration::from_secs(seconds)), date);
        }
        // A clock that is wrong makes a wrong date.
        let far = Duration::from_secs(1 << 40);
        assert_eq!(utc(UNIX_EPOCH - far), "1970-01-01T00:00:00Z");
        assert!(utc(UNIX_EPOCH + far).ends_with('Z'));
    }
}
