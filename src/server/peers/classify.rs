//! `POST /classify` as vLLM answers it, and `POST /v1/classify` as SGLang does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::given::Given;
use super::named::of_request;
use super::refusal::Refusal;
use super::{Overlong, Text, read_json, score};
use crate::routing::Scores;
use crate::server::asker::Asker;
use crate::server::extract::Asked;
use crate::server::problem::Problem;
use crate::server::state::Handle;

const SHAPE: &str = "`input` must be a text or a list of texts; token ids are not taken";

/// A request for the likeliest queue of each text.
#[derive(Debug, Deserialize, JsonSchema)]
pub(in crate::server) struct ClassifyRequest {
    /// Name of a router; the default one where it is absent.
    model: Option<String>,
    #[schemars(with = "Input")]
    input: Given,
    /// -1: score what fits of a mail that is longer than the token ceiling, instead of refusing it.
    #[schemars(range(min = -1, max = -1))]
    truncate_prompt_tokens: Option<i64>,
}

/// A text, or several.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only described")]
#[schemars(untagged, rename = "ClassifyInput")]
enum Input {
    One(String),
    Several(Vec<String>),
}

/// The answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::server) struct ClassifyReply {
    id: String,
    object: &'static str,
    /// Seconds since 1970.
    created: u64,
    /// Name of the router, as it was asked for.
    model: String,
    data: Vec<Class>,
    usage: Usage,
}

/// The likeliest queue of one text.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::server) struct Class {
    /// Place of the text in the request.
    index: usize,
    /// Id of the likeliest queue.
    label: Option<String>,
    /// Calibrated probability of each queue, in the order of `GET /v1/queues`, those that are switched off left out.
    probs: Vec<f64>,
    num_classes: usize,
}

/// Tokens read.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::server) struct Usage {
    prompt_tokens: usize,
    total_tokens: usize,
    completion_tokens: usize,
    /// Always null.
    #[schemars(with = "()")]
    prompt_tokens_details: Option<()>,
}

pub(in crate::server) async fn classify(
    State(server): State<Handle>,
    asker: Asker,
    asked: Result<Asked, Problem>,
    request: Request,
) -> Result<Json<ClassifyReply>, ClassifyError> {
    let asked = asked?;
    let ClassifyRequest { model, input, truncate_prompt_tokens } = read_json(&server, request).await?;
    let name = model.as_deref().or(asked.name()).unwrap_or(asked.router_name()).to_owned();
    let service = of_request(&server, asked, model.as_deref())?;
    let overlong = match truncate_prompt_tokens {
        None => Overlong::Refuse,
        Some(-1) => Overlong::Cut,
        Some(other) => {
            let reason = format!("`truncate_prompt_tokens` is {other}, only -1 is taken: the router's own ceiling");
            return Err(Refusal::Invalid(reason).into());
        }
    };
    let texts = input.texts(server.config().max_batch_emails, SHAPE)?;
    if texts.is_empty() {
        return Err(Refusal::Invalid("`input` is an empty list".to_owned()).into());
    }
    let scored = score(&service, &asker, texts.into_iter().map(Text::alone).collect(), overlong).await?;
    let tokens = scored.iter().map(|scores| scores.input.tokens_used).sum();
    Ok(Json(ClassifyReply {
        id: new_id(),
        object: "list",
        created: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        model: name,
        data: scored.iter().enumerate().map(|(index, scores)| class(index, scores)).collect(),
        usage: Usage { prompt_tokens: tokens, total_tokens: tokens, completion_tokens: 0, prompt_tokens_details: None },
    }))
}

fn class(index: usize, scores: &Scores) -> Class {
    Class {
        index,
        label: scores.best().map(|score| score.queue.clone()),
        probs: scores.queues.iter().map(|score| score.probability).collect(),
        num_classes: scores.queues.len(),
    }
}

fn new_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    format!("classify-{now:016x}{:08x}", COUNT.fetch_add(1, Ordering::Relaxed) as u32)
}

/// An error as vLLM words it.
#[derive(Debug)]
pub(in crate::server) struct ClassifyError(Refusal);

/// The body of an error.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::server) struct ClassifyErrorBody {
    error: ErrorDetails,
}

/// What went wrong.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::server) struct ErrorDetails {
    message: String,
    #[serde(rename = "type")]
    kind: &'static str,
    param: Option<String>,
    code: u16,
}

impl<T: Into<Refusal>> From<T> for ClassifyError {
    fn from(refusal: T) -> Self {
        Self(refusal.into())
    }
}

impl ClassifyError {
    fn status(&self) -> (StatusCode, &'static str) {
        match self.0.cause() {
            Refusal::UnknownModel(_) => (StatusCode::NOT_FOUND, "NotFoundError"),
            Refusal::Problem(problem) => match problem.http_status() {
                StatusCode::TOO_MANY_REQUESTS => (StatusCode::TOO_MANY_REQUESTS, "RateLimitError"),
                StatusCode::SERVICE_UNAVAILABLE => (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailableError"),
                status if status.is_server_error() => (status, "InternalServerError"),
                // What cannot be parsed is as bad a request as what can.
                StatusCode::UNPROCESSABLE_ENTITY => (StatusCode::BAD_REQUEST, "BadRequestError"),
                status => (status, "BadRequestError"),
            },
            _ => (StatusCode::BAD_REQUEST, "BadRequestError"),
        }
    }
}

impl IntoResponse for ClassifyError {
    fn into_response(self) -> Response {
        let (status, kind) = self.status();
        let error = ErrorDetails { message: self.0.message(), kind, param: None, code: status.as_u16() };
        (status, self.0.headers(), Json(ClassifyErrorBody { error })).into_response()
    }
}
