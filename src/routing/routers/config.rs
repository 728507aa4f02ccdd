//! Settings of the routers beside the default one.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Which routers there are beside `model.router`, and what two of them do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RoutersConfig {
    /// Directory whose folders are routers, each by the name of its folder. Folders that come later are taken in.
    pub dir: Option<PathBuf>,
    /// Further routers, one by one.
    pub list: Vec<NamedRouter>,
    /// How often the files of every router are looked at for a change, in milliseconds; 0: never.
    pub poll_ms: u64,
    /// Name of the router that is scored beside the default one and never answers for it.
    pub shadow: Option<String>,
    /// Name of the router that answers a share of the default one's mail.
    pub canary: Option<String>,
    /// That share, 0 to 1.
    pub canary_share: f64,
}

/// A router by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedRouter {
    /// What requests call it.
    pub name: String,
    /// Its directory.
    pub path: PathBuf,
}

impl Default for RoutersConfig {
    fn default() -> Self {
        Self { dir: None, list: Vec::new(), poll_ms: 2000, shadow: None, canary: None, canary_share: 0.05 }
    }
}

impl RoutersConfig {
    /// The time between two looks; `None` where nobody looks.
    #[must_use]
    pub fn poll(&self) -> Option<Duration> {
        (self.poll_ms > 0).then(|| Duration::from_millis(self.poll_ms))
    }
}
