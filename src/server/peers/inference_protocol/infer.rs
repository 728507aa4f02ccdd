//! `POST /v2/models/{name}/infer`: texts in, labels and probabilities out.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::object::Object;
use super::super::refusal::Refusal;
use super::super::{JSON, Overlong, score};
use super::tensors::{DECISION, InputTensor, LABEL, PROBABILITIES, SCORE, few, texts};
use super::{ModelPath, ProtocolError};
use crate::routing::Scores;
use crate::server::asker::Asker;
use crate::server::extract::{MediaType, decode_json, parse_json, read_body};
use crate::server::problem::excerpt;
use crate::server::state::Handle;

/// Where the JSON ends and binary tensors begin.
const HEADER_LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");

/// What Triton's client sends binary tensors as.
const OCTETS: &str = "application/octet-stream";

const OUTPUTS: [&str; 4] = [LABEL, SCORE, PROBABILITIES, DECISION];

/// A request for scores.
#[derive(Debug, Deserialize, JsonSchema)]
pub(in crate::server) struct InferRequest {
    /// Comes back with the answer.
    id: Option<String>,
    parameters: Option<Object<RequestParameters>>,
    #[serde(deserialize_with = "few")]
    inputs: Vec<Object<InputTensor>>,
    /// The outputs wanted; all where none is named.
    outputs: Option<Vec<Object<RequestedOutput>>>,
}

/// Parameters of a request; others than these mean nothing here.
#[derive(Debug, Deserialize, JsonSchema)]
pub(in crate::server) struct RequestParameters {
    /// Score what fits of a mail that is longer than the token ceiling, instead of refusing it.
    truncate: Option<bool>,
}

/// An output by its name.
#[derive(Debug, Deserialize, JsonSchema)]
pub(in crate::server) struct RequestedOutput {
    #[schemars(regex(pattern = "^(label|score|probabilities|decision)$"))]
    name: String,
}

/// The answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::server) struct InferReply {
    model_name: String,
    model_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    outputs: Vec<OutputTensor>,
}

/// One output.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::server) struct OutputTensor {
    name: &'static str,
    datatype: &'static str,
    /// `[n]`; of probabilities `[n, queues]`.
    shape: Vec<usize>,
    /// The labels of the columns of probabilities, separated by commas.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schemars(with = "std::collections::BTreeMap<String, String>")]
    parameters: Map<String, Value>,
    /// Row by row.
    data: Data,
}

/// Elements of an output.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "OutputData")]
pub(in crate::server) enum Data {
    /// BYTES.
    Texts(Vec<String>),
    /// FP32.
    Numbers(Vec<f32>),
}

pub(in crate::server) async fn infer(
    State(server): State<Handle>,
    path: ModelPath,
    asker: Asker,
    request: Request,
) -> Result<Json<InferReply>, ProtocolError> {
    let service = path.service(&server)?;
    let router = service.router();
    let (parts, body) = request.into_parts();
    let bytes = read_body(&parts.headers, body, server.config()).await?;
    let (request, binary) = read(&parts.headers, &bytes)?;
    let InferRequest { id, parameters, inputs, outputs } = request;
    let wanted = wanted(outputs)?;
    let truncate = parameters.and_then(|Object(parameters)| parameters.truncate).unwrap_or(false);
    let overlong = if truncate { Overlong::Cut } else { Overlong::Refuse };
    let texts = texts(inputs, binary, server.config().max_batch_emails)?;
    let scored = score(&service, &asker, texts, overlong).await?;
    Ok(Json(InferReply {
        model_name: path.name,
        model_version: router.version.clone(),
        id,
        outputs: wanted.into_iter().map(|name| output(name, &scored)).collect(),
    }))
}

/// The JSON of a body and the bytes behind it.
fn read<'a>(headers: &HeaderMap, bytes: &'a Bytes) -> Result<(InferRequest, &'a [u8]), Refusal> {
    let media_type = MediaType::of(headers);
    let (json, binary) = match headers.get(HEADER_LENGTH) {
        None if matches!(media_type.essence.as_str(), JSON | "") => (&bytes[..], &[][..]),
        None => return Err(media_type.refuse(&[JSON]).into()),
        Some(length) => {
            if !matches!(media_type.essence.as_str(), OCTETS | JSON | "") {
                return Err(media_type.refuse(&[OCTETS, JSON]).into());
            }
            let length = length.to_str().ok().and_then(|length| length.parse().ok());
            length.and_then(|length| bytes.split_at_checked(length)).ok_or_else(|| {
                Refusal::Invalid("`Inference-Header-Content-Length` is no length within the body".to_owned())
            })?
        }
    };
    Ok((parse_json::<Object<_>>(&decode_json(json, &media_type)?)?.0, binary))
}

/// The names of the outputs to answer with. Each once: a short request must not make a long answer.
fn wanted(outputs: Option<Vec<Object<RequestedOutput>>>) -> Result<Vec<&'static str>, Refusal> {
    let Some(outputs) = outputs.filter(|outputs| !outputs.is_empty()) else { return Ok(OUTPUTS.to_vec()) };
    let mut wanted = Vec::new();
    for Object(RequestedOutput { name }) in outputs {
        let known = OUTPUTS.into_iter().find(|known| *known == name).ok_or_else(|| {
            Refusal::Invalid(format!("there is no output `{}`, only {}", excerpt(&name), OUTPUTS.join(", ")))
        })?;
        if wanted.contains(&known) {
            return Err(Refusal::Invalid(format!("the output `{known}` stands twice")));
        }
        wanted.push(known);
    }
    Ok(wanted)
}

fn output(name: &'static str, scored: &[Scores]) -> OutputTensor {
    let n = scored.len();
    let texts = |of: fn(&Scores) -> String| ("BYTES", vec![n], Data::Texts(scored.iter().map(of).collect()));
    let mut parameters = Map::new();
    let (datatype, shape, data) = match name {
        LABEL => texts(|scores| scores.best().map_or_else(String::new, |best| best.queue.clone())),
        DECISION => texts(|scores| scores.decision.name().to_owned()),
        SCORE => {
            let best = scored.iter().map(|scores| scores.best().map_or(0.0, |best| best.probability as f32));
            ("FP32", vec![n], Data::Numbers(best.collect()))
        }
        _ => {
            let labels = scored.first().map(|scores| scores.queues.iter().map(|score| score.queue.as_str()));
            let labels: Vec<&str> = labels.into_iter().flatten().collect();
            parameters.insert("labels".to_owned(), labels.join(",").into());
            let all = scored.iter().flat_map(|scores| &scores.queues).map(|score| score.probability as f32);
            ("FP32", vec![n, labels.len()], Data::Numbers(all.collect()))
        }
    };
    OutputTensor { name, datatype, shape, parameters, data }
}
