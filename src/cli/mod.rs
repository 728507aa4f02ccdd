//! The command line.

mod allocator;
mod backlog;
mod bench;
mod card;
mod changing;
mod checkpoints;
mod clean;
mod common;
mod data;
mod eval;
mod explain;
mod faithfulness;
mod healthcheck;
mod heatmap;
mod input;
mod keys;
mod model;
mod output;
mod quantize;
mod queues;
mod raw_start;
mod route;
mod serve;
mod train;
mod write_file;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::telemetry;

/// Routes support email to the queue that must act.
#[derive(Debug, Parser)]
#[command(name = "postroom", version, about, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve over HTTP.
    Serve(serve::ServeArgs),
    /// Route one mail from a file or standard input, or a whole backlog.
    Route(route::RouteArgs),
    /// Show what the attention heads looked at in one mail.
    Attend(route::AttendArgs),
    /// Show what speaks for a queue in one mail, what against it, and whether that holds.
    Explain(explain::ExplainArgs),
    /// Measure how far explanations can be believed, on labelled mail.
    Faithfulness(faithfulness::FaithfulnessArgs),
    /// Show what was kept and cut of one mail.
    Clean(clean::CleanArgs),
    /// Train a router on labelled mail.
    Train(train::TrainArgs),
    /// Judge a router on labelled mail.
    Eval(eval::EvalArgs),
    /// List, add, rename, merge, switch off and remove queues without training again.
    Queues(queues::QueuesArgs),
    /// Make API keys for the service.
    Keys(keys::KeysArgs),
    /// List a router's versions, put one in force, roll back, verify.
    Model(model::ModelArgs),
    /// Measure speed and memory, here or of a running service.
    Bench(bench::BenchArgs),
    /// Ask a running service whether it is ready; for containers.
    Healthcheck(healthcheck::HealthcheckArgs),
}

/// Reads the arguments of this process.
///
/// # Errors
/// The status to end with: help and version were asked for and written, or the arguments are wrong and that was said.
pub fn parse() -> Result<Cli, ExitCode> {
    Cli::try_parse().map_err(|answer| match answer.print() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            report(&anyhow::Error::new(error).context("cannot write the help"));
            ExitCode::FAILURE
        }
        // Written, or its reader has read enough.
        _ => u8::try_from(answer.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from),
    })
}

/// Runs the command that the arguments name.
///
/// # Errors
/// Whatever went wrong, with its causes.
pub fn run(cli: Cli) -> anyhow::Result<()> {
    let ended = command(cli);
    telemetry::flush();
    ended
}

fn command(cli: Cli) -> anyhow::Result<()> {
    match cli.command {
        Command::Route(args) => route::route(&args),
        Command::Attend(args) => route::attend(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Faithfulness(args) => faithfulness::run(&args),
        Command::Clean(args) => clean::run(&args),
        Command::Train(args) => train::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Queues(args) => queues::run(&args),
        Command::Keys(args) => keys::run(&args),
        Command::Model(args) => model::run(&args),
        Command::Healthcheck(args) => healthcheck::run(&args),
    }
}

/// Prints an error with its causes, one line each, and what helps where every command is helped by the same.
pub fn report(error: &anyhow::Error) {
    use std::io::Write;
    if !telemetry::flush() {
        // Whoever reads it takes no more: writing would never end.
        return;
    }
    let mut stderr = std::io::stderr().lock();
    // Where standard error is closed there is nobody to tell.
    let _ = writeln!(stderr, "postroom: {error}");
    for cause in error.chain().skip(1) {
        let _ = writeln!(stderr, "  because: {cause}");
    }
    if let Some(remedy) = error.chain().find_map(remedy) {
        let _ = writeln!(stderr, "  remedy: {remedy}");
    }
}

fn remedy(cause: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    use std::io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match cause.downcast_ref::<std::io::Error>()?.kind() {
        StorageFull | QuotaExceeded => {
            Some("make room there (`df -h` and `df -i` show where it lacks), then give the command again")
        }
        ReadOnlyFilesystem => Some("name a place that can be written"),
        _ => None,
    }
}
