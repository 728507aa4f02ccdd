//! `POST /` as Hugging Face's Inference API answers text classification, for `huggingface_hub.InferenceClient` and the
//! programs written like it.
//!
//! A list of texts is a batch here. The answer is a list of lists, also for one text: the client takes its first element.

use axum::Json;
use axum::extract::{Request, State};
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::Deserialize;

use super::given::Given;
use super::object::Object;
use super::predict::{PredictError, Prediction, compute_tokens};
use super::refusal::Refusal;
use super::{Overlong, Text, read_json, score};
use crate::routing::QueueScore;
use crate::server::asker::Asker;
use crate::server::extract::Asked;
use crate::server::problem::Problem;
use crate::server::state::Handle;

/// A request for scores.
#[derive(Debug, Deserialize, JsonSchema)]
pub(in crate::server) struct InferenceRequest {
    #[schemars(with = "Texts")]
    inputs: Given,
    parameters: Option<Object<Parameters>>,
    /// Score what fits of a mail that is longer than the token ceiling, instead of refusing it.
    #[serde(default)]
    truncate: bool,
}

/// A text, or a batch of texts.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only described")]
#[schemars(untagged, rename = "InferenceTexts")]
enum Texts {
    One(String),
    Batch(Vec<String>),
}

/// How to answer.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(rename = "InferenceParameters")]
pub(in crate::server) struct Parameters {
    /// Only the likeliest queues, so many; at least 1.
    #[schemars(range(min = 1))]
    top_k: Option<u32>,
    /// What the scores are.
    function_to_apply: Option<Function>,
}

/// What is done with the numbers of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "InferenceFunction")]
pub(in crate::server) enum Function {
    /// Calibrated probabilities.
    #[default]
    Softmax,
    /// Each number by itself, as 1 / (1 + exp(-x)).
    Sigmoid,
    /// The numbers themselves.
    None,
}

impl Function {
    fn of(self, score: &QueueScore) -> f64 {
        let logit = f64::from(score.logit);
        match self {
            Self::Softmax => score.probability,
            Self::Sigmoid => 1.0 / (1.0 + (-logit).exp()),
            Self::None => logit,
        }
    }
}

pub(in crate::server) async fn infer(
    State(server): State<Handle>,
    asker: Asker,
    asked: Result<Asked, Problem>,
    request: Request,
) -> Result<impl IntoResponse, PredictError> {
    let service = asked?.service();
    let InferenceRequest { inputs, parameters, truncate } = read_json(&server, request).await?;
    let Parameters { top_k, function_to_apply } = parameters.unwrap_or_default().0;
    if top_k == Some(0) {
        return Err(Refusal::Invalid("`parameters.top_k` must be at least 1".to_owned()).into());
    }
    let texts = inputs.texts(server.config().max_batch_emails, "`inputs` must be a text or a list of texts")?;
    if texts.is_empty() {
        return Err(Refusal::Invalid("`inputs` is an empty list".to_owned()).into());
    }
    let texts = texts.into_iter().map(Text::alone).collect();
    let scored = score(&service, &asker, texts, if truncate { Overlong::Cut } else { Overlong::Refuse }).await?;
    let function = function_to_apply.unwrap_or_default();
    let most = top_k.map_or(usize::MAX, |most| most as usize);
    let answers: Vec<Vec<Prediction>> = scored
        .iter()
        .map(|scores| {
            let mut all = Prediction::all(scores, |score| function.of(score));
            all.truncate(most);
            all
        })
        .collect();
    Ok((compute_tokens(&scored), Json(answers)))
}
