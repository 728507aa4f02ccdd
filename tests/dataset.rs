//! Labelled mail in each format, and what is said of data that cannot be used.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test program")]

use std::path::{Path, PathBuf};

use postroom::dataset::{
    ColumnNames, Dataset, DatasetError, Example, Format, Note, ReadOptions, join, read, read_stream,
};
use postroom::email::CleanOptions;
use proptest::prelude::*;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Reads a file by the columns of the flags: subject and body, label.
    fn read_by(&self, name: &str, bytes: &str, options: &ReadOptions) -> Result<Dataset, DatasetError> {
        read(&self.write(name, bytes), options)
    }
}

fn read_as(name: &str, bytes: impl AsRef<[u8]>) -> Result<Dataset, DatasetError> {
    let folder = Folder::new();
    read(&folder.write(name, bytes), &ReadOptions::default())
}

fn columns(text: &[&str], label: Option<&str>) -> ReadOptions {
    let text = text.iter().map(|&name| name.to_owned()).collect();
    let columns = ColumnNames { text, label: label.map(str::to_owned), ..ColumnNames::default() };
    ReadOptions { columns, ..ReadOptions::default() }
}

fn short(examples: &[Example]) -> Vec<(&str, &str, &str)> {
    examples.iter().map(|mail| (mail.queue.as_str(), mail.subject.as_str(), mail.text.as_str())).collect()
}

fn lines(examples: &[Example]) -> Vec<Option<usize>> {
    examples.iter().map(|mail| mail.place.line).collect()
}

fn notes(dataset: &Dataset) -> String {
    dataset.notes.iter().map(Note::to_string).collect::<Vec<_>>().join("\n")
}

/// The error's text without the folder.
fn error(result: Result<Dataset, DatasetError>) -> String {
    let text = result.unwrap_err().to_string();
    let is_folder = |word: &&str| word.starts_with('/');
    let word = text.split(' ').find(is_folder).unwrap_or_default();
    text.replace(word, word.rsplit('/').next().unwrap_or_default())
}

const TWO: [(&str, &str, &str); 2] =
    [("refunds", "Cold cake", "It came cold."), ("late", "", "Where is it?\nIt is late.")];

#[test]
fn jsonl_is_read_with_the_keys_it_has() {
    let text = "{\"id\": 7, \"title\": \"Cold cake\", \"message\": \"It came cold.\", \"department\": \"refunds\", \"decisive\": \"came cold\", \"sender\": \"ann\"}\n\n{\"message\": \"Where is it?\\nIt is late.\", \"department\": \"late\"}\n";
    let dataset = read_as("mail.jsonl", text).unwrap();
    assert_eq!(short(&dataset.examples), TWO);
    assert_eq!(lines(&dataset.examples), [Some(1), Some(3)]);
    let (first, second) = (&dataset.examples[0], &dataset.examples[1]);
    assert_eq!(
        (first.id.as_str(), first.group.as_deref(), first.decisive.as_deref()),
        ("7", Some("ann"), Some("came cold"))
    );
    assert_eq!((second.id.as_str(), second.group.as_deref(), second.decisive.as_deref()), ("3", None, None));
    let said = "read subject from `title`, text from `message`, queue from `department`, group from `sender`; --text, --label and --group choose other columns";
    assert_eq!(notes(&dataset), said);
}

#[test]
fn a_json_array_is_read_like_lines() {
    let text = "\u{feff}[\n  {\"subject\": \"Cold cake\", \"text\": \"It came cold.\",\n   \"queue\": \"refunds\"},\n  {\"text\": \"Where is it?\\nIt is late.\", \"queue\": \"late\"}\n]\n";
    let dataset = read_as("mail.json", text).unwrap();
    assert_eq!(short(&dataset.examples), TWO);
    assert_eq!(lines(&dataset.examples), [Some(2), Some(4)]);
    assert_eq!(dataset.notes, []);
}

#[test]
fn csv_is_read_with_quotes_line_breaks_and_any_separator() {
    for separator in [",", ";", "\t"] {
        for end in ["\n", "\r\n"] {
            let text =
                "\u{feff}Subject|Body|Queue\nCold cake|It came cold.|refunds\n|\"Where is it?\nIt is late.\"|late\n";
            let text = text.replace('|', separator).replace('\n', end).replace(&format!("it?{end}"), "it?\n");
            let dataset = read_as("mail.csv", text).unwrap();
            assert_eq!(short(&dataset.examples), TWO);
            assert_eq!(lines(&dataset.examples), [Some(2), Some(3)]);
        }
    }
}

#[test]
fn tsv_is_read_by_the_columns_that_flags_name() {
    let folder = Folder::new();
    let text = "betreff\tfrage\tdetails\tziel\nCold cake\tIt came cold.\tStill.\trefunds\n\tWhere?\t\tlate\n";
    let dataset = folder.read_by("mail.tsv", text, &columns(&["betreff", "frage", "details"], Some("ziel"))).unwrap();
    assert_eq!(short(&dataset.examples), [("refunds", "Cold cake", "It came cold.\n\nStill."), ("late", "", "Where?")]);
    let dataset = folder.read_by("mail.tsv", text, &columns(&["Frage"], Some("ziel"))).unwrap();
    assert_eq!(short(&dataset.examples)[0], ("refunds", "", "It came cold."));
}

#[test]
fn hugging_face_labels_are_read_in_words_where_there_are_some() {
    let dataset = read_as("train.csv", "text,label,label_text\nIt came cold.,0,refunds\nWhere?,1,late\n").unwrap();
    assert_eq!(short(&dataset.examples), [("refunds", "", "It came cold."), ("late", "", "Where?")]);
    let line = "{\"text\": \"It came cold.\", \"label\": 0, \"label_name\": \"refunds\"}\n";
    assert_eq!(read_as("train.jsonl", line).unwrap().examples[0].queue, "refunds");
    let dataset = read_as("train.csv", "text,label\nIt came cold.,0\nWhere?,1\n").unwrap();
    assert_eq!(dataset.examples[1].queue, "1");
    assert!(notes(&dataset).contains("all 2 labels are numbers"), "{}", notes(&dataset));
}

#[test]
fn a_comprehend_file_needs_no_header() {
    let text = "REFUNDS,\"It came cold, again\"\nLATE,Where is it?\n";
    let dataset = read_as("train.csv", text).unwrap();
    assert_eq!(short(&dataset.examples), [("REFUNDS", "", "It came cold, again"), ("LATE", "", "Where is it?")]);
    assert!(dataset.notes.contains(&Note::NoHeader));
    let options = ReadOptions { format: Some(Format::Comprehend), ..ReadOptions::default() };
    let folder = Folder::new();
    assert_eq!(folder.read_by("train.csv", "text,label\n", &options).unwrap().examples[0].queue, "text");
    let several = error(folder.read_by("train.csv", "REFUNDS|LATE,It came cold\n", &options));
    assert!(several.starts_with("train.csv line 1: more than one label"), "{several}");
}

fn azure(kind: &str, documents: &str) -> String {
    format!(
        "{{\"projectFileVersion\": \"2022-05-01\", \"metadata\": {{\"projectKind\": \"{kind}\", \"language\": \"en\"}}, \
         \"assets\": {{\"projectKind\": \"{kind}\", \"classes\": [{{\"category\": \"refunds\"}}], \"documents\": [{documents}]}}}}"
    )
}

#[test]
fn an_azure_project_is_read_with_the_documents_beside_it() {
    let folder = Folder::new();
    folder.write("a.txt", "\u{feff}It came cold.");
    folder.write("more/b.eml", "Subject: Late\n\nWhere is it?\n\n-- \nAnn\n");
    let documents = "{\"location\": \"a.txt\", \"language\": \"en\", \"dataset\": \"Train\", \"class\": {\"category\": \"refunds\"}}, \
                     {\"location\": \"more/b.eml\", \"class\": {\"category\": \"late\"}}";
    let labels = folder.write("labels.json", azure("CustomSingleLabelClassification", documents));
    let dataset = read(&labels, &ReadOptions::default()).unwrap();
    assert_eq!(short(&dataset.examples), [("refunds", "", "It came cold."), ("late", "Late", "Where is it?")]);
    assert_eq!(dataset.examples[0].id, "a.txt");
    assert_eq!(dataset.examples[1].place.file.as_ref(), folder.path().join("more/b.eml"));
}

#[test]
fn azure_projects_of_other_kinds_and_missing_documents_are_refused() {
    let several = error(read_as("labels.json", azure("CustomMultiLabelClassification", "")));
    assert!(several.contains("CustomMultiLabelClassification: only CustomSingleLabelClassification"), "{several}");
    let project = |location: &str, class: &str| {
        let document = format!("{{\"location\": \"{location}\"{class}}}");
        error(read_as("labels.json", azure("CustomSingleLabelClassification", &document)))
    };
    let class = ", \"class\": {\"category\": \"refunds\"}";
    assert!(project("gone.txt", class).contains("gone.txt"));
    for outside in ["../a.txt", "/etc/hostname", ""] {
        assert!(project(outside, class).contains("lies outside the file's folder"), "{outside}");
    }
    assert!(project("labels.json", "").contains("labels.json: no `queue`"));
}

#[test]
fn fasttext_lines_carry_one_label() {
    let dataset = read_as("train.txt", "__label__refunds It came cold.\n\n  __label__late  Where is it?\r\n").unwrap();
    assert_eq!(short(&dataset.examples), [("refunds", "", "It came cold."), ("late", "", "Where is it?")]);
    assert_eq!(lines(&dataset.examples), [Some(1), Some(3)]);
    let several = error(read_as("train.txt", "__label__a x\n__label__a __label__b y\n"));
    assert!(several.starts_with("train.txt line 2: more than one label (a, b)"), "{several}");
    assert!(error(read_as("train.txt", "__label__a x\nno label here\n")).starts_with("train.txt line 2: no `queue`"));
}

#[test]
fn a_folder_holds_a_folder_of_mails_for_each_queue() {
    let folder = Folder::new();
    folder.write("refunds/2.eml", "Subject: =?utf-8?q?Cr=C3=A8me?=\r\n\r\nIt is sour.\r\n\r\n-- \r\nAnn\r\n");
    folder.write("refunds/1.EML", "Message-ID: <x@y>\nSubject: One\n\nIt came cold.\n");
    folder.write("late/a.txt", "Where is it?");
    folder.write("late/picture.png", "...");
    folder.write(".hidden/a.eml", "Subject: no\n\nno\n");
    let dataset = read(folder.path(), &ReadOptions::default()).unwrap();
    let expected =
        [("late", "", "Where is it?"), ("refunds", "One", "It came cold."), ("refunds", "Cr\u{e8}me", "It is sour.")];
    assert_eq!(short(&dataset.examples), expected);
    let ids: Vec<&str> = dataset.examples.iter().map(|mail| mail.id.as_str()).collect();
    assert_eq!(ids, ["late/a.txt", "refunds/1.EML", "refunds/2.eml"]);
    assert_eq!(dataset.notes, [Note::OtherFiles { count: 1 }]);
    let sour = &dataset.examples[2];
    assert!(sour.raw.as_ref().is_some_and(|raw| raw.ends_with(b"Ann\r\n")));
    assert_eq!(sour.clean(&CleanOptions::default()).body.text(), "It is sour.");
}

const MBOX: &str = "From ann@example.org Mon Jan  5 09:12:00 2026\nSubject: Cold cake\nX-Queue: refunds\nMessage-ID: <1@x>\n\nIt came cold.\n>From the start.\n>>From x\nFrom here on too.\n\nFrom bob@example.org Mon Jan  5 09:13:00 2026\nx-queue: =?utf-8?q?late?=\nFrom: bob@example.org\n\nWhere is it?\n\n";

#[test]
fn an_mbox_file_names_its_queues_in_a_header() {
    let folder = Folder::new();
    let options = columns(&[], Some("X-Queue"));
    let dataset = folder.read_by("desk.mbox", MBOX, &options).unwrap();
    let first = ("refunds", "Cold cake", "It came cold.\nFrom the start.\n>From x\nFrom here on too.");
    assert_eq!(short(&dataset.examples), [first, ("late", "", "Where is it?")]);
    assert_eq!(lines(&dataset.examples), [Some(1), Some(11)]);
    assert_eq!((dataset.examples[0].id.as_str(), dataset.examples[1].id.as_str()), ("1@x", "11"));
    let grouped = ColumnNames { group: Some("from".into()), ..options.columns.clone() };
    let dataset = folder.read_by("desk.mbox", MBOX, &ReadOptions { columns: grouped, ..options }).unwrap();
    assert_eq!(dataset.examples[1].group.as_deref(), Some("bob@example.org"));
    assert!(error(read_as("desk.mbox", MBOX)).contains("--label X-Queue"));
}

#[test]
fn a_folder_of_mbox_files_has_a_queue_in_each() {
    let folder = Folder::new();
    folder.write("refunds.mbox", "From a\nSubject: One\n\nIt came cold.\n\nFrom a\nSubject: Two\n\nAnd small.\n");
    folder.write("late.mbox", "From a\n\nWhere is it?\n");
    let dataset = read(folder.path(), &ReadOptions::default()).unwrap();
    let expected =
        [("late", "", "Where is it?"), ("refunds", "One", "It came cold."), ("refunds", "Two", "And small.")];
    assert_eq!(short(&dataset.examples), expected);
}

#[test]
fn the_shipped_mail_is_read_whole_and_needs_no_note() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/crumb");
    let options = ReadOptions { group_of_id: Some('-'), ..ReadOptions::default() };
    let dataset = read(&data.join("train.jsonl"), &options).unwrap();
    let text = std::fs::read_to_string(data.join("train.jsonl")).unwrap();
    let expected: Vec<Example> = text
        .lines()
        .zip(&dataset.examples)
        .map(|(line, read)| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let text = |key: &str| line[key].as_str().unwrap().to_owned();
            Example {
                group: Some(text("id")[..2].to_owned()),
                id: text("id"),
                subject: text("subject"),
                text: text("body"),
                queue: text("queue"),
                decisive: Some(text("decisive")),
                place: read.place.clone(),
                ..Example::default()
            }
        })
        .collect();
    assert_eq!(dataset.examples.len(), 1140);
    assert!(dataset.examples == expected);
    assert_eq!(dataset.notes, []);
    let trained = dataset.for_training();
    assert!(trained.examples == expected, "{:?}", trained.notes);
    assert_eq!(trained.notes, []);
    assert_eq!(read(&data.join("week.jsonl"), &ReadOptions::default()).unwrap().examples.len(), 310);
}

#[test]
fn a_missing_or_doubtful_column_lists_the_columns_and_the_flag() {
    let missing = error(read_as("mail.csv", "text,kind\nIt came cold.,refunds\n"));
    assert_eq!(
        missing,
        "mail.csv line 1: no column is known to be the label: name it with --label; the columns are `text`, `kind`"
    );
    let missing = error(read_as("mail.csv", "remark,label\nIt came cold.,refunds\n"));
    assert!(missing.contains("to be the text: name it with --text"), "{missing}");
    let doubtful = error(read_as("mail.csv", "text,category,intent\na,b,c\n"));
    assert!(doubtful.contains("`category`, `intent` may each be the label: choose with --label"), "{doubtful}");
    let folder = Folder::new();
    let wrong = error(folder.read_by("mail.csv", "text,label\na,b\n", &columns(&[], Some("kind"))));
    assert!(wrong.contains("no column `kind` for --label; the columns are `text`, `label`"), "{wrong}");
    let doubtful = error(read_as("mail.jsonl", "{\"text\": \"a\", \"body\": \"b\", \"queue\": \"q\"}"));
    assert!(doubtful.contains("`text`, `body` may each be the text: choose with --text"), "{doubtful}");
}

#[test]
fn text_that_is_not_utf8_is_read_as_windows_1252_with_a_note() {
    for (name, bytes) in [
        ("mail.csv", &b"text,label\ncr\xe8me,refunds\nplain,late\n"[..]),
        (
            "mail.jsonl",
            b"{\"text\": \"cr\xe8me\", \"label\": \"refunds\"}\n{\"text\": \"plain\", \"label\": \"late\"}\n",
        ),
        ("mail.txt", b"__label__refunds cr\xe8me\n__label__late plain\n"),
    ] {
        let dataset = read_as(name, bytes).unwrap();
        assert_eq!(dataset.examples[0].text, "cr\u{e8}me");
        assert!(notes(&dataset).starts_with("1 mail not in UTF-8 read as windows-1252"), "{}", notes(&dataset));
    }
    let utf16: Vec<u8> = "\u{feff}text,label\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(error(read_as("mail.csv", utf16)).contains("is in UTF-16: save it in UTF-8"));
}

#[test]
fn blank_text_is_skipped_and_counted_and_nothing_else_is_an_error() {
    let dataset = read_as("mail.csv", "text,label\n ,a\nb,a\n,a\n,a\n,a\n").unwrap();
    assert_eq!(dataset.examples.len(), 1);
    let said = notes(&dataset);
    assert!(said.starts_with("4 mails without text skipped: ") && said.ends_with("mail.csv line 5, ..."), "{said}");
    let all = error(read_as("mail.csv", "text,label\n ,a\n,b\n"));
    assert!(
        all.contains("holds 2 mails and none has text") && all.contains("line 2") && all.contains("--text"),
        "{all}"
    );
}

#[test]
fn a_blank_label_names_its_line_and_can_be_skipped() {
    let text = "text,label\na,x\nb, \nc,y\n";
    assert!(error(read_as("mail.csv", text)).starts_with("mail.csv line 3: no `queue`"));
    let folder = Folder::new();
    let skip = ReadOptions { skip_unlabelled: true, ..ReadOptions::default() };
    let dataset = folder.read_by("mail.csv", text, &skip).unwrap();
    assert_eq!(dataset.examples.len(), 2);
    assert!(notes(&dataset).contains("1 mail without a label skipped"), "{}", notes(&dataset));
    let lines = "{\"text\": \"a\", \"label\": null}\n{\"text\": \"b\", \"label\": \"x\"}\n{\"text\": \"c\"}\n";
    assert!(error(read_as("mail.jsonl", lines)).starts_with("mail.jsonl line 1: no `queue`"));
    assert_eq!(folder.read_by("mail.jsonl", lines, &skip).unwrap().examples.len(), 1);
    assert!(error(read_as("mail.csv", "text,label\na,\u{8fd4}\u{91d1}\n")).contains("rename it"));
}

#[test]
fn broken_json_names_its_line() {
    let broken = error(read_as("mail.jsonl", "{\"text\": \"a\", \"queue\": \"x\"}\n{\"text\": \"a\", }\n"));
    assert!(broken.starts_with("mail.jsonl line 2: no JSON object: ") && broken.ends_with("at column 15"), "{broken}");
    assert!(
        error(read_as("mail.jsonl", "{\"text\": \"a\", \"queue\": \"x\"}\n5\n"))
            .starts_with("mail.jsonl line 2: no JSON")
    );
    let broken =
        error(read_as("mail.json", "[{\"text\": \"a\",\n \"queue\": \"x\"},\n {\"text\": \"a\",\n \"queue\" 7}]"));
    assert!(broken.starts_with("mail.json line 4: no JSON object"), "{broken}");
    let cut = error(read_as("mail.json", "[{\"text\": \"a\", \"queue\": \"x\"},\n"));
    assert_eq!(cut, "mail.json line 2: the file ends within the array: `]` is missing");
    let nested = error(read_as("mail.jsonl", "{\"text\": {\"plain\": \"a\"}, \"queue\": \"x\"}\n"));
    assert!(nested.contains("`text` holds a list or an object"), "{nested}");
}

#[test]
fn rows_of_the_wrong_length_and_open_quotes_name_their_line() {
    let long = error(read_as("mail.csv", "text,label\n\"a\nb\",x\na, b,y\n"));
    assert!(long.starts_with("mail.csv line 4: 3 fields where the header has 2"), "{long}");
    let open = error(read_as("mail.csv", "label,text\nx,a\nx,\"b\ny,c\ny,d\n"));
    assert!(open.starts_with("mail.csv line 3: a quote is opened that is never closed"), "{open}");
}

#[test]
fn what_is_not_there_or_empty_is_said() {
    assert!(error(read(Path::new("/nowhere/mail.csv"), &ReadOptions::default())).contains("cannot read mail.csv"));
    for (name, bytes) in [("a.csv", ""), ("a.csv", "text,label\n"), ("a.jsonl", "\n"), ("a.json", "[]"), ("a.mbox", "")]
    {
        assert!(error(read_as(name, bytes)).contains("holds no labelled mail"), "{name}");
    }
    let folder = Folder::new();
    assert!(error(read(folder.path(), &ReadOptions::default())).contains("holds no queues"));
    folder.write("refunds/readme.md", "");
    assert!(error(read(folder.path(), &ReadOptions::default())).contains("holds no labelled mail"));
    let csv = ReadOptions { format: Some(Format::Csv), ..ReadOptions::default() };
    assert!(error(read(folder.path(), &csv)).contains("is a folder"));
    assert!(error(read_as("notes.txt", "Dear all")).contains("name it with --format"));
    let mbox = columns(&[], Some("X-Queue"));
    assert!(error(folder.read_by("a.mbox", "Subject: x\n", &mbox)).contains("must start with `From `"));
}

#[test]
fn repeats_are_left_out_and_conflicts_named() {
    let text =
        "text,label\nWhere is it?,late\nwhere is  IT?,Late\nThank you,feedback\nThank you,refunds\nCold cake,refunds\n";
    let dataset = join(read_as("mail.csv", text).unwrap());
    assert_eq!(short(&dataset.examples), [("late", "", "Where is it?"), ("refunds", "", "Cold cake")]);
    let said = notes(&dataset);
    assert!(said.contains("the labels `Late` (1), `late` (1) are one queue, `late`"), "{said}");
    assert!(said.contains("1 text has more than one label (2 mails, left out), correct them:"), "{said}");
    assert!(said.contains("line 4 (feedback) and") && said.contains("1 mail left out as repeats"), "{said}");
}

fn postroom(arguments: &[&str]) -> std::process::Output {
    std::process::Command::new(env!("CARGO_BIN_EXE_postroom"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap()
}

#[test]
fn the_program_judges_a_table_and_tells_what_it_left_out() {
    let folder = Folder::new();
    let table = folder.write("mail.csv", "message,category,intent\nPlease refund me.,Refunds,x\n ,Refunds,x\n");
    let doubtful = postroom(&["eval", table.to_str().unwrap()]);
    assert!(!doubtful.status.success());
    assert!(String::from_utf8_lossy(&doubtful.stderr).contains("choose with --label"));
    let judged = postroom(&["eval", table.to_str().unwrap(), "--label", "category", "--json"]);
    let evaluation: serde_json::Value = serde_json::from_slice(&judged.stdout).unwrap();
    assert_eq!(evaluation["mails"], 1);
    let said = String::from_utf8_lossy(&judged.stderr).into_owned();
    assert!(said.contains("note: 1 mail without text skipped"), "{said}");
}

#[test]
fn the_program_trains_on_a_folder_of_messages() {
    let folder = Folder::new();
    let texts =
        ["the invoice is wrong", "correct my bill", "I was charged twice", "send the receipt", "send the receipt"];
    for (at, text) in texts.into_iter().enumerate() {
        folder.write(&format!("mail/Billing/{at}.eml"), format!("Subject: bill\n\nHello, {text} please.\n"));
        folder.write(&format!("mail/Help/{at}.eml"), format!("Subject: login {at}\n\nThe page shows error {at}.\n"));
    }
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/minilm-l6-v2");
    std::os::unix::fs::symlink(models, folder.path().join("minilm-l6-v2")).unwrap();
    let (mail, out) = (folder.path().join("mail"), folder.path().join("mine"));
    let trained = postroom(&["train", mail.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&trained.stderr).into_owned();
    assert!(trained.status.success(), "{said}");
    assert!(said.contains("note: 1 mail left out as repeats of earlier ones"), "{said}");
    let manifest: serde_json::Value = serde_json::from_slice(&std::fs::read(out.join("router.json")).unwrap()).unwrap();
    assert_eq!(manifest["provenance"]["mails"], 9);
    assert_eq!(manifest["provenance"]["data_sha256"].as_str().map(str::len), Some(64));
    assert_eq!(manifest["queues"][0]["id"], "billing");
}

/// Bytes that mean something to one reader or another, in any order.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..8),
        prop::sample::select(vec![
            &b"text,label\n"[..],
            b"\n",
            b"\r\n",
            b"\r",
            b"\"",
            b",",
            b";",
            b"\t",
            b"a",
            b"[",
            b"]",
            b"{",
            b"}",
            b":",
            b"{\"text\": \"a\", \"label\": \"b\"}",
            b"\\",
            b"From a\n",
            b">From ",
            b"X-Queue: a\n",
            b" ",
            b"\n\n",
            b"__label__a ",
            b"\xef\xbb\xbf",
            b"\xff",
            b"\0",
            b"{\"assets\": {\"documents\": [",
            b"null",
            b"\"label\": [",
        ])
        .prop_map(<[u8]>::to_vec),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn fields() -> impl Strategy<Value = Vec<(String, String, String)>> {
    let text = "[a-z ,;\t\"\n\u{e8}]{0,12}[a-z]";
    prop::collection::vec((text, text, "[a-z][a-z,;\"]{0,6}"), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_reader_panics_on_any_bytes(bytes in pieces()) {
        for (_, format) in Format::ALL {
            for label in [None, Some("x-queue")] {
                let _ = read_stream(&mut bytes.as_slice(), Path::new("f"), format, &columns(&[], label)).map(join);
            }
        }
    }

    #[test]
    fn a_table_is_read_as_it_was_written(rows in fields(), tabs in any::<bool>()) {
        let (separator, format) = if tabs { ('\t', Format::Tsv) } else { (',', Format::Csv) };
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let mut table = format!("subject{separator}body{separator}queue\n");
        for (subject, body, queue) in &rows {
            let row = [quoted(subject), quoted(body), quoted(queue)].join(&separator.to_string());
            table.push_str(&row);
            table.push('\n');
        }
        let dataset = read_stream(&mut table.as_bytes(), Path::new("f"), format, &ReadOptions::default()).unwrap();
        let mut line = 2;
        prop_assert_eq!(dataset.examples.len(), rows.len());
        for (mail, (subject, body, queue)) in dataset.examples.iter().zip(&rows) {
            prop_assert_eq!((&mail.subject, &mail.text, &mail.queue), (subject, body, queue));
            prop_assert_eq!(mail.place.line, Some(line));
            line += 1 + subject.matches('\n').count() + body.matches('\n').count();
        }
    }
}
