//! `postroom keys`: API keys for the service.

use clap::{Args, Subcommand};

use super::output::print_line;
use crate::server::keys::{KeyRing, NewKey, Scope};

/// Arguments of `postroom keys`.
#[derive(Debug, Args)]
pub(super) struct KeysArgs {
    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Make a key: shows it once, and the line for the key file, which holds only its hash.
    #[command(after_help = "Example:\n  postroom keys new helpdesk --scope route,explain\n\n\
        Put the line into a file, name the file as server.keys_file, and give the key to whoever shall use it. A running\n\
        service reads the file again when it changes.")]
    New {
        /// Name of the key: who uses it, as the key file will say.
        name: String,
        /// What the key is good for: route (decisions), explain (maps and evidence), admin (metrics, changes).
        #[arg(long, value_name = "SCOPE,...", value_delimiter = ',', default_value = "route")]
        scope: Vec<Scope>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check a key file and list its keys by name.
    #[command(after_help = "Example:\n  postroom keys list keys.txt")]
    List {
        /// The key file.
        file: std::path::PathBuf,
    },
}

pub(super) fn run(args: &KeysArgs) -> anyhow::Result<()> {
    match &args.command {
        KeysCommand::New { name, scope, json } => {
            let new = NewKey::make(name, scope.iter().copied().collect()).map_err(anyhow::Error::from)?;
            if *json {
                print_line(serde_json::json!({"key": new.key.as_str(), "line": new.line}))?;
            } else {
                let (key, line) = (new.key.as_str(), &new.line);
                print_line(format_args!("key, shown this once:\n  {key}\n\nline for the key file:\n  {line}"))?;
            }
        }
        KeysCommand::List { file } => {
            for (name, scopes) in KeyRing::read(file)?.names() {
                print_line(format_args!("{name}  {scopes}"))?;
            }
        }
    }
    Ok(())
}
