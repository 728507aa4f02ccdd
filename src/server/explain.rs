//! `POST /v1/explain`: what speaks for a queue in one mail, what against it, and whether that holds.

use axum::Json;
use axum::extract::{Request, State};
use serde_json::Value;

use super::asker::Asker;
use super::extract::parameters::{invalid, mail_with_parameters, offsets, one_of, seed, truth};
use super::extract::{Asked, query};
use super::problem::Problem;
use super::state::Handle;
use crate::routing::{Against, Classes, EvidenceUnit, ExplainRequest, Method, Perturb};

pub(super) const PARAMETERS: [&str; 8] =
    ["method", "unit", "classes", "against", "perturb", "check", "seed", "offsets"];

/// Most queues that one request names.
const MAX_CLASSES: usize = 256;

pub(super) async fn explain(
    State(server): State<Handle>,
    asker: Asker,
    router: Asked,
    request: Request,
) -> Result<Json<Value>, Problem> {
    let (service, mail, asked) = mail_with_parameters(&server, &asker, router, request, &PARAMETERS).await?;
    let mut wanted = ExplainRequest::default();
    for (name, value) in &asked {
        set(&mut wanted, name, value)?;
    }
    let answer = async { Ok(service.explain(mail, &wanted, asker.caller()).await?.into_json()) };
    Ok(Json(asker.deadline.within(answer).await?))
}

fn set(wanted: &mut ExplainRequest, name: &str, text: &str) -> Result<(), Problem> {
    match name {
        "method" => wanted.methods = methods(text)?,
        "unit" => {
            use EvidenceUnit::{Auto, Sentence, Word};
            wanted.unit = one_of(name, text, &[("auto", Auto), ("sentence", Sentence), ("word", Word)])?;
        }
        "classes" => wanted.classes = classes(text)?,
        "against" => wanted.against = Against::parse(text),
        "perturb" => {
            wanted.perturb = one_of(name, text, &[("delete", Perturb::Delete), ("mask", Perturb::Mask)])?;
        }
        "check" => wanted.check = truth(name, text)?,
        "seed" => wanted.seed = seed(text)?,
        "offsets" => wanted.offsets = offsets(text)?,
        other => return Err(query::unknown(other, PARAMETERS.into_iter())),
    }
    Ok(())
}

fn methods(text: &str) -> Result<Vec<Method>, Problem> {
    let mut methods = Vec::new();
    for part in text.split(',') {
        let method = one_of("method", part.trim(), &Method::ALL)?;
        if !methods.contains(&method) {
            methods.push(method);
        }
    }
    Ok(methods)
}

fn classes(text: &str) -> Result<Classes, Problem> {
    match Classes::parse(text) {
        Classes::List(labels) if labels.len() > MAX_CLASSES => {
            Err(invalid("classes", text, &["predicted", "top3", "all"]).limit(MAX_CLASSES))
        }
        classes => Ok(classes),
    }
}
