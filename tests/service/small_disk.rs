//! A disk of a few pages, to be filled: a tmpfs, where this machine lets the tests mount one.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

const PAGE: usize = 4096;

/// A mounted disk; unmounted when dropped.
pub(crate) struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    /// A disk of so many pages; `None`, and a word about it, where nothing may be mounted.
    pub(crate) fn of_pages(pages: usize) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={}", pages * PAGE);
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).output();
        if mounted.is_ok_and(|done| done.status.success()) {
            return Some(Self { folder });
        }
        eprintln!("skipped: no file system may be mounted here");
        None
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }

    /// Leaves room for so many pages.
    pub(crate) fn leave(&self, pages: usize) {
        let _ = std::fs::remove_file(self.filler());
        let mut file = std::fs::File::create(self.filler()).unwrap();
        let mut written = 0;
        loop {
            match file.write(&[1; PAGE]) {
                Ok(PAGE) => written += 1,
                Ok(part) => panic!("{part} bytes of a page"),
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => panic!("{error}"),
            }
        }
        file.set_len((PAGE * (written - pages.min(written))) as u64).unwrap();
    }

    /// Takes everything away that fills it.
    pub(crate) fn empty(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // What is still open goes with its process.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

/// Everything below a folder.
pub(crate) fn all_files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(all_files(&path));
        } else {
            found.push((path.clone(), std::fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}
