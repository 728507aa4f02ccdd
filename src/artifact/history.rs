//! `changes.jsonl` of a versioned router: one line for each change of the version in force.
//!
//! A change is written down first and comes in force then, by a rename that needs no room: a disk that is full leaves both as
//! they were. Whoever is killed in between leaves a line of a change that never was, or half a line. The first is passed over, the
//! second cut off.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{ArtifactError, VersionedRouter};

pub(super) const NAME: &str = "changes.jsonl";
pub(super) const LOCK: &str = ".lock";

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
    written: Written,
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
        let written = read(&path)?;
        // Opened before anything is changed: a change that cannot be written down must not happen.
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(ArtifactError::write(&path))?;
        Ok(Self { router: router.clone(), path, file, written, _lock: lock })
    }

    /// The version that a rollback would put in force.
    #[must_use]
    pub fn previous(&self, current: Option<&str>) -> Option<String> {
        previous(&self.written.changes, current)
    }

    /// Writes down that a version is put in force, and does so.
    ///
    /// # Errors
    /// [`ArtifactError`]; the version before is in force then, and nothing else is written down.
    pub fn put_in_force(&mut self, action: Action, to: &str, at: String, who: String) -> Result<Change, ArtifactError> {
        let change = Change { at, action, from: self.router.current()?, to: to.to_owned(), who };
        let line = serde_json::to_string(&change).map_err(|source| ArtifactError::damaged(&self.path, source))?;
        let next = self.router.prepare_current(to)?;
        let line = format!("{}{line}\n", if self.written.ended { "" } else { "\n" });
        let put = self.append(line.as_bytes()).map_err(ArtifactError::write(&self.path)).and_then(|()| next.put());
        if let Err(error) = put {
            // Best effort: where not even that can be done, whoever reads it passes over a change that never was.
            let _ = self.file.set_len(self.written.length);
            return Err(error);
        }
        self.written.length += line.len() as u64;
        self.written.ended = true;
        self.written.changes.push(change.clone());
        Ok(change)
    }

    /// Behind the last whole line: half a line that a kill left is cut off.
    fn append(&mut self, line: &[u8]) -> std::io::Result<()> {
        self.file.set_len(self.written.length)?;
        self.file.write_all(line)?;
        self.file.sync_all()
    }
}

/// The changes of a versioned router, oldest first.
///
/// # Errors
/// As [`History::open`].
pub fn changes(router: &VersionedRouter) -> Result<Vec<Change>, ArtifactError> {
    Ok(read(&router.root().join(NAME))?.changes)
}

/// The whole lines of the file.
struct Written {
    changes: Vec<Change>,
    /// Where they end.
    length: u64,
    /// Whether the last of them has the end of its line, which a kill or an editor may have left out.
    ended: bool,
}

fn read(path: &Path) -> Result<Written, ArtifactError> {
    let text = match std::fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        read => read.map_err(ArtifactError::read(path))?,
    };
    let mut written = Written { changes: Vec::new(), length: 0, ended: true };
    for (number, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let (number, ended) = (number + 1, line.ends_with(b"\n"));
        if !line.trim_ascii().is_empty() {
            match serde_json::from_slice(line) {
                Ok(change) => written.changes.push(change),
                Err(source) if ended => {
                    return Err(ArtifactError::damaged(path, format_args!("line {number}: {source}")));
                }
                Err(_) => {
                    tracing::warn!(
                        path = %path.display(),
                        line = number,
                        "half a line at the end, as a kill or a full disk leaves it: passed over; the next change cuts it off"
                    );
                    break;
                }
            }
        }
        written.length += line.len() as u64;
        written.ended = ended;
    }
    Ok(written)
}

/// The version before `current`: a promotion puts one on top of those before, a rollback takes one off; what is on top already stays
/// there. `None` where there is none, or where somebody changed the version without writing it down.
pub fn previous(changes: &[Change], current: Option<&str>) -> Option<String> {
    let mut stack: Vec<&str> = Vec::new();
    for (change, next) in changes.iter().zip(changes.iter().skip(1).map(Some).chain([None])) {
        let after = next.map_or(current, |next| next.from.as_deref());
        if after == change.from.as_deref() && after != Some(&change.to) {
            // Written down and killed before it came in force.
            continue;
        }
        match change.action {
            Action::Promote => {
                if stack.is_empty() {
                    stack.extend(change.from.as_deref());
                }
                if stack.last() != Some(&change.to.as_str()) {
                    stack.push(&change.to);
                }
            }
            // Programs of before rolled back to what was promoted twice from itself, which took nothing off.
            Action::Rollback if change.from.as_ref() == Some(&change.to) => {}
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
    fn a_change_that_was_killed_before_it_came_in_force_never_was() {
        use Action::{Promote, Rollback};
        let mut changes = vec![change(Promote, None, "a"), change(Promote, Some("a"), "b")];
        for killed in [change(Promote, Some("b"), "c"), change(Rollback, Some("b"), "a")] {
            changes.push(killed);
            assert_eq!(previous(&changes, Some("b")).as_deref(), Some("a"));
        }
        changes.push(change(Promote, Some("b"), "d"));
        assert_eq!(previous(&changes, Some("d")).as_deref(), Some("b"));
    }

    #[test]
    fn promoting_what_is_in_force_again_leaves_the_version_before_where_it_was() {
        use Action::{Promote, Rollback};
        let mut changes =
            vec![change(Promote, None, "a"), change(Promote, Some("a"), "b"), change(Promote, Some("b"), "b")];
        assert_eq!(previous(&changes, Some("b")).as_deref(), Some("a"));
        // As programs of before rolled back.
        changes.push(change(Rollback, Some("b"), "b"));
        assert_eq!(previous(&changes, Some("b")).as_deref(), Some("a"));
        changes.push(change(Rollback, Some("b"), "a"));
        assert_eq!(previous(&changes, Some("a")), None);
        // A version that was put in force by hand, and then promoted.
        let by_hand = [change(Promote, Some("z"), "z"), change(Promote, Some("z"), "a")];
        assert_eq!(previous(&by_hand[..1], Some("z")), None);
        assert_eq!(previous(&by_hand, Some("a")).as_deref(), Some("z"));
    }

    fn versioned() -> (tempfile::TempDir, VersionedRouter) {
        let folder = tempfile::tempdir().unwrap();
        let router = VersionedRouter::open_or_create(&folder.path().join("shop")).unwrap();
        ["a", "b"].iter().for_each(|version| std::fs::create_dir(router.path_of(version)).unwrap());
        (folder, router)
    }

    fn put(router: &VersionedRouter, to: &str) -> Result<Change, ArtifactError> {
        let mut history = History::open(router)?;
        history.put_in_force(Action::Promote, to, "2026-01-05T10:12:00Z".to_owned(), "ann".to_owned())
    }

    /// Wherever a kill in mid-write cuts the last line.
    #[test]
    fn half_a_line_at_the_end_is_passed_over_and_the_next_change_stands_by_itself() {
        let (_folder, router) = versioned();
        put(&router, "a").unwrap();
        let file = router.root().join(NAME);
        let whole = std::fs::read(&file).unwrap();
        let half = r#"{"at":"2026-01-05T10:13:00Z","action":"promote","from":"a","to":"b","who":"Zoë"}"#.as_bytes();
        // At its first byte, in the middle, within a letter of two bytes; and what a power cut leaves.
        let letter = half.len() - 4;
        for end in [&half[..1], &half[..half.len() / 2], &half[..=letter], &[0; 512]] {
            std::fs::write(&file, [&whole[..], end].concat()).unwrap();
            assert_eq!(changes(&router).unwrap().len(), 1);
            let change = put(&router, "b").unwrap();
            assert_eq!(changes(&router).unwrap().last(), Some(&change));
            assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 2);
            router.set_current("a").unwrap();
        }
        // Nothing but the end of the line is missing.
        std::fs::write(&file, [&whole[..], half].concat()).unwrap();
        router.set_current("b").unwrap();
        put(&router, "a").unwrap();
        assert_eq!(
            changes(&router).unwrap().iter().map(|change| change.to.as_str()).collect::<Vec<_>>(),
            ["a", "b", "a"]
        );
        std::fs::write(&file, [b"{}\n", &whole[..]].concat()).unwrap();
        let error = put(&router, "b").unwrap_err().to_string();
        assert!(error.contains("changes.jsonl is damaged") && error.contains("line 1"), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_change_that_cannot_be_written_down_does_not_happen() {
        let (_folder, router) = versioned();
        put(&router, "a").unwrap();
        let mut history = History::open(&router).unwrap();
        history.file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        assert!(history.put_in_force(Action::Promote, "b", String::new(), String::new()).is_err());
        assert_eq!((router.current().unwrap().as_deref(), changes(&router).unwrap().len()), (Some("a"), 1));
        assert!(!router.root().join(".current").exists());
    }

    #[test]
    fn a_version_changed_by_hand_has_no_known_predecessor() {
        let changes = [change(Action::Promote, None, "a"), change(Action::Promote, Some("a"), "b")];
        assert_eq!(previous(&changes, Some("z")), None);
        assert_eq!(previous(&changes, None), None);
        assert_eq!(previous(&[], Some("a")), None);
    }
}
