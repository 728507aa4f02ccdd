//! Model directories: what loads, and what a damaged or foreign one says.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test program")]

mod common;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use candle_core::{DType, Device, Tensor};
use postroom::artifact::{ArtifactError, EncoderDir, load_router};
use postroom::collate::{Pooling, WindowedEmail, pack};
use postroom::model::{EncoderConfig, KeepMaps};
use postroom::tokenizer::WindowConfig;

/// A checkpoint of Hugging Face's layout, small but for its vocabulary.
struct Checkpoint {
    prefix: &'static str,
    dtype: DType,
    labels: &'static [&'static str],
}

impl Checkpoint {
    fn encoder() -> Self {
        Self { prefix: "", dtype: DType::F32, labels: &[] }
    }

    fn classifier() -> Self {
        Self { prefix: "bert.", dtype: DType::F32, labels: &["Refunds", "Late deliveries", "Allergy"] }
    }

    fn config_json(&self) -> String {
        let architecture = if self.labels.is_empty() { "BertModel" } else { "BertForSequenceClassification" };
        let id2label: BTreeMap<String, &str> =
            self.labels.iter().enumerate().map(|(index, label)| (index.to_string(), *label)).collect();
        serde_json::json!({
            "architectures": [architecture], "model_type": "bert", "hidden_act": "gelu",
            "hidden_size": 16, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 32,
            "max_position_embeddings": 64, "vocab_size": 30522, "type_vocab_size": 2, "id2label": id2label,
        })
        .to_string()
    }

    fn tensors(&self) -> HashMap<String, Tensor> {
        let config = EncoderConfig::from_json(&self.config_json()).unwrap();
        let mut shapes = config.tensors();
        for (name, _) in &mut shapes {
            name.insert_str(0, self.prefix);
        }
        if !self.labels.is_empty() {
            shapes.push((format!("{}pooler.dense.weight", self.prefix), vec![16, 16]));
            shapes.push((format!("{}pooler.dense.bias", self.prefix), vec![16]));
            shapes.push(("classifier.weight".into(), vec![self.labels.len(), 16]));
            shapes.push(("classifier.bias".into(), vec![self.labels.len()]));
        }
        shapes
            .into_iter()
            .enumerate()
            .map(|(seed, (name, shape))| {
                let size: usize = shape.iter().product();
                // Small numbers that differ from tensor to tensor and are exact in every type.
                let values: Vec<f32> = (0..size).map(|i| ((i * 31 + seed * 17) % 23) as f32 / 32.0 - 0.34375).collect();
                let tensor = Tensor::from_vec(values, shape, &Device::Cpu).unwrap().to_dtype(self.dtype).unwrap();
                (name, tensor)
            })
            .collect()
    }

    fn write(&self, path: &Path) {
        self.write_tensors(path, &self.tensors());
    }

    fn write_tensors(&self, path: &Path, tensors: &HashMap<String, Tensor>) {
        std::fs::write(path.join("config.json"), self.config_json()).unwrap();
        std::fs::copy(common::encoder_path().join("tokenizer.json"), path.join("tokenizer.json")).unwrap();
        candle_core::safetensors::save(tensors, path.join("model.safetensors")).unwrap();
    }
}

fn load_encoder(path: &Path) -> Result<(), ArtifactError> {
    EncoderDir::open(path, &BTreeMap::new())?.batch_encoder(DType::F32, &Device::Cpu, None).map(drop)
}

fn error_of(path: &Path) -> String {
    load_encoder(path).unwrap_err().to_string()
}

/// The chain of an error in one text.
fn chain(error: &dyn std::error::Error) -> String {
    let source = error.source().map(chain);
    [Some(error.to_string()), source].into_iter().flatten().collect::<Vec<_>>().join(": ")
}

#[test]
fn a_checkpoint_loads_in_every_float_type() {
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let folder = tempfile::tempdir().unwrap();
        Checkpoint { dtype, ..Checkpoint::encoder() }.write(folder.path());
        load_encoder(folder.path()).unwrap_or_else(|error| panic!("{dtype:?}: {error}"));
    }
}

#[test]
fn a_classifier_with_its_own_head_and_labels_is_a_router() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = Checkpoint::classifier();
    checkpoint.write(folder.path());
    let router = load_router(folder.path(), DType::F32, &Device::Cpu).unwrap();
    let ids: Vec<&str> = router.info.queues.iter().map(|queue| queue.id.as_str()).collect();
    assert_eq!(ids, ["refunds", "late-deliveries", "allergy"]);
    assert_eq!(router.info.pooling, Pooling::Cls);
    assert!(router.info.unknown_tensors.is_empty(), "{:?}", router.info.unknown_tensors);

    let encoded = router.tokenizer.encode(&common::body("Where is my cake?"), 100);
    let mail = WindowedEmail::new(&encoded, &router.tokenizer, &router.info.windows, router.info.pooling);
    let logits = router.classifier.forward(&pack([&mail]), &KeepMaps::None).unwrap().logits.remove(0);

    // The same by hand: the first token's last hidden state through pooler, tanh and classifier.
    let dir = EncoderDir::open(folder.path(), &BTreeMap::new()).unwrap();
    let encoder = dir.encoder(DType::F32, &Device::Cpu).unwrap();
    let mut ids = vec![router.tokenizer.cls()];
    ids.extend(encoded.tokens.iter().map(|token| token.id));
    ids.push(router.tokenizer.sep());
    let ids = Tensor::new(ids.as_slice(), &Device::Cpu).unwrap().unsqueeze(0).unwrap();
    let hidden = encoder.forward(&ids, None, &KeepMaps::None).unwrap().hidden_states;
    let cls = hidden.get(0).unwrap().narrow(0, 0, 1).unwrap();
    let tensors = checkpoint.tensors();
    let linear = |x: &Tensor, name: &str| {
        let product = x.matmul(&tensors[&format!("{name}.weight")].t().unwrap()).unwrap();
        product.broadcast_add(&tensors[&format!("{name}.bias")]).unwrap()
    };
    let pooled = linear(&cls, "bert.pooler.dense").tanh().unwrap();
    let expected = linear(&pooled, "classifier").get(0).unwrap().to_vec1::<f32>().unwrap();
    for (logit, expected) in logits.iter().zip(&expected) {
        assert!((logit - expected).abs() < 1e-4, "{logits:?} {expected:?}");
    }
}

#[test]
fn the_cpu_engine_and_the_tensors_agree_on_a_foreign_shape() {
    let folder = tempfile::tempdir().unwrap();
    Checkpoint::classifier().write(folder.path());
    let dir = EncoderDir::open(folder.path(), &BTreeMap::new()).unwrap();
    let tensors = dir.encoder(DType::F32, &Device::Cpu).unwrap();
    let packed = dir.batch_encoder(DType::F32, &Device::Cpu, None).unwrap();
    let padded = postroom::model::BatchEncoder::on_tensors(tensors);
    let windows = WindowConfig { max_length: 20, stride: 7, max_tokens: 500 };
    let mails: Vec<WindowedEmail> = ["late", "My cake is late, where is it? I ordered it a week ago for my son."]
        .map(|text| {
            WindowedEmail::new(&dir.tokenizer.encode(&common::body(text), 500), &dir.tokenizer, &windows, Pooling::Mean)
        })
        .into();
    let batch = pack(&mails);
    let keep = KeepMaps::Layers(vec![1, 0]);
    let (a, b) = (packed.pool(&batch, &keep).unwrap(), padded.pool(&batch, &keep).unwrap());
    let difference = (a.vectors - b.vectors).unwrap().abs().unwrap().max_all().unwrap();
    assert!(difference.to_scalar::<f32>().unwrap() < 1e-4);
    assert_eq!(a.maps.len(), batch.n_windows());
    for (a, b) in a.maps.iter().zip(&b.maps) {
        assert_eq!(a.tokens, b.tokens);
        for layer in [0, 1] {
            let (a, b) = (a.layer(layer).unwrap(), b.layer(layer).unwrap());
            let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
            assert!(differences.fold(0.0, f32::max) < 1e-5);
        }
    }
}

#[test]
fn a_missing_tensor_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = Checkpoint::encoder();
    let mut tensors = checkpoint.tensors();
    tensors.remove("encoder.layer.1.attention.self.key.bias");
    checkpoint.write_tensors(folder.path(), &tensors);
    assert!(error_of(folder.path()).contains("`encoder.layer.1.attention.self.key.bias` is missing"));
}

#[test]
fn a_tensor_of_another_shape_is_named_with_both_shapes() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = Checkpoint::encoder();
    let mut tensors = checkpoint.tensors();
    let wrong = Tensor::zeros((16, 8), DType::F32, &Device::Cpu).unwrap();
    tensors.insert("encoder.layer.0.output.dense.weight".into(), wrong);
    checkpoint.write_tensors(folder.path(), &tensors);
    let error = error_of(folder.path());
    assert!(error.contains("encoder.layer.0.output.dense.weight") && error.contains("[16, 8]"), "{error}");
    assert!(error.contains("[16, 32]"), "{error}");
}

#[test]
fn a_tensor_that_holds_integers_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = Checkpoint::encoder();
    let mut tensors = checkpoint.tensors();
    let integers = Tensor::zeros(16, DType::U32, &Device::Cpu).unwrap();
    tensors.insert("embeddings.LayerNorm.bias".into(), integers);
    checkpoint.write_tensors(folder.path(), &tensors);
    assert!(error_of(folder.path()).contains("U32"));
}

#[test]
fn tensors_that_nobody_reads_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = Checkpoint::encoder();
    let mut tensors = checkpoint.tensors();
    tensors.insert("encoder.layer.2.output.dense.bias".into(), Tensor::zeros(16, DType::F32, &Device::Cpu).unwrap());
    checkpoint.write_tensors(folder.path(), &tensors);
    let dir = EncoderDir::open(folder.path(), &BTreeMap::new()).unwrap();
    assert_eq!(dir.unknown_tensors().unwrap(), ["encoder.layer.2.output.dense.bias"]);
}

#[test]
fn a_weights_file_cut_off_anywhere_is_one_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    Checkpoint::encoder().write(folder.path());
    let path = folder.path().join("model.safetensors");
    let whole = std::fs::read(&path).unwrap();
    for length in [0, 4, 8, 100, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..length]).unwrap();
        let error = error_of(folder.path());
        assert!(error.contains("model.safetensors"), "{length}: {error}");
    }
}

#[test]
fn foreign_and_damaged_json_is_one_clear_error() {
    for (file, text) in [
        ("config.json", "{"),
        ("config.json", r#"{"model_type": "llama"}"#),
        ("tokenizer.json", "not JSON"),
        ("tokenizer.json", "{}"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        Checkpoint::encoder().write(folder.path());
        std::fs::write(folder.path().join(file), text).unwrap();
        let error = load_encoder(folder.path()).unwrap_err();
        assert!(!chain(&error).is_empty(), "{file}: {error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let error = load_router(folder.path(), DType::F32, &Device::Cpu).err().unwrap();
    assert!(error.to_string().contains("neither router.json nor"), "{error}");
}

/// A copy of the shipped router beside a link to its encoder.
fn copied_router() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let router = folder.path().join("crumb");
    std::fs::create_dir(&router).unwrap();
    for file in std::fs::read_dir(common::router_path()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), router.join(file.file_name())).unwrap();
    }
    let encoder = folder.path().join("minilm-l6-v2");
    std::fs::create_dir(&encoder).unwrap();
    for file in ["config.json", "tokenizer.json", "model.safetensors"] {
        std::fs::copy(common::encoder_path().join(file), encoder.join(file)).unwrap();
    }
    (folder, router)
}

fn router_error(path: &Path) -> String {
    chain(&load_router(path, DType::F32, &Device::Cpu).err().unwrap())
}

#[test]
fn one_byte_changed_anywhere_in_a_routers_files_is_found() {
    let (folder, router) = copied_router();
    for path in [
        router.join("head.safetensors"),
        router.join("lexical.safetensors"),
        router.join("adapter_model.safetensors"),
        router.join("adapter_config.json"),
        folder.path().join("minilm-l6-v2/tokenizer.json"),
        folder.path().join("minilm-l6-v2/config.json"),
        folder.path().join("minilm-l6-v2/model.safetensors"),
    ] {
        let whole = std::fs::read(&path).unwrap();
        let mut changed = whole.clone();
        let middle = changed.len() / 2;
        changed[middle] ^= 1;
        std::fs::write(&path, &changed).unwrap();
        let error = router_error(&router);
        assert!(error.contains("sha256") && error.contains(&path.display().to_string()), "{error}");
        std::fs::write(&path, whole).unwrap();
    }
    load_router(&router, DType::F32, &Device::Cpu).map(drop).unwrap();
}

#[test]
fn a_router_json_of_another_kind_is_refused() {
    let (_folder, router) = copied_router();
    let path = router.join("router.json");
    let whole = std::fs::read_to_string(&path).unwrap();
    let good: serde_json::Value = serde_json::from_str(&whole).unwrap();
    let refused = |change: fn(&mut serde_json::Value), expected: &str| {
        let mut manifest = good.clone();
        change(&mut manifest);
        std::fs::write(&path, manifest.to_string()).unwrap();
        let error = router_error(&router);
        assert!(error.contains(expected), "{error}");
    };
    refused(|manifest| manifest["schema"] = "postroom-router/9".into(), "postroom-router/9");
    refused(|manifest| manifest["extra"] = 1.into(), "extra");
    refused(|manifest| manifest["windows"]["stride"] = 0.into(), "stride 0");
    refused(|manifest| manifest["windows"]["max_length"] = 513.into(), "max_length 513");
    refused(|manifest| manifest["calibration"]["temperature"] = 0.into(), "temperature");
    refused(|manifest| manifest["calibration"]["threshold"] = 2.into(), "threshold");
    refused(|manifest| manifest["calibration"]["guards"] = serde_json::json!({"nobody": 0.1}), "`nobody`");
    refused(|manifest| manifest["calibration"]["conformal"] = 1.5.into(), "conformal");
    refused(|manifest| manifest["encoder"]["name"] = "../minilm-l6-v2".into(), "is in none of");
    refused(|manifest| manifest["encoder"]["name"] = "absent".into(), "`absent`");
    refused(|manifest| manifest["queues"][0]["id"] = manifest["queues"][1]["id"].clone(), "stands twice");
    refused(|manifest| drop(manifest["queues"].as_array_mut().unwrap().pop()), "head.safetensors");
}
