//! `OUT.training` beside a router: the state of a training that can be taken up again.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// Where a training to `out` keeps its state.
pub(super) fn folder_of(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".training");
    out.with_file_name(name)
}

/// Before the work: refuses a folder of that name that holds anything else, since it is taken away at the end.
pub(super) fn check(folder: &Path) -> anyhow::Result<()> {
    let failed = || format!("cannot read {}", folder.display());
    let entries = match std::fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(()),
        entries => entries.with_context(failed)?,
    };
    for entry in entries {
        let name = entry.with_context(failed)?.file_name();
        let name = name.to_string_lossy();
        // What a kill leaves of a state that was being written begins with `.tmp`.
        if !name.ends_with(".safetensors") && !name.starts_with(".tmp") {
            bail!(
                "{} would hold the state of this training and holds `{name}`: name another --out, or move that folder away",
                folder.display()
            );
        }
    }
    Ok(())
}

/// Takes the folder away, where there is one.
pub(super) fn remove(folder: &Path) -> anyhow::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_holds_anything_but_checkpoints_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let folder = folder_of(&parent.path().join("mine"));
        assert_eq!(folder, parent.path().join("mine.training"));
        check(&folder).unwrap();
        std::fs::create_dir(&folder).unwrap();
        for name in ["fold-0.safetensors", "all.safetensors", ".tmpA1b2C3"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        check(&folder).unwrap();
        std::fs::write(folder.join("tickets.csv"), "").unwrap();
        let refused = check(&folder).unwrap_err().to_string();
        assert!(refused.contains("`tickets.csv`") && refused.contains("another --out"), "{refused}");
        remove(&folder).unwrap();
        remove(&folder).unwrap();
        assert!(!folder.exists());
    }
}
