//! Why a request gets no scores, before a protocol puts it into its own words.

use axum::http::{HeaderMap, header};

use crate::server::problem::Problem;

/// Why a request gets no scores.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Refusal {
    /// The request is not one of the protocol; the sentence says what is wrong with it.
    Invalid(String),
    /// A model that is not served here.
    UnknownModel(String),
    /// Nothing is left to read of an input once quoted mail and signatures are taken out.
    Empty,
    /// An input over the token ceiling, and the caller did not ask for it to be cut.
    TooLong {
        /// Tokens of the input.
        tokens: usize,
        /// The ceiling.
        limit: usize,
    },
    /// One of several inputs, by its place.
    Input(usize, Box<Self>),
    /// What every endpoint may answer: the body cannot be read, the model is not loaded, too much waits.
    Problem(Problem),
}

impl Refusal {
    pub(super) fn of_input(self, index: usize) -> Self {
        match self {
            Self::Problem(_) => self,
            refusal => Self::Input(index, Box::new(refusal)),
        }
    }

    /// The refusal without the place of its input.
    pub(super) fn cause(&self) -> &Self {
        match self {
            Self::Input(_, refusal) => refusal.cause(),
            refusal => refusal,
        }
    }

    /// A sentence for people.
    pub(super) fn message(&self) -> String {
        match self {
            Self::Invalid(reason) => reason.clone(),
            Self::UnknownModel(name) => {
                format!("the model `{name}` is not served here; GET /v1/routers names those that are")
            }
            Self::Empty => "the input holds no text to judge by; POST /v1/route answers mail without text".to_owned(),
            Self::TooLong { tokens, limit } => format!(
                "the input has {tokens} tokens, at most {limit} are read; ask for it to be truncated, or send it to POST /v1/route"
            ),
            Self::Input(index, refusal) => format!("input {index}: {}", refusal.message()),
            Self::Problem(problem) => problem.sentence(),
        }
    }

    /// The headers that go with it: when to come back.
    pub(super) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Self::Problem(problem) = self
            && let Some(seconds) = problem.retry_after_s()
        {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        headers
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        match problem.given_text() {
            // The valid names have no place in these answers.
            Some(name) if problem.code() == "unknown_router" => Self::UnknownModel(name.to_owned()),
            _ => Self::Problem(problem),
        }
    }
}
