//! Why a mail is routed as it is, and what the attention heads looked at.

use serde_json::{Value, json};

use super::super::bodies::{LIST, METHODS};
use super::super::operation::{JSON, Operation, PROBLEM, Problems, Schemas, named, text};
use super::super::shapes::AttentionReply;
use super::routing::{MAIL, RAW, READING};
use crate::server::extract::parameters::MOST_SEED;
use crate::server::problem::Members as Problem;

const TAG: &str = "explaining";

const MORE: &Problems = &[
    (
        413,
        "Too much is asked for: `body_too_large`, `map_too_large`, `picture_too_large`, `explanation_too_large`; `valid` then lists what fits.",
    ),
    (
        422,
        "Well formed, but nothing that can be answered: as for `/v1/route`, and `out_of_range`, `not_available`, `nothing_to_read`, `unknown_queue`, `contradiction`, `several_windows`.",
    ),
    (
        503,
        "Not now: `not_ready`, `router_unavailable`, `queue_full`, `explanations_full`, `gradients_unavailable`, `deadline_too_short`, `timed_out`, `shutting_down`.",
    ),
];

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    let problem = schemas.answer::<Problem>();
    let all = vec![attention(schemas), explain(), heads(), compare()];
    let with = |operation: Operation| operation.problems(READING, PROBLEM, &problem).problems(MORE, PROBLEM, &problem);
    all.into_iter().map(with).collect()
}

fn word(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

fn truth() -> Value {
    json!({"type": "boolean"})
}

fn queue() -> Value {
    json!({"type": "string", "minLength": 1})
}

fn number(least: u64, most: u64) -> Value {
    json!({"type": "integer", "minimum": least, "maximum": most})
}

/// The mail in its three forms, with parameters beside it in JSON.
fn with_mail(operation: Operation, schema: &str, example: Value) -> Operation {
    operation.body(JSON, named(schema), example).body("text/plain", text(), MAIL.into()).body(
        "message/rfc822",
        text(),
        RAW.into(),
    )
}

/// An answer whose members are documented in docs/: its name and what every one has.
fn answer(name: &str, members: &[&str]) -> Value {
    let mut required = vec!["schema"];
    required.extend(members);
    json!({"type": "object", "required": required, "properties": {"schema": {"const": name}, "notes": {"type": "array", "items": {"type": "string"}}}})
}

fn attention(schemas: &mut Schemas) -> Operation {
    let list = |words: &str| json!({"type": "string", "pattern": LIST.replacen("^(", &format!("^({words}|"), 1)});
    let operation = Operation::post("/v1/attention", "attention", TAG, "Attention maps of one mail")
        .describe(
            "What each head of the encoder looked at, with the words' places in the mail as posted. What to show stands in the \
             query or, beside a mail in JSON, in the body. Selections that are too large are refused with queries that fit.",
        )
        .parameter("query", "layers", "`all`, `last` or a list such as `0,2-4`.", list("all|last"))
        .parameter("query", "heads", "`all` or a list.", list("all"))
        .parameter("query", "rows", "`cls`, `all` or a list of units.", list("all|cls"))
        .parameter("query", "reduce", "What is done over the heads.", word(&["none", "mean", "max", "rollout", "relevance"]))
        .parameter("query", "words", "Whole words instead of pieces.", truth())
        .parameter("query", "special", "The columns of `[CLS]` and `[SEP]`.", word(&["keep", "drop"]))
        .parameter("query", "weight", "What a weight is.", word(&["alpha", "norm"]))
        .parameter("query", "class", "The queue that `relevance` speaks of.", queue())
        .parameter("query", "against", "`none`, `runner_up` or a queue.", queue())
        .parameter("query", "window", "The window of a long mail.", number(0, 999_999_999))
        .parameter("query", "format", "Of the answer.", word(&["json", "npy", "safetensors", "png", "svg", "html"]))
        .parameter("query", "dtype", "Of an array.", word(&["f32", "f16", "u8"]))
        .parameter("query", "offsets", "What offsets count.", word(&["char", "byte", "utf16"]))
        .parameter("query", "precision", "Decimals of each weight.", number(1, 9));
    with_mail(operation, "AttentionJson", json!({"text": MAIL, "layers": "last"}))
        .answer(200, "The maps.", JSON, schemas.answer::<AttentionReply>())
        .answer(200, "The maps.", "application/octet-stream", json!({}))
        .answer(200, "The maps.", "image/png", json!({}))
        .answer(200, "The maps.", "image/svg+xml", text())
        .answer(200, "The maps.", "text/html", text())
}

fn explain() -> Operation {
    let operation =
        Operation::post("/v1/explain", "explain", TAG, "What speaks for a queue in one mail, and whether that holds")
            .describe(
                "Each of `checks` is about the likeliest queue, which its `class` names, whatever `classes` and `against` are: \
                 `verdict` is `supported`, `weak`, `not_supported`, or `undecidable`. Then `why` is `too_short` (fewer than 10 \
                 words, or than 5 sentences where whole sentences are taken out: in a mail of several windows, and with \
                 `unit=sentence`) or `prior_wins` (a mail without any text gets the queue at least as surely). Each of \
                 `agreement` is about the first queue asked about, which its `class` names.",
            )
            .parameter("query", "method", "One or several.", json!({"type": "string", "pattern": METHODS}))
            .parameter("query", "unit", "What is shown.", word(&["auto", "sentence", "word"]))
            .parameter("query", "classes", "`predicted`, `top3`, `all` or ids of queues.", queue())
            .parameter("query", "against", "`none`, `runner_up` or a queue.", queue())
            .parameter("query", "perturb", "What becomes of words that are taken away.", word(&["delete", "mask"]))
            .parameter("query", "check", "Whether the evidence is put to a test.", truth())
            .parameter("query", "seed", "Of the test.", number(0, MOST_SEED))
            .parameter("query", "offsets", "What offsets count.", word(&["char", "byte", "utf16"]));
    let members = ["model", "prediction", "text", "evidence", "checks", "agreement", "cost", "notes"];
    with_mail(operation, "ExplainJson", json!({"text": MAIL, "unit": "word"})).answer(
        200,
        "The evidence.",
        JSON,
        answer("explain/1", &members),
    )
}

fn heads() -> Operation {
    let operation = Operation::post("/v1/heads", "heads", TAG, "What each attention head does in one mail")
        .parameter("query", "class", "The queue that is spoken of.", queue())
        .parameter("query", "against", "`none`, `runner_up` or a queue.", queue())
        .parameter("query", "ablate", "Whether each head is switched off in turn.", truth());
    let members = ["model", "prediction", "text", "layers", "heads", "entropy", "importance", "cost", "notes"];
    with_mail(operation, "HeadsJson", json!({"text": MAIL})).answer(
        200,
        "Figures for each layer and head.",
        JSON,
        answer("heads/1", &members),
    )
}

fn compare() -> Operation {
    Operation::post("/v1/compare", "compare", TAG, "What two mails have in common, and how their answers differ")
        .parameter("query", "shuffle", "Whether the order of words is put to a test.", truth())
        .parameter("query", "seed", "Of the test.", number(0, MOST_SEED))
        .parameter("query", "offsets", "What offsets count.", word(&["char", "byte", "utf16"]))
        .body(JSON, named("CompareJson"), json!({"a": {"text": MAIL}, "b": {"text": "Where is my order?"}}))
        .answer(
            200,
            "Both answers and their differences.",
            JSON,
            answer("compare/1", &["model", "a", "b", "differences", "cost", "notes"]),
        )
}
