//! `POST /v1/compare`: two mails, `{"a": {...}, "b": {...}}`, each as `/v1/route` takes it in JSON.

use axum::Json;
use axum::extract::{Request, State};
use serde_json::Value;

use super::asker::Asker;
use super::deadline::TIMEOUT;
use super::extract::parameters::{of_body, of_query, offsets, seed, truth};
use super::extract::{
    Asked, Item, MediaType, Object, ROUTER, decode_json, mail_of_object, parse_json, query, read_body,
};
use super::problem::Problem;
use super::state::Handle;
use crate::routing::{CompareRequest, Mail};

const JSON: &str = "application/json";

const MAILS: [&str; 2] = ["a", "b"];

pub(super) const PARAMETERS: [&str; 3] = ["shuffle", "seed", "offsets"];

pub(super) async fn compare(
    State(server): State<Handle>,
    asker: Asker,
    router: Asked,
    request: Request,
) -> Result<Json<Value>, Problem> {
    let (parts, body) = request.into_parts();
    let mut asked = of_query(&parts.uri, &PARAMETERS)?;
    let bytes = read_body(&parts.headers, body, server.config()).await?;
    let media_type = MediaType::of(&parts.headers);
    if media_type.essence != JSON {
        return Err(media_type.refuse(&[JSON]));
    }
    let mut object = parse_json::<Item>(&decode_json(&bytes, &media_type)?)?.object("the body")?;
    object.check(MAILS.into_iter().chain(PARAMETERS).chain([TIMEOUT, ROUTER]))?;
    asker.deadline.of_body(object.take(TIMEOUT))?;
    let service = router.or_of_body(&server, &mut object)?;
    let mails = [take_mail(&mut object, "a")?, take_mail(&mut object, "b")?];
    of_body(object, &PARAMETERS, &mut asked)?;
    let wanted = wanted(&asked)?;
    let answer = async { Ok(service.compare(mails, wanted, asker.caller()).await?) };
    Ok(Json(asker.deadline.within(answer).await?))
}

fn take_mail(object: &mut Object, name: &'static str) -> Result<Mail, Problem> {
    let Some(value) = object.take(name) else {
        return Err(Problem::unprocessable("missing_field", "a comparison needs two mails").field(name).valid(MAILS));
    };
    // Through the reader once more, which names what is wrong with a mail's fields.
    let object = parse_json::<Item>(&value.to_string())?.object(name)?;
    mail_of_object(object)
}

fn wanted(asked: &[(&'static str, String)]) -> Result<CompareRequest, Problem> {
    let mut wanted = CompareRequest::default();
    for (name, value) in asked {
        match *name {
            "shuffle" => wanted.shuffle = truth(name, value)?,
            "seed" => wanted.seed = seed(value)?,
            "offsets" => wanted.offsets = offsets(value)?,
            other => return Err(query::unknown(other, PARAMETERS.into_iter())),
        }
    }
    Ok(wanted)
}
