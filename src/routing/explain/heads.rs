//! What each attention head does in one mail, and what the decision owes to it.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use super::super::RoutingError;
use super::super::policy;
use super::super::service::{Mail, RoutingService};
use super::super::view::{MailView, rounded};
use super::gradients::{Gradients, Wanted, WindowTrace};
use super::request::{Against, Classes, ExplainRequest};
use crate::collate::WindowedEmail;
use crate::explain::HeadFigures;
use crate::inference::Caller;
use crate::model::KeepMaps;

/// What to tell of the heads.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HeadsRequest {
    /// The queue whose score is asked about; the likeliest where none is named.
    pub class: Option<String>,
    /// What it is compared with.
    pub against: Against,
    /// Whether each head is silenced in turn: exact, and as many forward passes as there are heads.
    pub ablate: bool,
}

/// Looks at the heads.
pub(in crate::routing) async fn heads(
    service: &Arc<RoutingService>,
    mail: Mail,
    request: &HeadsRequest,
    caller: Caller,
) -> Result<Value, RoutingError> {
    let started = Instant::now();
    let _turn = service.turn_to_explain()?;
    let classes = request.class.clone().map_or(Classes::Predicted, |class| Classes::List(vec![class]));
    let asked = ExplainRequest { classes, against: request.against.clone(), ..ExplainRequest::default() };
    asked.check_names(service.router())?;
    let prepared = service.prepare(mail, caller.client).await?;
    if !policy::readable(&prepared.encoded) {
        return Err(RoutingError::NothingToRead);
    }
    let answered = service.infer(&prepared, KeepMaps::None, caller).await?;
    let targets = asked.targets(service.router(), &answered.inference.logits)?;
    let Some(&target) = targets.first() else { return Err(RoutingError::NothingToRead) };
    let budget = 2 * service.config().explain.max_tokens;
    let mut gradients = Gradients::open(service, &prepared, answered.added, caller, budget).await?;
    let score = gradients.score(target);
    let trace = gradients.trace(&score, Wanted { gradients: true, figures: true }).await?;
    let ablation = if request.ablate { Some(gradients.ablate(&score).await?) } else { None };

    let view = MailView::new(service.router(), &prepared, Default::default());
    let config = &service.router().encoder_config;
    let importance = importance(&trace.windows, config.n_layers, config.n_heads);
    let figures = figures(&trace.windows, config.n_layers, config.n_heads);
    let table = |value: &dyn Fn(&HeadFigures) -> f64| -> Vec<Vec<f64>> {
        figures.iter().map(|layer| layer.iter().map(|head| rounded(value(head), 5)).collect()).collect()
    };
    let numbers = |values: &[Vec<f64>]| -> Vec<Vec<f64>> {
        values.iter().map(|layer| layer.iter().map(|&value| rounded(value, 6)).collect()).collect()
    };
    let names = |count: usize| (0..count).map(|index| index.to_string()).collect::<Vec<_>>();
    let mut notes = vec!["attention_is_a_clue"];
    if prepared.counts_words {
        notes.push("word_counts_decide_too");
        notes.push("gradients_see_the_encoder_only");
    }
    Ok(json!({
        "schema": "heads/1",
        "model": view.model(),
        "prediction": view.prediction(&answered.inference.logits),
        "text": view.text(),
        "class": view.queue(target.class), "against": target.against.map(|other| view.queue(other)),
        "score": rounded(trace.score, 6),
        "dims": ["layer", "head"], "layers": names(config.n_layers), "heads": names(config.n_heads),
        "entropy_uniform": rounded(uniform_entropy(&prepared.windowed), 5),
        "entropy": table(&|head| head.entropy), "cls_entropy": table(&|head| head.cls_entropy),
        "sink": table(&HeadFigures::sink), "cls": table(&|head| head.cls), "sep": table(&|head| head.sep),
        "self": table(&|head| head.itself), "previous": table(&|head| head.previous),
        "next": table(&|head| head.next), "punctuation": table(&|head| head.punctuation),
        "importance": numbers(&importance),
        "ablation": ablation.as_deref().map(numbers),
        "cost": {
            "forwards": gradients.forwards + 1, "tokens": gradients.tokens + prepared.windowed.cost(),
            "ms": u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        },
        "notes": notes,
    }))
}

/// `|<A, G>|` over all windows: what the score loses, to first order, for each head that is silenced.
fn importance(windows: &[WindowTrace], layers: usize, heads: usize) -> Vec<Vec<f64>> {
    let of = |layer: usize, head: usize| -> f64 {
        windows.iter().filter_map(|window| window.importance.get(layer)?.get(head)).sum::<f64>().abs()
    };
    (0..layers).map(|layer| (0..heads).map(|head| of(layer, head)).collect()).collect()
}

fn figures(windows: &[WindowTrace], layers: usize, heads: usize) -> Vec<Vec<HeadFigures>> {
    let of = |layer: usize, head: usize| {
        let found: Vec<(usize, HeadFigures)> =
            windows.iter().filter_map(|window| Some((window.tokens, *window.figures.get(layer)?.get(head)?))).collect();
        HeadFigures::over_windows(&found)
    };
    (0..layers).map(|layer| (0..heads).map(|head| of(layer, head)).collect()).collect()
}

/// Entropy of rows that spread evenly, the mean over the rows of all windows: what a head that learned nothing has.
fn uniform_entropy(mail: &WindowedEmail) -> f64 {
    let windows = mail.single_windows();
    let rows: usize = windows.iter().map(crate::collate::Window::cost).sum();
    let all: f64 = windows.iter().map(|window| window.cost() as f64 * (window.cost() as f64).ln()).sum();
    all / rows.max(1) as f64
}
