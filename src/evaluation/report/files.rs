//! Writing a report: each file whole or not at all, readable by its owner only, since it names mails.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::{Report, html};

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The directory or a file in it cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The directory or file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The report is no JSON.
    #[error("the report cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

/// Writes `report.html` and `report.json` into a directory, making it where it is missing. Each is written aside,
/// flushed and renamed.
///
/// # Errors
/// [`ReportError`].
pub fn write_report(folder: &Path, report: &Report) -> Result<(), ReportError> {
    let json = report.to_json()?;
    std::fs::create_dir_all(folder).map_err(|source| ReportError::Write { path: folder.to_owned(), source })?;
    for (name, text) in [("report.json", json), ("report.html", html::page(report))] {
        let path = folder.join(name);
        put(folder, &path, text.as_bytes()).map_err(|source| ReportError::Write { path, source })?;
    }
    Ok(())
}

fn put(folder: &Path, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    // Temporary files are readable by their owner only, and stay so.
    let mut aside = tempfile::Builder::new().prefix(".report-").tempfile_in(folder)?;
    aside.write_all(bytes)?;
    aside.as_file().sync_all()?;
    aside.persist(path).map_err(|error| error.error)?;
    Ok(())
}
