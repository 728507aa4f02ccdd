//! Encoders that several routers have in common: the weights stand in memory once.
//!
//! Only unchanged encoders on the CPU are shared. A fine-tuned router has its adapters merged into weights of its own, and on
//! a GPU each router keeps its own tensors.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use super::encoder_dir::ENCODER_FILES;
use crate::model::cpu::Precision;
use crate::model::{BatchEncoder, SharedWeights};

/// Checksums of an encoder's files: what it is, wherever it lies.
type Identity = BTreeMap<String, String>;

/// The unchanged encoders in use, each kept as long as a router uses it.
#[derive(Default)]
pub struct SharedEncoders {
    in_use: Mutex<HashMap<(Identity, Precision), SharedWeights>>,
}

impl SharedEncoders {
    /// The encoder of these checksums in this precision: one that is in use, with buffers of its own, or what `build` makes. Where a checksum is
    /// missing nothing is shared, for nobody knows then what the encoder is.
    pub(super) fn get_or_build<E>(
        &self,
        sha256: &Identity,
        precision: Precision,
        build: impl FnOnce() -> Result<BatchEncoder, E>,
    ) -> Result<BatchEncoder, E> {
        if !ENCODER_FILES.iter().all(|file| sha256.contains_key(*file)) {
            return build();
        }
        // Held while one is built: whoever asks for the same meanwhile waits and shares it.
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        let identity = (sha256.clone(), precision);
        if let Some(encoder) = in_use.get(&identity).and_then(SharedWeights::encoder) {
            return Ok(encoder);
        }
        let encoder = build()?;
        in_use.retain(|_, weights| weights.encoder().is_some());
        if let Some(weights) = encoder.shared_weights() {
            in_use.insert(identity, weights);
        }
        Ok(encoder)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::model::EncoderConfig;

    fn identity(weights: &str) -> Identity {
        let sums = [("config.json", "c"), ("tokenizer.json", "t"), ("model.safetensors", weights)];
        sums.into_iter().map(|(file, sum)| (file.to_owned(), sum.to_owned())).collect()
    }

    #[test]
    fn an_encoder_is_built_once_while_it_is_in_use() {
        let config = EncoderConfig::from_json(
            r#"{"model_type": "bert", "hidden_act": "gelu", "hidden_size": 16, "num_attention_heads": 4, "num_hidden_layers": 1,
                "intermediate_size": 32, "max_position_embeddings": 8, "vocab_size": 10, "type_vocab_size": 2}"#,
        )
        .unwrap();
        let shapes: HashMap<String, Vec<usize>> = config.tensors().into_iter().collect();
        let built = std::cell::Cell::new(0);
        let build = || {
            built.set(built.get() + 1);
            BatchEncoder::on_cpu(&config, Precision::F32, |name| {
                Ok::<_, Infallible>(vec![0.0; shapes[name].iter().product()])
            })
        };
        let shared = SharedEncoders::default();
        let encoder = |sha256: &Identity| shared.get_or_build(sha256, Precision::F32, build).unwrap();
        let (one, two) = (encoder(&identity("w")), encoder(&identity("w")));
        assert_eq!(built.get(), 1);
        let _other = encoder(&identity("other"));
        assert_eq!(built.get(), 2);
        // Without all checksums nobody knows what it is.
        let _unknown = (encoder(&Identity::new()), encoder(&Identity::new()));
        assert_eq!(built.get(), 4);
        // The last user gone, the weights are gone.
        drop((one, two));
        let _again = encoder(&identity("w"));
        assert_eq!(built.get(), 5);
        // On bytes it is another one.
        let _bytes = shared.get_or_build(&identity("w"), Precision::Int8, build).unwrap();
        assert_eq!(built.get(), 6);
    }
}
