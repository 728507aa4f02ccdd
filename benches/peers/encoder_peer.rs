//! Our side of `compare.py`: for each line `BATCHxTOKENS` on standard input the CPU milliseconds of one forward pass on one thread,
//! for the line `sgemm` the rate of the matrix product alone in GFLOP/s.
//!
//! `cargo build --release --bench encoder_peer`; the argument is the folder of the encoder; `--int8` runs its linear
//! layers on bytes.
#![expect(unsafe_code, reason = "the process CPU clock is a C call")]
#![expect(clippy::print_stdout, reason = "the answers go to standard output")]

use std::hint::black_box;
use std::io::BufRead;

use postroom::model::cpu::{CpuEncoder, EncoderShape, GemmProbe, Precision, Scratch};
use safetensors::SafeTensors;

/// Least CPU time of one measurement, in seconds.
const LEAST: f64 = 0.5;

fn main() -> anyhow::Result<()> {
    let folder = std::env::args().skip(1).find(|a| !a.starts_with("--")).unwrap_or("models/minilm-l6-v2".to_owned());
    let precision = if std::env::args().any(|a| a == "--int8") { Precision::Int8 } else { Precision::F32 };
    let encoder = load(&std::fs::read(format!("{folder}/model.safetensors"))?, precision)?;
    anyhow::ensure!(encoder.precision() == precision, "this machine has no instructions for int8");
    let mut scratch = Scratch::new(1);
    let mut probe = GemmProbe::new(512, 384, 1536);
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if line == "sgemm" {
            println!("{}", probe.operations() / seconds_of(|| probe.run()) / 1e9);
        } else {
            let (batch, tokens) = line.split_once('x').ok_or_else(|| anyhow::anyhow!("not a shape: {line}"))?;
            let (batch, tokens): (usize, usize) = (batch.parse()?, tokens.parse()?);
            let ids: Vec<u32> = (0..(batch * tokens) as u32).map(|i| 1000 + i * 7919 % 28000).collect();
            let offsets: Vec<usize> = (0..=batch).map(|i| i * tokens).collect();
            let forward = || {
                black_box(encoder.forward(&ids, &offsets, &mut scratch));
            };
            println!("{}", 1e3 * seconds_of(forward));
        }
    }
    Ok(())
}

/// The all-MiniLM-L6-v2 encoder from f16 tensors.
fn load(bytes: &[u8], precision: Precision) -> anyhow::Result<CpuEncoder> {
    let tensors = SafeTensors::deserialize(bytes)?;
    let shape = EncoderShape {
        d_model: 384,
        n_heads: 12,
        n_layers: 6,
        d_ff: 1536,
        max_positions: 512,
        vocab_size: 30522,
        layer_norm_eps: 1e-12,
    };
    CpuEncoder::new(&shape, precision, |name| {
        let halves = tensors.tensor(name)?.data().chunks_exact(2).map(|b| half::f16::from_le_bytes([b[0], b[1]]));
        Ok(halves.map(half::f16::to_f32).collect())
    })
}

/// CPU seconds of one call, all threads together, warm.
fn seconds_of(mut call: impl FnMut()) -> f64 {
    call();
    let start = cpu_seconds();
    let mut calls = 0;
    loop {
        call();
        calls += 1;
        let elapsed = cpu_seconds() - start;
        if elapsed >= LEAST {
            return elapsed / f64::from(calls);
        }
    }
}

fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
