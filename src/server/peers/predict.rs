//! `POST /predict` and `GET /info` as text-embeddings-inference answers them.
//!
//! A flat list of two strings is a pair there and not a batch; here the pair is subject and body. A batch is a list of lists.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderName, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::given::{Given, List, whole};
use super::refusal::Refusal;
use super::{Overlong, Text, read_json, score};
use crate::routing::{QueueScore, Scores};
use crate::server::asker::Asker;
use crate::server::extract::Asked;
use crate::server::problem::Problem;
use crate::server::state::Handle;

/// Tokens that were read for the answer.
const COMPUTE_TOKENS: HeaderName = HeaderName::from_static("x-compute-tokens");

/// A request for scores.
#[derive(Debug, Deserialize, JsonSchema)]
pub(in crate::server) struct PredictRequest {
    /// A text, a pair of subject and body, or a list of `[text]` and `[subject, body]`.
    #[schemars(schema_with = "inputs")]
    inputs: Given,
    /// Score what fits of a mail that is longer than the token ceiling, instead of refusing it.
    #[serde(default)]
    truncate: bool,
    /// Scores as the network gives them, instead of probabilities.
    #[serde(default)]
    raw_scores: bool,
}

fn inputs(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"$ref": "#/components/schemas/PredictInputs"})
}

/// A queue and its score.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(in crate::server) struct Prediction {
    /// Calibrated probability, 0 to 1, or the network's number where raw scores were asked for.
    pub(super) score: f64,
    /// Id of the queue.
    pub(super) label: String,
}

impl Prediction {
    /// All queues, likeliest first.
    pub(super) fn all(scores: &Scores, number: impl Fn(&QueueScore) -> f64) -> Vec<Self> {
        scores.ranked().into_iter().map(|score| Self { score: number(score), label: score.queue.clone() }).collect()
    }
}

/// The predictions of one input, or of each input of a batch.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::server) enum PredictReply {
    One(Vec<Prediction>),
    Batch(Vec<Vec<Prediction>>),
}

pub(in crate::server) async fn predict(
    State(server): State<Handle>,
    asker: Asker,
    asked: Result<Asked, Problem>,
    request: Request,
) -> Result<impl IntoResponse, PredictError> {
    let service = asked?.service();
    let PredictRequest { inputs, truncate, raw_scores } = read_json(&server, request).await?;
    let (texts, batch) = match Inputs::of(inputs, server.config().max_batch_emails)? {
        Inputs::One(text) => (vec![text], false),
        Inputs::Batch(texts) => (texts, true),
    };
    let scored = score(&service, &asker, texts, if truncate { Overlong::Cut } else { Overlong::Refuse }).await?;
    let number = |score: &QueueScore| if raw_scores { f64::from(score.logit) } else { score.probability };
    let mut answers: Vec<Vec<Prediction>> = scored.iter().map(|scores| Prediction::all(scores, number)).collect();
    let reply = match answers.pop() {
        Some(answer) if !batch => PredictReply::One(answer),
        last => PredictReply::Batch(answers.into_iter().chain(last).collect()),
    };
    Ok((compute_tokens(&scored), Json(reply)))
}

/// The header that says how many tokens were read.
pub(super) fn compute_tokens(scored: &[Scores]) -> AppendHeaders<[(HeaderName, String); 1]> {
    let tokens: usize = scored.iter().map(|scores| scores.input.tokens_used).sum();
    AppendHeaders([(COMPUTE_TOKENS, tokens.to_string())])
}

#[derive(Debug, PartialEq, Eq)]
enum Inputs {
    One(Text),
    Batch(Vec<Text>),
}

impl Inputs {
    fn of(inputs: Given, limit: usize) -> Result<Self, Refusal> {
        const SHAPE: &str =
            "`inputs` must be a text, a pair [subject, body], or a batch [[text], [subject, body], ...]";
        let invalid = |more: &str| Refusal::Invalid(format!("{SHAPE}{more}"));
        match inputs {
            Given::Text(text) => Ok(Self::One(Text::alone(text))),
            Given::List(list) if list.kept.is_empty() => Err(invalid("; it is empty")),
            Given::List(List { kept, given }) if kept.iter().all(|item| matches!(item, Given::List(_))) => {
                let texts = kept.into_iter().enumerate().map(|(index, item)| {
                    let sequence = match item {
                        Given::List(list) => sequence(list),
                        Given::Text(_) | Given::Other => None,
                    };
                    sequence.ok_or_else(|| invalid(&format!("; element {index} is neither")))
                });
                Ok(Self::Batch(whole(texts.collect::<Result<_, _>>()?, given, limit)?))
            }
            Given::List(list) => {
                let strings = list.kept.iter().all(|item| matches!(item, Given::Text(_)));
                let more = if strings { "; put each text of a batch into a list of its own" } else { "" };
                sequence(list).map(Self::One).ok_or_else(|| invalid(more))
            }
            Given::Other => Err(invalid("")),
        }
    }
}

/// One text, or subject and body.
fn sequence(List { kept, given }: List) -> Option<Text> {
    let mut texts = kept.into_iter().map(Given::text);
    match given {
        1 => Some(Text::alone(texts.next()??)),
        2 => Some(Text { subject: Some(texts.next()??), body: texts.next()?? }),
        _ => None,
    }
}

/// An error as text-embeddings-inference words it.
#[derive(Debug)]
pub(in crate::server) struct PredictError(Refusal);

/// The body of an error.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::server) struct PredictErrorBody {
    error: String,
    error_type: ErrorType,
}

/// Kinds of errors that text-embeddings-inference knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub(in crate::server) enum ErrorType {
    /// The model is still being loaded, or the service stops.
    Unhealthy,
    /// The network failed.
    Backend,
    /// Too much waits already.
    Overloaded,
    /// The request is not one that can be answered.
    Validation,
    /// There is no text.
    Empty,
}

impl<T: Into<Refusal>> From<T> for PredictError {
    fn from(refusal: T) -> Self {
        Self(refusal.into())
    }
}

impl PredictError {
    fn status(&self) -> (StatusCode, ErrorType) {
        match self.0.cause() {
            Refusal::Empty => (StatusCode::BAD_REQUEST, ErrorType::Empty),
            Refusal::Problem(problem) => match problem.http_status() {
                StatusCode::SERVICE_UNAVAILABLE if matches!(problem.code(), "not_ready" | "shutting_down") => {
                    (StatusCode::SERVICE_UNAVAILABLE, ErrorType::Unhealthy)
                }
                // The queue is full, this client's share of it, or the deadline too near.
                StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                    (StatusCode::TOO_MANY_REQUESTS, ErrorType::Overloaded)
                }
                status if status.is_server_error() => (StatusCode::FAILED_DEPENDENCY, ErrorType::Backend),
                status => (status, ErrorType::Validation),
            },
            _ => (StatusCode::UNPROCESSABLE_ENTITY, ErrorType::Validation),
        }
    }
}

impl IntoResponse for PredictError {
    fn into_response(self) -> Response {
        let (status, error_type) = self.status();
        let body = PredictErrorBody { error: self.0.message(), error_type };
        (status, self.0.headers(), Json(body)).into_response()
    }
}

/// What is served, in the words of text-embeddings-inference.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::server) struct Info {
    /// Name of the router, as it was asked for.
    model_id: String,
    /// Its version.
    model_sha: String,
    model_dtype: &'static str,
    model_type: ModelType,
    /// The token ceiling of one mail.
    max_input_length: usize,
    /// Mails that may wait for the model.
    max_concurrent_requests: usize,
    /// Tokens of one batch of the network.
    max_batch_tokens: usize,
    /// Most inputs of one request.
    max_client_batch_size: usize,
    /// Longest request body, in bytes.
    payload_limit: usize,
    /// Whether mail over the ceiling is cut without being asked: never.
    auto_truncate: bool,
    /// Threads that read mail.
    tokenization_workers: usize,
    /// Version of the service.
    version: &'static str,
}

/// What kind of model it is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::server) enum ModelType {
    Classifier(Labels),
}

/// Queues by the number of their logit, and back.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::server) struct Labels {
    id2label: BTreeMap<usize, String>,
    label2id: BTreeMap<String, usize>,
}

pub(in crate::server) async fn info(
    asked: Result<Asked, Problem>,
    State(server): State<Handle>,
) -> Result<Json<Info>, PredictError> {
    let asked = asked?;
    let name = asked.name().unwrap_or(asked.router_name()).to_owned();
    let service = asked.service();
    let (router, limits, inference) = (service.router(), server.config(), &service.config().inference);
    let labels = || router.queues.iter().map(|queue| queue.id.clone()).enumerate();
    Ok(Json(Info {
        model_id: name,
        model_sha: router.version.clone(),
        model_dtype: "float32",
        model_type: ModelType::Classifier(Labels {
            id2label: labels().collect(),
            label2id: labels().map(|(index, label)| (label, index)).collect(),
        }),
        max_input_length: router.windows.max_tokens,
        max_concurrent_requests: inference.max_waiting_mails,
        max_batch_tokens: inference.max_batch_tokens,
        max_client_batch_size: limits.max_batch_emails,
        payload_limit: limits.max_body_bytes,
        auto_truncate: false,
        tokenization_workers: std::thread::available_parallelism().map_or(1, usize::from),
        version: env!("CARGO_PKG_VERSION"),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: Value) -> Result<Inputs, Refusal> {
        Inputs::of(serde_json::from_value(value).unwrap(), 3)
    }

    fn pair(subject: &str, body: &str) -> Text {
        Text { subject: Some(subject.to_owned()), body: body.to_owned() }
    }

    #[test]
    fn a_flat_list_is_one_input_and_a_list_of_lists_is_a_batch() {
        let alone = |text: &str| Text::alone(text.to_owned());
        let cases = [
            (json!("a"), Inputs::One(alone("a"))),
            (json!(["a"]), Inputs::One(alone("a"))),
            (json!(["a", "b"]), Inputs::One(pair("a", "b"))),
            (json!([["a"]]), Inputs::Batch(vec![alone("a")])),
            (json!([["a"], ["b", "c"]]), Inputs::Batch(vec![alone("a"), pair("b", "c")])),
        ];
        for (value, expected) in cases {
            assert_eq!(read(value).unwrap(), expected);
        }
    }

    #[test]
    fn other_inputs_are_refused_with_what_is_wrong() {
        let refused = |value| read(value).unwrap_err().message();
        assert!(refused(json!([["a"], ["a"], ["a"], ["a", "b"]])).contains("4 inputs in one request, at most 3"));
        assert!(refused(json!(["a", "b", "c"])).contains("a list of its own"));
        assert!(refused(json!([["a"], ["b", "c", "d"]])).contains("element 1"));
        for value in [json!([]), json!([["a"], "b"]), json!(7), json!(null), json!({"text": "a"}), json!([[]])] {
            assert!(refused(value.clone()).starts_with("`inputs` must be"), "{value}");
        }
    }
}
