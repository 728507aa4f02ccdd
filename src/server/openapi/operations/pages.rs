//! The page for people, and what it asks beside the endpoints for programs.

use super::super::operation::{JSON, Operation, PROBLEM, Schemas, named, text};
use super::super::shapes::ReadReply;
use super::routing::{MAIL, RAW, READING};
use crate::server::problem::Members as Problem;

const TAG: &str = "page";

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    let problem = schemas.answer::<Problem>();
    let read = Operation::post("/v1/read", "read", TAG, "The text of a mail that offsets point into")
        .describe(
            "Of a mail in JSON its own fields; a raw message is decoded first. The answer is a mail in JSON again.",
        )
        .body(JSON, named("MailJson"), serde_json::json!({"text": MAIL}))
        .body("text/plain", text(), MAIL.into())
        .body("message/rfc822", text(), RAW.into())
        .answer(200, "Subject and text as they were posted.", JSON, schemas.answer::<ReadReply>())
        .problems(READING, PROBLEM, &problem);
    vec![
        Operation::get("/", "page", TAG, "The page: what each head looked at in a mail").answer(
            200,
            "A page that needs nothing from elsewhere.",
            "text/html",
            text(),
        ),
        Operation::get("/explain", "page_explain", TAG, "The same page, at the evidence").answer(
            200,
            "A page that needs nothing from elsewhere.",
            "text/html",
            text(),
        ),
        read,
    ]
}
