//! The readable network asked about one mail: a score, and its gradients in every window.
//!
//! It is the encoder alone that is asked; what the words have added for the mail stays as it is. Every step is a job of its own for the
//! model's thread, one window at a time, so mail is routed in between and memory is that of one window.

use std::sync::Arc;
use std::time::{Duration, Instant};

use candle_core::Tensor;

use super::super::RoutingError;
use super::super::service::{Prepared, RoutingService};
use super::request::Target;
use crate::collate::Window;
use crate::explain::{HeadFigures, head_figures, positive_part};
use crate::inference::Caller;
use crate::model::{
    Classifier, Encoder, Head, ModelError, PooledScore, Score, WindowPass, pool_score, score_value, times_gradient,
};

/// One mail before the readable network.
pub(in crate::routing) struct Gradients<'a> {
    service: &'a RoutingService,
    pub prepared: &'a Prepared,
    caller: Caller,
    /// What the words have added to the network's logits.
    added: Vec<f32>,
    /// `None` where the network that routes is the readable one.
    encoder: Option<Arc<Encoder>>,
    windows: Vec<Window>,
    /// Windows times passes: what was asked of the network.
    pub forwards: usize,
    /// Tokens that the encoder has seen, forwards and backwards.
    pub tokens: usize,
    budget: usize,
}

/// Heads that are silenced in one job.
const HEADS_AT_A_TIME: usize = 4;

/// Passes over the mail that a trace takes: there and back, and there twice in a mail of several windows.
pub(super) fn trace_passes(windows: usize) -> usize {
    if windows > 1 { 3 } else { 2 }
}

/// What a trace is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::routing) struct Wanted {
    /// Gradients by the weights of the attention and by the words.
    pub gradients: bool,
    /// Figures of every head.
    pub figures: bool,
}

/// What one window shows.
#[derive(Debug, Clone, Default)]
pub(in crate::routing) struct WindowTrace {
    /// Tokens of the window, special ones included.
    pub tokens: usize,
    /// For each layer the mean over its heads, `[T, T]`.
    pub mean_maps: Vec<Vec<f32>>,
    /// For each layer its part of relevance, `[T, T]`; needs gradients.
    pub relevance: Vec<Vec<f32>>,
    /// For each layer and head `<A, G>`; needs gradients.
    pub importance: Vec<Vec<f64>>,
    /// For each token, special ones included; needs gradients.
    pub gradient_times_input: Vec<f64>,
    /// For each layer and head; where asked for.
    pub figures: Vec<Vec<HeadFigures>>,
    /// How much each token counts in the pooling.
    pub pooling: Vec<f64>,
    /// What each token adds to the score.
    pub contributions: Vec<f64>,
}

/// What a mail shows.
#[derive(Debug, Clone)]
pub(in crate::routing) struct MailTrace {
    pub score: f64,
    pub windows: Vec<WindowTrace>,
}

impl<'a> Gradients<'a> {
    /// Makes the readable network ready; the first time it is read from its files.
    pub(in crate::routing) async fn open(
        service: &'a Arc<RoutingService>,
        prepared: &'a Prepared,
        added: Vec<f32>,
        caller: Caller,
        budget: usize,
    ) -> Result<Self, RoutingError> {
        let encoder = service.readable_encoder().await?;
        let windows = prepared.windowed.single_windows();
        Ok(Self { service, prepared, added, caller, encoder, windows, forwards: 0, tokens: 0, budget })
    }

    /// The score of a target.
    pub(in crate::routing) fn score(&self, target: Target) -> Score {
        let router = self.service.router();
        let members = |queue: usize| router.groups.of_queue(queue).to_vec();
        Score {
            plus: members(target.class),
            minus: target.against.map(members).unwrap_or_default(),
            offsets: self.added.clone(),
            temperature: router.calibration.temperature,
        }
    }

    fn cost(&self) -> usize {
        self.windows.iter().map(Window::cost).sum()
    }

    /// Whether so many passes over the whole mail can still be paid.
    pub(super) fn affords(&self, passes: usize) -> bool {
        self.tokens + passes * self.cost() <= self.budget
    }

    /// Whether something that takes so long still ends before the caller's deadline.
    pub(super) fn has_time(&self, duration: Duration) -> bool {
        self.caller.deadline.is_none_or(|deadline| Instant::now() + duration < deadline)
    }

    /// The problem of an explanation that cannot.
    pub(super) fn too_large(&self, passes: usize) -> RoutingError {
        RoutingError::ExplanationTooLarge { tokens: self.tokens + passes * self.cost(), limit: self.budget }
    }

    /// The token that stands for no word.
    pub(super) fn padding(&self) -> Option<u32> {
        self.service.tokenizer().padding()
    }

    pub(super) fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// The token ids of a window.
    pub(in crate::routing) fn window_ids(&self, window: usize) -> Vec<u32> {
        self.windows.get(window).map_or_else(Vec::new, |window| window.input_ids.clone())
    }

    fn shares(&self) -> Vec<f32> {
        self.windows.iter().flat_map(|window| window.token_weights.iter().copied()).collect()
    }

    /// Lets `work` use the readable encoder and the head on the model's thread.
    pub(in crate::routing) async fn ask<T, F>(&self, work: F) -> Result<T, RoutingError>
    where
        T: Send + 'static,
        F: FnOnce(&Encoder, &Head) -> Result<T, ModelError> + Send + 'static,
    {
        let own = self.encoder.clone();
        let job = move |classifier: &Classifier| {
            let encoder = own.as_deref().or_else(|| classifier.encoder().tensors()).ok_or(ModelError::BadBatch)?;
            work(encoder, classifier.head())
        };
        // A window, or less: what one job of this kind is about.
        let tokens = self.service.router().windows.max_length;
        Ok(self.service.engine().with_network(self.caller, tokens, job).await?)
    }

    /// Runs all windows from their word vectors. Of a mail of one window the pass is kept, so that it need not be run again to go
    /// back; those of more would not fit in memory.
    async fn forward(&mut self, words: &[Tensor], maps: bool) -> Result<(Tensor, Option<WindowPass>), RoutingError> {
        let alone = words.len() == 1;
        let (mut states, mut kept) = (Vec::with_capacity(words.len()), None);
        for words in words {
            let words = words.clone();
            self.count(words.dims().first().copied().unwrap_or(0));
            let (state, pass) = self
                .ask(move |encoder, _| {
                    let pass = WindowPass::forward(encoder, &words, maps)?;
                    Ok((pass.hidden_states(), alone.then_some(pass)))
                })
                .await?;
            states.push(state);
            kept = pass;
        }
        let states = Tensor::cat(&states, 0).map_err(ModelError::from).map_err(RoutingError::Network)?;
        Ok((states, kept))
    }

    fn count(&mut self, tokens: usize) {
        self.forwards += 1;
        self.tokens += tokens;
    }

    async fn pool(&self, score: &Score, states: Tensor) -> Result<PooledScore, RoutingError> {
        let (score, shares) = (score.clone(), self.shares());
        self.ask(move |_, head| pool_score(head, &score, &states, &shares)).await
    }

    /// The value of a score for given word vectors.
    pub(super) async fn value(&mut self, score: &Score, words: &[Tensor]) -> Result<f64, RoutingError> {
        let (states, _) = self.forward(words, false).await?;
        let (score, shares) = (score.clone(), self.shares());
        self.ask(move |_, head| score_value(head, &score, &states, &shares)).await
    }

    /// The gradient of a score by given word vectors, `[T, D]` for each window.
    pub(super) async fn by_words(&mut self, score: &Score, words: &[Tensor]) -> Result<Vec<Tensor>, RoutingError> {
        let (states, mut kept) = self.forward(words, false).await?;
        let pooled = self.pool(score, states).await?;
        let mut gradients = Vec::with_capacity(words.len());
        let mut start = 0;
        for words in words {
            let (words, pass, gradient) = (words.clone(), kept.take(), pooled.gradient.clone());
            let tokens = words.dims().first().copied().unwrap_or(0);
            self.count(if pass.is_some() { tokens } else { 2 * tokens });
            let from = start;
            start += tokens;
            let back = move |encoder: &Encoder, _: &Head| {
                let pass = match pass {
                    Some(pass) => pass,
                    None => WindowPass::forward(encoder, &words, false)?,
                };
                Ok(pass.backward(&gradient.narrow(0, from, tokens)?)?.words)
            };
            gradients.push(self.ask(back).await?);
        }
        Ok(gradients)
    }

    /// The word vectors of all windows.
    pub(super) async fn words(&self) -> Result<Vec<Tensor>, RoutingError> {
        let ids: Vec<Vec<u32>> = self.windows.iter().map(|window| window.input_ids.clone()).collect();
        self.ask(move |encoder, _| ids.iter().map(|ids| encoder.word_vectors(ids)).collect()).await
    }

    /// Everything that a score's maps and gradients show, window by window.
    pub(in crate::routing) async fn trace(&mut self, score: &Score, wanted: Wanted) -> Result<MailTrace, RoutingError> {
        let passes = trace_passes(self.windows.len());
        if !self.affords(passes) {
            return Err(self.too_large(passes));
        }
        let words = self.words().await?;
        let (states, mut kept) = self.forward(&words, wanted.gradients).await?;
        let pooled = self.pool(score, states).await?;
        let mut windows = Vec::with_capacity(words.len());
        let mut start = 0;
        for (index, words) in words.into_iter().enumerate() {
            let tokens = self.windows[index].cost();
            let (pass, gradient) = (kept.take(), pooled.gradient.clone());
            self.count(if pass.is_some() { tokens } else { 2 * tokens });
            let punctuation = self.punctuation(index);
            let from = start;
            start += tokens;
            let look = move |encoder: &Encoder, _: &Head| {
                let pass = match pass {
                    Some(pass) => pass,
                    None => WindowPass::forward(encoder, &words, wanted.gradients)?,
                };
                look_at(encoder, &pass, &gradient.narrow(0, from, tokens)?, &punctuation, wanted)
            };
            let mut trace = self.ask(look).await?;
            trace.pooling = pooled.weights[from..from + tokens].to_vec();
            trace.contributions = pooled.contributions[from..from + tokens].to_vec();
            windows.push(trace);
        }
        Ok(MailTrace { score: pooled.score, windows })
    }

    /// What a score loses when each head of each layer is silenced in all windows: for each layer one number per head.
    pub(in crate::routing) async fn ablate(&mut self, score: &Score) -> Result<Vec<Vec<f64>>, RoutingError> {
        let config = self.service.router().encoder_config.clone();
        // Layers below the silenced one are not run again: half of all layers on average.
        let passes = 1 + config.n_layers * config.n_heads;
        if !self.affords(passes) {
            return Err(self.too_large(passes));
        }
        let words = self.words().await?;
        let full = self.value(score, &words).await?;
        let mut inputs: Vec<Vec<Tensor>> = Vec::with_capacity(words.len());
        for words in words {
            self.count(words.dims().first().copied().unwrap_or(0));
            let layers = config.n_layers;
            let run = move |encoder: &Encoder, _: &Head| {
                let pass = WindowPass::forward(encoder, &words, false)?;
                (0..layers).map(|layer| pass.input(layer)).collect()
            };
            inputs.push(self.ask(run).await?);
        }
        let heads: Vec<usize> = (0..config.n_heads).collect();
        let mut losses = Vec::with_capacity(config.n_layers);
        for layer in 0..config.n_layers {
            let mut of_layer = Vec::with_capacity(heads.len());
            for some in heads.chunks(HEADS_AT_A_TIME) {
                let mut states: Vec<Tensor> = Vec::with_capacity(inputs.len());
                for window in &inputs {
                    let (some, input) = (some.to_vec(), window[layer].clone());
                    self.tokens += some.len() * input.dims().get(1).copied().unwrap_or(0);
                    let silence = move |encoder: &Encoder, _: &Head| encoder.without_heads(layer, &some, &input);
                    states.push(self.ask(silence).await?);
                }
                self.forwards += some.len() * inputs.len();
                let (score, shares, count) = (score.clone(), self.shares(), some.len());
                let value = move |_: &Encoder, head: &Head| {
                    let of_head = |index: usize| {
                        let windows: Vec<Tensor> =
                            states.iter().map(|window| window.get(index)).collect::<Result<_, _>>()?;
                        score_value(head, &score, &Tensor::cat(&windows, 0)?, &shares)
                    };
                    (0..count).map(of_head).collect::<Result<Vec<f64>, ModelError>>()
                };
                of_layer.extend(self.ask(value).await?.into_iter().map(|silent| full - silent));
            }
            losses.push(of_layer);
        }
        Ok(losses)
    }

    /// Which tokens of a window are punctuation, special ones included as not.
    fn punctuation(&self, window: usize) -> Vec<bool> {
        let Prepared { email, encoded, windowed, .. } = self.prepared;
        let content = &encoded.tokens[windowed.windows[window].clone()];
        let mark = |token: &crate::tokenizer::Token| {
            let text = if token.field == crate::tokenizer::Field::Subject { &email.subject } else { &email.body };
            text.text().get(token.range.clone()).is_some_and(|text| !text.chars().any(char::is_alphanumeric))
        };
        std::iter::once(false).chain(content.iter().map(mark)).chain([false]).collect()
    }

    /// One number for each token of the mail from those of the windows' tokens; special tokens have no place in it.
    pub(super) fn per_token(&self, windows: &[Vec<f64>]) -> Vec<f64> {
        let mut sums = vec![0.0; self.prepared.encoded.tokens.len()];
        for (range, values) in self.prepared.windowed.windows.iter().zip(windows) {
            sums[range.clone()].iter_mut().zip(values.iter().skip(1)).for_each(|(sum, value)| *sum += value);
        }
        sums
    }
}

fn look_at(
    encoder: &Encoder,
    pass: &WindowPass,
    gradient: &Tensor,
    punctuation: &[bool],
    wanted: Wanted,
) -> Result<WindowTrace, ModelError> {
    let (n_heads, tokens) = (encoder.config().n_heads, punctuation.len());
    let mut trace = WindowTrace { tokens, ..WindowTrace::default() };
    let gradients = if wanted.gradients { Some(pass.backward(gradient)?) } else { None };
    if let Some(gradients) = &gradients {
        trace.gradient_times_input = times_gradient(&pass.words(), &gradients.words)?;
    }
    for layer in 0..encoder.config().n_layers {
        let map = pass.attention(layer)?;
        trace.mean_maps.push(map.mean(0)?.flatten_all()?.to_vec1()?);
        let map: Vec<f32> = map.flatten_all()?.to_vec1()?;
        let heads = map.chunks_exact((tokens * tokens).max(1));
        if let Some(gradients) = &gradients {
            let by_weight: Vec<f32> =
                gradients.attentions.get(layer).ok_or(ModelError::BadBatch)?.flatten_all()?.to_vec1()?;
            let inner = |(weights, gradients): (&[f32], &[f32])| {
                weights.iter().zip(gradients).map(|(&a, &g)| f64::from(a) * f64::from(g)).sum()
            };
            let by_head = by_weight.chunks_exact((tokens * tokens).max(1));
            trace.importance.push(heads.clone().zip(by_head).map(inner).collect());
            trace.relevance.push(positive_part(&map, &by_weight, n_heads));
        }
        if wanted.figures {
            trace.figures.push(heads.map(|head| head_figures(head, punctuation)).collect());
        }
    }
    Ok(trace)
}
