//! Fine-tuning as a whole: it learns, it can be stopped and taken up again, and what is stored is what was trained.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test program")]

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use postroom::artifact::EncoderDir;
use postroom::dataset::{Example, ReadOptions, read};
use postroom::training::{
    Backbone, CheckpointError, FineTuningConfig, Labelled, Method, Progress, Trained, TrainingConfig, TrainingError,
    train,
};

struct Quiet(Vec<String>);

impl Progress for Quiet {
    fn stage(&mut self, name: &str) {
        self.0.push(name.to_owned());
    }
    fn tell(&mut self, _done: usize, _all: usize) {}
    fn note(&mut self, line: &str) {
        self.0.push(line.to_owned());
    }
}

fn encoder_dir() -> EncoderDir {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/minilm-l6-v2");
    EncoderDir::open(&path, &BTreeMap::new()).unwrap()
}

/// Short mails of two queues that share their words: only the order tells them apart.
fn examples(folder: &Path) -> Vec<Example> {
    let path: PathBuf = folder.join("mail.jsonl");
    let things = ["order", "booking", "subscription", "delivery", "parcel", "ticket", "lesson", "room"];
    let mut lines = String::new();
    for (index, thing) in things.iter().enumerate() {
        for (queue, text) in [
            ("cancel", format!("Please cancel the {thing} and keep the refund.")),
            ("refund", format!("Please refund the {thing} and keep the rest.")),
        ] {
            lines +=
                &format!("{}\n", serde_json::json!({"id": format!("{queue}-{index}"), "body": text, "queue": queue}));
        }
    }
    std::fs::write(&path, lines).unwrap();
    read(&path, &ReadOptions::default()).unwrap().examples
}

fn config(epochs: usize) -> TrainingConfig {
    let fine_tuning = FineTuningConfig { epochs, folds: 2, rank: 4, batch: 4, ..FineTuningConfig::default() };
    TrainingConfig { method: Method::FineTuned, folds: 2, c: vec![10.0], fine_tuning, ..TrainingConfig::default() }
}

fn trained(dir: &EncoderDir, examples: &[Example], config: &TrainingConfig, checkpoints: Option<&Path>) -> Trained {
    let encoder = dir.batch_encoder(DType::F32, &Device::Cpu, None).unwrap();
    let weights = dir.weights(DType::F32, &Device::Cpu).unwrap();
    let backbone = Backbone { encoder: &encoder, weights: &weights, tokenizer: &dir.tokenizer };
    train(backbone, Labelled::new(examples).unwrap(), config, checkpoints, &mut Quiet(Vec::new())).unwrap()
}

#[test]
fn a_training_that_was_stopped_gives_the_same_router_as_one_that_was_not() {
    let (dir, folder) = (encoder_dir(), tempfile::tempdir().unwrap());
    let examples = examples(folder.path());
    let config = config(2);
    let whole = trained(&dir, &examples, &config, None);

    let checkpoints = folder.path().join("router.training");
    trained(&dir, &examples, &config, Some(&checkpoints));
    // A kill after the first fold: the other run's files are gone, the first fold's is there.
    std::fs::remove_file(checkpoints.join("fold-1.safetensors")).unwrap();
    std::fs::remove_file(checkpoints.join("all.safetensors")).unwrap();
    let resumed = trained(&dir, &examples, &config, Some(&checkpoints));
    assert_eq!(whole.head, resumed.head);
    assert_eq!(whole.change, resumed.change);
    assert_eq!(whole.calibration, resumed.calibration);
    assert!(whole.change.is_some());
}

#[test]
fn mail_that_is_only_trained_on_is_in_no_figure() {
    let (dir, folder) = (encoder_dir(), tempfile::tempdir().unwrap());
    let mut examples = examples(folder.path());
    let (judged, taught) = examples.split_at_mut(12);
    taught.iter_mut().for_each(|example| example.only_trained_on = true);
    // One of them is of the thread of a judged mail: held out with it, and judged no more than the others.
    judged[0].group = Some("thread".to_owned());
    taught[0].group = Some("thread".to_owned());
    let ids: Vec<String> = judged.iter().map(|example| example.id.clone()).collect();
    for method in [Method::Frozen, Method::FineTuned] {
        let trained = trained(&dir, &examples, &TrainingConfig { method, ..config(1) }, None);
        let held_out: Vec<&String> = trained.held_out.iter().map(|mail| &mail.id).collect();
        assert_eq!(held_out, ids.iter().collect::<Vec<_>>());
        assert_eq!(trained.figures.queues.values().map(|queue| queue.mails).sum::<usize>(), 12);
    }
}

#[test]
fn a_checkpoint_of_other_mail_is_refused() {
    let (dir, folder) = (encoder_dir(), tempfile::tempdir().unwrap());
    let examples = examples(folder.path());
    let checkpoints = folder.path().join("router.training");
    trained(&dir, &examples, &config(1), Some(&checkpoints));
    let encoder = dir.batch_encoder(DType::F32, &Device::Cpu, None).unwrap();
    let weights = dir.weights(DType::F32, &Device::Cpu).unwrap();
    let backbone = Backbone { encoder: &encoder, weights: &weights, tokenizer: &dir.tokenizer };
    let fewer = &examples[..examples.len() - 2];
    let error = train(backbone, Labelled::new(fewer).unwrap(), &config(1), Some(&checkpoints), &mut Quiet(Vec::new()))
        .unwrap_err();
    assert!(error.to_string().contains("delete it"), "{error}");
}

/// Its shapes are the same, so nothing else would tell.
#[test]
fn a_checkpoint_of_another_encoder_is_refused() {
    let (dir, folder) = (encoder_dir(), tempfile::tempdir().unwrap());
    let examples = examples(folder.path());
    let checkpoints = folder.path().join("router.training");
    trained(&dir, &examples, &config(1), Some(&checkpoints));
    let encoder = dir.batch_encoder(DType::F32, &Device::Cpu, None).unwrap();
    let weights = dir.weights(DType::F32, &Device::Cpu).unwrap();
    let moved = |(name, shape): (String, Vec<usize>)| {
        let tensor = weights.get(shape, &name).unwrap();
        let tensor = if name == "encoder.layer.5.output.dense.bias" { (tensor + 0.01).unwrap() } else { tensor };
        (name, tensor)
    };
    let tensors: HashMap<String, Tensor> = dir.config.tensors().into_iter().map(moved).collect();
    let other = VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu);
    let backbone = Backbone { encoder: &encoder, weights: &other, tokenizer: &dir.tokenizer };
    let labelled = Labelled::new(&examples).unwrap();
    let error = train(backbone, labelled, &config(1), Some(&checkpoints), &mut Quiet(Vec::new())).unwrap_err();
    assert!(matches!(error, TrainingError::Checkpoint(CheckpointError::Foreign { .. })), "{error}");
    assert!(error.to_string().contains("another encoder"), "{error}");
}

#[test]
fn a_setting_that_makes_no_sense_is_refused_by_its_name() {
    let (dir, folder) = (encoder_dir(), tempfile::tempdir().unwrap());
    let examples = examples(folder.path());
    let encoder = dir.batch_encoder(DType::F32, &Device::Cpu, None).unwrap();
    let weights = dir.weights(DType::F32, &Device::Cpu).unwrap();
    let backbone = Backbone { encoder: &encoder, weights: &weights, tokenizer: &dir.tokenizer };
    let mut config = config(1);
    config.fine_tuning.learning_rate = f64::NAN;
    let error = train(backbone, Labelled::new(&examples).unwrap(), &config, None, &mut Quiet(Vec::new())).unwrap_err();
    assert!(error.to_string().contains("learning_rate"), "{error}");
}
