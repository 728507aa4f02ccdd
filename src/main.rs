//! The `postroom` program; see `postroom --help`.

use std::process::ExitCode;

use clap::Parser;

/// The system's allocator gives large blocks back at once and pays for fresh pages at every tensor.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match postroom::cli::run(postroom::cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            postroom::cli::report(&error);
            ExitCode::FAILURE
        }
    }
}
