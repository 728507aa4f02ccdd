//! The journal beside the results: how many mails are done, and how long the results were then.
//!
//! Rows are written and flushed first, then the journal's line. Whatever stands behind the length of the last whole line was
//! written by a batch that did not finish: it is cut off and done again.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use super::load::Load;
use super::{sync_folder, tell};

const SCHEMA: &str = "postroom-backlog/1";

/// The first line: which run this is.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    schema: String,
    /// What must be the same for the run to go on.
    run: String,
}

/// A batch that is done.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Done {
    /// Length of the results.
    bytes: u64,
    /// All rows so far.
    load: Load,
}

/// The results and their journal, open.
pub(super) struct Journal {
    path: PathBuf,
    journal: File,
    results: File,
    done: Done,
}

impl Journal {
    /// Begins a run, or goes on with the one whose journal stands beside the results. `header` stands above the rows.
    pub(super) fn open(out: &Path, run: &str, header: &str) -> anyhow::Result<Self> {
        let path = path_of(out);
        if !path.exists() && out.exists() {
            bail!("{} exists already and has no journal: name another file with --out, or remove it", out.display());
        }
        let open = |path: &Path| {
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
            file.with_context(|| format!("cannot write {}", path.display()))
        };
        let mut journal = open(&path)?;
        match journal.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!("another run is writing {}: wait until it ends", out.display()),
            // File systems without locks exist; two runs at once are then for their user to avoid.
            Err(TryLockError::Error(error)) => tell(&format!("note: {} cannot be locked: {error}", path.display())),
        }
        let mut text = Vec::new();
        journal.read_to_end(&mut text).with_context(|| format!("cannot read {}", path.display()))?;
        let (found, done, whole) = read(&text);
        if let Some(found) = &found
            && (found.schema != SCHEMA || found.run != run)
        {
            bail!(
                "{} belongs to another run: the mail, the router, its settings or the format have changed; \
                 remove it and {} to begin anew",
                path.display(),
                out.display()
            );
        }
        journal.set_len(whole)?;
        journal.seek(SeekFrom::End(0))?;
        let begun = found.is_some();
        if !begun {
            write_line(&mut journal, &Header { schema: SCHEMA.to_owned(), run: run.to_owned() })?;
            sync_folder(&path)?;
        }
        let mut results = open(out)?;
        let length = results.metadata()?.len();
        if length < done.bytes {
            bail!("{} is shorter than its journal says: bring it back, or remove both to begin anew", out.display());
        }
        results.set_len(done.bytes)?;
        results.seek(SeekFrom::End(0))?;
        sync_folder(out)?;
        let mut journal = Self { path, journal, results, done };
        if journal.done.bytes == 0 {
            let load = journal.done.load.clone();
            journal.append(header.as_bytes(), &load)?;
        }
        Ok(journal)
    }

    /// Mails that are done.
    pub(super) fn mails(&self) -> usize {
        self.done.load.mails
    }

    /// What they came to.
    pub(super) fn load(&self) -> &Load {
        &self.done.load
    }

    /// Adds the rows of a batch; `load` counts all rows so far.
    pub(super) fn append(&mut self, rows: &[u8], load: &Load) -> anyhow::Result<()> {
        self.results.write_all(rows).context("cannot write the results")?;
        self.results.sync_data().context("cannot flush the results")?;
        self.done = Done { bytes: self.done.bytes + rows.len() as u64, load: load.clone() };
        write_line(&mut self.journal, &self.done)
    }

    /// Takes the journal away: the results are whole.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        std::fs::remove_file(&self.path).with_context(|| format!("cannot remove {}", self.path.display()))?;
        sync_folder(&self.path)
    }
}

/// `results.csv.journal`.
fn path_of(out: &Path) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".journal");
    name.into()
}

fn write_line(file: &mut File, line: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text).and_then(|()| file.sync_data()).context("cannot write the journal")
}

/// Header, last batch and length of the whole lines.
fn read(text: &[u8]) -> (Option<Header>, Done, u64) {
    let (mut header, mut done, mut whole) = (None, Done::default(), 0);
    for line in text.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n")) {
        let read = match &header {
            None => serde_json::from_slice(line).map(|found| header = Some(found)),
            Some(_) => serde_json::from_slice(line).map(|found| done = found),
        };
        if read.is_err() {
            break;
        }
        whole += line.len() as u64;
    }
    (header, done, whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(mails: usize) -> Load {
        let mut load = Load::default();
        load.mails = mails;
        load
    }

    #[test]
    fn rows_behind_the_journal_and_half_a_line_of_it_are_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out.csv");
        let mut journal = Journal::open(&out, "run", "head\n").unwrap();
        journal.append(b"one\n", &load(1)).unwrap();
        drop(journal);
        let append = |path: &Path, text: &str| {
            OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
        };
        append(&out, "two, not whol");
        append(&path_of(&out), "{\"bytes\": 99");
        let mut journal = Journal::open(&out, "run", "head\n").unwrap();
        assert_eq!(journal.mails(), 1);
        journal.append(b"two\n", &load(2)).unwrap();
        journal.finish().unwrap();
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "head\none\ntwo\n");
        assert!(!path_of(&out).exists());
    }

    #[test]
    fn results_of_another_run_are_never_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out.csv");
        let refused = |run: &str| Journal::open(&out, run, "").err().unwrap().to_string();
        let journal = Journal::open(&out, "run", "head\n").unwrap();
        assert!(refused("run").contains("another run is writing"), "{}", refused("run"));
        drop(journal);
        assert!(refused("other").contains("belongs to another run"));
        std::fs::write(&out, "").unwrap();
        assert!(refused("run").contains("is shorter than its journal says"));
        std::fs::remove_file(path_of(&out)).unwrap();
        assert!(refused("run").contains("exists already"));
    }

    #[test]
    fn a_run_that_was_killed_before_its_first_line_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out.jsonl");
        std::fs::write(path_of(&out), "{\"schema\": \"postr").unwrap();
        let journal = Journal::open(&out, "run", "").unwrap();
        assert_eq!(journal.mails(), 0);
        journal.finish().unwrap();
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "");
    }
}
