//! The operations of the interface, as its own document describes them.

use serde_json::Value;

/// What the fuzzer knows of the interface.
pub struct Document {
    /// Every operation.
    pub operations: Vec<Operation>,
    /// Names of fields of any body.
    pub fields: Vec<String>,
}

/// One operation.
pub struct Operation {
    pub method: String,
    /// With its parts in braces.
    pub path: String,
    /// Names of query parameters, and words that they take.
    pub parameters: Vec<(String, Vec<String>)>,
    /// Media types with an example each.
    pub bodies: Vec<(String, Value)>,
}

impl Document {
    /// Reads an OpenAPI document.
    pub fn of(text: &str) -> Self {
        let document: Value = serde_json::from_str(text).expect("the document is JSON");
        let mut operations = Vec::new();
        for (path, methods) in members(&document["paths"]) {
            for (method, spec) in members(methods) {
                operations.push(Operation::of(&document, method, path, spec));
            }
        }
        let mut fields = Vec::new();
        for (_, schema) in members(&document["components"]["schemas"]) {
            names_of_fields(schema, &mut fields);
        }
        fields.sort_unstable();
        fields.dedup();
        Self { operations, fields }
    }

    /// Operations that read a body.
    pub fn with_body(&self) -> Vec<&Operation> {
        self.operations.iter().filter(|operation| !operation.bodies.is_empty()).collect()
    }
}

impl Operation {
    fn of(document: &Value, method: &str, path: &str, spec: &Value) -> Self {
        let parameters = spec["parameters"].as_array().into_iter().flatten();
        let parameters = parameters.map(|parameter| resolved(document, parameter));
        let parameters = parameters.filter(|parameter| parameter["in"] == "query").map(|parameter| {
            let words = parameter["schema"]["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
            (parameter["name"].as_str().unwrap_or_default().to_owned(), words.map(str::to_owned).collect())
        });
        let bodies = members(&spec["requestBody"]["content"]);
        Self {
            method: method.to_uppercase(),
            path: path.to_owned(),
            parameters: parameters.collect(),
            bodies: bodies.map(|(kind, body)| (kind.clone(), body["example"].clone())).collect(),
        }
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// What a reference points at.
fn resolved<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    let reference = value["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    reference.and_then(|place| document.pointer(place)).unwrap_or(value)
}

fn names_of_fields(schema: &Value, names: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            names.extend(members(&schema["properties"]).map(|(name, _)| name.clone()));
            map.values().for_each(|inner| names_of_fields(inner, names));
        }
        Value::Array(list) => list.iter().for_each(|inner| names_of_fields(inner, names)),
        _ => {}
    }
}
