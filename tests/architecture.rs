//! The floors of ARCHITECTURE.md: a module imports only from floors below its own.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test program")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Modules by floor, lowest first.
const FLOORS: [&[&str]; 7] = [
    &["email", "queues", "metrics", "random"],
    &["tokenizer", "model"],
    &["collate", "dataset", "lexical", "artifact", "explain"],
    &["training", "evaluation", "inference"],
    &["routing", "otlp"],
    &["server"],
    &["cli", "config", "telemetry", "shutdown"],
];

/// Modules of one floor that may use another of the same floor.
const BESIDE: [(&str, &str); 8] = [
    ("artifact", "collate"),
    ("artifact", "lexical"),
    ("cli", "config"),
    ("cli", "telemetry"),
    ("cli", "shutdown"),
    ("config", "telemetry"),
    ("shutdown", "telemetry"),
    ("training", "evaluation"),
];

/// Crates that a module must not name.
const NEVER: [(&str, &[&str]); 10] = [
    ("email", &["candle_core", "tokio", "axum", "std::fs", "std::net"]),
    ("queues", &["candle_core", "tokio", "axum", "std::fs"]),
    ("metrics", &["candle_core", "tokio", "axum", "std::fs"]),
    ("tokenizer", &["candle_core", "tokio", "axum", "std::fs"]),
    ("model", &["tokio", "axum", "std::fs", "std::thread"]),
    ("training", &["tokio", "axum"]),
    ("evaluation", &["tokio", "axum"]),
    ("inference", &["axum"]),
    ("otlp", &["axum", "candle_core", "std::env"]),
    ("server", &["candle_core", "candle_nn"]),
];

fn floor_of(module: &str) -> Option<usize> {
    FLOORS.iter().position(|modules| modules.contains(&module))
}

/// The source files of each top-level module, tests cut off.
fn sources() -> BTreeMap<String, Vec<(PathBuf, String)>> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&src, &mut files);
    let mut modules: BTreeMap<String, Vec<(PathBuf, String)>> = BTreeMap::new();
    for path in files {
        let first = path.strip_prefix(&src).unwrap().components().next().unwrap();
        let module = first.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
        modules.entry(module).or_default().push((path, text));
    }
    modules
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Modules that a text names behind `crate::`, documentation aside.
fn imports(text: &str) -> Vec<String> {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split("crate::").skip(1))
        .map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
        .collect()
}

#[test]
fn every_module_has_a_floor() {
    for module in sources().into_keys().filter(|module| module != "lib" && module != "main") {
        assert!(floor_of(&module).is_some(), "src/{module} stands on no floor: add it here and to ARCHITECTURE.md");
    }
}

#[test]
fn a_module_imports_only_from_below() {
    for (module, files) in sources() {
        let Some(floor) = floor_of(&module) else { continue };
        for (path, text) in files {
            for import in imports(&text).into_iter().filter(|import| *import != module) {
                let beside = BESIDE.contains(&(module.as_str(), import.as_str()));
                let below = floor_of(&import).is_some_and(|other| other < floor);
                assert!(below || beside, "{}: floor {floor} imports `{import}`", path.display());
            }
        }
    }
}

#[test]
fn a_module_never_names_what_its_floor_must_not_see() {
    let sources = sources();
    for (module, forbidden) in NEVER {
        for (path, text) in sources.get(module).into_iter().flatten() {
            let code: String =
                text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
            for name in forbidden {
                assert!(!code.contains(name), "{} names {name}", path.display());
            }
        }
    }
}
