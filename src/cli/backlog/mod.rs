//! `postroom route --backlog PATH`: all mail of a folder or a file, into one file of decisions.
//!
//! ```text
//! read --> batch --> route side by side --> rows, flushed --> journal, flushed
//! ```
//!
//! A run that is killed goes on where its journal says when it is started again: rows behind the journal are cut off and
//! their mails routed anew, so that each mail has one row at the end. A mail that cannot be read is a row with the reason.

mod dry_run;
mod journal;
mod load;
mod mails;
mod row;
mod worker;

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;

use self::journal::Journal;
use self::load::Load;
use self::mails::{Backlog, Item};
use self::row::OutFormat;
use self::worker::Worker;
use super::common::{Progress, at_least_one, load};
use super::output::Said;
use crate::config::Config;
use crate::dataset::{ColumnNames, Format, ReadOptions};
use crate::routing::RoutingService;

/// Mails of one batch: what is done again at most after a kill.
const BATCH_MAILS: usize = 64;
/// Bytes of one batch, so that memory stays bounded where mail is large.
const BATCH_BYTES: usize = 64 << 20;

/// Arguments of a backlog.
#[derive(Debug, Clone, Args)]
pub(super) struct BacklogArgs {
    /// Route all mail of a folder of .eml and .mbox files, or of an mbox, CSV, TSV, JSON or JSONL file. The same command
    /// again goes on after a kill.
    #[arg(long = "backlog", value_name = "PATH", conflicts_with = "file", help_heading = "Backlog")]
    pub(super) path: Option<PathBuf>,
    /// The results: one row a mail, .csv or .jsonl.
    #[arg(long, value_name = "FILE", requires = "path", help_heading = "Backlog")]
    out: Option<PathBuf>,
    /// Only say what the queues would get and how long it would take, from a sample.
    #[arg(long, requires = "path", conflicts_with = "out", help_heading = "Backlog")]
    dry_run: bool,
    /// Mails of the sample.
    #[arg(
        long,
        value_name = "MAILS",
        default_value_t = 300,
        value_parser = at_least_one,
        requires = "dry_run",
        help_heading = "Backlog"
    )]
    sample: usize,
    /// The backlog's format, where name and first bytes do not show it: jsonl, json, csv, tsv, mbox.
    #[arg(long, value_name = "FORMAT", requires = "path", help_heading = "Backlog")]
    backlog_format: Option<Format>,
    /// Column or key of the text; of two or more the first is the subject and the others make the body.
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', requires = "path", help_heading = "Backlog")]
    text: Vec<String>,
    /// Column or key of the HTML, read where there is no text.
    #[arg(long, value_name = "COLUMN", requires = "path", help_heading = "Backlog")]
    html: Option<String>,
    /// Column or key of the id; of raw mail a header.
    #[arg(long, value_name = "COLUMN", requires = "path", help_heading = "Backlog")]
    id: Option<String>,
}

impl BacklogArgs {
    fn options(&self) -> ReadOptions {
        let columns = ColumnNames {
            text: self.text.clone(),
            html: self.html.clone(),
            id: self.id.clone(),
            ..ColumnNames::default()
        };
        ReadOptions { format: self.backlog_format, columns, ..ReadOptions::default() }
    }
}

/// Routes the backlog in `path`; `json` prints the summary as JSON.
pub(super) fn run(args: &BacklogArgs, path: &std::path::Path, config: &Config, json: bool) -> anyhow::Result<()> {
    let backlog = Backlog::survey(path, args.options())?;
    if backlog.mails == 0 {
        bail!("{} holds no mail", path.display());
    }
    let start = || -> anyhow::Result<Worker> {
        Worker::new(RoutingService::start(load(&config.model)?, config.routing.clone())?)
    };
    if args.dry_run {
        return dry_run::run(&backlog, &start()?, args.sample, json);
    }
    let Some(out) = &args.out else { bail!("--backlog needs --out FILE for the results, or --dry-run") };
    let format = OutFormat::of(out)?;
    let worker = start()?;
    let mark = backlog.mark(worker.service(), &config.routing, format)?;
    let mut journal = Journal::open(out, &mark, &format.header())?;
    let load = route_all(&backlog, &worker, format, &mut journal)?;
    journal.finish()?;
    let mut said = Said::default();
    if json {
        said.line(serde_json::to_string_pretty(&load)?);
    } else {
        said.print(load.table(None));
    }
    said.end(format_args!("{} is whole", out.display()))
}

/// Routes what the journal does not have yet.
fn route_all(backlog: &Backlog, worker: &Worker, format: OutFormat, journal: &mut Journal) -> anyhow::Result<Load> {
    let (mut load, done) = (journal.load().clone(), journal.mails());
    let mut progress = Progress::new("routing");
    if done > 0 {
        progress.note(&format!("{done} of {} mails are done already, going on from there", backlog.mails));
    }
    let mut batch = Batch::default();
    let mut failed = None;
    let mut number = 0;
    let mut put = |batch: &mut Batch| -> anyhow::Result<()> {
        let mut rows = Vec::new();
        for row in worker.route(batch.take())? {
            load.count(&row);
            format.write(&row, &mut rows)?;
        }
        journal.append(&rows, &load)?;
        progress.tell(journal.mails(), backlog.mails);
        Ok(())
    };
    backlog.each(&mut |item| {
        number += 1;
        if number <= done {
            return ControlFlow::Continue(());
        }
        batch.add(item);
        if !batch.full() {
            return ControlFlow::Continue(());
        }
        match put(&mut batch) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    if !batch.items.is_empty() {
        put(&mut batch)?;
    }
    if load.mails != backlog.mails {
        bail!("the mail changed while it was read: {} mails at first, {} now", backlog.mails, load.mails);
    }
    Ok(load)
}

/// Mails that are routed together.
#[derive(Default)]
struct Batch {
    items: Vec<Item>,
    bytes: usize,
}

impl Batch {
    fn add(&mut self, item: Item) {
        self.bytes += item.bytes();
        self.items.push(item);
    }

    fn full(&self) -> bool {
        self.items.len() >= BATCH_MAILS || self.bytes >= BATCH_BYTES
    }

    fn take(&mut self) -> Vec<Item> {
        self.bytes = 0;
        std::mem::take(&mut self.items)
    }
}

/// Flushes a file and its entry in the folder.
fn sync_folder(path: &std::path::Path) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(std::path::Path::new("."));
    // Where folders cannot be opened like files their entries are flushed with the files.
    if let Ok(folder) = std::fs::File::open(folder) {
        folder.sync_all().context("cannot flush the folder of the results")?;
    }
    Ok(())
}

/// Tells something beside the results.
fn tell(line: &str) {
    // Where standard error is closed there is nobody to tell.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
