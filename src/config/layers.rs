//! Layers of settings, one over the other, each checked as it comes so that an error names its source.

use std::collections::BTreeMap;
use std::path::Path;

use toml::{Table, Value};

use super::error::{Source, nearest};
use super::{Config, ConfigError, check, environment, schema, standard};

/// Where settings are that let somebody in. What was given there is not repeated, whatever its key: headers may stand
/// in the endpoint, or in place of the section.
const SECRET: &str = "telemetry.otlp";

/// The settings so far.
pub(super) struct Layers {
    schema: Table,
    table: Table,
}

impl Layers {
    pub(super) fn new() -> Self {
        Self { schema: schema::schema(), table: schema::defaults() }
    }

    pub(super) fn file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let layer: Table = text.parse().map_err(|mut source: toml::de::Error| {
            // The error quotes the line that it is about.
            source.set_input(Some(&masked(&text)));
            ConfigError::Syntax { path: path.to_owned(), source }
        })?;
        self.put(layer, &Source::File(path.to_owned()))
    }

    /// The standard variables of OpenTelemetry.
    pub(super) fn standard(&mut self, variables: &BTreeMap<String, String>) -> Result<(), ConfigError> {
        for setting in standard::settings(variables) {
            let source = Source::Variable(setting.variable.to_owned());
            let path = ["telemetry", "otlp", setting.key].map(str::to_owned);
            let layer = self.of_text(&path, &setting.value, &source)?;
            self.put(layer, &source)?;
        }
        Ok(())
    }

    pub(super) fn variables(&mut self, variables: &BTreeMap<String, String>) -> Result<(), ConfigError> {
        let known = schema::variables();
        for (name, text) in environment::settings(variables) {
            let path = known.get(name).ok_or_else(|| ConfigError::UnknownVariable {
                name: name.clone(),
                nearest: nearest(name, known.keys().map(String::as_str)),
            })?;
            let source = Source::Variable(name.clone());
            let layer = self.of_text(path, text, &source)?;
            self.put(layer, &source)?;
        }
        Ok(())
    }

    pub(super) fn build(&self, source: &Source) -> Result<Config, ConfigError> {
        let config: Config = self.table.clone().try_into().map_err(|error| ConfigError::Invalid {
            from: source.clone(),
            reason: error.to_string().replace('\n', " ").trim().to_owned(),
        })?;
        check::check(&config).map_err(|refusal| refusal.of(source))?;
        Ok(config)
    }

    fn put(&mut self, layer: Table, source: &Source) -> Result<(), ConfigError> {
        merge(&mut self.table, layer, &self.schema, "", source)?;
        self.build(source).map(drop)
    }

    /// A table that holds one setting, read as the type that the setting has.
    fn of_text(&self, path: &[String], text: &str, source: &Source) -> Result<Table, ConfigError> {
        let example = path.iter().try_fold(&self.schema, |table, key| match table.get(key) {
            Some(Value::Table(section)) => Ok(section),
            Some(example) => Err(example),
            None => Ok(table),
        });
        let value = match example {
            Err(Value::Integer(_)) => text.trim().parse().ok().map(Value::Integer),
            Err(Value::Float(_)) => text.trim().parse().ok().map(Value::Float),
            Err(Value::Boolean(_)) => text.trim().parse().ok().map(Value::Boolean),
            Err(Value::Array(_)) => {
                let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                Some(Value::Array(parts.map(|part| Value::String(part.to_owned())).collect()))
            }
            _ => Some(Value::String(text.to_owned())),
        };
        let value = value.ok_or_else(|| ConfigError::WrongType {
            from: source.clone(),
            key: path.join("."),
            given: shown(&path.join("."), format!("`{text}`")),
            expected: example.err().map_or("a text", type_name).to_owned(),
        })?;
        let mut layer = Table::new();
        let (key, sections) = path.split_last().expect("a setting has a name");
        layer.insert(key.clone(), value);
        for section in sections.iter().rev() {
            layer = Table::from_iter([(section.clone(), Value::Table(layer))]);
        }
        Ok(layer)
    }
}

fn merge(into: &mut Table, layer: Table, schema: &Table, section: &str, source: &Source) -> Result<(), ConfigError> {
    for (key, value) in layer {
        let path = if section.is_empty() { key.clone() } else { format!("{section}.{key}") };
        let Some(example) = schema.get(&key) else {
            let valid: Vec<String> = schema.keys().cloned().collect();
            let nearest = nearest(&key, valid.iter().map(String::as_str));
            return Err(ConfigError::UnknownKey { from: source.clone(), key: path, nearest, valid });
        };
        match (example, value) {
            (Value::Table(schema), Value::Table(layer)) => {
                if let Value::Table(into) = into.entry(key).or_insert_with(|| Value::Table(Table::new())) {
                    merge(into, layer, schema, &path, source)?;
                }
            }
            // A whole number is a number.
            (Value::Float(_), Value::Integer(number)) => {
                into.insert(key, Value::Float(number as f64));
            }
            (example, value) if example.same_type(&value) => {
                into.insert(key, value);
            }
            (example, value) => {
                return Err(ConfigError::WrongType {
                    from: source.clone(),
                    given: shown(&path, value.to_string()),
                    key: path,
                    expected: type_name(example).to_owned(),
                });
            }
        }
    }
    Ok(())
}

/// A file as an error may quote it: of the same length, with nothing in it that may be a secret.
fn masked(text: &str) -> String {
    let mut secret_section = false;
    let masked = text.split_inclusive('\n').map(|line| {
        let section = line.trim_start().starts_with('[');
        secret_section = if section { line.contains("otlp") } else { secret_section };
        if !section && (secret_section || line.contains("otlp") || line.contains("headers")) {
            line.bytes().map(|byte| if byte == b'\n' { '\n' } else { '*' }).collect()
        } else {
            line.to_owned()
        }
    });
    masked.collect()
}

fn shown(key: &str, given: String) -> String {
    // A list in place of a section that is around it holds all of it.
    let holds = |outer: &str, inner: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'));
    let secret = key == SECRET || holds(SECRET, key) || holds(key, SECRET);
    if secret { "not shown".to_owned() } else { given }
}

fn type_name(example: &Value) -> &'static str {
    match example {
        Value::String(_) => "a text",
        Value::Integer(_) => "an integer",
        Value::Float(_) => "a number",
        Value::Boolean(_) => "true or false",
        Value::Table(_) => "a section",
        Value::Array(_) => "a list",
        Value::Datetime(_) => "a date",
    }
}
