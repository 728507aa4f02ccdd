//! `changes.jsonl` of a versioned router: one line for each change of the version in force.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{ArtifactError, VersionedRouter};

const NAME: &str = "changes.jsonl";
const LOCK: &str = ".lock";

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A version was put in force.
    Promote,
    /// The one before it was put back.
    Rollback,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When, in RFC 3339.
    pub at: String,
    /// What.
    pub action: Action,
    /// The version that was in force; `None` for the first.
    pub from: Option<String>,
    /// The version that is.
    pub to: String,
    /// Who, as the system calls them.
    pub who: String,
}

/// The changes of one versioned router, locked: one at a time changes the version in force.
pub struct History {
    router: VersionedRouter,
    path: PathBuf,
    file: File,
    changes: Vec<Change>,
    _lock: File,
}

impl History {
    /// Reads the history and waits for whoever else changes this router.
    ///
    /// # Errors
    /// [`ArtifactError::Write`] where it could not be written, [`ArtifactError::Damaged`] with the line.
    pub fn open(router: &VersionedRouter) -> Result<Self, ArtifactError> {
        let path = router.root().join(LOCK);
        let lock =
            File::create(&path).and_then(|file| file.lock().map(|()| file)).map_err(ArtifactError::write(&path))?;
        let path = router.root().join(NAME);
        let changes = read(&path)?;
        // Opened before anything is changed: a change that cannot be written down must not happen.
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(ArtifactError::write(&path))?;
        Ok(Self { router: router.clone(), path, file, changes, _lock: lock })
    }

    /// The version that a rollback would put in force.
    #[must_use]
    pub fn previous(&self, current: Option<&str>) -> Option<String> {
        previous(&self.changes, current)
    }

    /// Puts a version in force and writes down that it was.
    ///
    /// # Errors
    /// [`ArtifactError`]; where only the writing down failed, the version is in force.
    pub fn put_in_force(&mut self, action: Action, to: &str, at: String, who: String) -> Result<Change, ArtifactError> {
        let change = Change { at, action, from: self.router.current()?, to: to.to_owned(), who };
        let line = serde_json::to_string(&change).map_err(|source| ArtifactError::damaged(&self.path, source))?;
        self.router.set_current(to)?;
        self.file
            .write_all(format!("{line}\n").as_bytes())
            .and_then(|()| self.file.sync_all())
            .map_err(ArtifactError::write(&self.path))?;
        self.changes.push(change.clone());
        Ok(change)
    }
}

/// The changes of a versioned router, oldest first.
///
/// # Errors
/// As [`History::open`].
pub fn changes(router: &VersionedRouter) -> Result<Vec<Change>, ArtifactError> {
    read(&router.root().join(NAME))
}

fn read(path: &Path) -> Result<Vec<Change>, ArtifactError> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(ArtifactError::read(path))?,
    };
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            serde_json::from_str(line)
                .map_err(|source| ArtifactError::damaged(path, format_args!("line {}: {source}", number + 1)))
        })
        .collect()
}

/// The version before `current`: a promotion puts one on top of those before, a rollback takes one off. `None` where there is
/// none, or where somebody changed the version without writing it down.
pub fn previous(changes: &[Change], current: Option<&str>) -> Option<String> {
    let mut stack: Vec<&str> = Vec::new();
    for change in changes {
        match change.action {
            Action::Promote => {
                if stack.is_empty() {
                    stack.extend(change.from.as_deref());
                }
                stack.push(&change.to);
            }
            Action::Rollback => {
                stack.pop();
            }
        }
    }
    let top = stack.pop();
    if top.is_some() && top == current { stack.pop().map(str::to_owned) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(action: Action, from: Option<&str>, to: &str) -> Change {
        let from = from.map(str::to_owned);
        Change { at: "2026-01-05T10:12:00Z".to_owned(), action, from, to: to.to_owned(), who: "ann".to_owned() }
    }

    #[test]
    fn rolling_back_goes_back_step_by_step() {
        use Action::{Promote, Rollback};
        let mut changes =
            vec![change(Promote, None, "a"), change(Promote, Some("a"), "b"), change(Promote, Some("b"), "c")];
        assert_eq!(previous(&changes, Some("c")).as_deref(), Some("b"));
        changes.push(change(Rollback, Some("c"), "b"));
        assert_eq!(previous(&changes, Some("b")).as_deref(), Some("a"));
        changes.push(change(Promote, Some("b"), "d"));
        assert_eq!(previous(&changes, Some("d")).as_deref(), Some("b"));
        changes.push(change(Rollback, Some("d"), "b"));
        changes.push(change(Rollback, Some("b"), "a"));
        assert_eq!(previous(&changes, Some("a")), None);
    }

    #[test]
    fn a_version_changed_by_hand_has_no_known_predecessor() {
        let changes = [change(Action::Promote, None, "a"), change(Action::Promote, Some("a"), "b")];
        assert_eq!(previous(&changes, Some("z")), None);
        assert_eq!(previous(&changes, None), None);
        assert_eq!(previous(&[], Some("a")), None);
    }
}
