//! Any bytes in any charset and transfer encoding, as a body and as an encoded word.
#![no_main]

use postroom_fuzz::email::Posted;

const LABELS: &[&str] = &[
    "utf-8",
    "iso-2022-jp",
    "utf-7",
    "hz-gb-2312",
    "iso-2022-kr",
    "shift_jis",
    "gb18030",
    "big5",
    "euc-kr",
    "windows-1251",
    "utf-16",
    "x-unknown",
];
const ENCODINGS: &[&str] = &["8bit", "base64", "quoted-printable", "x-uuencode"];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [label, encoding, text @ ..] = bytes else { return };
    let label = LABELS[usize::from(*label) % LABELS.len()];
    let encoding = ENCODINGS[usize::from(*encoding) % ENCODINGS.len()];
    let mut mail = format!("Subject: =?{label}?Q?").into_bytes();
    mail.extend(text.iter().filter(|byte| !matches!(byte, b'\n' | b'\r')));
    mail.extend(
        format!("?=\nContent-Type: text/plain; charset={label}\nContent-Transfer-Encoding: {encoding}\n\n").bytes(),
    );
    mail.extend(text);
    postroom_fuzz::check(&Posted::Mime(&mail));
});
