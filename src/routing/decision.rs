//! The answer to one mail.

use schemars::JsonSchema;
use serde::Serialize;

use crate::email::{Cut, CutReason, Language, MailKind};

/// What should happen to the mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It goes to [`Decision::queue`].
    Route,
    /// A person decides; the reasons say why, the candidates help.
    NeedsHuman,
    /// A bounce or an automatic reply: no queue must act.
    NotForAQueue,
}

impl Outcome {
    /// Its name in answers and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Route => "route",
            Self::NeedsHuman => "needs_human",
            Self::NotForAQueue => "not_for_a_queue",
        }
    }
}

/// Why a mail was not routed alone, or what the reader should know about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The confidence is below the threshold for that queue.
    BelowThreshold,
    /// Too few words to judge by.
    TooShort,
    /// No text in the body; only the subject was read.
    EmptyBody,
    /// The text is in a language that the router does not know.
    UnsupportedLanguage,
    /// An automatic reply.
    AutoReply,
    /// A report of the mail system.
    Bounce,
    /// Nothing could be read: encrypted or broken.
    Unreadable,
    /// The mail was longer than the ceiling; the decision stands on what was read.
    Truncated,
    /// The likeliest queue is switched off.
    QueueDisabled,
    /// The likeliest queue was added by a description alone and is only suggested.
    SuggestOnly,
    /// The mail looks like nothing that the router was trained on.
    OutOfScope,
    /// It may belong to a queue whose mail must not be missed, though another queue is likelier.
    SafetyQueue,
    /// More than one queue remains possible: the mail may want several things, or be unclear. Comes with `BelowThreshold`.
    SeveralIntents,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::BelowThreshold,
        Self::TooShort,
        Self::EmptyBody,
        Self::UnsupportedLanguage,
        Self::AutoReply,
        Self::Bounce,
        Self::Unreadable,
        Self::Truncated,
        Self::QueueDisabled,
        Self::SuggestOnly,
        Self::OutOfScope,
        Self::SafetyQueue,
        Self::SeveralIntents,
    ];

    /// Its name in answers and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BelowThreshold => "below_threshold",
            Self::TooShort => "too_short",
            Self::EmptyBody => "empty_body",
            Self::UnsupportedLanguage => "unsupported_language",
            Self::AutoReply => "auto_reply",
            Self::Bounce => "bounce",
            Self::Unreadable => "unreadable",
            Self::Truncated => "truncated",
            Self::QueueDisabled => "queue_disabled",
            Self::SuggestOnly => "suggest_only",
            Self::OutOfScope => "out_of_scope",
            Self::SafetyQueue => "safety_queue",
            Self::SeveralIntents => "several_intents",
        }
    }
}

/// A queue by id and name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QueueRef {
    /// Stable id.
    pub id: String,
    /// Name for people.
    pub name: String,
}

/// A queue and how likely it is.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Candidate {
    /// Id of the queue.
    pub queue: String,
    /// Calibrated probability that this queue is right, 0 to 1.
    #[schemars(range(min = 0, max = 1))]
    pub confidence: f64,
}

/// What cleaning found.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MailFacts {
    /// Person, automatic, list, forwarded.
    pub kind: MailKind,
    /// The header or structure that decided the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind_evidence: Option<String>,
    /// Language of the text, where it is long enough to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub language: Option<&'static str>,
    /// Characters taken out of the body, by reason.
    #[schemars(with = "std::collections::BTreeMap<String, u64>")]
    pub cut: serde_json::Map<String, serde_json::Value>,
    /// Attachments; none of them was read.
    pub attachments: usize,
    /// What else cleaning noticed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<crate::email::Note>,
}

impl MailFacts {
    /// The facts of a clean mail.
    #[must_use]
    pub fn of(email: &crate::email::CleanEmail) -> Self {
        Self {
            kind: email.kind,
            kind_evidence: email.kind_evidence.clone(),
            language: email.language.map(|Language { code, .. }| code),
            cut: cut_characters(&email.cut, email.body.posted()),
            attachments: email.attachments,
            notes: email.notes.clone(),
        }
    }
}

fn cut_characters(cuts: &[Cut], posted: &str) -> serde_json::Map<String, serde_json::Value> {
    let mut by_reason: Vec<(CutReason, usize)> = Vec::new();
    for cut in cuts {
        let characters = posted.get(cut.start..cut.end).map_or(0, |text| text.chars().count());
        match by_reason.iter_mut().find(|(why, _)| *why == cut.why) {
            Some((_, count)) => *count += characters,
            None => by_reason.push((cut.why, characters)),
        }
    }
    by_reason.into_iter().map(|(why, count)| (name_of(why).to_owned(), count.into())).collect()
}

/// What the answer calls text that was cut.
fn name_of(why: CutReason) -> &'static str {
    match why {
        CutReason::Quote => "quoted",
        CutReason::ForwardHeader => "forward_header",
        CutReason::Signature => "signature",
        CutReason::Disclaimer => "disclaimer",
        CutReason::Banner => "banner",
        CutReason::Delimiter => "delimiter",
        CutReason::Limit => "limit",
    }
}

/// How much of the mail the network saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InputFacts {
    /// Tokens of the whole mail.
    pub tokens_total: usize,
    /// Tokens that were read.
    pub tokens_used: usize,
    /// Windows that they were read in.
    pub windows: usize,
    /// Whether the ceiling cut the mail.
    pub truncated: bool,
}

/// Which model answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ModelRef {
    /// Name of the router.
    pub router: String,
    /// Its version.
    pub version: String,
    /// Its encoder.
    pub encoder: String,
}

/// Where the time went, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Timing {
    /// Reading and cleaning the mail.
    pub parse: u64,
    /// Cutting it into tokens and windows.
    pub tokenize: u64,
    /// Waiting for the model.
    pub queue: u64,
    /// The batch that this mail ran in.
    pub model: u64,
    /// All of it.
    pub total: u64,
}

/// The answer to one mail.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Decision {
    /// The caller's id of the mail, or one made here.
    pub id: String,
    /// What should happen.
    pub decision: Outcome,
    /// The queue that must act; `None` unless the decision is to route.
    pub queue: Option<QueueRef>,
    /// Calibrated probability of the likeliest queue; `None` where the network was not asked.
    #[schemars(range(min = 0, max = 1))]
    pub confidence: Option<f64>,
    /// Why not routed alone, and what else to know.
    pub reasons: Vec<Reason>,
    /// The likeliest queues, best first.
    pub candidates: Vec<Candidate>,
    /// Ids of the queues that remain possible, likeliest first, where the router's numbers hand the mail to a person
    /// (`below_threshold`, `out_of_scope`, `safety_queue`) and it can say: of such mail like that of the training, 95%
    /// (`conformal_alpha`) belongs to one of them. Of mail that only other reasons stop, of mail in an unsupported language
    /// and under a `routing.policy.threshold` below the router's own nothing is promised, and there is no set. Queues that
    /// are switched off are left out; where no other is possible there is no set either.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate_set: Option<Vec<String>>,
    /// What cleaning found.
    pub mail: MailFacts,
    /// How much was read.
    pub input: InputFacts,
    /// Which model answered.
    pub model: ModelRef,
    /// Where the time went.
    pub timing_us: Timing,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_metrics_use_the_same_names() {
        for reason in Reason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.name());
        }
        for outcome in [Outcome::Route, Outcome::NeedsHuman, Outcome::NotForAQueue] {
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.name());
        }
    }
}
