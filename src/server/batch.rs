//! `POST /v1/route/batch`: many mails in one request. Order is kept, and a bad mail fails alone.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::extract::{Item, MediaType, decode_json, mail_of_object, parse_json, query, read_body};
use super::problem::Problem;
use super::state::Handle;
use crate::routing::{Decision, Mail, RoutingService};

const JSON: &str = "application/json";
const NDJSON: &str = "application/x-ndjson";

/// Mails of one batch that are worked on at a time: enough to fill the model's batches, and room left for others.
const IN_FLIGHT: usize = 32;

/// What became of one mail.
#[derive(Serialize)]
struct Outcome {
    /// Its place in the request, from 0.
    index: usize,
    /// The status that it would have got alone.
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Decision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Problem>,
}

pub(super) async fn route_batch(State(server): State<Handle>, request: Request) -> Result<Response, Problem> {
    let service = server.service()?;
    query::refuse_all(request.uri())?;
    let (parts, body) = request.into_parts();
    let bytes = read_body(&parts.headers, body, server.config()).await?;
    let media_type = MediaType::of(&parts.headers);
    let lines = media_type.essence == NDJSON;
    let mails = match media_type.essence.as_str() {
        JSON => parse_json::<Batch>(&decode_json(&bytes, &media_type)?)?.mails()?,
        NDJSON => mails_of_lines(&decode_json(&bytes, &media_type)?),
        _ => return Err(media_type.refuse(&[JSON, NDJSON])),
    };
    let limit = server.config().max_batch_emails;
    if mails.len() > limit {
        return Err(Problem::too_large("too_many_emails", format!("a batch holds at most {limit} mails"))
            .field("emails")
            .limit(limit)
            .given(mails.len())
            .remedy("Send several batches, or raise server.max_batch_emails."));
    }
    let outcomes = run(service, mails).await;
    if lines {
        return Ok(([(header::CONTENT_TYPE, NDJSON)], ndjson(&outcomes)).into_response());
    }
    let failed = outcomes.iter().filter(|outcome| outcome.problem.is_some()).count();
    Ok(Json(serde_json::json!({"results": outcomes, "failed": failed})).into_response())
}

async fn run(service: &Arc<RoutingService>, mails: Vec<Result<Mail, Problem>>) -> Vec<Outcome> {
    let places = Arc::new(Semaphore::new(IN_FLIGHT));
    let count = mails.len();
    // Dropped with the request, and all that still waits with it.
    let mut tasks = JoinSet::new();
    for (index, mail) in mails.into_iter().enumerate() {
        let (service, places) = (Arc::clone(service), Arc::clone(&places));
        tasks.spawn(async move {
            let _place = places.acquire().await.expect("the semaphore is never closed");
            let decided = match mail {
                Ok(mail) => service.route(mail).await.map_err(Problem::from),
                Err(problem) => Err(problem),
            };
            (index, decided)
        });
    }
    let mut decided: Vec<Option<Result<Decision, Problem>>> = Vec::new();
    decided.resize_with(count, || None);
    while let Some(finished) = tasks.join_next().await {
        // A task that panicked leaves its place empty.
        if let Ok((index, result)) = finished {
            decided[index] = Some(result);
        }
    }
    decided
        .into_iter()
        .enumerate()
        .map(|(index, result)| match result.unwrap_or_else(|| Err(Problem::internal("internal_error"))) {
            Ok(decision) => Outcome { index, status: 200, result: Some(decision), problem: None },
            Err(problem) => Outcome { index, status: problem.status(), result: None, problem: Some(problem) },
        })
        .collect()
}

fn ndjson(outcomes: &[Outcome]) -> String {
    outcomes.iter().map(|outcome| serde_json::to_string(outcome).unwrap_or_default() + "\n").collect()
}

/// One mail a line; empty lines do not count.
fn mails_of_lines(text: &str) -> Vec<Result<Mail, Problem>> {
    text.lines().filter(|line| !line.trim().is_empty()).map(|line| mail_of_item(parse_json(line)?)).collect()
}

fn mail_of_item(item: Item) -> Result<Mail, Problem> {
    mail_of_object(item.object("a mail")?)
}

/// `{"emails": [...]}`.
struct Batch {
    emails: Option<Vec<Item>>,
    unknown: Option<String>,
}

impl Batch {
    fn mails(self) -> Result<Vec<Result<Mail, Problem>>, Problem> {
        if let Some(name) = self.unknown {
            return Err(Problem::unprocessable("unknown_field", "the body has a field that is not known")
                .field(super::problem::excerpt(&name))
                .valid(["emails"]));
        }
        let emails = self.emails.ok_or_else(|| {
            Problem::unprocessable("missing_field", "the body has no field `emails`").field("emails").valid(["emails"])
        })?;
        Ok(emails.into_iter().map(mail_of_item).collect())
    }
}

impl<'de> Deserialize<'de> for Batch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BatchVisitor;

        impl<'de> Visitor<'de> for BatchVisitor {
            type Value = Batch;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object {\"emails\": [...]}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Batch, A::Error> {
                let mut batch = Batch { emails: None, unknown: None };
                while let Some(name) = map.next_key::<String>()? {
                    if name != "emails" {
                        batch.unknown.get_or_insert(name);
                        map.next_value::<IgnoredAny>()?;
                    } else if batch.emails.is_some() {
                        return Err(A::Error::duplicate_field("emails"));
                    } else {
                        batch.emails = Some(map.next_value()?);
                    }
                }
                Ok(batch)
            }
        }

        deserializer.deserialize_map(BatchVisitor)
    }
}
