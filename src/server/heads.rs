//! `POST /v1/heads`: what each attention head does in one mail, and what the decision owes to it.

use axum::Json;
use axum::extract::{Request, State};
use serde_json::Value;

use super::asker::Asker;
use super::extract::parameters::{mail_with_parameters, truth};
use super::extract::{Asked, query};
use super::problem::Problem;
use super::state::Handle;
use crate::routing::{Against, HeadsRequest};

pub(super) const PARAMETERS: [&str; 3] = ["class", "against", "ablate"];

pub(super) async fn heads(
    State(server): State<Handle>,
    asker: Asker,
    router: Asked,
    request: Request,
) -> Result<Json<Value>, Problem> {
    let (service, mail, asked) = mail_with_parameters(&server, &asker, router, request, &PARAMETERS).await?;
    let mut wanted = HeadsRequest::default();
    for (name, value) in &asked {
        match *name {
            "class" => wanted.class = Some(value.clone()),
            "against" => wanted.against = Against::parse(value),
            "ablate" => wanted.ablate = truth(name, value)?,
            other => return Err(query::unknown(other, PARAMETERS.into_iter())),
        }
    }
    let answer = async { Ok(service.heads(mail, &wanted, asker.caller()).await?) };
    Ok(Json(asker.deadline.within(answer).await?))
}
