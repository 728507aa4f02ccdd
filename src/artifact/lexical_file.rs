//! `lexical.safetensors`: the word counts of a router.

use std::path::Path;

use half::f16;
use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, TensorView, serialize};

use super::ArtifactError;
use super::weights::Weights;
use crate::lexical::{Lexical, Negation, Vocabulary};

pub(super) const NAME: &str = "lexical.safetensors";
// Lists of the negation; absent where it has none, as in routers of versions that knew none.
const TURNING: &str = "negation.turning";
const TURNING_PAIRS: &str = "negation.turning_pairs";
const ENDING: &str = "negation.ending";

pub(super) fn bytes(lexical: &Lexical) -> Result<Vec<u8>, SafeTensorError> {
    let floats = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let integers = |values: &[u32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let ids = integers(&lexical.vocabulary.ids);
    let Negation { turning, turning_pairs, ending } = &lexical.vocabulary.negation;
    let turned = [(TURNING, turning), (TURNING_PAIRS, turning_pairs), (ENDING, ending)];
    let turned = turned.map(|(name, list)| (name, list.len(), integers(list)));
    let (idf, bias) = (floats(&lexical.vocabulary.idf), floats(&lexical.bias));
    let (weight_type, weight) = halves(&lexical.weight).unwrap_or_else(|| (Dtype::F32, floats(&lexical.weight)));
    let (tokens, queues) = (lexical.vocabulary.len(), lexical.bias.len());
    let mut views = vec![
        ("ids", TensorView::new(Dtype::U32, vec![tokens], &ids)?),
        ("idf", TensorView::new(Dtype::F32, vec![tokens], &idf)?),
        ("weight", TensorView::new(weight_type, vec![queues, tokens], &weight)?),
        ("bias", TensorView::new(Dtype::F32, vec![queues], &bias)?),
    ];
    for (name, length, bytes) in turned.iter().filter(|(_, length, _)| *length > 0) {
        views.push((name, TensorView::new(Dtype::U32, vec![*length], bytes)?));
    }
    serialize(views, None)
}

/// Weights in half precision, where nothing is lost by it: training rounds them so, and a router of before keeps its own.
fn halves(weights: &[f32]) -> Option<(Dtype, Vec<u8>)> {
    let half = |&weight: &f32| Some(f16::from_f32(weight)).filter(|half| half.to_f32() == weight);
    let halves: Option<Vec<f16>> = weights.iter().map(half).collect();
    Some((Dtype::F16, halves?.iter().flat_map(|half| half.to_le_bytes()).collect()))
}

pub(super) fn read(path: &Path, sha256: &str, n_queues: usize) -> Result<Lexical, ArtifactError> {
    let file = Weights::open(path, Some(sha256))?;
    let ids = file.unsigned("ids")?;
    let tokens = ids.len();
    let names = file.names()?;
    let list = |name: &str| if names.contains(name) { file.unsigned(name) } else { Ok(Vec::new()) };
    let negation = Negation { turning: list(TURNING)?, turning_pairs: list(TURNING_PAIRS)?, ending: list(ENDING)? };
    Ok(Lexical {
        vocabulary: Vocabulary::new(ids, file.values("idf", &[tokens])?, negation),
        weight: file.values("weight", &[n_queues, tokens])?,
        bias: file.values("bias", &[n_queues])?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leg(weight: Vec<f32>, negation: Negation) -> Lexical {
        let vocabulary = Vocabulary::new(vec![3, 9, 9 | 1 << 31], vec![1.0, 2.5, 1.7], negation);
        Lexical { vocabulary, weight, bias: vec![0.1, -0.2] }
    }

    #[test]
    fn what_is_written_is_read_to_the_last_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let negation = Negation { turning: vec![5], turning_pairs: vec![6, 7], ending: vec![8] };
        let halves = vec![0.5, -1.25, 3.0, 0.0, 1.0, -2.0];
        let whole = vec![0.1, -1.25, 3.0, 0.0, 1.0, -2.0];
        for (leg, size) in [(leg(halves, negation), 2), (leg(whole, Negation::default()), 4)] {
            let bytes = bytes(&leg).unwrap();
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(read(&path, &super::super::checksum::sha256(&bytes), 2).unwrap(), leg);
            let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
            assert_eq!(file.tensor("weight").unwrap().data().len(), 6 * size);
        }
    }
}
