//! What the server is, and what the model takes and gives.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::tensors::{DECISION, LABEL, PROBABILITIES, SCORE, SUBJECT, TEXT};
use super::{ModelPath, ProtocolError};
use crate::server::state::Handle;

/// What the server is.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::server) struct ServerMetadata {
    name: &'static str,
    version: &'static str,
    /// Extensions of the protocol. Inputs may come in binary (`binary_tensor_data`); outputs are always JSON, so the
    /// extension is not listed.
    extensions: Vec<String>,
}

/// What a model is.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::server) struct ModelMetadata {
    name: String,
    versions: Vec<String>,
    platform: &'static str,
    inputs: Vec<TensorMetadata>,
    outputs: Vec<TensorMetadata>,
}

/// What a tensor is.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::server) struct TensorMetadata {
    name: &'static str,
    datatype: &'static str,
    /// -1: any number.
    shape: Vec<i64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<&'static str, String>,
}

impl TensorMetadata {
    fn new(name: &'static str, datatype: &'static str, shape: &[i64]) -> Self {
        Self { name, datatype, shape: shape.to_vec(), parameters: BTreeMap::new() }
    }
}

pub(in crate::server) async fn server() -> Json<ServerMetadata> {
    Json(ServerMetadata { name: "postroom", version: env!("CARGO_PKG_VERSION"), extensions: Vec::new() })
}

pub(in crate::server) async fn model(
    State(server): State<Handle>,
    path: ModelPath,
) -> Result<Json<ModelMetadata>, ProtocolError> {
    let service = path.service(&server)?;
    let router = service.router();
    let labels: Vec<&str> = router.queues.iter().filter(|queue| queue.enabled).map(|queue| queue.id.as_str()).collect();
    let columns = i64::try_from(labels.len()).unwrap_or(i64::MAX);
    let probabilities = TensorMetadata {
        parameters: BTreeMap::from([("labels", labels.join(","))]),
        ..TensorMetadata::new(PROBABILITIES, "FP32", &[-1, columns])
    };
    Ok(Json(ModelMetadata {
        name: path.name,
        versions: vec![router.version.clone()],
        platform: "postroom",
        inputs: vec![TensorMetadata::new(TEXT, "BYTES", &[-1]), TensorMetadata::new(SUBJECT, "BYTES", &[-1])],
        outputs: vec![
            TensorMetadata::new(LABEL, "BYTES", &[-1]),
            TensorMetadata::new(SCORE, "FP32", &[-1]),
            probabilities,
            TensorMetadata::new(DECISION, "BYTES", &[-1]),
        ],
    }))
}
