//! The environment: the only place that reads it, and what of it is ours.

use std::collections::BTreeMap;
use std::path::PathBuf;

const PREFIX: &str = "POSTROOM_";

/// Names the settings file; the one variable that is no setting.
const CONFIG_FILE: &str = "POSTROOM_CONFIG";

/// The variables of this process that may be settings.
#[must_use]
pub fn environment() -> Vec<(String, String)> {
    // Not `vars`, which panics on what is not UTF-8, whosever variable it is.
    std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .filter(|(name, _)| name.starts_with(PREFIX))
        .collect()
}

/// Ours, in order of their names.
pub(super) fn ours(environment: impl IntoIterator<Item = (String, String)>) -> BTreeMap<String, String> {
    environment.into_iter().filter(|(name, _)| name.starts_with(PREFIX)).collect()
}

pub(super) fn config_file(variables: &BTreeMap<String, String>) -> Option<PathBuf> {
    variables.get(CONFIG_FILE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Those that stand for a setting.
pub(super) fn settings(variables: &BTreeMap<String, String>) -> impl Iterator<Item = (&String, &String)> {
    variables.iter().filter(|(name, _)| *name != CONFIG_FILE)
}
