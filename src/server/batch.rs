//! `POST /v1/route/batch`: many mails in one request. Order is kept, and a bad mail fails alone.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout_at;

use super::asker::Asker;
use super::deadline::TIMEOUT;
use super::extract::{
    Asked, Budget, Item, MediaType, ROUTER, decode_json, mail_of_object, parse_json, parse_json_by, query, read_body,
};
use super::idempotency::Passing;
use super::problem::Problem;
use super::spans;
use super::state::Handle;
use crate::routing::{Decision, Mail, RoutingService};

const JSON: &str = "application/json";
const NDJSON: &str = "application/x-ndjson";

/// Mails of one batch that are worked on at a time: enough to fill the model's batches, and room left for others.
const IN_FLIGHT: usize = 32;

/// What became of one mail.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "BatchOutcome")]
pub(super) struct Outcome {
    /// Its place in the request, from 0.
    index: usize,
    /// The status that it would have got alone.
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Decision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::server::problem::Members>")]
    problem: Option<Problem>,
}

impl Outcome {
    /// Whether the same mail may fare better when it is sent again: too much was asked for, or the fault is ours.
    fn passes(&self) -> bool {
        self.status == 429 || self.status >= 500
    }
}

pub(super) async fn route_batch(
    State(server): State<Handle>,
    asker: Asker,
    asked: Asked,
    request: Request,
) -> Result<Response, Problem> {
    query::refuse_all_but(request.uri(), &[ROUTER])?;
    let (parts, body) = request.into_parts();
    let bytes = read_body(&parts.headers, body, server.config()).await?;
    let media_type = MediaType::of(&parts.headers);
    let lines = media_type.essence == NDJSON;
    let limit = server.config().max_batch_emails;
    let (router, mails) = match media_type.essence.as_str() {
        JSON => {
            let mut batch = parse_json_by(&decode_json(&bytes, &media_type)?, BatchSeed { limit })?;
            asker.deadline.of_body(batch.timeout.take())?;
            (batch.router.take(), batch.mails(limit)?)
        }
        NDJSON => (None, mails_of_lines(&decode_json(&bytes, &media_type)?, limit)?),
        _ => return Err(media_type.refuse(&[JSON, NDJSON])),
    };
    let outcomes = run(&asked.or_named(&server, router)?, mails, &asker).await;
    let passing = outcomes.iter().any(Outcome::passes).then_some(Extension(Passing));
    if lines {
        return Ok((passing, [(header::CONTENT_TYPE, NDJSON)], ndjson(&outcomes)).into_response());
    }
    let failed = outcomes.iter().filter(|outcome| outcome.problem.is_some()).count();
    Ok((passing, Json(serde_json::json!({"results": outcomes, "failed": failed}))).into_response())
}

async fn run(service: &Arc<RoutingService>, mails: Vec<Result<Mail, Problem>>, asker: &Asker) -> Vec<Outcome> {
    let places = Arc::new(Semaphore::new(IN_FLIGHT));
    let count = mails.len();
    // Dropped with the request, and all that still waits with it.
    let mut tasks = JoinSet::new();
    for (index, mail) in mails.into_iter().enumerate() {
        let (service, places, caller) = (Arc::clone(service), Arc::clone(&places), asker.caller());
        tasks.spawn(spans::carried(async move {
            let _place = places.acquire().await.expect("the semaphore is never closed");
            let decided = match mail {
                Ok(mail) => service.route_for(mail, caller).await.map_err(Problem::from),
                Err(problem) => Err(problem),
            };
            (index, decided)
        }));
    }
    let mut decided: Vec<Option<Result<Decision, Problem>>> = Vec::new();
    decided.resize_with(count, || None);
    let missing = loop {
        match timeout_at(asker.deadline.at(), tasks.join_next()).await {
            Ok(Some(Ok((index, result)))) => decided[index] = Some(result),
            // A task that panicked leaves its place empty.
            Ok(Some(Err(_))) => {}
            Ok(None) => break Problem::internal("internal_error"),
            // What is done by the deadline is told; the rest fails alone.
            Err(_) => break asker.deadline.timed_out(),
        }
    };
    decided
        .into_iter()
        .enumerate()
        .map(|(index, result)| match result.unwrap_or_else(|| Err(missing.clone())) {
            Ok(decision) => Outcome { index, status: 200, result: Some(decision), problem: None },
            Err(problem) => Outcome { index, status: problem.status(), result: None, problem: Some(problem) },
        })
        .collect()
}

fn ndjson(outcomes: &[Outcome]) -> String {
    outcomes.iter().map(|outcome| serde_json::to_string(outcome).unwrap_or_default() + "\n").collect()
}

/// One mail a line; empty lines do not count.
fn mails_of_lines(text: &str, limit: usize) -> Result<Vec<Result<Mail, Problem>>, Problem> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    refuse_more_than(limit, lines.clone().count())?;
    Ok(lines.map(|line| mail_of_item(parse_json(line)?)).collect())
}

/// Before anything is made of the mails: what is made of the smallest is a hundred times as long as itself.
fn refuse_more_than(limit: usize, given: usize) -> Result<(), Problem> {
    if given <= limit {
        return Ok(());
    }
    Err(Problem::too_large("too_many_emails", format!("a batch holds at most {limit} mails"))
        .field("emails")
        .limit(limit)
        .given(given)
        .remedy("Send several batches, or raise server.max_batch_emails."))
}

fn mail_of_item(item: Item) -> Result<Mail, Problem> {
    mail_of_object(item.object("a mail")?)
}

/// `{"emails": [...], "timeout_ms": 2000}`, and `router` where it is not the default one.
struct Batch {
    emails: Option<Emails>,
    timeout: Option<Value>,
    router: Option<String>,
    unknown: Option<String>,
}

/// What stands in `emails`.
struct Emails {
    /// Those within the limit, made as they are read: the JSON of one is many times as long as the mail.
    mails: Vec<Result<Mail, Problem>>,
    /// All of them.
    given: usize,
}

impl Batch {
    fn mails(self, limit: usize) -> Result<Vec<Result<Mail, Problem>>, Problem> {
        if let Some(name) = self.unknown {
            return Err(Problem::unprocessable("unknown_field", "the body has a field that is not known")
                .field(super::problem::excerpt(&name))
                .valid(["emails", TIMEOUT, ROUTER]));
        }
        let Emails { mails, given } = self.emails.ok_or_else(|| {
            Problem::unprocessable("missing_field", "the body has no field `emails`").field("emails").valid(["emails"])
        })?;
        refuse_more_than(limit, given)?;
        Ok(mails)
    }
}

/// Reads a batch of at most `limit` mails; those behind them are counted and passed over.
struct BatchSeed {
    limit: usize,
}

impl<'de> DeserializeSeed<'de> for BatchSeed {
    type Value = Batch;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Batch, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for BatchSeed {
    type Value = Batch;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an object {\"emails\": [...]}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Batch, A::Error> {
        let mut batch = Batch { emails: None, timeout: None, router: None, unknown: None };
        while let Some(name) = map.next_key::<String>()? {
            if name == TIMEOUT {
                if batch.timeout.replace(map.next_value_seed(Budget::new().value())?).is_some() {
                    return Err(A::Error::duplicate_field(TIMEOUT));
                }
            } else if name == ROUTER {
                if batch.router.is_some() {
                    return Err(A::Error::duplicate_field(ROUTER));
                }
                batch.router = map.next_value()?;
            } else if name != "emails" {
                batch.unknown.get_or_insert(name);
                map.next_value::<IgnoredAny>()?;
            } else if batch.emails.is_some() {
                return Err(A::Error::duplicate_field("emails"));
            } else {
                batch.emails = Some(map.next_value_seed(EmailsSeed { limit: self.limit })?);
            }
        }
        Ok(batch)
    }
}

/// Reads the list of mails.
struct EmailsSeed {
    limit: usize,
}

impl<'de> DeserializeSeed<'de> for EmailsSeed {
    type Value = Emails;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Emails, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for EmailsSeed {
    type Value = Emails;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Emails, A::Error> {
        let mut mails = Vec::new();
        while mails.len() < self.limit {
            match list.next_element()? {
                Some(item) => mails.push(mail_of_item(item)),
                None => return Ok(Emails { given: mails.len(), mails }),
            }
        }
        let mut given = mails.len();
        while list.next_element::<IgnoredAny>()?.is_some() {
            given += 1;
        }
        Ok(Emails { mails, given })
    }
}
