//! Endpoints in the shapes of other classification servers, so that programs written for them work here unchanged.
//!
//! | file | shape | endpoints |
//! |---|---|---|
//! | `predict` | text-embeddings-inference | `POST /predict`, `GET /info` |
//! | `hugging_face` | Hugging Face's Inference API | `POST /` |
//! | `classify` | vLLM and SGLang | `POST /classify`, `POST /v1/classify` |
//! | `inference_protocol` | Open Inference Protocol (KServe, Triton) | `/v2` |
//!
//! A text goes the way of every mail: it is cleaned, cut into windows and scored; the scores are the calibrated
//! probabilities of `POST /v1/route`. These answers hold no decision: a program that leaves routing to the service asks
//! `/v1/route`. Fields that a protocol has and that mean nothing here are passed over, as its own servers do; a mail that is
//! longer than the token ceiling is refused unless the caller asked for it to be cut.
//!
//! What these servers call a model is a router here (`named`): in the path of `/v2`, as `model` of a body, or by `router=`.

pub(super) mod classify;
mod given;
pub(super) mod hugging_face;
pub(super) mod inference_protocol;
mod named;
mod object;
pub(super) mod predict;
mod refusal;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::routing::{get, post};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout_at;

use self::object::Object;
use self::refusal::Refusal;
use super::asker::Asker;
use super::extract::{MediaType, decode_json, parse_json, read_body};
use super::problem::Problem;
use super::spans;
use super::state::Handle;
use crate::inference::Caller;
use crate::routing::{Mail, MailContent, MailFields, RoutingError, RoutingService, Scores};

const JSON: &str = "application/json";

/// Texts of one request that are worked on at a time: enough to fill the model's batches, and room left for others.
const IN_FLIGHT: usize = 32;

/// The endpoints of this folder.
pub(super) fn routes() -> Router<Handle> {
    use inference_protocol as protocol;
    let model = |path: &str| {
        Router::new()
            .route(path, get(protocol::model))
            .route(&format!("{path}/ready"), get(protocol::model_ready))
            .route(&format!("{path}/infer"), post(protocol::infer))
    };
    Router::new()
        .route("/", post(hugging_face::infer))
        .route("/predict", post(predict::predict))
        .route("/info", get(predict::info))
        .route("/classify", post(classify::classify))
        .route("/v1/classify", post(classify::classify))
        .route("/v2", get(protocol::server))
        .route("/v2/health/live", get(protocol::live))
        .route("/v2/health/ready", get(protocol::ready))
        .merge(model("/v2/models/{name}"))
        .merge(model("/v2/models/{name}/versions/{version}"))
}

/// What one input of a request is scored by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Text {
    /// The first of a pair of texts.
    subject: Option<String>,
    body: String,
}

impl Text {
    fn alone(body: String) -> Self {
        Self { subject: None, body }
    }

    fn mail(self) -> Mail {
        let fields = MailFields { subject: self.subject, text: Some(self.body), ..MailFields::default() };
        Mail { id: None, content: MailContent::Fields(fields) }
    }
}

/// What to do with a mail over the token ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overlong {
    Refuse,
    /// Score what was read of it.
    Cut,
}

/// Reads a body of JSON.
async fn read_json<T: DeserializeOwned>(server: &Handle, request: Request) -> Result<T, Problem> {
    let (parts, body) = request.into_parts();
    let bytes = read_body(&parts.headers, body, server.config()).await?;
    let media_type = MediaType::of(&parts.headers);
    if media_type.essence != JSON {
        return Err(media_type.refuse(&[JSON]));
    }
    Ok(parse_json::<Object<T>>(&decode_json(&bytes, &media_type)?)?.0)
}

/// Scores the texts of one request, which has no more than it may, by one version of the router: all or none, in their
/// order.
async fn score(
    service: &Arc<RoutingService>,
    asker: &Asker,
    texts: Vec<Text>,
    overlong: Overlong,
) -> Result<Vec<Scores>, Refusal> {
    let scored = score_all(service, asker, texts, overlong);
    timeout_at(asker.deadline.at(), scored).await.unwrap_or_else(|_| Err(asker.deadline.timed_out().into()))
}

async fn score_all(
    service: &Arc<RoutingService>,
    asker: &Asker,
    texts: Vec<Text>,
    overlong: Overlong,
) -> Result<Vec<Scores>, Refusal> {
    let (count, places) = (texts.len(), Arc::new(Semaphore::new(IN_FLIGHT)));
    // Dropped with the request, and all that still waits with it.
    let mut tasks = JoinSet::new();
    for (index, text) in texts.into_iter().enumerate() {
        let (service, places, caller) = (Arc::clone(service), Arc::clone(&places), asker.caller());
        tasks.spawn(spans::carried(async move {
            let _place = places.acquire().await.expect("the semaphore is never closed");
            (index, score_one(&service, text, overlong, caller).await)
        }));
    }
    let mut scored: Vec<Option<Scores>> = vec![None; count];
    while let Some(finished) = tasks.join_next().await {
        let (index, scores) = finished.map_err(|_| Problem::internal("internal_error"))?;
        scored[index] = Some(scores.map_err(|refusal| if count > 1 { refusal.of_input(index) } else { refusal })?);
    }
    Ok(scored.into_iter().flatten().collect())
}

async fn score_one(
    service: &Arc<RoutingService>,
    text: Text,
    overlong: Overlong,
    caller: Caller,
) -> Result<Scores, Refusal> {
    match service.score(text.mail(), caller).await {
        Ok(scores) if scores.input.truncated && overlong == Overlong::Refuse => {
            Err(Refusal::TooLong { tokens: scores.input.tokens_total, limit: scores.input.tokens_used })
        }
        Ok(scores) => Ok(scores),
        Err(RoutingError::NothingToRead) => Err(Refusal::Empty),
        Err(error) => Err(Problem::from(error).into()),
    }
}
