//! Routers that load in milliseconds: an encoder of two layers on a vocabulary of a few words, and heads that always prefer one
//! queue.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use postroom::artifact::SharedEncoders;
use postroom::artifact::{
    Calibration, EncoderReference, Figures, HeadTensors, Manifest, Provenance, ROUTER_SCHEMA, RouterFiles,
    RouterTensors, load_router, load_router_sharing, record_probes, resolve_router, save_router, self_test,
    sha256_file,
};
use postroom::collate::Pooling;
use postroom::model::EncoderConfig;
use postroom::queues::Queue;
use postroom::routing::{Loader, RoutingConfig, RoutingService};
use postroom::tokenizer::WindowConfig;
use serde_json::json;

pub(crate) const QUEUES: [&str; 3] = ["refunds", "late-deliveries", "allergy-questions"];

const ENCODER: &str = "tiny";
const D_MODEL: usize = 16;

/// A folder with the encoder, for routers to be written beside it.
pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let encoder = folder.path().join(ENCODER);
    std::fs::create_dir(&encoder).unwrap();
    let words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", ".", "?", "where", "is", "my", "order", "it", "late", "refund"];
    let vocabulary: HashMap<&str, usize> = words.into_iter().zip(0..).collect();
    let special = |name: &str, id: usize| {
        json!({
            "id": id, "content": name, "special": true, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false,
        })
    };
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": [special("[PAD]", 0), special("[UNK]", 1), special("[CLS]", 2), special("[SEP]", 3)],
        "normalizer": {
            "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
            "lowercase": true,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
            ],
            "pair": [
                {"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "[SEP]", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}},
                {"SpecialToken": {"id": "[SEP]", "type_id": 1}},
            ],
            "special_tokens": {
                "[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]},
            },
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary,
        },
    });
    let config = json!({
        "architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu", "hidden_size": D_MODEL,
        "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 32, "max_position_embeddings": 64,
        "vocab_size": words.len(), "type_vocab_size": 2,
    })
    .to_string();
    let tensors: HashMap<String, Tensor> = EncoderConfig::from_json(&config)
        .unwrap()
        .tensors()
        .into_iter()
        .enumerate()
        .map(|(seed, (name, shape))| {
            let size: usize = shape.iter().product();
            let values: Vec<f32> = (0..size).map(|i| ((i * 31 + seed * 17) % 23) as f32 / 32.0 - 0.34375).collect();
            (name, Tensor::from_vec(values, shape, &Device::Cpu).unwrap())
        })
        .collect();
    std::fs::write(encoder.join("config.json"), config).unwrap();
    std::fs::write(encoder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    candle_core::safetensors::save(&tensors, encoder.join("model.safetensors")).unwrap();
    folder
}

/// Writes a router of this name into the folder: whatever the mail, its queue is `QUEUES[favourite]`. Gives its version.
pub(crate) fn write(folder: &Path, name: &str, favourite: usize) -> String {
    let encoder = folder.join(ENCODER);
    let sha256: BTreeMap<String, String> = ["config.json", "tokenizer.json", "model.safetensors"]
        .into_iter()
        .map(|file| (file.to_owned(), sha256_file(&encoder.join(file)).unwrap()))
        .collect();
    let weight = (0..QUEUES.len() * D_MODEL).map(|index| (index as f32 * 0.7).sin() * 0.01).collect();
    let bias = (0..QUEUES.len()).map(|queue| if queue == favourite { 3.0 } else { 0.0 }).collect();
    let head = HeadTensors { d_model: D_MODEL, query: Vec::new(), weight, bias };
    let manifest = Manifest {
        schema: ROUTER_SCHEMA.to_owned(),
        name: "tiny".to_owned(),
        version: String::new(),
        encoder: EncoderReference { name: ENCODER.to_owned(), sha256 },
        files: RouterFiles::default(),
        queues: QUEUES.map(|id| Queue::new(id, id)).into(),
        members: Vec::new(),
        aliases: BTreeMap::new(),
        languages: Vec::new(),
        windows: WindowConfig { max_length: 32, stride: 16, max_tokens: 1024 },
        pooling: Pooling::Mean,
        quantize: None,
        calibration: Calibration::new(1.0, 0.0),
        provenance: Provenance::default(),
        figures: Figures::default(),
    };
    let path = folder.join(name);
    save_router(&path, manifest, RouterTensors { head: &head, lexical: None, change: None, memory: None }, "").unwrap();
    let router = load_router(&path, DType::F32, &Device::Cpu).unwrap();
    record_probes(&path, &router).unwrap();
    router.info.version
}

/// What `postroom serve` loads routers with.
pub(crate) fn loader() -> Loader {
    let shared = SharedEncoders::default();
    Box::new(move |path: &Path| {
        let place: PathBuf = resolve_router(path)?;
        let router = load_router_sharing(&place, DType::F32, &Device::Cpu, &shared)?;
        self_test(&place, &router)?;
        Ok(RoutingService::start(router, RoutingConfig::default())?)
    })
}
