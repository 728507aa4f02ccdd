//! Why a router is not there, or not the new one.

use std::path::PathBuf;

/// What loading a router may fail with.
pub type LoadError = Box<dyn std::error::Error + Send + Sync>;

/// Why the routers of a process cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RoutersError {
    /// Not a name.
    #[error("`{name}` cannot be a router's name: at most 64 letters, digits, `-`, `_`, `.`, the first of them no `.`")]
    BadName {
        /// As given.
        name: String,
    },
    /// Two routers of one name.
    #[error(
        "two routers are called `{name}`; model.router is called as its directory, give the one in routers.list another name"
    )]
    Twice {
        /// The name.
        name: String,
    },
    /// The directory of routers cannot be read.
    #[error("routers.dir {} cannot be read", path.display())]
    Dir {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The shadow or the canary is none of the other routers.
    #[error("{setting} is `{name}`, which is none of the routers beside the default one; there are {}", valid.join(", "))]
    NoSuch {
        /// The setting.
        setting: &'static str,
        /// The name given.
        name: String,
        /// All routers, the default first.
        valid: Vec<String>,
    },
    /// The default router cannot be loaded.
    #[error("the router `{name}` in {} cannot be loaded", path.display())]
    Load {
        /// Its name.
        name: String,
        /// Its directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: LoadError,
    },
}

/// Why a router was not exchanged.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// No router of this name.
    #[error("there is no router `{name}`")]
    Unknown {
        /// As given.
        name: String,
    },
    /// It was given ready-made.
    #[error("the router `{name}` has no directory to be loaded from")]
    Fixed {
        /// Its name.
        name: String,
    },
    /// The new one cannot be used.
    #[error("the router `{name}` was refused: {reason}")]
    Refused {
        /// Its name.
        name: String,
        /// Why, with all causes.
        reason: String,
        /// The version that goes on; `None` where there is none.
        in_force: Option<String>,
    },
}

/// An error and its causes in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
