//! Evidence from inside the encoder: gradients, relevance, and the neutral clues of attention itself.

use std::time::Instant;

use candle_core::Tensor;

use super::super::RoutingError;
use super::gradients::{Gradients, MailTrace, Wanted, trace_passes};
use super::request::{Method, Target};
use crate::collate::WindowedEmail;
use crate::explain::{relevance_row, rollout_row, through};
use crate::model::{ModelError, Score, times_gradient};

/// Steps of integrated gradients: so many first, then twice as many, up to the last.
const FIRST_STEPS: usize = 16;
const LAST_STEPS: usize = 128;

/// Integrated gradients are complete enough where their sum misses the score by no more than this share.
const TOLERANCE: f64 = 0.05;

/// What a method says of one score.
#[derive(Debug, Clone)]
pub(super) struct Attribution {
    pub method: Method,
    pub target: Target,
    /// For each token of the mail.
    pub tokens: Vec<f64>,
    pub score_full: f64,
    /// The score that attributions are counted from, where there is one.
    pub score_baseline: Option<f64>,
    pub completeness: Option<Completeness>,
}

/// How far integrated gradients add up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Completeness {
    pub steps: usize,
    /// `|sum - (score - baseline)| / |score - baseline|`.
    pub error: f64,
    pub converged: bool,
}

/// What the methods say of one score, in their order; occlusion is none of them. `reserved` passes over the mail are left
/// for what comes after.
pub(super) async fn attribute(
    gradients: &mut Gradients<'_>,
    methods: &[Method],
    target: Target,
    ig_steps: Option<usize>,
    reserved: usize,
) -> Result<Vec<Attribution>, RoutingError> {
    let score = gradients.score(target);
    let by_gradient = methods.iter().any(|method| matches!(method, Method::Relevance | Method::Gradxinput));
    let trace = if methods.iter().any(|&method| traced(method)) {
        Some(gradients.trace(&score, Wanted { gradients: by_gradient, figures: false }).await?)
    } else {
        None
    };
    let mut found = Vec::new();
    for &method in methods {
        match (method, &trace) {
            (Method::Ig, _) => found.push(integrated(gradients, &score, target, ig_steps, reserved).await?),
            (Method::Occlusion, _) | (_, None) => {}
            (_, Some(trace)) => found.push(of_trace(gradients, method, target, trace)),
        }
    }
    Ok(found)
}

fn of_trace(gradients: &Gradients<'_>, method: Method, target: Target, trace: &MailTrace) -> Attribution {
    let of_window = |window: &super::gradients::WindowTrace| match method {
        Method::Gradxinput => window.gradient_times_input.clone(),
        Method::Relevance => {
            // What already speaks against the queue in the pooling has no relevance for it.
            let start: Vec<f64> = window.contributions.iter().map(|value| value.max(0.0)).collect();
            relevance_row(&window.relevance, &start)
        }
        Method::Rollout => rollout_row(&window.mean_maps, &window.pooling),
        _ => window.mean_maps.last().map_or_else(Vec::new, |map| through(map, &window.pooling)),
    };
    let windows: Vec<Vec<f64>> = trace.windows.iter().map(of_window).collect();
    Attribution {
        method,
        target,
        tokens: gradients.per_token(&windows),
        score_full: trace.score,
        score_baseline: None,
        completeness: None,
    }
}

/// Steps of integrated gradients: the first and the last.
fn steps(fixed: Option<usize>) -> (usize, usize) {
    fixed.map_or((FIRST_STEPS, LAST_STEPS), |steps| (steps.max(1), steps.max(1)))
}

/// Passes over the mail that so many steps take: a way there and back for each, there twice in a mail of several windows; and the
/// two ends.
fn passes(steps: usize, windows: usize) -> usize {
    let each = if windows > 1 { 3 } else { 2 };
    each * steps + 2
}

/// Whether a method reads the one trace that several share.
fn traced(method: Method) -> bool {
    !matches!(method, Method::Occlusion | Method::Ig)
}

/// Passes over the mail that the methods take for one score, at the least; occlusion's are none of these.
pub(super) fn least_passes(methods: &[Method], fixed_steps: Option<usize>, windows: usize) -> usize {
    let trace = if methods.iter().any(|&method| traced(method)) { trace_passes(windows) } else { 0 };
    let integrated = if methods.contains(&Method::Ig) { passes(steps(fixed_steps).0, windows) } else { 0 };
    trace + integrated
}

/// Refuses what could never be paid, before anything else is done for it.
pub(super) fn check_cost(mail: &WindowedEmail, passes: usize, limit: usize) -> Result<(), RoutingError> {
    let tokens = passes * mail.cost();
    if tokens > limit { Err(RoutingError::ExplanationTooLarge { tokens, limit }) } else { Ok(()) }
}

/// Integrated gradients (Sundararajan et al. 2017) over the word vectors, from a mail of nothing but padding to the mail: positions
/// and special tokens stay as they are.
async fn integrated(
    gradients: &mut Gradients<'_>,
    score: &Score,
    target: Target,
    fixed_steps: Option<usize>,
    reserved: usize,
) -> Result<Attribution, RoutingError> {
    let (mut steps, last) = steps(fixed_steps);
    let windows = gradients.windows().len();
    let passes = |steps: usize| passes(steps, windows);
    if !gradients.affords(passes(steps)) {
        return Err(gradients.too_large(passes(steps)));
    }
    let words = gradients.words().await?;
    let baseline = baseline(gradients, &words).await?;
    let full = gradients.value(score, &words).await?;
    let base = gradients.value(score, &baseline).await?;
    loop {
        let started = Instant::now();
        let windows = integrate(gradients, score, &words, &baseline, steps).await?;
        let sum: f64 = windows.iter().flatten().sum();
        let error = (sum - (full - base)).abs() / (full - base).abs().max(1e-6);
        let converged = error <= TOLERANCE;
        // The next round takes twice as long as this one, and what comes after needs its share; better an error that is
        // told than no answer.
        let needed = passes(2 * steps) + reserved;
        let time = started.elapsed().mul_f64(1.5 * needed as f64 / passes(steps) as f64);
        let next = gradients.affords(needed) && gradients.has_time(time);
        if converged || 2 * steps > last || !next {
            return Ok(Attribution {
                method: Method::Ig,
                target,
                tokens: gradients.per_token(&windows),
                score_full: full,
                score_baseline: Some(base),
                completeness: Some(Completeness { steps, error, converged }),
            });
        }
        steps *= 2;
    }
}

/// The word vectors of padding in the place of every word.
async fn baseline(gradients: &Gradients<'_>, words: &[Tensor]) -> Result<Vec<Tensor>, RoutingError> {
    let padding = gradients.padding();
    let words = words.to_vec();
    gradients
        .ask(move |encoder, _| {
            let blank = match padding {
                Some(id) => encoder.word_vectors(&[id])?,
                None => words.first().ok_or(ModelError::BadBatch)?.narrow(0, 0, 1)?.zeros_like()?,
            };
            let of_window = |words: &Tensor| {
                let content = words.dim(0)?.saturating_sub(2);
                let first = words.narrow(0, 0, 1)?;
                let last = words.narrow(0, content + 1, 1)?;
                let blanks = blank.broadcast_as((content, blank.dim(1)?))?;
                Ok(Tensor::cat(&[&first, &blanks.contiguous()?, &last], 0)?)
            };
            words.iter().map(of_window).collect()
        })
        .await
}

/// `(x - x') x` the mean gradient on the way from `x'` to `x`, by the midpoint rule, for each token of each window.
async fn integrate(
    gradients: &mut Gradients<'_>,
    score: &Score,
    words: &[Tensor],
    baseline: &[Tensor],
    steps: usize,
) -> Result<Vec<Vec<f64>>, RoutingError> {
    let network = |error: candle_core::Error| RoutingError::Network(ModelError::from(error));
    let ways: Vec<Tensor> =
        words.iter().zip(baseline).map(|(to, from)| to - from).collect::<Result<_, _>>().map_err(network)?;
    let mut sums: Vec<Vec<f64>> = words.iter().map(|words| vec![0.0; words.dims()[0]]).collect();
    for step in 0..steps {
        let part = (step as f64 + 0.5) / steps as f64;
        let between: Vec<Tensor> = baseline
            .iter()
            .zip(&ways)
            .map(|(from, way)| from + (way * part)?)
            .collect::<Result<_, _>>()
            .map_err(network)?;
        let slopes = gradients.by_words(score, &between).await?;
        for ((sums, way), slope) in sums.iter_mut().zip(&ways).zip(&slopes) {
            let products = times_gradient(way, slope).map_err(RoutingError::Network)?;
            sums.iter_mut().zip(products).for_each(|(sum, value)| *sum += value / steps as f64);
        }
    }
    Ok(sums)
}
