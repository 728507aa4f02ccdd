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
    if path.is_absolute() || path.exists() {
        return path.to_owned();
    }
    bases().into_iter().map(|base| base.join(path)).find(|found| found.exists()).unwrap_or_else(|| path.to_owned())
}

/// The `models` folder of each base.
pub(super) fn model_folders() -> Vec<PathBuf> {
    bases().into_iter().map(|base| base.join("models")).collect()
}
