//! `memory.safetensors`: some of the mail of each queue as vectors, so that a queue can be added without the mail at hand.
//!
//! `pooled` `[mails, d_model]` in half precision, `logits` `[mails, n_logits]`, `queues` `[mails]` as indices. It decides nothing
//! and is not read for serving.

use std::path::Path;

use half::f16;
use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, TensorView, serialize};

use super::ArtifactError;
use super::weights::Weights;

pub(super) const NAME: &str = "memory.safetensors";

/// One mail as the network saw it.
#[derive(Debug, Clone, PartialEq)]
pub struct Remembered {
    /// Index of its queue in the router's order.
    pub queue: usize,
    /// `[d_model]`: its pooled hidden states, not scaled.
    pub pooled: Vec<f32>,
    /// Logits of the network, the words' added, before logits of one queue are joined.
    pub logits: Vec<f32>,
}

/// The mails that a router remembers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Memory {
    /// In no order that matters.
    pub mails: Vec<Remembered>,
}

impl Memory {
    /// Most mails of one queue.
    pub const MAILS_PER_QUEUE: usize = 32;
}

pub(super) fn bytes(memory: &Memory) -> Result<Vec<u8>, SafeTensorError> {
    let mails = &memory.mails;
    let pooled: Vec<u8> =
        mails.iter().flat_map(|mail| &mail.pooled).flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect();
    let logits: Vec<u8> = mails.iter().flat_map(|mail| &mail.logits).flat_map(|value| value.to_le_bytes()).collect();
    let queues: Vec<u8> = mails.iter().flat_map(|mail| (mail.queue as u32).to_le_bytes()).collect();
    let width = |of: fn(&Remembered) -> usize| mails.first().map_or(0, of);
    let views = [
        ("pooled", TensorView::new(Dtype::F16, vec![mails.len(), width(|mail| mail.pooled.len())], &pooled)?),
        ("logits", TensorView::new(Dtype::F32, vec![mails.len(), width(|mail| mail.logits.len())], &logits)?),
        ("queues", TensorView::new(Dtype::U32, vec![mails.len()], &queues)?),
    ];
    serialize(views, None)
}

/// Reads the file and checks that it belongs to such a router.
pub(super) fn read(
    path: &Path,
    sha256: &str,
    d_model: usize,
    n_logits: usize,
    n_queues: usize,
) -> Result<Memory, ArtifactError> {
    let file = Weights::open(path, Some(sha256))?;
    let queues = file.unsigned("queues")?;
    if queues.is_empty() {
        return Ok(Memory::default());
    }
    let pooled = file.values("pooled", &[queues.len(), d_model])?;
    let logits = file.values("logits", &[queues.len(), n_logits])?;
    if pooled.iter().chain(&logits).any(|value| !value.is_finite()) {
        return Err(ArtifactError::damaged(path, "it holds infinity or NaN"));
    }
    if let Some(queue) = queues.iter().find(|&&queue| queue as usize >= n_queues) {
        return Err(ArtifactError::damaged(path, format_args!("it has mail of queue {queue}, of {n_queues}")));
    }
    let rows = pooled.chunks_exact(d_model.max(1)).zip(logits.chunks_exact(n_logits.max(1)));
    let mails = queues.iter().zip(rows).map(|(&queue, (pooled, logits))| Remembered {
        queue: queue as usize,
        pooled: pooled.to_vec(),
        logits: logits.to_vec(),
    });
    Ok(Memory { mails: mails.collect() })
}

#[cfg(test)]
mod tests {
    use super::super::checksum;
    use super::*;

    #[test]
    fn a_memory_comes_back_in_half_precision_and_is_refused_by_another_router() {
        let folder = tempfile::tempdir().unwrap();
        let mail = |queue, pooled: f32| Remembered { queue, pooled: vec![pooled, 0.5], logits: vec![0.1, 0.2, 0.3] };
        let memory = Memory { mails: vec![mail(2, 0.1), mail(0, 1.0)] };
        let (path, bytes) = (folder.path().join(NAME), bytes(&memory).unwrap());
        std::fs::write(&path, &bytes).unwrap();
        let sum = checksum::sha256(&bytes);
        let back = read(&path, &sum, 2, 3, 3).unwrap();
        assert_eq!(back.mails[1], memory.mails[1]);
        assert!((back.mails[0].pooled[0] - 0.1).abs() < 1e-4 && back.mails[0].pooled[0] != 0.1);
        assert!(read(&path, &sum, 3, 3, 3).is_err() && read(&path, &sum, 2, 2, 3).is_err());
        assert!(read(&path, &sum, 2, 3, 2).unwrap_err().to_string().contains("queue 2"));
    }
}
