//! Whether a router may be written to a place: what lies there goes when the new router comes.

use std::io::ErrorKind;
use std::path::Path;

use super::ArtifactError;
use super::router_dir::has_manifest;
use super::versions::refuse_versions;

/// Refuses to write a router over anything but a router: over versions of one, mail, a file. An empty directory will do.
///
/// # Errors
/// [`ArtifactError::HoldsVersions`], [`ArtifactError::HoldsOther`]; [`ArtifactError::Read`] where the place cannot be looked at.
pub fn check_place(path: &Path) -> Result<(), ArtifactError> {
    refuse_versions(path)?;
    let found = match std::fs::metadata(path) {
        // What stands in the way of a place that cannot be is told by whoever writes there.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(()),
        found => found.map_err(ArtifactError::read(path))?,
    };
    if has_manifest(path)? || found.is_dir() && is_empty(path)? {
        return Ok(());
    }
    Err(ArtifactError::HoldsOther { path: path.to_owned() })
}

fn is_empty(directory: &Path) -> Result<bool, ArtifactError> {
    Ok(std::fs::read_dir(directory).map_err(ArtifactError::read(directory))?.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_router_is_written_where_nothing_is_or_a_router() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        check_place(&at("new")).unwrap();
        check_place(&at("new/below")).unwrap();
        std::fs::create_dir(at("new")).unwrap();
        check_place(&at("new")).unwrap();

        std::fs::write(at("new/tickets.jsonl"), "{}").unwrap();
        for other in ["new", "new/tickets.jsonl"] {
            let error = check_place(&at(other)).unwrap_err();
            assert!(matches!(&error, ArtifactError::HoldsOther { .. }), "{error}");
            assert!(error.to_string().contains("name another directory"), "{error}");
        }
        // Below a file nothing can be; writing there says so.
        check_place(&at("new/tickets.jsonl/below")).unwrap();

        std::fs::write(at("new/router.json"), "{}").unwrap();
        check_place(&at("new")).unwrap();
        std::fs::remove_file(at("new/router.json")).unwrap();
        std::fs::create_dir(at("new/versions")).unwrap();
        assert!(matches!(check_place(&at("new")), Err(ArtifactError::HoldsVersions { .. })));
    }
}
