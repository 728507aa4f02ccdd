//! `postroom route` and `postroom attend`: mail without HTTP.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use super::backlog::{self, BacklogArgs};
use super::common::{ModelArgs, load};
use super::heatmap;
use super::input::{Format, InputArgs};
use super::output::{percent, print, print_line};
use super::write_file::write_file;
use crate::explain::{Dtype, Heads, Layers, Reduce, Rows, Special};
use crate::inference::Caller;
use crate::routing::{Against, AttentionRequest, Decision, MapFormat, Outcome, RoutingService, Weight};

/// Arguments of `postroom route`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  echo 'My eggless cake arrived cold. Can I get a refund for it?' | postroom route -\n  \
        postroom route --backlog inbox/ --dry-run\n  postroom route --backlog inbox/ --out results.csv"
)]
pub(super) struct RouteArgs {
    /// File with the mail; `-` reads standard input.
    #[arg(required_unless_present = "path")]
    file: Option<PathBuf>,
    /// What the file holds; `auto` takes JSON where it starts with a brace, a raw message where it starts with a block
    /// of headers, plain text otherwise.
    #[arg(long, value_enum, default_value_t = Format::Auto)]
    format: Format,
    #[command(flatten)]
    backlog: BacklogArgs,
    #[command(flatten)]
    model: ModelArgs,
    /// Print the whole decision as JSON, of a backlog the summary.
    #[arg(long)]
    json: bool,
}

pub(super) fn route(args: &RouteArgs) -> anyhow::Result<()> {
    let config = args.model.quiet_config()?;
    let file = match (&args.backlog.path, &args.file) {
        (Some(path), _) => return backlog::run(&args.backlog, path, &config, args.json),
        // One of both is required.
        (None, file) => file.clone().unwrap_or_else(|| "-".into()),
    };
    let mail = InputArgs { file, format: args.format }.read()?;
    let service = RoutingService::start(load(&config.model)?, config.routing)?;
    let decision = block_on(service.route(mail))??;
    if args.json { print_line(serde_json::to_string_pretty(&decision)?) } else { print_line(summary(&decision)) }
}

/// One line for people.
fn summary(decision: &Decision) -> String {
    let target = match (&decision.queue, decision.decision) {
        (Some(queue), _) => queue.id.clone(),
        (None, Outcome::NotForAQueue) => "not for a queue".to_owned(),
        (None, _) => "needs a person".to_owned(),
    };
    let confidence = decision.confidence.map_or_else(String::new, |value| format!("  {} sure", percent(value)));
    let names: Vec<String> = decision
        .reasons
        .iter()
        .filter_map(|reason| Some(serde_json::to_value(reason).ok()?.as_str()?.replace('_', " ")))
        .collect();
    let reasons = if names.is_empty() { String::new() } else { format!("  ({})", names.join(", ")) };
    let guess = match decision.candidates.first() {
        Some(candidate) if decision.queue.is_none() => format!("  likeliest: {}", candidate.queue),
        _ => String::new(),
    };
    format!("{target}{confidence}{guess}{reasons}")
}

/// Arguments of `postroom attend`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  postroom attend mail.eml --layers all --reduce none --rows all --json > maps.json")]
pub(super) struct AttendArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    model: ModelArgs,
    /// Layers: all, last, or a list such as 0,2-4.
    #[arg(long, default_value = "last", value_parser = Layers::parse)]
    layers: Layers,
    /// Heads: all, or a list such as 0,3.
    #[arg(long, default_value = "all", value_parser = Heads::parse)]
    heads: Heads,
    /// Over the heads: none, mean or max; over all layers too: rollout or relevance.
    #[arg(long, default_value = "mean", value_parser = parse_word::<Reduce>)]
    reduce: Reduce,
    /// Rows: cls, all, or a list of units such as 5,9-12.
    #[arg(long, default_value = "cls", value_parser = Rows::parse)]
    rows: Rows,
    /// Show the pieces that the tokenizer makes instead of whole words.
    #[arg(long)]
    pieces: bool,
    /// The columns of [CLS] and [SEP]: keep or drop.
    #[arg(long, default_value = "keep", value_parser = parse_word::<Special>)]
    special: Special,
    /// What a weight is: alpha, or norm (times the length of what it lets through).
    #[arg(long, default_value = "alpha", value_parser = parse_word::<Weight>)]
    weight: Weight,
    /// The queue of --reduce relevance [default: the likeliest].
    #[arg(long, value_name = "QUEUE")]
    class: Option<String>,
    /// Compare with runner_up, a queue, or none; for --reduce relevance.
    #[arg(long, default_value = "none", value_parser = super::explain::against)]
    against: Against,
    /// The one window to show, of a mail that has several.
    #[arg(long)]
    window: Option<usize>,
    /// Print JSON instead of a heat map.
    #[arg(long)]
    json: bool,
    /// Write a file: its ending says in which form, .json, .npy, .safetensors, .png, .svg or .html.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    out: Option<PathBuf>,
    /// How .npy and .safetensors store weights: f32, f16 or u8 [default: f16].
    #[arg(long, value_parser = dtype)]
    dtype: Option<Dtype>,
}

fn dtype(text: &str) -> Result<Dtype, String> {
    match text {
        "f32" => Ok(Dtype::F32),
        "f16" => Ok(Dtype::F16),
        "u8" => Ok(Dtype::U8),
        other => Err(format!("`{other}` is none of f32, f16, u8")),
    }
}

fn format_of(path: &Path) -> anyhow::Result<MapFormat> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let found = MapFormat::ALL.into_iter().find(|(name, _)| *name == ending);
    let names = || MapFormat::ALL.map(|(name, _)| format!(".{name}")).join(", ");
    found.map(|(_, format)| format).with_context(|| format!("{} ends in none of {}", path.display(), names()))
}

pub(super) fn parse_word<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}

pub(super) fn attend(args: &AttendArgs) -> anyhow::Result<()> {
    let format = args.out.as_deref().map_or(Ok(MapFormat::Json), format_of)?;
    let config = args.model.quiet_config()?;
    let mail = args.input.read()?;
    let service = RoutingService::start(load(&config.model)?, config.routing)?;
    let request = AttentionRequest {
        layers: args.layers.clone(),
        heads: args.heads.clone(),
        reduce: args.reduce,
        rows: args.rows.clone(),
        words: !args.pieces,
        special: args.special,
        weight: args.weight,
        class: args.class.clone(),
        against: args.against.clone(),
        window: args.window,
        format,
        dtype: args.dtype,
        ..AttentionRequest::default()
    };
    let reply = block_on(service.attend(mail, request, Caller::default()))??;
    if let Some(path) = &args.out {
        let file = reply.file(format, args.dtype.unwrap_or_default())?;
        write_file(path, &file)
    } else if args.json {
        print_line(serde_json::to_string(&reply.json())?)
    } else {
        print(heatmap::render(&reply.json(), heatmap::Style::of_stdout()))
    }
}

pub(super) fn block_on<F: Future>(future: F) -> anyhow::Result<F::Output> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    Ok(runtime.block_on(future))
}
