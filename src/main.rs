//! The `postroom` program; see `postroom --help`.

use std::process::ExitCode;

/// The system's allocator gives large blocks back at once and pays for fresh pages at every tensor.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match postroom::cli::parse() {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    match postroom::cli::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            postroom::cli::report(&error);
            ExitCode::FAILURE
        }
    }
}
