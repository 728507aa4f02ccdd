//! The state of a run on disk: a killed training goes on where its last epoch ended, with the same result.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use super::adamw::Moments;

/// Why a checkpoint cannot be kept or used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The file cannot be read or written.
    #[error("cannot {what} the checkpoint {}", path.display())]
    File {
        /// `read` or `write`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is of another training or damaged.
    #[error("the checkpoint {} belongs to another training or is damaged ({reason}): delete it to start anew", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
}

/// What a run is after some epochs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    /// Epochs that are done.
    pub epochs: usize,
    /// Steps that are done.
    pub steps: usize,
    /// Every parameter's values, in the network's order.
    pub values: Vec<Vec<f32>>,
    /// The moments of each.
    pub moments: Vec<Moments>,
    /// Logits of the judged mails after each epoch that was judged, row by row.
    pub judged: Vec<Vec<Vec<f32>>>,
    /// All values after each epoch that was kept.
    pub kept: Vec<Vec<Vec<f32>>>,
}

/// Stands in the file: what must be the same for a run to be taken up again.
const FINGERPRINT: &str = "fingerprint";
const EPOCHS: &str = "epochs";
const STEPS: &str = "steps";

impl State {
    /// Writes the state aside, flushes it and renames it over the last one.
    pub(super) fn save(&self, path: &Path, fingerprint: &str) -> Result<(), CheckpointError> {
        let failed = |source| CheckpointError::File { what: "write", path: path.to_owned(), source };
        let mut tensors: Vec<(String, Vec<u8>)> = Vec::new();
        for (index, (values, Moments { first, second })) in self.values.iter().zip(&self.moments).enumerate() {
            for (part, list) in [("values", values), ("first", first), ("second", second)] {
                tensors.push((format!("{part}.{index}"), bytes(list)));
            }
        }
        for (epoch, rows) in self.judged.iter().enumerate() {
            tensors.push((format!("judged.{epoch}"), bytes(&rows.concat())));
        }
        for (epoch, values) in self.kept.iter().enumerate() {
            tensors.push((format!("kept.{epoch}"), bytes(&values.concat())));
        }
        let views: Result<Vec<_>, _> = tensors
            .iter()
            .map(|(name, bytes)| Ok((name, TensorView::new(Dtype::F32, vec![bytes.len() / 4], bytes)?)))
            .collect::<Result<Vec<_>, safetensors::SafeTensorError>>();
        let facts = HashMap::from([
            (FINGERPRINT.to_owned(), fingerprint.to_owned()),
            (EPOCHS.to_owned(), self.epochs.to_string()),
            (STEPS.to_owned(), self.steps.to_string()),
        ]);
        let file = views
            .and_then(|views| safetensors::serialize(views, Some(facts)))
            .map_err(|source| failed(std::io::Error::other(source)))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(failed)?;
        let mut aside = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        std::io::Write::write_all(&mut aside, &file).and_then(|()| aside.as_file().sync_all()).map_err(failed)?;
        aside.persist(path).map_err(|error| failed(error.error)).map(|_| ())
    }

    /// Reads a state of `sizes.len()` parameters of these sizes and of judged rows `n_queues` wide; `None` where there is
    /// no file.
    pub(super) fn load(
        path: &Path,
        fingerprint: &str,
        sizes: &[usize],
        n_queues: usize,
    ) -> Result<Option<Self>, CheckpointError> {
        let file = match std::fs::read(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(CheckpointError::File { what: "read", path: path.to_owned(), source }),
        };
        let foreign = |reason: String| CheckpointError::Foreign { path: path.to_owned(), reason };
        let (_, header) = SafeTensors::read_metadata(&file).map_err(|source| foreign(source.to_string()))?;
        let facts = header.metadata().clone().unwrap_or_default();
        if facts.get(FINGERPRINT).map(String::as_str) != Some(fingerprint) {
            return Err(foreign("another encoder, other mail or other settings".to_owned()));
        }
        let number = |name: &str| {
            facts.get(name).and_then(|text| text.parse::<usize>().ok()).ok_or_else(|| foreign(format!("no {name}")))
        };
        let (epochs, steps) = (number(EPOCHS)?, number(STEPS)?);
        let tensors = SafeTensors::deserialize(&file).map_err(|source| foreign(source.to_string()))?;
        let list = |name: String| -> Result<Vec<f32>, CheckpointError> {
            let view = tensors.tensor(&name).map_err(|_| foreign(format!("no tensor {name}")))?;
            let (words, _) = view.data().as_chunks::<4>();
            Ok(words.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
        };
        let (mut values, mut moments) = (Vec::with_capacity(sizes.len()), Vec::with_capacity(sizes.len()));
        for (index, &size) in sizes.iter().enumerate() {
            let part = |name: &str| {
                let list = list(format!("{name}.{index}"))?;
                if list.len() == size { Ok(list) } else { Err(foreign(format!("parameter {index} has another size"))) }
            };
            values.push(part("values")?);
            moments.push(Moments { first: part("first")?, second: part("second")? });
        }
        let judged = (0..)
            .map(|time| format!("judged.{time}"))
            .take_while(|name| tensors.tensor(name).is_ok())
            .map(|name| Ok(list(name)?.chunks(n_queues.max(1)).map(<[f32]>::to_vec).collect()))
            .collect::<Result<Vec<_>, CheckpointError>>()?;
        let kept = (0..)
            .map(|time| format!("kept.{time}"))
            .take_while(|name| tensors.tensor(name).is_ok())
            .map(|name| {
                let all = list(name.clone())?;
                if all.len() != sizes.iter().sum::<usize>() {
                    return Err(foreign(format!("{name} has {} numbers", all.len())));
                }
                let mut rest = all.as_slice();
                Ok(sizes.iter().map(|&size| rest.split_off(..size).unwrap_or_default().to_vec()).collect())
            })
            .collect::<Result<Vec<_>, CheckpointError>>()?;
        Ok(Some(Self { epochs, steps, values, moments, judged, kept }))
    }
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        let moments = vec![Moments { first: vec![0.5, 0.0], second: vec![0.25, 3e-9] }];
        let values = vec![vec![1.0, -2.0]];
        let judged = vec![vec![vec![1.0, 2.0]], vec![vec![3.0, 4.0]]];
        State { epochs: 2, steps: 7, kept: vec![values.clone(), vec![vec![3.0, 4.0]]], values, moments, judged }
    }

    #[test]
    fn a_state_comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.safetensors");
        assert_eq!(State::load(&path, "a", &[2], 2).unwrap(), None);
        state().save(&path, "a").unwrap();
        assert_eq!(State::load(&path, "a", &[2], 2).unwrap(), Some(state()));
    }

    #[test]
    fn a_state_of_another_training_is_refused_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.safetensors");
        state().save(&path, "a").unwrap();
        for (fingerprint, sizes) in [("b", vec![2]), ("a", vec![3]), ("a", vec![2, 2])] {
            let error = State::load(&path, fingerprint, &sizes, 2).unwrap_err();
            assert!(error.to_string().contains("delete it"), "{error}");
        }
        std::fs::write(&path, b"not a checkpoint").unwrap();
        assert!(matches!(State::load(&path, "a", &[2], 2), Err(CheckpointError::Foreign { .. })));
    }
}
