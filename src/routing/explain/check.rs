//! The check of an explanation, by running the mail without what it highlights and without as much at random.

use serde_json::{Value, json};

use super::super::RoutingError;
use super::super::service::Prepared;
use super::super::view::rounded;
use super::occlusion::{Occlusion, sentences};
use super::request::Method;
use super::rerun::Rerun;
use crate::explain::{
    FEWEST_WORDS, MARGIN, Measured, Part, RANDOM_RUNS, SHARE, Verdict, count_of, fill, grouped, random_choices,
    top_share, word_parts,
};

/// Fewer sentences than this leave too little choice, where whole ones are taken out: in a mail of several windows, and
/// where no words were looked at.
const FEWEST_SENTENCES: usize = 5;

/// What all methods are checked against: the same random choices for each.
pub(super) struct Trial {
    /// Sentences or words, whichever are taken out.
    units: Vec<Part>,
    by_sentence: bool,
    /// Words in each unit.
    words: Vec<usize>,
    /// Words to take out.
    wanted: usize,
    class: usize,
    seed: u64,
    measured: Measured,
}

/// What is checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Predicted<'a> {
    /// The likeliest queue.
    pub class: usize,
    /// Logits of the mail without any text.
    pub empty: &'a [f32],
    pub seed: u64,
}

/// About what a check costs, in tokens.
pub(super) fn cost(rerun: &Rerun<'_>) -> usize {
    let whole = (RANDOM_RUNS + 2) * rerun.prepared.windowed.cost();
    // A tenth of the sentences touches about a fifth of the windows.
    if rerun.prepared.windowed.windows.len() > 1 { whole / 5 } else { whole }
}

impl Trial {
    /// Takes out the random choices. In a mail of one window they are words. In a longer one, and where no words were looked at,
    /// they are whole sentences: words from all over would mean running every window again each time.
    pub(super) async fn prepare(
        rerun: &mut Rerun<'_>,
        occlusion: Option<&Occlusion>,
        words: &[Part],
        predicted: Predicted<'_>,
    ) -> Result<Self, RoutingError> {
        let Predicted { class, empty, seed } = predicted;
        let sentences_only = occlusion.is_some_and(|found| found.sentences.is_some() && found.words.is_none());
        let by_sentence = sentences_only || rerun.prepared.windowed.windows.len() > 1;
        let units: Vec<Part> = match occlusion.and_then(|found| found.sentences.as_ref()) {
            _ if !by_sentence => words.to_vec(),
            Some(sentences) => sentences.parts.clone(),
            None => grouped(sentences(rerun), rerun.max_sentences()),
        };
        let word_counts: Vec<usize> =
            units.iter().map(|unit| if by_sentence { words_in(unit, words).len() } else { 1 }).collect();
        let wanted = count_of(words.len(), SHARE);
        let choices = if by_sentence {
            let orders = random_choices_in_order(units.len(), seed);
            orders.into_iter().map(|order| fill(order, &word_counts, wanted)).collect()
        } else {
            random_choices(units.len(), wanted, RANDOM_RUNS, seed)
        };
        let removals: Vec<Vec<bool>> =
            choices.iter().map(|choice| rerun.removed(choice.iter().map(|&unit| &units[unit]))).collect();
        let of_class = |logits: &[f32]| rerun.probabilities(logits)[class];
        let (full, empty) = (of_class(&rerun.logits), of_class(empty));
        let without = rerun.without(&removals).await?;
        let without_random = without.iter().map(|logits| rerun.probabilities(logits)[class]).collect();
        let measured = Measured { units: units.len(), full, without_top: full, without_random, empty };
        Ok(Self { units, by_sentence, words: word_counts, wanted, class, seed, measured })
    }

    /// The scores of the units, from those of the words.
    pub(super) fn unit_scores(&self, words: &[Part], word_scores: &[f64]) -> Vec<f64> {
        if !self.by_sentence {
            return word_scores.to_vec();
        }
        self.units.iter().map(|unit| word_scores[words_in(unit, words)].iter().sum()).collect()
    }

    /// Whether whole sentences are taken out.
    pub(super) fn by_sentence(&self) -> bool {
        self.by_sentence
    }

    /// Takes out what a method ranks highest, and compares.
    pub(super) async fn check(
        &self,
        rerun: &mut Rerun<'_>,
        queue: &str,
        method: Method,
        scores: &[f64],
    ) -> Result<Value, RoutingError> {
        let top = if self.by_sentence {
            let mut order: Vec<usize> = (0..scores.len()).collect();
            order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
            fill(order, &self.words, self.wanted)
        } else {
            top_share(scores, SHARE)
        };
        let removed = rerun.removed(top.iter().map(|&unit| &self.units[unit]));
        let without = rerun.without(&[removed]).await?;
        let without_top = without.first().map_or(self.measured.full, |logits| rerun.probabilities(logits)[self.class]);
        let measured = Measured { without_top, ..self.measured.clone() };
        let fewest = if self.by_sentence { FEWEST_SENTENCES } else { FEWEST_WORDS };
        let verdict = measured.verdict(fewest);
        let why = match verdict {
            Verdict::Undecidable if measured.units < fewest => Some("too_short"),
            Verdict::Undecidable => Some("prior_wins"),
            _ => None,
        };
        Ok(json!({
            "method": method, "class": queue, "unit": if self.by_sentence { "sentence" } else { "word" },
            "q": SHARE, "units": measured.units, "removed": top.len(), "margin": MARGIN,
            "p_full": rounded(measured.full, 6), "p_without_top": rounded(measured.without_top, 6),
            "p_without_random_mean": rounded(measured.random_mean(), 6), "p_empty": rounded(measured.empty, 6),
            "random_runs": measured.without_random.len(), "rank_p": rounded(measured.rank_p(), 6), "seed": self.seed,
            "verdict": verdict, "why": why,
        }))
    }
}

/// All units in a random order, once for each run.
fn random_choices_in_order(units: usize, seed: u64) -> Vec<Vec<usize>> {
    (0..RANDOM_RUNS)
        .map(|run| {
            let mut order: Vec<usize> = (0..units).collect();
            crate::random::SplitMix64::stream(seed, run as u64).shuffle(&mut order);
            order
        })
        .collect()
}

/// The words of a mail.
pub(super) fn all_words(prepared: &Prepared) -> Vec<Part> {
    let mail = &prepared.encoded;
    word_parts(mail, 0..mail.tokens.len())
}

/// The words inside a part, as positions in `words`, which are in the order of the mail.
pub(super) fn words_in(part: &Part, words: &[Part]) -> std::ops::Range<usize> {
    let before = |end: usize| words.partition_point(|word| word.tokens.start < end);
    before(part.tokens.start)..before(part.tokens.end)
}
