//! `POST /v1/attention`: which words each head looked at, for one mail.
//!
//! The mail comes as for `/v1/route`. What to show comes as query parameters or, beside a mail in JSON, as fields of the
//! body: `"layers": "last"`, `"layers": [0, 5]`, `"words": false`.

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::asker::Asker;
use super::extract::parameters::{invalid, mail_with_parameters, offsets, one_of, truth};
use super::extract::{Asked, query};
use super::problem::Problem;
use super::state::Handle;
use crate::explain::{Dtype, Heads, Layers, Reduce, Rows, Special};
use crate::routing::{Against, AttentionRequest, MapFormat, Weight};

pub(super) const PARAMETERS: [&str; 14] = [
    "layers",
    "heads",
    "reduce",
    "rows",
    "words",
    "special",
    "weight",
    "class",
    "against",
    "window",
    "format",
    "dtype",
    "offsets",
    "precision",
];

pub(super) async fn attention(
    State(server): State<Handle>,
    asker: Asker,
    router: Asked,
    request: Request,
) -> Result<Response, Problem> {
    let (service, mail, asked) = mail_with_parameters(&server, &asker, router, request, &PARAMETERS).await?;
    let mut shown = AttentionRequest::default();
    for (name, value) in &asked {
        set(&mut shown, name, value)?;
    }
    let (format, dtype) = (shown.format, shown.dtype.unwrap_or_default());
    let written = async {
        let reply = service.attend(mail, shown, asker.caller()).await?;
        let write = move || reply.file(format, dtype);
        Ok(tokio::task::spawn_blocking(write).await.map_err(|_| Problem::internal("internal_error"))??)
    };
    Ok(respond(format, asker.deadline.within(written).await?))
}

/// Files are handed over to be saved: a page with the words of a stranger must not run as one of ours.
fn respond(format: MapFormat, file: Vec<u8>) -> Response {
    const NO_SNIFF: (HeaderName, &str) = (header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    let media_type = (header::CONTENT_TYPE, format.media_type());
    if format == MapFormat::Json {
        return ([media_type, NO_SNIFF], file).into_response();
    }
    let name = format!("attachment; filename=\"attention.{}\"", format.name());
    let mut response = ([media_type, NO_SNIFF], file).into_response();
    if let Ok(name) = HeaderValue::from_str(&name) {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, name);
    }
    response
}

fn set(shown: &mut AttentionRequest, name: &str, text: &str) -> Result<(), Problem> {
    let select = |error| Problem::from(crate::routing::RoutingError::Select(error));
    match name {
        "layers" => shown.layers = Layers::parse(text).map_err(select)?,
        "heads" => shown.heads = Heads::parse(text).map_err(select)?,
        "rows" => shown.rows = Rows::parse(text).map_err(select)?,
        "reduce" => {
            use Reduce::{Max, Mean, None, Relevance, Rollout};
            let valid = [("none", None), ("mean", Mean), ("max", Max), ("rollout", Rollout), ("relevance", Relevance)];
            shown.reduce = one_of(name, text, &valid)?;
        }
        "words" => shown.words = truth(name, text)?,
        "special" => shown.special = one_of(name, text, &[("keep", Special::Keep), ("drop", Special::Drop)])?,
        "weight" => shown.weight = one_of(name, text, &[("alpha", Weight::Alpha), ("norm", Weight::Norm)])?,
        "class" => shown.class = Some(text.to_owned()),
        "against" => shown.against = Against::parse(text),
        "window" => {
            shown.window = Some(text.parse().map_err(|_| invalid(name, text, &["the number of a window, from 0"]))?);
        }
        "format" => shown.format = one_of(name, text, &MapFormat::ALL)?,
        "dtype" => {
            shown.dtype = Some(one_of(name, text, &[("f32", Dtype::F32), ("f16", Dtype::F16), ("u8", Dtype::U8)])?);
        }
        "offsets" => shown.offsets = offsets(text)?,
        "precision" => {
            let digits = text.parse().ok().filter(|digits| (1..=9).contains(digits));
            shown.precision = digits.ok_or_else(|| invalid(name, text, &["1-9"]))?;
        }
        other => return Err(query::unknown(other, PARAMETERS.into_iter())),
    }
    Ok(())
}
