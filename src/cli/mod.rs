//! The command line.

#![expect(clippy::print_stdout, reason = "answers go to standard output")]

mod allocator;
mod bench;
mod card;
mod clean;
mod common;
mod data;
mod eval;
mod healthcheck;
mod heatmap;
mod input;
mod queues;
mod route;
mod serve;
mod train;

use clap::{Parser, Subcommand};

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
    /// Route one mail from a file or standard input.
    Route(route::RouteArgs),
    /// Show what the attention heads looked at in one mail.
    Attend(route::AttendArgs),
    /// Show what was kept and cut of one mail.
    Clean(clean::CleanArgs),
    /// Train a router on labelled mail.
    Train(train::TrainArgs),
    /// Judge a router on labelled mail.
    Eval(eval::EvalArgs),
    /// List, add, rename, merge, switch off and remove queues without training again.
    Queues(queues::QueuesArgs),
    /// Measure speed and memory, here or of a running service.
    Bench(bench::BenchArgs),
    /// Ask a running service whether it is ready; for containers.
    Healthcheck(healthcheck::HealthcheckArgs),
}

/// Runs the command that the arguments name.
///
/// # Errors
/// Whatever went wrong, with its causes.
pub fn run(cli: Cli) -> anyhow::Result<()> {
    match cli.command {
        Command::Route(args) => route::route(&args),
        Command::Attend(args) => route::attend(&args),
        Command::Clean(args) => clean::run(&args),
        Command::Train(args) => train::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Queues(args) => queues::run(&args),
        Command::Healthcheck(args) => healthcheck::run(&args),
    }
}

/// Prints an error with its causes, one line each.
pub fn report(error: &anyhow::Error) {
    use std::io::Write;
    let mut stderr = std::io::stderr().lock();
    // Where standard error is closed there is nobody to tell.
    let _ = writeln!(stderr, "postroom: {error}");
    for cause in error.chain().skip(1) {
        let _ = writeln!(stderr, "  because: {cause}");
    }
}
