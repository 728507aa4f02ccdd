//! Which settings exist, of which type: read from `config/default.toml` itself, so that they are written down once.

use std::collections::BTreeMap;

use toml::{Table, Value};

/// The documented defaults.
pub const DEFAULT_TOML: &str = include_str!("../../config/default.toml");

/// Every setting that is set by default.
pub(super) fn defaults() -> Table {
    DEFAULT_TOML.parse().expect("a test parses config/default.toml")
}

/// Every setting; one that is unset by default (`#key = value`) stands with its example, for its type.
pub(super) fn schema() -> Table {
    let text: String = DEFAULT_TOML
        .lines()
        .map(|line| {
            line.strip_prefix('#').filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase())).unwrap_or(line)
        })
        .flat_map(|line| [line, "\n"])
        .collect();
    text.parse().expect("a test parses config/default.toml with its unset settings")
}

/// Environment variables by name, with the path of their setting.
pub(super) fn variables() -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    walk(&schema(), &mut Vec::new(), &mut found);
    found
}

fn walk(table: &Table, path: &mut Vec<String>, found: &mut BTreeMap<String, Vec<String>>) {
    for (key, value) in table {
        path.push(key.clone());
        match value {
            Value::Table(section) => walk(section, path, found),
            _ => {
                found.insert(format!("POSTROOM_{}", path.join("_").to_uppercase()), path.clone());
            }
        }
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    fn keys(table: &Table) -> Vec<String> {
        let mut found = BTreeMap::new();
        walk(table, &mut Vec::new(), &mut found);
        found.into_keys().collect()
    }

    #[test]
    fn the_file_holds_exactly_the_defaults() {
        assert_eq!(defaults().try_into::<Config>().unwrap(), Config::default());
    }

    #[test]
    fn the_file_names_every_setting() {
        // Unset settings are left out when written, so they are set here.
        let mut config = Config::default();
        config.routing.policy.threshold = Some(0.5);
        config.server.admin_port = Some(9090);
        (config.server.keys_file, config.server.tls_cert, config.server.tls_key) =
            (Some("a".into()), Some("b".into()), Some("c".into()));
        config.telemetry.otlp.certificate = Some("a".into());
        config.routers.dir = Some("routers".into());
        config.routers.shadow = Some("next".to_owned());
        config.routers.canary = Some("next".to_owned());
        assert_eq!(keys(&schema()), keys(&Table::try_from(&config).unwrap()));
        assert!(schema().try_into::<Config>().is_ok());
    }

    #[test]
    fn no_two_settings_share_a_variable() {
        let mut count = 0;
        let text = toml::to_string(&schema()).unwrap();
        text.lines().filter(|line| line.contains(" = ")).for_each(|_| count += 1);
        assert_eq!(variables().len(), count);
    }
}
