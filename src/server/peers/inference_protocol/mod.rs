//! The Open Inference Protocol (version 2) over HTTP: what KServe's, Triton's and Seldon's clients speak.
//!
//! The model is a router by its name, as `GET /v1/routers` lists it. Its input is `text`, beside it `subject` where the mail
//! has one; its outputs are `label`, `score`, `probabilities` and `decision`.

pub(in crate::server) mod health;
pub(in crate::server) mod infer;
pub(in crate::server) mod metadata;
pub(in crate::server) mod tensors;

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

pub(in crate::server) use health::{live, model_ready, ready};
pub(in crate::server) use infer::infer;
pub(in crate::server) use metadata::{model, server};

use super::named::of_model;
use super::refusal::Refusal;
use crate::routing::RoutingService;
use crate::server::problem::excerpt;
use crate::server::state::Handle;

/// Which model a path names.
#[derive(Debug, serde::Deserialize)]
pub(in crate::server) struct ModelPath {
    name: String,
    /// Any where the path has none.
    version: Option<String>,
}

impl ModelPath {
    /// The router of that name, where its version is the one asked for.
    fn service(&self, server: &Handle) -> Result<Arc<RoutingService>, Refusal> {
        let service = of_model(server, &self.name)?;
        match &self.version {
            Some(version) if *version != service.router().version => {
                Err(Refusal::UnknownModel(excerpt(&format!("{}/versions/{version}", self.name))))
            }
            _ => Ok(service),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ModelPath {
    type Rejection = ProtocolError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ProtocolError> {
        // Only a name that is not UTF-8 is no name.
        let path = Path::<Self>::from_request_parts(parts, state).await;
        path.map(|Path(path)| path).map_err(|_| Refusal::UnknownModel(excerpt(parts.uri.path())).into())
    }
}

/// An error as the protocol words it.
#[derive(Debug)]
pub(in crate::server) struct ProtocolError(Refusal);

/// The body of an error.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::server) struct ProtocolErrorBody {
    /// What is wrong and what to do.
    error: String,
}

impl<T: Into<Refusal>> From<T> for ProtocolError {
    fn from(refusal: T) -> Self {
        Self(refusal.into())
    }
}

impl IntoResponse for ProtocolError {
    fn into_response(self) -> Response {
        let status = match self.0.cause() {
            Refusal::UnknownModel(_) => StatusCode::NOT_FOUND,
            Refusal::Problem(problem) if problem.http_status() != StatusCode::UNPROCESSABLE_ENTITY => {
                problem.http_status()
            }
            _ => StatusCode::BAD_REQUEST,
        };
        (status, self.0.headers(), Json(ProtocolErrorBody { error: self.0.message() })).into_response()
    }
}
