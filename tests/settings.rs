//! The documented settings are the defaults.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test program")]

use postroom::training::TrainingConfig;

#[test]
fn training_toml_holds_the_defaults() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("config/training.toml");
    let config: TrainingConfig = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(config, TrainingConfig::default());
}
