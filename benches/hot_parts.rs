//! The hot parts on one thread, so that a change can be judged: `cargo bench --bench hot_parts [-- NAME]`.
//!
//! The mails are those of `data/crumb/week.jsonl`, the network is `models/crumb`. Nothing here runs in CI, which only compiles it.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

use candle_core::{DType, Device};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use postroom::artifact::{Router, load_router};
use postroom::dataset::{Example, ReadOptions, read};
use postroom::email::CleanOptions;
use postroom::model::{AttentionPooling, KeepMaps, PackedBatch};
use postroom::routing::{Mail, MailContent, MailFields, RoutingConfig, RoutingService};

const TOKENS: [usize; 3] = [32, 128, 256];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn router() -> Router {
    load_router(&root().join("models/crumb"), DType::F32, &Device::Cpu).expect("models/crumb is in the repository")
}

fn week() -> Vec<Example> {
    let path = root().join("data/crumb/week.jsonl");
    read(&path, &ReadOptions::default()).expect("the week is in the repository").examples
}

/// One window of a mail.
fn window(tokens: usize) -> PackedBatch {
    PackedBatch {
        input_ids: (0..tokens as u32).map(|i| 1000 + i * 7919 % 28_000).collect(),
        window_offsets: vec![0, tokens],
        mail_offsets: vec![0, 1],
        token_weights: vec![1.0 / tokens as f32; tokens],
    }
}

/// All mails of the week, cleaned and then cut into tokens.
fn reading(criterion: &mut Criterion) {
    let (mails, options) = (week(), CleanOptions::default());
    let bytes: usize = mails.iter().map(|mail| mail.subject.len() + mail.text.len()).sum();
    let mut group = criterion.benchmark_group("reading a week of mail");
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function("clean", |bench| {
        bench.iter(|| mails.iter().for_each(|mail| drop(black_box(mail.clean(&options)))));
    });
    let router = router();
    let clean: Vec<_> = mails.iter().map(|mail| mail.clean(&options)).collect();
    group.bench_function("tokenize", |bench| {
        let encode = |mail| router.tokenizer.encode(mail, router.info.windows.max_tokens);
        bench.iter(|| clean.iter().for_each(|mail| drop(black_box(encode(mail)))));
    });
    group.finish();
}

fn encoder(criterion: &mut Criterion) {
    let router = router();
    let encoder = router.classifier.encoder();
    let mut group = criterion.benchmark_group("encoder");
    for tokens in TOKENS {
        let batch = window(tokens);
        group.throughput(Throughput::Elements(tokens as u64));
        group.bench_with_input(BenchmarkId::from_parameter(tokens), &batch, |bench, batch| {
            bench.iter(|| encoder.pool(batch, &KeepMaps::None).expect("a sound batch"));
        });
    }
    group.finish();
}

fn attention_pooling(criterion: &mut Criterion) {
    let (queues, d_model) = (12, 384);
    let numbers = |n: usize| (0..n).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0).collect::<Vec<f32>>();
    let pooling = AttentionPooling::new(&numbers(queues * d_model), &numbers(queues * d_model), vec![0.0; queues]);
    let mut group = criterion.benchmark_group("attention pooling of 12 queues");
    for tokens in TOKENS {
        let (batch, projected) = (window(tokens), numbers(tokens * pooling.width()));
        group.bench_function(BenchmarkId::from_parameter(tokens), |bench| {
            bench.iter(|| pooling.logits(black_box(&batch), black_box(&projected)));
        });
    }
    group.finish();
}

/// From the fields of a mail to its decision, through the model's thread.
fn decision(criterion: &mut Criterion) {
    let service = RoutingService::start(router(), RoutingConfig::default()).expect("a thread");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mails = week();
    let example = mails.iter().max_by_key(|mail| mail.text.len()).expect("the week has mail");
    let fields = MailFields {
        subject: Some(example.subject.clone()),
        text: Some(example.text.clone()),
        ..MailFields::default()
    };
    let mail = Mail { id: None, content: MailContent::Fields(fields) };
    criterion.bench_function("decision on the longest mail of the week", |bench| {
        bench.iter(|| runtime.block_on(service.route(mail.clone())).expect("a decision"));
    });
}

fn settings() -> Criterion {
    // Before anything runs on the pool. A second call, by another group, finds it made.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(1).build_global();
    Criterion::default().sample_size(20).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(3))
}

criterion_group! {
    name = hot_parts;
    config = settings();
    targets = reading, encoder, attention_pooling, decision
}
criterion_main!(hot_parts);
