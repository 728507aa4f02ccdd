//! What several test files share: paths, the shipped encoder and router, loaded once per test program.

#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used, reason = "each test program uses its part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use candle_core::{DType, Device};
use postroom::artifact::{EncoderDir, Router, load_router};
use postroom::email::{CleanEmail, CleanOptions, Fields, Posted, clean};
use postroom::model::Encoder;
use postroom::tokenizer::EncodedEmail;

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn fixture(name: &str) -> String {
    std::fs::read_to_string(root().join("tests/fixtures").join(name)).unwrap()
}

pub fn encoder_path() -> PathBuf {
    root().join("models/minilm-l6-v2")
}

pub fn router_path() -> PathBuf {
    root().join("models/crumb")
}

static ENCODER_DIR: LazyLock<EncoderDir> =
    LazyLock::new(|| EncoderDir::open(&encoder_path(), &BTreeMap::new()).unwrap());

static ENCODER: LazyLock<Encoder> = LazyLock::new(|| ENCODER_DIR.encoder(DType::F32, &Device::Cpu).unwrap());

static ROUTER: LazyLock<Router> = LazyLock::new(|| load_router(&router_path(), DType::F32, &Device::Cpu).unwrap());

pub fn encoder_dir() -> &'static EncoderDir {
    &ENCODER_DIR
}

pub fn encoder() -> &'static Encoder {
    &ENCODER
}

pub fn router() -> &'static Router {
    &ROUTER
}

/// A mail with a body only, cleaned.
pub fn body(text: &str) -> CleanEmail {
    clean(&Posted::Fields(Fields { text: Some(text), ..Fields::default() }), &CleanOptions::default())
}

pub fn encode(text: &str) -> EncodedEmail {
    ENCODER_DIR.tokenizer.encode(&body(text), 8192)
}
