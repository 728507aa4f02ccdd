//! `postroom explain`: why one mail is routed as it is.

use std::fmt::Write;

use clap::Args;
use serde_json::Value;

use super::common::{ModelArgs, load};
use super::input::InputArgs;
use super::output::{print, print_line};
use super::route::{block_on, parse_word};
use crate::inference::Caller;
use crate::routing::{Against, Classes, EvidenceUnit, ExplainRequest, Method, Perturb, RoutingService};

/// Arguments of `postroom explain`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  postroom explain mail.eml --classes top3 --against runner_up")]
pub(super) struct ExplainArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    model: ModelArgs,
    /// Methods, with commas between: occlusion, ig, relevance, gradxinput, attention, rollout.
    #[arg(long, default_value = "occlusion", value_delimiter = ',', value_parser = parse_word::<Method>)]
    method: Vec<Method>,
    /// What is taken out at a time: auto, sentence or word.
    #[arg(long, default_value = "auto", value_parser = parse_word::<EvidenceUnit>)]
    unit: EvidenceUnit,
    /// Queues: predicted, top3, all, or ids with commas between.
    #[arg(long, default_value = "predicted", value_parser = classes)]
    classes: Classes,
    /// Compare with runner_up, a queue, or none.
    #[arg(long, default_value = "none", value_parser = against)]
    against: Against,
    /// What becomes of a part that is taken out: delete or mask.
    #[arg(long, default_value = "delete", value_parser = parse_word::<Perturb>)]
    perturb: Perturb,
    /// Draws the random choices of the check.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print the whole answer as JSON.
    #[arg(long)]
    json: bool,
}

fn classes(text: &str) -> Result<Classes, String> {
    Ok(Classes::parse(text))
}

pub(super) fn against(text: &str) -> Result<Against, String> {
    Ok(Against::parse(text))
}

pub(super) fn run(args: &ExplainArgs) -> anyhow::Result<()> {
    let config = args.model.quiet_config()?;
    let mail = args.input.read()?;
    let service = RoutingService::start(load(&config.model)?, config.routing)?;
    let request = ExplainRequest {
        methods: args.method.clone(),
        unit: args.unit,
        classes: args.classes.clone(),
        against: args.against.clone(),
        perturb: args.perturb,
        seed: args.seed,
        ..ExplainRequest::default()
    };
    let explanation = block_on(service.explain(mail, &request, Caller::default()))??;
    if args.json { print_line(serde_json::to_string(explanation.json())?) } else { print(render(explanation.json())) }
}

/// Items of one list that are printed; a mail may have thousands of words.
const SHOWN: usize = 12;

/// The evidence for people, strongest first, and the verdicts.
fn render(answer: &Value) -> String {
    let mut out = String::new();
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let queue = text(&answer["prediction"]["queue"]);
    let _ = writeln!(out, "{queue}  {:.1}%", 100.0 * number(&answer["prediction"]["confidence"]));
    for evidence in list(&answer["evidence"]) {
        let against = evidence["against"].as_str().map_or_else(String::new, |other| format!(" against {other}"));
        let _ = writeln!(
            out,
            "\n{} for {}{against}, by {}",
            text(&evidence["method"]),
            text(&evidence["class"]),
            text(&evidence["unit"])
        );
        let key = if evidence["signed"] == true { "logit" } else { "weight" };
        let mut items: Vec<&Value> = list(&evidence["items"]).iter().collect();
        items.sort_by(|a, b| number(&b[key]).abs().total_cmp(&number(&a[key]).abs()));
        for item in items.iter().take(SHOWN) {
            let change = match item["p_after"].as_f64() {
                Some(after) => format!("  {:>5.1}% -> {:>5.1}%", 100.0 * number(&item["p_before"]), 100.0 * after),
                None => String::new(),
            };
            let _ = writeln!(out, "{:>+8.3}{change}  {}", number(&item[key]), plain(&text(&item["text"])));
        }
        if items.len() > SHOWN {
            let _ = writeln!(out, "         and {} more", items.len() - SHOWN);
        }
    }
    for check in list(&answer["checks"]) {
        let _ = writeln!(
            out,
            "\n{} for {}: without the top {:.0}% {:.1}% -> {:.1}%, without as much at random {:.1}%: {}",
            text(&check["method"]),
            text(&check["class"]),
            100.0 * number(&check["q"]),
            100.0 * number(&check["p_full"]),
            100.0 * number(&check["p_without_top"]),
            100.0 * number(&check["p_without_random_mean"]),
            text(&check["verdict"]).replace('_', " ")
        );
    }
    out
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// One line without anything that a terminal would act on.
fn plain(text: &str) -> String {
    super::heatmap::without_controls(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_strongest_evidence_comes_first_with_what_happens_without_it() {
        let answer = json!({
            "prediction": {"queue": "refunds", "confidence": 0.9},
            "evidence": [{"method": "occlusion", "class": "refunds", "against": null, "unit": "sentence", "signed": true, "items": [
                {"text": "Hello,", "logit": -0.1, "p_before": 0.9, "p_after": 0.91},
                {"text": "Money\nback \u{1b}[31m!", "logit": 2.0, "p_before": 0.9, "p_after": 0.2},
            ]}],
            "checks": [{"method": "occlusion", "class": "refunds", "q": 0.1, "p_full": 0.9, "p_without_top": 0.2, "p_without_random_mean": 0.88, "verdict": "supported"}],
        });
        insta::assert_snapshot!(render(&answer), @r"
        refunds  90.0%

        occlusion for refunds, by sentence
          +2.000   90.0% ->  20.0%  Money back ·[31m!
          -0.100   90.0% ->  91.0%  Hello,

        occlusion for refunds: without the top 10% 90.0% -> 20.0%, without as much at random 88.0%: supported
        ");
    }
}
