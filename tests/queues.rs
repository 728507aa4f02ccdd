//! Queues of a finished router: what a change moves and what it leaves where it is.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test program")]

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use candle_core::{DType, Device};
use postroom::artifact::{
    EncoderReference, Manifest, Provenance, ROUTER_SCHEMA, Router, RouterFiles, RouterTensors, StoredRouter,
    load_router, save_memory, save_router,
};
use postroom::dataset::{Example, ReadOptions, read};
use postroom::email::CleanOptions;
use postroom::evaluation::{Evaluated, evaluate};
use postroom::metrics::softmax;
use postroom::training::queue_changes::{self, AddConfig, NewQueue};
use postroom::training::{Backbone, Labelled, Method, Progress, TrainingConfig, train};

struct Quiet;

impl Progress for Quiet {
    fn stage(&mut self, _name: &str) {}
    fn tell(&mut self, _done: usize, _all: usize) {}
    fn note(&mut self, _line: &str) {}
}

/// A folder where routers find their encoder.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(common::encoder_path(), folder.path().join("minilm-l6-v2")).unwrap();
    folder
}

/// The shipped router, to be changed.
fn shipped(folder: &Path) -> PathBuf {
    let path = folder.join("crumb");
    std::fs::create_dir(&path).unwrap();
    for entry in std::fs::read_dir(common::router_path()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), path.join(entry.file_name())).unwrap();
    }
    path
}

fn load(path: &Path) -> Router {
    load_router(path, DType::F32, &Device::Cpu).unwrap()
}

fn judged(router: &Router, mails: &[Example]) -> Evaluated {
    evaluate(router, mails, &CleanOptions::default(), None, &mut |_, _| ()).unwrap()
}

fn likeliest(logits: &[f32]) -> usize {
    (0..logits.len()).reduce(|a, b| if logits[b] > logits[a] { b } else { a }).unwrap()
}

/// Short mails of the bakery, so many of each queue from `first` on, shortest first.
fn bakery(first: usize, mails: usize) -> Vec<Example> {
    let mut all = read(&common::root().join("data/crumb/train.jsonl"), &ReadOptions::default()).unwrap().examples;
    all.sort_by_key(|mail| mail.subject.len() + mail.text.len());
    let mut taken = std::collections::BTreeMap::<String, usize>::new();
    all.retain(|mail| {
        let place = taken.entry(mail.queue.clone()).or_default();
        *place += 1;
        (first + 1..=first + mails).contains(place)
    });
    all
}

fn of_queue(mails: &[Example], id: &str) -> Vec<Example> {
    mails.iter().filter(|mail| mail.queue == id).cloned().collect()
}

fn of_others(mails: &[Example], id: &str) -> Vec<Example> {
    mails.iter().filter(|mail| mail.queue != id).cloned().collect()
}

fn trained(path: &Path, mails: &[Example]) {
    let dir = common::encoder_dir();
    let encoder = dir.batch_encoder(DType::F32, &Device::Cpu, None).unwrap();
    let weights = dir.weights(DType::F32, &Device::Cpu).unwrap();
    let backbone = Backbone { encoder: &encoder, weights: &weights, tokenizer: &dir.tokenizer };
    let config = TrainingConfig { method: Method::Frozen, folds: 3, c: vec![30.0], ..TrainingConfig::default() };
    let trained = train(backbone, Labelled::new(mails).unwrap(), &config, None, &mut Quiet).unwrap();
    let manifest = Manifest {
        schema: ROUTER_SCHEMA.to_owned(),
        name: "small".to_owned(),
        version: String::new(),
        encoder: EncoderReference { name: "minilm-l6-v2".to_owned(), sha256: Default::default() },
        files: RouterFiles::default(),
        queues: trained.queues,
        members: Vec::new(),
        aliases: Default::default(),
        languages: Vec::new(),
        windows: config.windows,
        pooling: config.pooling,
        quantize: None,
        calibration: trained.calibration,
        provenance: Provenance::default(),
        figures: trained.figures,
    };
    let tensors = RouterTensors {
        head: &trained.head,
        lexical: trained.lexical.as_ref(),
        change: trained.change.as_ref(),
        memory: None,
    };
    save_router(path, manifest, tensors, "# Router\n").unwrap();
    let memory = queue_changes::remember(&load(path), mails, &CleanOptions::default(), 0, &mut |_, _| ()).unwrap();
    save_memory(path, &memory).unwrap();
}

/// The promise of the command: eight mails make a queue, and the others hardly notice.
#[test]
fn a_queue_added_by_eight_mails_gets_its_mail_and_leaves_the_others_theirs() {
    const NEW: &str = "allergy-questions";
    let folder = folder();
    let path = folder.path().join("small");
    let mails = bakery(0, 36);
    trained(&path, &of_others(&mails, NEW));
    let before = load(&path);
    let mut stored = StoredRouter::open(&path).unwrap();
    assert_eq!(stored.memory.as_ref().unwrap().mails.len(), 5 * 32);

    // Every fourth mail, so that the examples are as long as the rest.
    let own = of_queue(&mails, NEW);
    let (examples, unseen): (Vec<_>, Vec<_>) = own.into_iter().enumerate().partition(|(place, _)| place % 4 == 0);
    let plain = |mails: Vec<(usize, Example)>| -> Vec<Example> { mails.into_iter().map(|(_, mail)| mail).collect() };
    let (examples, unseen) = (plain(examples)[..8].to_vec(), plain(unseen));
    let new = NewQueue {
        id: NEW,
        name: "Allergy questions",
        description: "Whether something is safe to eat: ingredients, allergens, traces, cross-contact, or a reaction.",
        examples: &examples,
        others: None,
    };
    let added = queue_changes::add(&mut stored, &before, &new, &AddConfig::default(), &mut |_, _| ()).unwrap();
    assert_eq!(added.left_out.unwrap().examples, 8);
    stored.save(&path, &path).unwrap();

    let after = load(&path);
    assert_ne!(after.info.version, before.info.version);
    let found = judged(&after, &unseen).mails.iter().filter(|mail| likeliest(&mail.logits) == mail.target).count();
    assert!(found * 10 >= unseen.len() * 6, "{found} of {}", unseen.len());

    let others = of_others(&mails, NEW);
    let (was, is) = (judged(&before, &others).mails, judged(&after, &others).mails);
    let mut right = 0;
    let mut moved = 0;
    for (was, is) in was.iter().zip(&is) {
        // No other logit moves by a bit.
        assert_eq!(was.logits[..], is.logits[..5]);
        right += usize::from(likeliest(&was.logits) == was.target);
        moved += usize::from(likeliest(&was.logits) == was.target && likeliest(&is.logits) != is.target);
    }
    assert!(moved * 100 < right, "{moved} of {right}");
    // The memory learnt the new queue's mail and the new logit of the old.
    let memory = StoredRouter::open(&path).unwrap().memory.unwrap();
    assert_eq!(memory.mails.len(), 5 * 32 + 8);
    assert!(memory.mails.iter().all(|mail| mail.logits.len() == 6));
}

#[test]
fn a_description_alone_makes_a_queue_that_is_suggested_and_never_answered() {
    let folder = folder();
    let path = shipped(folder.path());
    let mut stored = StoredRouter::open(&path).unwrap();
    let new = NewQueue {
        id: "job-applications",
        name: "Job applications",
        description: "Somebody wants to work at the bakery: an application, a CV, an apprenticeship, a vacancy.",
        examples: &[],
        others: None,
    };
    queue_changes::add(&mut stored, &load(&path), &new, &AddConfig::default(), &mut |_, _| ()).unwrap();
    stored.save(&path, &path).unwrap();
    let router = load(&path);
    let queue = router.info.index_of_label("job-applications").unwrap();
    assert!(router.info.queues.get(queue).unwrap().suggest_only);
    let mail = Example {
        text: "I would like to apply for the job of apprentice baker. My CV is attached.".into(),
        queue: "job-applications".into(),
        ..Example::default()
    };
    let evaluated = judged(&router, &[mail]);
    let mut order: Vec<usize> = (0..7).collect();
    order.sort_by(|&a, &b| evaluated.mails[0].logits[b].total_cmp(&evaluated.mails[0].logits[a]));
    assert!(order[..2].contains(&queue), "{:?}", evaluated.mails[0].logits);
    assert_eq!(evaluated.summary.routed_alone, 0);
    assert_eq!(evaluated.mails[0].logits.len(), 7);
}

#[test]
fn probabilities_of_merged_queues_add_up_and_old_labels_count() {
    let folder = folder();
    let path = shipped(folder.path());
    let mails = bakery(3, 2);
    let before = load(&path);
    let was = judged(&before, &mails);
    let mut stored = StoredRouter::open(&path).unwrap();
    queue_changes::merge(&mut stored, &["refunds".to_owned()], "late-deliveries").unwrap();
    let merged = folder.path().join("merged");
    stored.save(&merged, &path).unwrap();

    let after = load(&merged);
    let temperature = after.info.calibration.temperature;
    let is = judged(&after, &mails);
    let old = |id| before.info.queues.index_of(id).unwrap();
    for (was, is) in was.mails.iter().zip(&is.mails) {
        let (was_p, is_p) = (softmax(&was.logits, temperature), softmax(&is.logits, temperature));
        for (index, queue) in after.info.queues.iter().enumerate() {
            let mut expected = was_p[old(&queue.id)];
            if queue.id == "late-deliveries" {
                expected += was_p[old("refunds")];
            }
            assert!((is_p[index] - expected).abs() < 1e-6, "{}", queue.id);
        }
    }
    // Mail labelled with the old id counts as the merged queue; a label that was never a queue stays an error.
    let merged_queue = after.info.queues.index_of("late-deliveries").unwrap();
    assert_eq!(is.mails.iter().filter(|mail| mail.target == merged_queue).count(), 4);
    let unknown = Example { text: "a".into(), queue: "invoices".into(), ..Example::default() };
    assert!(evaluate(&after, &[unknown], &CleanOptions::default(), None, &mut |_, _| ()).is_err());
    // The router that was not named with --out is as it was.
    assert_eq!(load(&path).info.version, before.info.version);
}

#[test]
fn a_removed_queue_leaves_the_softmax_and_the_other_logits_stay() {
    let folder = folder();
    let path = shipped(folder.path());
    let mails = of_others(&bakery(5, 2), "order-changes");
    let was = judged(&load(&path), &mails);
    let mut stored = StoredRouter::open(&path).unwrap();
    let gone = stored.index_of("order-changes").unwrap();
    queue_changes::remove(&mut stored, "order-changes").unwrap();
    stored.save(&path, &path).unwrap();
    let is = judged(&load(&path), &mails);
    for (was, is) in was.mails.iter().zip(&is.mails) {
        let mut expected = was.logits.clone();
        expected.remove(gone);
        let differences = is.logits.iter().zip(&expected).map(|(a, b)| (a - b).abs());
        assert!(differences.fold(0.0, f32::max) < 1e-5);
    }
}

fn queues(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_postroom"))
        .arg("queues")
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap()
}

fn said(arguments: &[&str]) -> String {
    let output = queues(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn refused(arguments: &[&str]) -> String {
    let output = queues(arguments);
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn names_and_switches_change_in_place_and_change_back_to_the_same_version() {
    let folder = folder();
    let path = shipped(folder.path());
    let router = path.to_str().unwrap();
    // The encoder may lie inside the router: it must survive the change.
    std::fs::create_dir(path.join("notes")).unwrap();
    std::fs::write(path.join("notes/kept.txt"), "kept").unwrap();
    said(&["--router", router, "enable", "refunds"]);
    let version = load(&path).info.version;
    let head = std::fs::read(path.join("head.safetensors")).unwrap();

    said(&["rename", "refunds", "--name", "Money back", "--router", router]);
    said(&["disable", "refunds", "--router", router]);
    let listed = said(&["list", "--router", router]);
    let line = listed.lines().find(|line| line.starts_with("refunds")).unwrap();
    assert!(line.contains("off") && line.contains("Money back: Money back, a credit"), "{line}");
    assert_eq!(std::fs::read(path.join("head.safetensors")).unwrap(), head);
    assert_ne!(load(&path).info.version, version);
    let card = std::fs::read_to_string(path.join("README.md")).unwrap();
    assert!(card.contains("| `refunds` | Money back (off) |"), "{card}");

    said(&["enable", "refunds", "--router", router]);
    said(&["rename", "refunds", "--name", "Refunds", "--router", router]);
    assert_eq!(load(&path).info.version, version);
    assert_eq!(std::fs::read_to_string(path.join("notes/kept.txt")).unwrap(), "kept");
}

#[test]
fn a_queue_is_added_by_unlabelled_mail_and_a_doubtful_example_is_named() {
    let folder = folder();
    let path = shipped(folder.path());
    let router = path.to_str().unwrap();
    let write = |name: &str, lines: &[serde_json::Value]| {
        let file = folder.path().join(name);
        std::fs::write(&file, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let texts = [
        "I would like to apply for the job of baker.",
        "Do you have a vacancy? I attach my CV.",
        "Are you hiring at the moment?",
        "Please refund me for the cake, it came cold.",
    ];
    let examples = write("jobs.jsonl", &texts.map(|text| serde_json::json!({ "text": text })));
    let mail: Vec<serde_json::Value> = bakery(0, 4)
        .iter()
        .map(|mail| serde_json::json!({"subject": mail.subject, "body": mail.text, "queue": mail.queue}))
        .chain([serde_json::json!({"body": texts[3], "queue": "refunds"})])
        .collect();
    let mail = write("mail.jsonl", &mail);
    let add = ["add", "jobs", "--name", "Jobs", "--examples", &examples, "--router", router];

    // The shipped router may have no memory, and then says what to do.
    let mut stored = StoredRouter::open(&path).unwrap();
    stored.memory = None;
    stored.save(&path, &path).unwrap();
    let error = refused(&add);
    assert!(error.contains("--mail"), "{error}");

    let told = said(&[&add[..], &["--mail", &mail]].concat());
    assert!(told.contains("`jobs` learnt from 4 mails") && told.contains("of 4 examples go to it"), "{told}");
    assert!(told.contains("NOT PROVEN") && told.contains("example 4: the same text is mail of `refunds`"), "{told}");
    let listed = said(&["list", "--json", "--router", router]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["queues"][6]["id"], "jobs");
    let error = refused(&[&add[..], &["--mail", &mail]].concat());
    assert!(error.contains("there is a queue `jobs` already"), "{error}");
}

#[test]
fn mistakes_are_refused_with_a_remedy_and_change_nothing() {
    let folder = folder();
    let path = shipped(folder.path());
    let router = path.to_str().unwrap();
    let before = std::fs::read(path.join("router.json")).unwrap();
    let error = |arguments: &[&str]| refused(&[arguments, &["--router", router]].concat());
    assert!(error(&["remove", "refund"]).contains("allergy-questions, general-feedback"));
    assert!(error(&["merge", "refunds", "--into", "refunds"]).contains("into itself"));
    assert!(error(&["rename", "refunds", "--name", " "]).contains("blank"));
    assert!(error(&["add", "Gift cards", "--name", "G", "--description", "d"]).contains("`gift-cards` could"));
    assert!(error(&["add", "gifts", "--name", "Gifts"]).contains("--description"));
    assert!(error(&["disable", "refunds", "--out", "/proc/nowhere/r"]).contains("/proc/nowhere"));
    let all = ["refunds", "order-changes", "late-deliveries", "wholesale-orders", "general-feedback"];
    assert!(error(&[&["merge"], &all[..], &["--into", "allergy-questions"]].concat()).contains("at least 2"));
    assert_eq!(std::fs::read(path.join("router.json")).unwrap(), before);

    let foreign = refused(&["list", "--router", common::encoder_path().to_str().unwrap()]);
    assert!(foreign.contains("postroom train"), "{foreign}");
}
