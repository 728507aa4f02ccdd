//! `lexical.safetensors`: the word counts of a router.

use std::path::Path;

use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, TensorView, serialize};

use super::ArtifactError;
use super::weights::Weights;
use crate::lexical::{Lexical, Vocabulary};

pub(super) const NAME: &str = "lexical.safetensors";

pub(super) fn bytes(lexical: &Lexical) -> Result<Vec<u8>, SafeTensorError> {
    let floats = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let ids: Vec<u8> = lexical.vocabulary.ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    let (idf, weight, bias) = (floats(&lexical.vocabulary.idf), floats(&lexical.weight), floats(&lexical.bias));
    let (tokens, queues) = (lexical.vocabulary.len(), lexical.bias.len());
    let views = [
        ("ids", TensorView::new(Dtype::U32, vec![tokens], &ids)?),
        ("idf", TensorView::new(Dtype::F32, vec![tokens], &idf)?),
        ("weight", TensorView::new(Dtype::F32, vec![queues, tokens], &weight)?),
        ("bias", TensorView::new(Dtype::F32, vec![queues], &bias)?),
    ];
    serialize(views, None)
}

pub(super) fn read(path: &Path, sha256: &str, n_queues: usize) -> Result<Lexical, ArtifactError> {
    let file = Weights::open(path, Some(sha256))?;
    let ids = file.unsigned("ids")?;
    let tokens = ids.len();
    Ok(Lexical {
        vocabulary: Vocabulary::new(ids, file.values("idf", &[tokens])?),
        weight: file.values("weight", &[n_queues, tokens])?,
        bias: file.values("bias", &[n_queues])?,
    })
}
