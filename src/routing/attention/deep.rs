//! Maps that need the readable network: over all layers, for one queue, or with the vectors behind the weights.

use std::sync::Arc;

use super::super::RoutingError;
use super::super::explain::{Gradients, Target, Wanted};
use super::super::service::{Prepared, RoutingService};
use super::limits::Plan;
use super::reply::{Basis, Pooled};
use super::{AttentionRequest, Weight};
use crate::explain::{AttentionMap, Reduce, Unit, relevance_row, rollout_row};
use crate::inference::Caller;
use crate::model::{Encoder, Head, ModelError, WindowPass};

/// The maps of all windows, merged to the units asked for.
pub(super) async fn maps(
    service: &Arc<RoutingService>,
    prepared: &Prepared,
    request: &AttentionRequest,
    plan: &Plan,
    (target, added, caller): (Target, Vec<f32>, Caller),
) -> Result<Basis, RoutingError> {
    let budget = service.config().explain.max_tokens;
    let mut gradients = Gradients::open(service, prepared, added, caller, budget).await?;
    let score = gradients.score(target);
    let wanted = Wanted { gradients: request.reduce == Reduce::Relevance, figures: false };
    let trace = gradients.trace(&score, wanted).await?;
    let pooled = Pooled { windows: trace.windows.iter().map(|window| window.pooling.clone()).collect() };
    let mut maps = Vec::with_capacity(trace.windows.len());
    for (index, ((units, rows), window)) in plan.windows.iter().zip(&trace.windows).enumerate() {
        maps.push(match request.reduce {
            Reduce::Rollout => flow(units, rows, window.tokens, |start| rollout_row(&window.mean_maps, start)),
            Reduce::Relevance => flow(units, rows, window.tokens, |start| relevance_row(&window.relevance, start)),
            _ if request.weight == Weight::Norm => norm(&mut gradients, request, plan, index).await?.merge(units, rows),
            _ => return Err(RoutingError::Panicked),
        });
    }
    Ok(Basis { maps, pooled, target })
}

/// Rows of a map over all layers: each starts from the mean of its unit's pieces, and columns are summed over theirs.
fn flow(units: &[Unit], rows: &[usize], tokens: usize, reach: impl Fn(&[f64]) -> Vec<f64>) -> AttentionMap {
    let mut data = Vec::with_capacity(rows.len() * units.len());
    for &row in rows {
        let pieces = units[row].pieces.clone();
        let mut start = vec![0.0; tokens];
        let share = 1.0 / pieces.len() as f64;
        start[pieces].fill(share);
        let reached = reach(&start);
        data.extend(units.iter().map(|unit| reached[unit.pieces.clone()].iter().sum::<f64>() as f32));
    }
    AttentionMap { shape: [1, 1, rows.len(), units.len()], data }
}

/// Weights times the lengths of what they let through, of the chosen layers and heads of one window, reduced.
async fn norm(
    gradients: &mut Gradients<'_>,
    request: &AttentionRequest,
    plan: &Plan,
    window: usize,
) -> Result<AttentionMap, RoutingError> {
    let ids = gradients.window_ids(window);
    let (layers, heads, reduce) = (plan.layers.clone(), plan.heads.clone(), request.reduce);
    let look = move |encoder: &Encoder, _: &Head| {
        let pass = WindowPass::forward(encoder, &encoder.word_vectors(&ids)?, false)?;
        let mut data = Vec::new();
        for &layer in &layers {
            let map = pass.norm_attention(encoder, layer)?; //                   [H, T, T]
            for &head in &heads {
                data.extend(map.get(head)?.flatten_all()?.to_vec1::<f32>()?);
            }
        }
        let map = AttentionMap { shape: [layers.len(), heads.len(), ids.len(), ids.len()], data };
        Ok::<_, ModelError>(map.reduce_heads(reduce))
    };
    gradients.ask(look).await
}
