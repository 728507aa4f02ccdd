//! `lexical.safetensors`: the word counts of a router.

use std::path::Path;

use half::f16;
use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, TensorView, serialize};

use super::ArtifactError;
use super::weights::Weights;
use crate::lexical::{Gate, Lexical, Negation, Vocabulary};

pub(super) const NAME: &str = "lexical.safetensors";
// Lists of the negation; absent where it has none, as in routers of versions that knew none.
const TURNING: &str = "negation.turning";
const TURNING_PAIRS: &str = "negation.turning_pairs";
const ENDING: &str = "negation.ending";
/// Power and temperature of the gate, and the number of logits that it is about; absent where the words always count in full.
const GATE: &str = "gate";

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
    let Gate { power, temperature, logits } = lexical.gate;
    let gate = floats(&[power, temperature, logits as f32]);
    if power > 0.0 {
        views.push((GATE, TensorView::new(Dtype::F32, vec![3], &gate)?));
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
    let gate = if names.contains(GATE) { gate_of(path, &file.values(GATE, &[3])?, n_queues)? } else { Gate::default() };
    Ok(Lexical {
        vocabulary: Vocabulary::new(ids, file.values("idf", &[tokens])?, negation),
        weight: file.values("weight", &[n_queues, tokens])?,
        bias: file.values("bias", &[n_queues])?,
        gate,
    })
}

/// `values` are three.
fn gate_of(path: &Path, values: &[f32], n_logits: usize) -> Result<Gate, ArtifactError> {
    let [power, temperature, logits] = [values[0], values[1], values[2]];
    let judges = (2..=n_logits).find(|&count| count as f32 == logits);
    if let Some(logits) = judges
        && power.is_finite()
        && power >= 0.0
        && temperature.is_finite()
        && temperature > 0.0
    {
        return Ok(Gate { power, temperature, logits });
    }
    let what =
        format!("its gate has the power {power}, the temperature {temperature} and {logits} of {n_logits} logits");
    Err(ArtifactError::damaged(path, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leg(weight: Vec<f32>, negation: Negation, gate: Gate) -> Lexical {
        let vocabulary = Vocabulary::new(vec![3, 9, 9 | 1 << 31], vec![1.0, 2.5, 1.7], negation);
        Lexical { vocabulary, weight, bias: vec![0.1, -0.2], gate }
    }

    #[test]
    fn what_is_written_is_read_to_the_last_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let negation = Negation { turning: vec![5], turning_pairs: vec![6, 7], ending: vec![8] };
        let gate = Gate { power: 0.25, temperature: 1.5, logits: 2 };
        let halves = vec![0.5, -1.25, 3.0, 0.0, 1.0, -2.0];
        let whole = vec![0.1, -1.25, 3.0, 0.0, 1.0, -2.0];
        for (leg, size) in [(leg(halves, negation, gate), 2), (leg(whole, Negation::default(), Gate::default()), 4)] {
            let bytes = bytes(&leg).unwrap();
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(read(&path, &super::super::checksum::sha256(&bytes), 2).unwrap(), leg);
            let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
            assert_eq!(file.tensor("weight").unwrap().data().len(), 6 * size);
        }
    }

    #[test]
    fn a_gate_that_is_none_is_refused() {
        let path = Path::new("lexical.safetensors");
        let gate = Gate { power: 0.5, temperature: 2.0, logits: 3 };
        assert_eq!(gate_of(path, &[0.5, 2.0, 3.0], 4).unwrap(), gate);
        let none = [
            [-0.5, 1.0, 2.0],
            [f32::NAN, 1.0, 2.0],
            [0.5, 0.0, 2.0],
            [0.5, f32::INFINITY, 2.0],
            [0.5, 1.0, 5.0],
            [0.5, 1.0, 1.0],
            [0.5, 1.0, 1.5],
        ];
        for values in none {
            assert!(gate_of(path, &values, 4).unwrap_err().to_string().contains("its gate has the power"));
        }
    }
}
