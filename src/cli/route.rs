//! `postroom route` and `postroom attend`: one mail without HTTP.

use clap::Args;

use super::common::{ModelArgs, load};
use super::heatmap;
use super::input::InputArgs;
use crate::explain::{Heads, Layers, Reduce, Rows, Special};
use crate::routing::{AttentionRequest, Decision, Outcome, RoutingService};

/// Arguments of `postroom route`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  echo 'My eggless cake arrived cold. Can I get a refund for it?' | postroom route -"
)]
pub(super) struct RouteArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    model: ModelArgs,
    /// Print the whole decision as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn route(args: &RouteArgs) -> anyhow::Result<()> {
    let config = args.model.quiet_config()?;
    let mail = args.input.read()?;
    let service = RoutingService::start(load(&config.model)?, config.routing)?;
    let decision = block_on(service.route(mail))??;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&decision)?);
    } else {
        println!("{}", summary(&decision));
    }
    Ok(())
}

/// One line for people.
fn summary(decision: &Decision) -> String {
    let target = match (&decision.queue, decision.decision) {
        (Some(queue), _) => queue.id.clone(),
        (None, Outcome::NotForAQueue) => "not for a queue".to_owned(),
        (None, _) => "needs a person".to_owned(),
    };
    let confidence = decision.confidence.map_or_else(String::new, |value| format!("  {:.1}% sure", 100.0 * value));
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
    /// Over the heads: none, mean or max.
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
    /// Print JSON instead of a heat map.
    #[arg(long)]
    json: bool,
}

fn parse_word<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}

pub(super) fn attend(args: &AttendArgs) -> anyhow::Result<()> {
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
        ..AttentionRequest::default()
    };
    let reply = block_on(service.attend(mail, request))??;
    if args.json {
        println!("{}", serde_json::to_string(reply.json())?);
    } else {
        print!("{}", heatmap::render(reply.json(), heatmap::Style::of_stdout()));
    }
    Ok(())
}

fn block_on<F: Future>(future: F) -> anyhow::Result<F::Output> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    Ok(runtime.block_on(future))
}
