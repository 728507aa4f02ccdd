//! The gate between the encoder and the word counts: every place that decides goes through it.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test program")]

use std::path::Path;
use std::process::Command;

use candle_core::{DType, Device};
use postroom::artifact::{StoredRouter, load_router};
use postroom::dataset::{ReadOptions, read};
use postroom::email::CleanOptions;
use postroom::evaluation::evaluate;
use postroom::lexical::Gate;
use postroom::metrics::softmax;
use serde_json::Value;

const ROUTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/crumb");
const TEXT: &str = "Please cancel the order, I do not want the refund. The cake for my daughter comes another time.";

/// The shipped router with another gate.
fn with_gate(out: &Path, gate: Gate) {
    let mut router = StoredRouter::open(Path::new(ROUTER)).unwrap();
    router.lexical.as_mut().unwrap().gate = gate;
    let written =
        router.save_and(out, Path::new(ROUTER), |written: &Path| load_router(written, DType::F32, &Device::Cpu));
    written.unwrap();
}

/// What a command says of the queues.
fn confidences(command: &str, router: &Path) -> Vec<(String, f64)> {
    let router = router.to_str().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_postroom"))
        .args([command, "-", "--json", "--router", router])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(std::fs::File::open(mail_file(Path::new(router))).unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (queues, confidence) = match command {
        "route" => (&answer["candidates"], "confidence"),
        _ => (&answer["prediction"]["scores"], "p"),
    };
    let of = |queue: &Value| (queue["queue"].as_str().unwrap().to_owned(), queue[confidence].as_f64().unwrap());
    let queues: Vec<(String, f64)> = queues.as_array().unwrap().iter().map(of).collect();
    assert!(!queues.is_empty());
    queues
}

fn mail_file(router: &Path) -> std::path::PathBuf {
    let path = router.with_extension("txt");
    std::fs::write(&path, TEXT).unwrap();
    path
}

/// What `evaluate` says of them.
fn evaluated(path: &Path) -> Vec<(String, f64)> {
    let data = path.with_extension("jsonl");
    std::fs::write(&data, serde_json::json!({"id": "a", "body": TEXT, "queue": "order-changes"}).to_string()).unwrap();
    let router = load_router(path, DType::F32, &Device::Cpu).unwrap();
    let examples = read(&data, &ReadOptions::default()).unwrap().examples;
    let mails = evaluate(&router, &examples, &CleanOptions::default(), None, &mut |_, _| ()).unwrap().mails;
    let probabilities = softmax(&mails[0].logits, router.info.calibration.temperature);
    router.info.queues.iter().map(|queue| queue.id.clone()).zip(probabilities).collect()
}

#[test]
fn routing_evaluating_and_explaining_agree_behind_a_gate() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    for (name, power) in [("open", 0.0), ("half", 0.5), ("shut", 4.0)] {
        let path = folder.path().join(name);
        with_gate(&path, Gate { power, temperature: 1.0, logits: 6 });
        let evaluated = evaluated(&path);
        for command in ["route", "explain"] {
            for (queue, confidence) in confidences(command, &path) {
                let (_, want) = evaluated.iter().find(|(id, _)| *id == queue).unwrap();
                assert!((confidence - want).abs() < 1e-4, "{name}: {command} says {confidence} of {queue}, not {want}");
            }
        }
        let first = evaluated[0].1;
        assert!(seen.iter().all(|other: &f64| (other - first).abs() > 1e-6), "{name} decides as another gate does");
        seen.push(first);
    }
}
