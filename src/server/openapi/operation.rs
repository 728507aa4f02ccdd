//! One operation of the document, put together piece by piece.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

pub(super) const JSON: &str = "application/json";
pub(super) const PROBLEM: &str = "application/problem+json";

/// Schemas of types: of bodies as they are read, of answers as they are written.
pub(super) struct Schemas {
    bodies: SchemaGenerator,
    answers: SchemaGenerator,
}

impl Schemas {
    pub(super) fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        Self {
            bodies: settings().for_deserialize().into_generator(),
            answers: settings().for_serialize().into_generator(),
        }
    }

    pub(super) fn body<T: JsonSchema>(&mut self) -> Value {
        self.bodies.subschema_for::<T>().to_value()
    }

    pub(super) fn answer<T: JsonSchema>(&mut self) -> Value {
        self.answers.subschema_for::<T>().to_value()
    }

    /// All schemas that something refers to, by name.
    pub(super) fn definitions(mut self) -> Map<String, Value> {
        let mut all = self.bodies.take_definitions(true);
        all.extend(self.answers.take_definitions(true));
        all
    }
}

/// A schema by its name.
pub(super) fn named(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Any text.
pub(super) fn text() -> Value {
    json!({"type": "string"})
}

/// A status with what it means there.
pub(super) type Problems = [(u16, &'static str)];

/// One operation.
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    spec: Value,
}

impl Operation {
    fn new(method: &'static str, path: &'static str, id: &str, tag: &str, summary: &str) -> Self {
        let spec = json!({"operationId": id, "tags": [tag], "summary": summary, "responses": {}});
        Self { method, path, spec }
    }

    pub(super) fn get(path: &'static str, id: &str, tag: &str, summary: &str) -> Self {
        Self::new("get", path, id, tag, summary)
    }

    pub(super) fn post(path: &'static str, id: &str, tag: &str, summary: &str) -> Self {
        Self::new("post", path, id, tag, summary)
    }

    pub(super) fn describe(mut self, description: &str) -> Self {
        self.spec["description"] = description.into();
        self
    }

    /// A parameter in `query`, `header` or `path`; those of a path are required.
    pub(super) fn parameter(mut self, place: &str, name: &str, description: &str, schema: Value) -> Self {
        let mut parameter = json!({"name": name, "in": place, "description": description, "required": place == "path"});
        parameter["schema"] = schema;
        match self.spec.get_mut("parameters").and_then(Value::as_array_mut) {
            Some(parameters) => parameters.push(parameter),
            None => self.spec["parameters"] = vec![parameter].into(),
        }
        self
    }

    /// The parameter that says how long the caller waits, and what is said of a time that is none or has passed, before
    /// the endpoint itself is asked. (`x-request-timeout-ms` says the same as a header; only one of both may.)
    pub(super) fn timeouts(mut self, problem: &Value) -> Self {
        let timeout = json!({"$ref": "#/components/parameters/Timeout"});
        match self.spec.get_mut("parameters").and_then(Value::as_array_mut) {
            Some(parameters) => parameters.push(timeout),
            None => self.spec["parameters"] = vec![timeout].into(),
        }
        let refused = [
            (400, "The query cannot be read: `invalid_query`."),
            (422, "The time is none: `invalid_parameter`, `repeated_parameter`."),
            (503, "The time has passed: `timed_out`."),
        ];
        for (status, description) in refused {
            let answer = &mut self.spec["responses"][status.to_string()];
            if answer["description"].is_null() {
                answer["description"] = description.into();
            }
            answer["content"][PROBLEM]["schema"] = problem.clone();
        }
        self
    }

    /// A body in one media type; it may come in several.
    pub(super) fn body(mut self, media_type: &str, schema: Value, example: Value) -> Self {
        let body = &mut self.spec["requestBody"];
        body["required"] = true.into();
        body["content"][media_type]["schema"] = schema;
        body["content"][media_type]["example"] = example;
        self
    }

    /// An answer in one media type; a status may come in several.
    pub(super) fn answer(mut self, status: u16, description: &str, media_type: &str, schema: Value) -> Self {
        let answer = &mut self.spec["responses"][status.to_string()];
        answer["description"] = description.into();
        answer["content"][media_type]["schema"] = schema;
        self
    }

    /// A header of an answer.
    pub(super) fn header(mut self, status: u16, name: &str, description: &str, schema: Value) -> Self {
        let header = &mut self.spec["responses"][status.to_string()]["headers"][name];
        header["description"] = description.into();
        header["schema"] = schema;
        self
    }

    /// Errors in one shape; those that pass say when to come back.
    pub(super) fn problems(mut self, problems: &Problems, media_type: &str, schema: &Value) -> Self {
        for &(status, description) in problems {
            self = self.answer(status, description, media_type, schema.clone());
            if matches!(status, 409 | 429 | 503) {
                let header = json!({"$ref": "#/components/headers/RetryAfter"});
                self.spec["responses"][status.to_string()]["headers"]["Retry-After"] = header;
            }
        }
        self
    }

    /// The same operation at another path, for a router that the path names.
    pub(super) fn of_router(&self, path: &'static str, problem: &Value) -> Self {
        const UNKNOWN: &Problems = &[(404, "There is no router of this name: `unknown_router`.")];
        let mut spec = self.spec.clone();
        spec["operationId"] = format!("{}_of_router", spec["operationId"].as_str().unwrap_or_default()).into();
        let schema = json!({"type": "string", "minLength": 1});
        Self { method: self.method, path, spec }
            .parameter("path", "router", "Name of the router.", schema)
            .problems(UNKNOWN, PROBLEM, problem)
    }

    pub(super) fn into_spec(self) -> Value {
        self.spec
    }
}
