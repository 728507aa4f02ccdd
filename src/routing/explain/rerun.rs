//! Deciding changed versions of one mail: both legs of the router, with as little of the network as the change needs.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::super::RoutingError;
use super::super::service::{Prepared, RoutingService, finite};
use super::request::Perturb;
use crate::collate::{Window, WindowedEmail, pack_windows};
use crate::explain::{Part, grouped};
use crate::inference::Caller;
use crate::metrics::softmax;
use crate::model::{Classifier, ModelError, WindowPart};
use crate::tokenizer::{EncodedEmail, SPECIAL_TOKENS};

/// Groups of parts are not made fewer than this, whatever the budget.
const FEWEST_GROUPS: usize = 4;

/// The part of the time left that is planned with; mail that is routed meanwhile takes its own.
const SHARE_OF_TIME: f64 = 0.5;

/// One mail, decided again and again.
///
/// Windows keep their places when tokens are taken out, so the windows that held none of them are not run again. A mail of one
/// window without a part is therefore exactly the shorter mail; in a longer one the windows of the shorter mail would begin
/// elsewhere.
pub(in crate::routing) struct Rerun<'a> {
    service: &'a RoutingService,
    pub prepared: &'a Prepared,
    perturb: Perturb,
    caller: Caller,
    whole: Arc<Vec<WindowPart>>,
    /// Of the whole mail, one for each queue.
    pub logits: Vec<f32>,
    /// What the words have added for the whole mail, one number for each logit of the network.
    pub added: Vec<f32>,
    /// Mails that were decided.
    pub forwards: usize,
    /// Tokens that the encoder has seen for them.
    pub tokens: usize,
}

/// Versions of a mail whose windows are run together.
struct Group {
    windows: Vec<Window>,
    /// For each version, for each window of the mail: its number in `windows`, `None` where it is as in the whole mail.
    versions: Vec<Vec<Option<usize>>>,
}

impl Group {
    fn of(versions: Vec<Vec<Option<Window>>>) -> Self {
        let mut windows = Vec::new();
        let mut number = |window: Option<Window>| {
            window.map(|window| {
                windows.push(window);
                windows.len() - 1
            })
        };
        let versions = versions.into_iter().map(|version| version.into_iter().map(&mut number).collect()).collect();
        Self { windows, versions }
    }
}

impl<'a> Rerun<'a> {
    /// Decides the whole mail.
    pub(super) async fn start(
        service: &'a RoutingService,
        prepared: &'a Prepared,
        perturb: Perturb,
        caller: Caller,
    ) -> Result<Self, RoutingError> {
        if perturb == Perturb::Mask && service.tokenizer().mask().is_none() {
            return Err(RoutingError::NoMask);
        }
        let cost = prepared.windowed.cost();
        let limit = service.config().explain.max_tokens;
        // The whole mail, and room for a few changed versions of it.
        if FEWEST_GROUPS * cost > limit {
            return Err(RoutingError::ExplanationTooLarge { tokens: FEWEST_GROUPS * cost, limit });
        }
        let mut rerun = Self {
            service,
            prepared,
            perturb,
            caller,
            whole: Arc::default(),
            logits: Vec::new(),
            added: Vec::new(),
            forwards: 0,
            tokens: 0,
        };
        let windows = prepared.windowed.single_windows().into_iter().map(Some).collect();
        let (parts, logits) = rerun.run(Group::of(vec![windows])).await?;
        rerun.whole = Arc::new(parts);
        let network = logits.first().map_or(&[][..], Vec::as_slice);
        rerun.added = service.added_by_words(network, &prepared.encoded, &[]);
        rerun.logits = rerun.queue_logits(network, &rerun.added)?;
        Ok(rerun)
    }

    /// Calibrated probabilities of the queues.
    pub(in crate::routing) fn probabilities(&self, logits: &[f32]) -> Vec<f64> {
        softmax(logits, self.service.router().calibration.temperature)
    }

    /// Content tokens of the mail.
    pub(in crate::routing) fn n_tokens(&self) -> usize {
        self.prepared.encoded.tokens.len()
    }

    /// Tokens that may still be run: by the settings, and in the time that the caller waits, at the network's speed of late.
    pub(super) fn left(&self) -> usize {
        let allowed = self.service.config().explain.max_tokens.saturating_sub(self.tokens);
        let Some(deadline) = self.caller.deadline else { return allowed };
        let rate = self.service.engine().depth().tokens_per_second;
        let time = deadline.saturating_duration_since(Instant::now()).as_secs_f64();
        // Before the first batch nothing is known of the speed.
        if rate > 0.0 { allowed.min((SHARE_OF_TIME * time * rate) as usize) } else { allowed }
    }

    /// Sentences that are taken out one by one.
    pub(super) fn max_sentences(&self) -> usize {
        self.service.config().explain.max_sentences
    }

    /// Which tokens are gone without some parts.
    pub(in crate::routing) fn removed<'p>(&self, parts: impl IntoIterator<Item = &'p Part>) -> Vec<bool> {
        let mut removed = vec![false; self.n_tokens()];
        for part in parts {
            removed[part.tokens.clone()].fill(true);
        }
        removed
    }

    /// Tokens that the mail costs without a run of its tokens.
    pub(super) fn cost_without(&self, tokens: &Range<usize>) -> usize {
        let windows = self.prepared.windowed.windows.iter();
        let touched = windows.filter(|window| window.start < tokens.end && tokens.start < window.end);
        touched.map(|window| window.len() + SPECIAL_TOKENS).sum()
    }

    /// At most `most` parts, or fewer where taking each of them out would cost more than `allowance` tokens in all.
    pub(super) fn fitting(&self, parts: &[Part], mut most: usize, allowance: usize) -> Vec<Part> {
        loop {
            let groups = grouped(parts.to_vec(), most);
            let cost: usize = groups.iter().map(|part| self.cost_without(&part.tokens)).sum();
            if cost <= allowance || most <= FEWEST_GROUPS {
                return groups;
            }
            most = (most.min(groups.len()) * 3 / 4).max(FEWEST_GROUPS);
        }
    }

    /// Logits of the queues for the mail without each of the parts.
    pub(super) async fn without_each(&mut self, parts: &[Part]) -> Result<Vec<Vec<f32>>, RoutingError> {
        let removals: Vec<Vec<bool>> = parts.iter().map(|part| self.removed([part])).collect();
        self.without(&removals).await
    }

    /// Logits of the queues for versions of the mail, each without the tokens for which its list is true.
    pub(in crate::routing) async fn without(&mut self, removals: &[Vec<bool>]) -> Result<Vec<Vec<f32>>, RoutingError> {
        let mask = match self.perturb {
            Perturb::Delete => None,
            Perturb::Mask => self.service.tokenizer().mask(),
        };
        self.changed(removals, mask).await
    }

    /// Logits of the queues for a mail without any text, however parts are taken out: hidden words are no empty mail.
    pub(super) async fn without_text(&mut self) -> Result<Vec<f32>, RoutingError> {
        let everything = vec![true; self.n_tokens()];
        let logits = self.changed(&[everything], None).await?.pop();
        logits.ok_or(RoutingError::Network(ModelError::BadBatch))
    }

    /// Logits of the queues for versions of the mail; `mask`, where there is one, stands where tokens are gone.
    async fn changed(&mut self, removals: &[Vec<bool>], mask: Option<u32>) -> Result<Vec<Vec<f32>>, RoutingError> {
        let budget = self.service.config().explain.max_batch_tokens;
        let mut decided = Vec::with_capacity(removals.len());
        let mut rest = removals;
        while !rest.is_empty() {
            let (mut count, mut cost) = (0, 0);
            for removed in rest {
                cost += self.prepared.windowed.cost_without(removed);
                if count > 0 && cost > budget {
                    break;
                }
                count += 1;
            }
            let (now, later) = rest.split_at(count);
            rest = later;
            let versions = now.iter().map(|removed| self.prepared.windowed.without(removed, mask)).collect();
            let (_, logits) = self.run(Group::of(versions)).await?;
            for (removed, logits) in now.iter().zip(&logits) {
                decided.push(self.decide(logits, &self.prepared.encoded, removed)?);
            }
        }
        Ok(decided)
    }

    /// Logits of the queues for other orders of the same tokens. Words are counted anew in each: which of them a
    /// negation waves off depends on what stands after it.
    pub(super) async fn reordered(&mut self, mails: &[EncodedEmail]) -> Result<Vec<Vec<f32>>, RoutingError> {
        let router = self.service.router();
        let mut decided = Vec::with_capacity(mails.len());
        for encoded in mails {
            let mail = WindowedEmail::new(encoded, self.service.tokenizer(), &router.windows, router.pooling);
            let windows = mail.single_windows().into_iter().map(Some).collect();
            let (_, logits) = self.run(Group::of(vec![windows])).await?;
            for logits in &logits {
                decided.push(self.decide(logits, encoded, &[])?);
            }
        }
        Ok(decided)
    }

    /// Adds what the words of `encoded` that are left say, and joins the logits of merged queues.
    fn decide(&self, network: &[f32], encoded: &EncodedEmail, removed: &[bool]) -> Result<Vec<f32>, RoutingError> {
        self.queue_logits(network, &self.service.added_by_words(network, encoded, removed))
    }

    fn queue_logits(&self, network: &[f32], added: &[f32]) -> Result<Vec<f32>, RoutingError> {
        let sum: Vec<f32> = network.iter().zip(added).map(|(network, word)| network + word).collect();
        finite(self.service.router().queue_logits(&sum))
    }

    /// Runs the windows of a group, a batch at a time, and joins them to the network's logits.
    async fn run(&mut self, group: Group) -> Result<(Vec<WindowPart>, Vec<Vec<f32>>), RoutingError> {
        self.forwards += group.versions.len();
        self.tokens += group.windows.iter().map(Window::cost).sum::<usize>();
        let mut batches = batches(group.windows, self.service.config().explain.max_batch_tokens);
        let mut parts = Vec::new();
        while batches.len() > 1 {
            let Some(batch) = batches.pop_front() else { break };
            let known = parts;
            let tokens = batch.iter().map(Window::cost).sum();
            let run = move |classifier: &Classifier| more(known, classifier, &batch);
            parts = self.service.engine().with_network(self.caller, tokens, run).await?;
        }
        let (last, whole, versions) = (batches.pop_front().unwrap_or_default(), self.whole.clone(), group.versions);
        let tokens = last.iter().map(Window::cost).sum();
        let join = move |classifier: &Classifier| {
            let parts = more(parts, classifier, &last)?;
            let of_version = |version: &Vec<Option<usize>>| {
                let chosen = version.iter().enumerate().map(|(window, changed)| match changed {
                    Some(number) => parts.get(*number),
                    None => whole.get(window),
                });
                chosen.collect::<Option<Vec<_>>>().ok_or(ModelError::BadBatch)
            };
            let mails = versions.iter().map(of_version).collect::<Result<Vec<_>, _>>()?;
            let logits = classifier.join(&mails)?;
            Ok((parts, logits))
        };
        Ok(self.service.engine().with_network(self.caller, tokens, join).await?)
    }
}

fn more(
    mut known: Vec<WindowPart>,
    classifier: &Classifier,
    windows: &[Window],
) -> Result<Vec<WindowPart>, ModelError> {
    if !windows.is_empty() {
        known.extend(classifier.window_parts(&pack_windows(windows))?);
    }
    Ok(known)
}

/// Windows in batches of at most `limit` tokens, at least one window each.
fn batches(windows: Vec<Window>, limit: usize) -> VecDeque<Vec<Window>> {
    let mut batches: VecDeque<Vec<Window>> = VecDeque::new();
    let mut used = usize::MAX;
    for window in windows {
        let cost = window.cost();
        match batches.back_mut() {
            Some(batch) if used.saturating_add(cost) <= limit => {
                batch.push(window);
                used += cost;
            }
            _ => {
                batches.push_back(vec![window]);
                used = cost;
            }
        }
    }
    batches
}
