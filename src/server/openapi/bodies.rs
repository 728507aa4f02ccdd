//! Bodies that are read field by field: their schemas, written down as JSON because no type stands behind them.

use serde_json::{Value, json};

use super::super::deadline::TIMEOUT;
use super::super::extract::ROUTER;
use super::super::extract::parameters::MOST_SEED;

/// Schemas by name.
pub(super) fn schemas() -> [(&'static str, Value); 8] {
    const BESIDE: &str = "A mail by its fields, and what is asked of it; a parameter stands here or in the query.";
    let mail = "A mail by its fields. At least one of subject, text and html must be there.";
    [
        ("MailJson", object_with_mail(mail, mail_fields())),
        ("RouteJson", mail_with("A mail by its fields, and how long its sender waits.", json!({}))),
        ("AttentionJson", mail_with(BESIDE, map_fields())),
        ("ExplainJson", mail_with(BESIDE, explain_fields())),
        ("HeadsJson", mail_with(BESIDE, heads_fields())),
        ("CompareJson", compare()),
        ("Batch", batch()),
        ("PredictInputs", predict_inputs()),
    ]
}

/// How long a caller waits; the longest time is put in with the other limits.
pub(super) fn time(types: &[&str]) -> Value {
    json!({"type": types, "minimum": 1, "description": "Milliseconds after which the request is given up."})
}

/// Fields of a mail, for the schemas of all bodies that hold one.
fn mail_fields() -> Value {
    let text = |description: &str| json!({"type": ["string", "null"], "description": description});
    json!({
        "subject": text("The subject line."),
        "text": text("The plain text; it wins over `html` unless it is blank. An empty one goes to a person."),
        "html": text("The HTML, read where there is no text."),
        "from": text("The sender, for telling automatic mail."),
        "id": {
            "type": ["string", "null"], "minLength": 1, "maxLength": 200, "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]+$",
            "description": "The caller's id, which comes back; one is made where it is absent. No control characters.",
        },
        "headers": {
            "description": "Headers for telling automatic mail: an object of texts or of lists of texts, or a list of pairs.",
            "anyOf": [
                {"type": "null"},
                {
                    "type": "object", "maxProperties": 1000,
                    "additionalProperties": {"anyOf": [
                        {"type": "string"}, {"type": "array", "items": {"type": "string"}},
                    ]},
                },
                {
                    "type": "array", "maxItems": 1000,
                    "items": {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2},
                },
            ],
        },
    })
}

/// Parameters of the attention maps, as fields of the body: the same that the query takes.
fn map_fields() -> Value {
    json!({
        "layers": list(&["all", "last"]), "heads": list(&["all"]), "rows": list(&["all", "cls"]),
        "reduce": word(&["none", "mean", "max", "rollout", "relevance"]), "special": word(&["keep", "drop"]),
        "weight": word(&["alpha", "norm"]), "class": queue(), "against": queue(), "window": number("^[0-9]{1,9}$", 999_999_999),
        "format": word(&["json", "npy", "safetensors", "png", "svg", "html"]), "dtype": word(&["f32", "f16", "u8"]),
        "offsets": word(OFFSETS), "words": truth(), "precision": {"anyOf": [
            {"type": "null"}, {"type": "integer", "minimum": 1, "maximum": 9}, {"type": "string", "pattern": "^[1-9]$"},
        ]},
    })
}

/// Parameters of an explanation, as fields of the body.
fn explain_fields() -> Value {
    json!({
        "method": {"anyOf": [
            {"type": "null"}, {"type": "string", "pattern": METHODS},
            {"type": "array", "minItems": 1, "items": {"enum": METHOD_NAMES}},
        ]},
        "unit": word(&["auto", "sentence", "word"]),
        "classes": {"description": "`predicted`, `top3`, `all` or ids of queues.", "anyOf": [
            {"type": "null"}, {"type": "string", "minLength": 1},
            {"type": "array", "minItems": 1, "maxItems": 256, "items": {"type": "string", "minLength": 1}},
        ]},
        "against": queue(), "perturb": word(&["delete", "mask"]), "check": truth(), "seed": seed(), "offsets": word(OFFSETS),
    })
}

/// Parameters of what the heads do, as fields of the body.
fn heads_fields() -> Value {
    json!({"class": queue(), "against": queue(), "ablate": truth()})
}

/// Parameters of a comparison, as fields of the body.
fn compare_fields() -> Value {
    json!({"shuffle": truth(), "seed": seed(), "offsets": word(OFFSETS)})
}

/// The router that is asked.
fn router() -> Value {
    json!({"type": ["string", "null"], "description": "Name of the router; the default one where it is absent."})
}

/// Two mails.
fn compare() -> Value {
    let mail = json!({"$ref": "#/components/schemas/MailJson"});
    let mut fields = json!({"a": mail, "b": mail, TIMEOUT: time(&["integer", "null"])});
    fields[ROUTER] = router();
    extend(&mut fields, compare_fields());
    json!({"type": "object", "required": ["a", "b"], "properties": fields, "additionalProperties": false})
}

const OFFSETS: &[&str] = &["char", "byte", "utf16"];

/// Ways to explain.
const METHOD_NAMES: [&str; 6] = ["occlusion", "ig", "relevance", "gradxinput", "attention", "rollout"];

/// Several of them.
pub(super) const METHODS: &str =
    "^(occlusion|ig|relevance|gradxinput|attention|rollout)(,(occlusion|ig|relevance|gradxinput|attention|rollout))*$";

fn list(words: &[&str]) -> Value {
    json!({"anyOf": [
        {"type": "null"}, {"enum": words}, {"type": "string", "pattern": LIST},
        {"type": "integer", "minimum": 0, "maximum": 4095},
        {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0, "maximum": 4095}},
    ]})
}

fn word(words: &[&str]) -> Value {
    let words: Vec<Value> = words.iter().map(|&word| word.into()).chain([Value::Null]).collect();
    json!({"enum": words})
}

/// Not one list of words: generators of clients take lists of one type only.
fn truth() -> Value {
    json!({"anyOf": [{"type": "null"}, {"type": "boolean"}, {"enum": ["true", "false"]}]})
}

fn number(pattern: &str, most: u64) -> Value {
    json!({"anyOf": [
        {"type": "null"}, {"type": "integer", "minimum": 0, "maximum": most}, {"type": "string", "pattern": pattern},
    ]})
}

fn seed() -> Value {
    number("^[0-9]{1,15}$", MOST_SEED)
}

/// The id of a queue, or `none` or `runner_up` where one is compared with.
fn queue() -> Value {
    json!({"type": ["string", "null"], "minLength": 1})
}

fn extend(fields: &mut Value, more: Value) {
    if let (Value::Object(fields), Value::Object(more)) = (fields, more) {
        fields.extend(more);
    }
}

/// A mail with how long its sender waits and further fields.
fn mail_with(description: &str, more: Value) -> Value {
    let mut fields = mail_fields();
    fields[TIMEOUT] = time(&["integer", "null"]);
    fields[ROUTER] = router();
    extend(&mut fields, more);
    object_with_mail(description, fields)
}

/// Indices and ranges, such as `0,2-4`.
pub(super) const LIST: &str = "^([0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*)$";

/// An object of these fields and no others, one of subject, text and html among them. The same as `anyOf` beside the fields
/// would make three nameless objects without them in the eyes of generators of clients.
fn object_with_mail(description: &str, fields: Value) -> Value {
    let absent = json!({"type": "null"});
    let mut object = json!({
        "description": description, "type": "object", "properties": {}, "additionalProperties": false,
        "not": {"properties": {"text": absent, "subject": absent, "html": absent}},
    });
    object["properties"] = fields;
    object
}

/// Several mails. What is no mail fails alone, so anything may stand at its place.
fn batch() -> Value {
    json!({
        "type": "object", "required": ["emails"], "additionalProperties": false,
        "properties": {
            "emails": {
                "type": "array", "description": "Mails as for `/v1/route`. One that is none fails alone, at its place.",
                "items": {"anyOf": [{"$ref": "#/components/schemas/MailJson"}, {}]},
            },
            TIMEOUT: time(&["integer"]),
            ROUTER: router(),
        },
    })
}

/// Inputs as text-embeddings-inference takes them.
fn predict_inputs() -> Value {
    let sequence = json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2});
    let with = |description: &str| {
        let mut sequence = sequence.clone();
        sequence["description"] = description.into();
        sequence
    };
    json!({"oneOf": [
        {"type": "string", "description": "A text."},
        with("A text, or subject and body."),
        {"type": "array", "description": "A batch.", "items": sequence, "minItems": 1},
    ]})
}

#[cfg(test)]
mod tests {
    use super::super::super::extract::MAIL_FIELDS;
    use super::super::super::{attention, compare, explain, heads};
    use super::*;

    fn names(fields: &Value) -> Vec<&str> {
        let mut names: Vec<&str> = fields.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    fn sorted<const N: usize>(mut names: [&'static str; N]) -> Vec<&'static str> {
        names.sort_unstable();
        names.to_vec()
    }

    #[test]
    fn the_fields_described_are_those_that_are_read() {
        assert_eq!(names(&mail_fields()), sorted(MAIL_FIELDS));
        assert_eq!(names(&map_fields()), sorted(attention::PARAMETERS));
        assert_eq!(names(&explain_fields()), sorted(explain::PARAMETERS));
        assert_eq!(names(&heads_fields()), sorted(heads::PARAMETERS));
        assert_eq!(names(&compare_fields()), sorted(compare::PARAMETERS));
    }
}
