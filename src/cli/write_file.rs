//! Files that a command writes for its user: whole, or what was there stays.

use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::Context;

/// Writes a file aside, flushes it and renames it. What is no regular file, as a pipe, a device or a link, is written to where
/// it is: a new file in its place would take it away.
///
/// # Errors
/// Where it cannot be written.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    put(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn put(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let old = match std::fs::symlink_metadata(path) {
        Ok(old) if old.is_file() => Some(old.permissions()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        _ => return std::fs::write(path, bytes),
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As any file that a program makes; the user's mask takes off what they do not want.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut aside = builder.prefix(".postroom-").tempfile_in(folder)?;
    aside.write_all(bytes)?;
    if let Some(permissions) = old {
        aside.as_file().set_permissions(permissions)?;
    }
    aside.as_file().sync_all()?;
    aside.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_is_replaced_with_nothing_left_beside_it_and_a_device_stays_one() {
        let error = write_file(Path::new("/dev/full"), b"map").unwrap_err();
        assert_eq!(error.to_string(), "cannot write /dev/full");
        assert!(!std::fs::metadata("/dev/full").unwrap().is_file());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map.svg");
        for text in ["first", "second"] {
            write_file(&path, text.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
