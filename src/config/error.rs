//! Why settings are refused.

use std::fmt;
use std::path::PathBuf;

/// Where a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The file compiled in.
    Defaults,
    /// A file.
    File(PathBuf),
    /// An environment variable.
    Variable(String),
    /// The command line.
    Flags,
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Defaults => formatter.write_str("config/default.toml"),
            Self::File(path) => write!(formatter, "{}", path.display()),
            Self::Variable(name) => formatter.write_str(name),
            Self::Flags => formatter.write_str("the command line"),
        }
    }
}

/// Why settings are refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is missing or unreadable.
    #[error("cannot read the settings in {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{} is no valid TOML", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: toml::de::Error,
    },
    /// A key that does not exist.
    #[error("{from}: `{key}` is no setting{}; valid here: {}", did_you_mean(nearest.as_ref()), valid.join(", "))]
    UnknownKey {
        /// Where it stands.
        from: Source,
        /// The key with its section.
        key: String,
        /// The most similar valid key.
        nearest: Option<String>,
        /// The keys of that section.
        valid: Vec<String>,
    },
    /// A variable that stands for no setting.
    #[error("the environment variable {name} is no setting{}", did_you_mean(nearest.as_ref()))]
    UnknownVariable {
        /// The variable.
        name: String,
        /// The most similar valid one.
        nearest: Option<String>,
    },
    /// A value of another type.
    #[error("{from}: `{key}` is {given}, expected {expected}")]
    WrongType {
        /// Where it stands.
        from: Source,
        /// The key with its section.
        key: String,
        /// The value.
        given: String,
        /// What it should be.
        expected: String,
    },
    /// A value of the right type that means nothing, such as an unknown word.
    #[error("{from}: {reason}")]
    Invalid {
        /// Where it stands.
        from: Source,
        /// Key and reason.
        reason: String,
    },
}

fn did_you_mean(nearest: Option<&String>) -> String {
    nearest.map_or_else(String::new, |nearest| format!(" (did you mean `{nearest}`?)"))
}

/// The candidate most like `given`, where any is like it at all.
pub(super) fn nearest<'c>(given: &str, candidates: impl Iterator<Item = &'c str>) -> Option<String> {
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(given, candidate), candidate))
        .min()
        .filter(|(distance, candidate)| distance * 2 <= candidate.len())
        .map(|(_, candidate)| candidate.to_owned())
}
