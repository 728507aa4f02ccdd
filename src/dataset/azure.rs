//! The labels file of an Azure custom text classification project with a single label; its documents are files beside it.

use std::io::BufRead;
use std::path::{Component, Path};

use serde::Deserialize;

use super::collector::{Collector, Record};
use super::folders::document;
use super::{DatasetError, Place};

/// The kind of project in which a document has one class.
const SINGLE: &str = "CustomSingleLabelClassification";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Project {
    #[serde(default)]
    metadata: Metadata,
    assets: Assets,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    project_kind: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Assets {
    #[serde(default)]
    project_kind: Option<String>,
    #[serde(default)]
    documents: Vec<Document>,
}

#[derive(Deserialize)]
struct Document {
    location: String,
    #[serde(default)]
    class: Option<Class>,
}

#[derive(Deserialize)]
struct Class {
    category: String,
}

/// Reads a project and its documents.
pub(super) fn project(
    reader: &mut dyn BufRead,
    path: &Path,
    collector: &mut Collector<'_>,
) -> Result<(), DatasetError> {
    let project: Project = serde_json::from_reader(reader).map_err(|error| {
        let reason = format!("no labels file of an Azure project: {error}");
        DatasetError::Broken { place: Place::file(path), reason }
    })?;
    let Project { metadata, assets } = project;
    for kind in [assets.project_kind, metadata.project_kind].into_iter().flatten() {
        if kind != SINGLE {
            return Err(DatasetError::ProjectKind { path: path.to_owned(), kind });
        }
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    for Document { location, class } in assets.documents {
        let inside = Path::new(&location).components().all(|part| matches!(part, Component::Normal(_)));
        if !inside || location.is_empty() {
            return Err(DatasetError::Outside { path: path.to_owned(), location });
        }
        let record = document(&folder.join(&location), collector)?;
        let label = class.map(|class| class.category);
        collector.push(Record { label, id: record.id.or(Some(location)), ..record })?;
    }
    Ok(())
}
