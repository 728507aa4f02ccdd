//! The document: operations, schemas, and the limits that are in force.

use serde::Serialize;
use serde_json::ser::PrettyFormatter;
use serde_json::{Map, Value, json};

use super::super::ServerConfig;
use super::super::deadline::TIMEOUT;
use super::super::keys::Scope;
use super::bodies;
use super::operation::Schemas;
use super::operations;

const DESCRIPTION: &str = "Routes support email to the queue that must act, and shows what its attention heads looked at.\n\n\
    Errors are RFC 9457 problems with a stable `code`; the endpoints in the shapes of other servers answer in the words of \
    those. Every answer carries `x-request-id`, which is taken over from the request where it is sent.";

const TAGS: [(&str, &str); 8] = [
    ("routing", "Mail in, decisions out."),
    ("explaining", "Why a mail is routed as it is, and what the attention heads looked at."),
    ("operating", "What is loaded, and whether it answers."),
    ("text-embeddings-inference", "The shapes of text-embeddings-inference and Hugging Face."),
    ("vllm", "The shape of vLLM and SGLang."),
    ("open-inference-protocol", "The protocol of KServe and Triton, version 2."),
    ("page", "The page for people."),
    ("admin", "What changes the running service."),
];

/// The OpenAPI document of a service with these settings, as JSON with line breaks.
#[must_use]
pub fn openapi_document(config: &ServerConfig) -> String {
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    let with_admin = config.keys_file.is_some() && config.admin_port.is_none();
    for operation in operations::all(&mut schemas, with_admin) {
        let (method, path) = (operation.method, operation.path);
        let mut spec = operation.into_spec();
        put_request_ids(&mut spec);
        paths.entry(path).or_insert_with(|| json!({}))[method] = spec;
    }
    let mut components = schemas.definitions();
    components.extend(bodies::schemas().into_iter().map(|(name, schema)| (name.to_owned(), schema)));
    components.sort_keys();
    let tags: Vec<Value> =
        TAGS.iter().map(|(name, description)| json!({"name": name, "description": description})).collect();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "postroom", "version": env!("CARGO_PKG_VERSION"), "description": DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": tags,
        "paths": paths,
        "components": {
            "parameters": {
                "Timeout": {
                    "name": TIMEOUT, "in": "query", "required": false, "schema": bodies::time(&["integer"]),
                    "description": "How long the caller waits: here, in the header `x-request-timeout-ms` or in the body; in one of them only.",
                },
            },
            "headers": {
                "RequestId": {"description": "The id that the log has for this request.", "schema": {"type": "string"}},
                "RetryAfter": {
                    "description": "Seconds after which it may be sent again.", "schema": {"type": "integer", "minimum": 0},
                },
            },
            "schemas": components,
        },
    });
    words_in_lists(&mut document);
    put_limits(&mut document, config);
    if config.keys_file.is_some() {
        put_keys(&mut document);
    }
    plain_words(&mut document);
    let mut text = Vec::new();
    // Lines, so that two versions can be compared, and one blank a level: the document is committed, and a quarter of it were blanks.
    let formatter = PrettyFormatter::with_indent(b" ");
    let written = document.serialize(&mut serde_json::Serializer::with_formatter(&mut text, formatter));
    written.map_or_else(|_| String::new(), |()| String::from_utf8_lossy(&text).into_owned() + "\n")
}

/// Lists that are bounded by `max_batch_emails`.
const BATCHES: [&str; 4] = [
    "/components/schemas/Batch/properties/emails",
    "/components/schemas/PredictInputs/oneOf/2",
    "/components/schemas/InferenceTexts/anyOf/1",
    "/components/schemas/ClassifyInput/anyOf/1",
];

/// Times that are bounded by `max_request_timeout_ms`.
const TIMES: [&str; 7] = [
    "/components/schemas/RouteJson/properties/timeout_ms",
    "/components/schemas/AttentionJson/properties/timeout_ms",
    "/components/schemas/ExplainJson/properties/timeout_ms",
    "/components/schemas/HeadsJson/properties/timeout_ms",
    "/components/schemas/CompareJson/properties/timeout_ms",
    "/components/schemas/Batch/properties/timeout_ms",
    "/components/parameters/Timeout/schema",
];

fn put_limits(document: &mut Value, config: &ServerConfig) {
    for place in TIMES {
        if let Some(time) = document.pointer_mut(place) {
            time["maximum"] = config.max_request_timeout_ms.max(config.request_timeout_ms).into();
        }
    }
    for place in BATCHES {
        if let Some(list) = document.pointer_mut(place) {
            list["maxItems"] = config.max_batch_emails.into();
            if !place.ends_with("emails") {
                list["minItems"] = 1.into();
            }
        }
    }
}

/// Where API keys are in force: how they are shown, and what is answered without. Probes and this document need none.
fn put_keys(document: &mut Value) {
    document["components"]["securitySchemes"] = json!({
        "Bearer": {"type": "http", "scheme": "bearer"},
        "ApiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    });
    let refusals = [
        ("401", "No API key, or an unknown one: `key_missing`, `key_unknown`."),
        ("403", "The key has not the scope: `key_scope`."),
    ];
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    for (path, operations) in paths.into_iter().flatten() {
        for (method, operation) in operations.as_object_mut().into_iter().flatten() {
            let method = method.to_uppercase().parse().unwrap_or_default();
            let Some(scope) = Scope::of(&method, Some(path)) else { continue };
            operation["security"] = json!([{"Bearer": []}, {"ApiKey": []}]);
            operation["description"] = json!(match operation["description"].as_str() {
                Some(description) => format!("{description}\n\nNeeds a key with the scope `{scope}`."),
                None => format!("Needs a key with the scope `{scope}`."),
            });
            for (status, description) in refusals {
                let content = json!({"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}});
                operation["responses"][status] = json!({"description": description, "content": content});
            }
        }
    }
}

/// Every answer has an id.
fn put_request_ids(operation: &mut Value) {
    let id = json!({"$ref": "#/components/headers/RequestId"});
    let responses = operation.get_mut("responses").and_then(Value::as_object_mut);
    for (_, response) in responses.into_iter().flatten() {
        response["headers"]["x-request-id"] = id.clone();
    }
}

/// Words that have a description each come as a choice of constants. Clients that are generated from those take the first and
/// refuse the others; from a list of words they make an enumeration. The descriptions move into that of the whole.
fn words_in_lists(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let choices = map.get("oneOf").and_then(Value::as_array);
            let words = choices.and_then(|choices| choices.iter().map(words).collect::<Option<Vec<_>>>());
            if let Some(words) = words {
                let mut description = map.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
                for (word, what) in words.iter().flatten().filter(|(_, what)| !what.is_empty()) {
                    let gap = if description.is_empty() { "" } else { "\n\n" };
                    description.push_str(&format!("{gap}`{word}`: {what}"));
                }
                let list: Vec<&str> = words.iter().flatten().map(|(word, _)| word.as_str()).collect();
                let list = json!(list);
                map.remove("oneOf");
                map.insert("type".to_owned(), "string".into());
                map.insert("enum".to_owned(), list);
                if !description.is_empty() {
                    map.insert("description".to_owned(), description.into());
                }
            }
            map.values_mut().for_each(words_in_lists);
        }
        Value::Array(list) => list.iter_mut().for_each(words_in_lists),
        _ => {}
    }
}

/// The words of one choice and what is said of it; `None` where it is none of words.
fn words(choice: &Value) -> Option<Vec<(String, String)>> {
    let one = choice["const"].as_str().map(|word| vec![word]);
    let words = one.or_else(|| choice["enum"].as_array()?.iter().map(Value::as_str).collect())?;
    let what = choice["description"].as_str().unwrap_or_default();
    Some(words.into_iter().map(|word| (word.to_owned(), what.to_owned())).collect())
}

/// Descriptions come from documentation of code: links to code become words.
fn plain_words(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(text) if key == "description" => {
                        *text = text.replace("[`", "`").replace("`]", "`");
                    }
                    value => plain_words(value),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(plain_words),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_in_force_stand_in_the_document() {
        let config = ServerConfig { max_batch_emails: 7, ..ServerConfig::default() };
        let document: Value = serde_json::from_str(&openapi_document(&config)).unwrap();
        for place in BATCHES {
            let list = document.pointer(place).unwrap_or_else(|| panic!("{place} is not there"));
            assert_eq!((&list["type"], &list["maxItems"]), (&json!("array"), &json!(7)), "{place}");
        }
    }

    #[test]
    fn keys_stand_in_the_document_where_they_are_asked_for() {
        let document = |keys_file| -> Value {
            serde_json::from_str(&openapi_document(&ServerConfig { keys_file, ..ServerConfig::default() })).unwrap()
        };
        assert_eq!(document(None)["components"]["securitySchemes"], Value::Null);
        let document = document(Some("keys.toml".into()));
        assert!(
            document["paths"]["/v1/attention"]["post"]["description"].as_str().unwrap().ends_with("scope `explain`.")
        );
        assert!(document["paths"]["/predict"]["post"]["responses"]["401"].is_object());
        assert_eq!(document["paths"]["/livez"]["get"]["security"], Value::Null);
    }

    /// Each of these cost clients that were generated: an endpoint, the fields of a mail, every decision but the first.
    #[test]
    fn nothing_stands_in_it_that_generators_of_clients_misread() {
        fn check(place: &str, value: &Value) {
            if let Some(map) = value.as_object().filter(|map| !map.contains_key("example")) {
                let choices = |name: &str| map.get(name).and_then(Value::as_array).into_iter().flatten();
                assert!(
                    !map.contains_key("properties") || (!map.contains_key("anyOf") && !map.contains_key("oneOf")),
                    "{place} has fields and choices"
                );
                assert!(
                    choices("oneOf").all(|choice| !choice["const"].is_string()),
                    "{place} is a choice of constants"
                );
                let words = choices("enum").filter(|word| !word.is_null());
                assert!(
                    words.clone().all(Value::is_string) || words.clone().all(Value::is_number),
                    "{place} mixes types"
                );
            }
            match value {
                Value::Object(map) => map.iter().for_each(|(name, inner)| check(&format!("{place}/{name}"), inner)),
                Value::Array(list) => list.iter().for_each(|inner| check(place, inner)),
                _ => {}
            }
        }
        let document: Value = serde_json::from_str(&openapi_document(&ServerConfig::default())).unwrap();
        check("", &document);
        let outcome = &document["components"]["schemas"]["Outcome"];
        assert_eq!(outcome["enum"], json!(["route", "needs_human", "not_for_a_queue"]));
        assert!(outcome["description"].as_str().unwrap().contains("`needs_human`: A person decides"), "{outcome}");
    }

    #[test]
    fn every_reference_has_a_schema_and_every_operation_an_id_of_its_own() {
        let text = openapi_document(&ServerConfig::default());
        let document: Value = serde_json::from_str(&text).unwrap();
        for reference in text.split("\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(document.pointer(reference).is_some(), "{reference} is not there");
        }
        let paths = document["paths"].as_object().unwrap();
        let mut ids: Vec<&str> = paths
            .values()
            .flat_map(|path| path.as_object().unwrap().values())
            .map(|operation| operation["operationId"].as_str().unwrap())
            .collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }
}
