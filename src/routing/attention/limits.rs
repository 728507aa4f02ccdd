//! Whether the maps asked for fit: in the answer, and in the network's memory.

use super::super::RoutingError;
use super::super::service::{Prepared, RoutingService};
use super::{AttentionRequest, MapFormat};
use crate::explain::{Heads, Layers, Reduce, Rows, Unit, word_units};

/// Most weights that an answer in JSON, SVG or HTML holds.
pub const MAX_JSON_CELLS: usize = 262_144;

/// Most weights that one request may make the network keep while it computes, those of all windows, heads and rows of
/// the layers asked for: 200 MB.
const MAX_KEPT_CELLS: usize = 50_000_000;

/// The axes that a request resolves to on a given router and mail.
pub(in crate::routing) struct Plan {
    pub layers: Vec<usize>,
    pub heads: Vec<usize>,
    /// Units and rows of each window.
    pub windows: Vec<(Vec<Unit>, Vec<usize>)>,
    /// The windows that are shown.
    pub shown: std::ops::Range<usize>,
}

/// Weights and the limit that they exceed.
struct TooLarge {
    cells: usize,
    limit: usize,
    /// Of what the network keeps for the answer, not of the answer.
    kept: bool,
}

/// Resolves a request and refuses it before the network runs.
pub(in crate::routing) fn plan(
    request: &AttentionRequest,
    service: &RoutingService,
    prepared: &Prepared,
) -> Result<Plan, RoutingError> {
    let plan = Plan::resolve(request, service, prepared)?;
    match plan.too_large(request, service, prepared) {
        None => Ok(plan),
        Some(TooLarge { cells, limit, kept }) => {
            Err(RoutingError::MapTooLarge { cells, limit, kept, fitting: fitting(request, service, prepared) })
        }
    }
}

impl Plan {
    fn resolve(
        request: &AttentionRequest,
        service: &RoutingService,
        prepared: &Prepared,
    ) -> Result<Self, RoutingError> {
        let config = &service.router().encoder_config;
        let layers = if request.reduce.over_layers() { &Layers::All } else { &request.layers };
        let layers = layers.resolve(config.n_layers)?;
        let heads = request.heads.resolve(config.n_heads)?;
        let units: Vec<Vec<Unit>> = prepared
            .windowed
            .windows
            .iter()
            .map(|range| word_units(&prepared.encoded.tokens[range.clone()], request.words))
            .collect();
        let shown = match request.window {
            Some(window) if window >= units.len() => {
                return Err(crate::explain::SelectError::Unknown {
                    what: "window",
                    index: window,
                    last: units.len() - 1,
                }
                .into());
            }
            Some(window) => window..window + 1,
            None if units.len() > 1 && request.format.holds_one_window() => {
                return Err(RoutingError::SeveralWindows { windows: units.len() });
            }
            None => 0..units.len(),
        };
        // The last window of a long mail is shorter: a row must exist in some window that is shown, and is shown where
        // it does.
        request.rows.resolve(units[shown.clone()].iter().map(Vec::len).max().unwrap_or(0))?;
        let windows = units.into_iter().map(|units| {
            let rows = request.rows.within(units.len());
            (units, rows)
        });
        Ok(Self { layers, heads, windows: windows.collect(), shown })
    }

    /// The weights and the limit that they exceed, if any.
    fn too_large(&self, request: &AttentionRequest, service: &RoutingService, prepared: &Prepared) -> Option<TooLarge> {
        let Self { layers, heads, windows, shown } = self;
        let maps = match request.reduce {
            Reduce::None => layers.len() * heads.len(),
            Reduce::Mean | Reduce::Max => layers.len(),
            Reduce::Rollout | Reduce::Relevance => 1,
        };
        let cells: usize = windows[shown.clone()].iter().map(|(units, rows)| maps * rows.len() * units.len()).sum();
        let limit = match request.format {
            MapFormat::Json | MapFormat::Svg | MapFormat::Html => MAX_JSON_CELLS,
            MapFormat::Npy | MapFormat::Safetensors | MapFormat::Png => service.config().explain.max_binary_cells,
        };
        let longest = prepared.windowed.longest_window();
        // The readable network is asked window by window and keeps nothing.
        let kept = if request.deep() { 0 } else { windows.len() * layers.len() * longest * longest };
        let kept = kept * service.router().encoder_config.n_heads;
        let bounds =
            [TooLarge { cells, limit, kept: false }, TooLarge { cells: kept, limit: MAX_KEPT_CELLS, kept: true }];
        bounds.into_iter().find(|bound| bound.cells > bound.limit)
    }
}

/// Up to three queries near the one asked for that do fit this mail, nearest first.
fn fitting(request: &AttentionRequest, service: &RoutingService, prepared: &Prepared) -> Vec<String> {
    let with = |change: fn(&mut AttentionRequest)| {
        let mut nearby = request.clone();
        // Over all layers and heads only rows can be fewer.
        let reduce = nearby.reduce;
        change(&mut nearby);
        if reduce.over_layers() {
            (nearby.reduce, nearby.layers) = (reduce, request.layers.clone());
        }
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
        with(|nearby| nearby.window = Some(0)),
        with(|nearby| (nearby.rows, nearby.window) = (Rows::Cls, Some(0))),
    ];
    let mut queries: Vec<String> = Vec::new();
    for nearby in candidates {
        let fits = Plan::resolve(&nearby, service, prepared)
            .is_ok_and(|plan| plan.too_large(&nearby, service, prepared).is_none());
        let query = nearby.query();
        if fits && !queries.contains(&query) {
            queries.push(query);
        }
    }
    queries.truncate(3);
    queries
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
        let reduce = reduce_name(self.reduce);
        let mut query = format!("layers={layers}&heads={heads}&reduce={reduce}&rows={rows}&words={}", self.words);
        if let Some(window) = self.window {
            query.push_str(&format!("&window={window}"));
        }
        if self.format != MapFormat::Json {
            query.push_str(&format!("&format={}", self.format.name()));
        }
        query
    }
}

/// A reduction, as it is spelled.
pub(super) fn reduce_name(reduce: Reduce) -> &'static str {
    match reduce {
        Reduce::None => "none",
        Reduce::Mean => "mean",
        Reduce::Max => "max",
        Reduce::Rollout => "rollout",
        Reduce::Relevance => "relevance",
    }
}
