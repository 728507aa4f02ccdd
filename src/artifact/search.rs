//! Where models lie when a path is not given in full.

use std::path::{Path, PathBuf};

/// Folders that a relative path is looked for in: the working directory, the program's, /usr/share/postroom.
fn bases() -> Vec<PathBuf> {
    let beside = std::env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_owned));
    [Some(PathBuf::from(".")), beside, Some(PathBuf::from("/usr/share/postroom"))].into_iter().flatten().collect()
}

/// The first place where a model directory exists; where there is none, the path as it stands, so that the error names what
/// was asked for.
#[must_use]
pub fn find_model(path: &Path) -> PathBuf {
    places(path).into_iter().find(|found| found.exists()).unwrap_or_else(|| path.to_owned())
}

/// The places where a model directory is looked for, in this order; of a path in full the one.
pub(super) fn places(path: &Path) -> Vec<PathBuf> {
    if path.is_absolute() {
        return vec![path.to_owned()];
    }
    // From the working directory first, as it was given; the first of the bases is the same place.
    let further = bases().into_iter().skip(1).map(|base| base.join(path));
    std::iter::once(path.to_owned()).chain(further).collect()
}

/// The `models` folder of each base.
pub(super) fn model_folders() -> Vec<PathBuf> {
    bases().into_iter().map(|base| base.join("models")).collect()
}
