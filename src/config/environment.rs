//! The environment: the only place that reads it, and what of it is ours.

use std::collections::BTreeMap;
use std::path::PathBuf;

const PREFIX: &str = "POSTROOM_";

/// The standard variables of OpenTelemetry; `standard` reads those that concern this program.
const STANDARD_PREFIX: &str = "OTEL_";

/// Names the settings file; the one variable that is no setting.
const CONFIG_FILE: &str = "POSTROOM_CONFIG";

/// The variables of this process that may be settings.
#[must_use]
pub fn environment() -> Vec<(String, String)> {
    // Not `vars`, which panics on what is not UTF-8, whosever variable it is.
    std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .filter(|(name, _)| concerns_us(name))
        .collect()
}

/// Who runs this process, as the system calls them.
#[must_use]
pub fn user() -> String {
    let named = |name| std::env::var_os(name).map(|user| user.to_string_lossy().into_owned());
    ["USER", "LOGNAME", "USERNAME"]
        .into_iter()
        .filter_map(named)
        .find(|user| !user.is_empty())
        .unwrap_or_else(|| "unknown".to_owned())
}

/// Those that may be meant for this program, in order of their names.
pub(super) fn known(environment: impl IntoIterator<Item = (String, String)>) -> BTreeMap<String, String> {
    environment.into_iter().filter(|(name, _)| concerns_us(name)).collect()
}

pub(super) fn config_file(variables: &BTreeMap<String, String>) -> Option<PathBuf> {
    variables.get(CONFIG_FILE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Those that stand for a setting of ours.
pub(super) fn settings(variables: &BTreeMap<String, String>) -> impl Iterator<Item = (&String, &String)> {
    variables.iter().filter(|(name, _)| name.starts_with(PREFIX) && *name != CONFIG_FILE)
}

fn concerns_us(name: &str) -> bool {
    name.starts_with(PREFIX) || name.starts_with(STANDARD_PREFIX)
}
