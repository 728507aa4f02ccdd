//! The walk over the lines of a mail that says whose each line is.
//!
//! At each line the announcements of an earlier mail are tried in order: a marker or rule with a header block, a
//! header block, a line "On ... wrote:". What follows depends on what they say: quoted lines, history to the
//! end, or a forwarded mail, which is read on like the sender's own text.

use super::address;
use super::label_block::{self, LabelBlock};
use super::lines::{Line, next_filled};
use super::markers::{self, Marker};
use super::reply_header;
use super::words::{POINTERS, lower};
use super::{Context, Forward, SubjectKind, ZoneKind, subject};

/// What each line is, before the ends of the sender's text are looked at.
#[derive(Debug)]
pub(super) struct Scanned {
    pub(super) kinds: Vec<ZoneKind>,
    /// How deep the sender's own lines are quoted at each line: a forward may be quoted as a whole.
    pub(super) bases: Vec<usize>,
    pub(super) forward: Option<Forward>,
}

/// Walks over the lines of a mail.
pub(super) fn read(lines: &[Line<'_>], context: Context) -> Scanned {
    let mut scan = Scan::new(lines, context);
    scan.run();
    Scanned { kinds: scan.kinds, bases: scan.bases, forward: scan.forward }
}

/// Longer lines say more than "see below".
const MAX_POINTER: usize = 60;

/// The walk over the lines.
struct Scan<'l, 't> {
    lines: &'l [Line<'t>],
    context: Context,
    kinds: Vec<ZoneKind>,
    bases: Vec<usize>,
    base: usize,
    /// Quoted lines are an earlier mail, not the sender's own `>`.
    quotes_open: bool,
    /// The sender has written something since the last forward header.
    own_text: bool,
    forward: Option<Forward>,
    /// The subject of the mail that is passed on says that it passes on another one.
    forwards_again: bool,
}

impl<'l, 't> Scan<'l, 't> {
    fn new(lines: &'l [Line<'t>], context: Context) -> Self {
        let quotes_open = context.in_reply || context.subject == SubjectKind::Reply;
        Self {
            lines,
            context,
            kinds: vec![ZoneKind::Text; lines.len()],
            bases: vec![0; lines.len()],
            base: 0,
            quotes_open,
            own_text: false,
            forward: None,
            forwards_again: false,
        }
    }

    fn run(&mut self) {
        let mut at = 0;
        while at < self.lines.len() {
            let from = at;
            at = if self.lines[at].is_blank() { at + 1 } else { self.filled_line(at) };
            self.bases[from..at].fill(self.base);
        }
    }

    /// Decides a line that is not blank and answers where to go on.
    fn filled_line(&mut self, at: usize) -> usize {
        let line = &self.lines[at];
        let deeper = line.depth > self.base;
        if (!deeper || self.opens_quote(at))
            && let Some(next) = self.announced(at).or_else(|| self.header_block(at)).or_else(|| self.reply(at))
        {
            return next;
        }
        if let Some(next) = self.armour(at) {
            return next;
        }
        if !deeper && markers::asks_to_reply_above(self.lines, at) {
            return self.reply_above(at);
        }
        if deeper && (self.quotes_open || line.surely_quoted) || self.is_overflow(at) {
            self.kinds[at] = ZoneKind::Quote;
        } else {
            self.own_text = true;
        }
        at + 1
    }

    /// Whether a quote that no header has introduced starts here. What an earlier mail says inside a quote, of
    /// forwards above all, is its own business.
    fn opens_quote(&self, at: usize) -> bool {
        let is_start = at == 0 || self.lines[at - 1].depth < self.lines[at].depth;
        let above = (0..at).rev().find(|&index| !self.lines[index].is_blank());
        let inside = |above: usize| matches!(self.kinds[above], ZoneKind::QuoteHeader | ZoneKind::Quote);
        is_start && !above.is_some_and(inside)
    }

    /// The lines that OpenPGP puts around a clear-signed text.
    fn armour(&mut self, at: usize) -> Option<usize> {
        let (kind, end) = match self.lines[at].text {
            "-----BEGIN PGP SIGNED MESSAGE-----" => {
                let end = (at..self.lines.len()).find(|&index| self.lines[index].is_blank())?;
                (ZoneKind::Delimiter, end)
            }
            "-----BEGIN PGP SIGNATURE-----" => {
                let last = |index: &usize| self.lines[*index].text == "-----END PGP SIGNATURE-----";
                (ZoneKind::Signature, (at..self.lines.len()).find(last).map_or(self.lines.len(), |index| index + 1))
            }
            _ => return None,
        };
        self.kinds[at..end].fill(kind);
        Some(end)
    }

    /// The rest of a quoted line that a client wrapped without a mark: short, between quoted lines, and too long
    /// to have stood at the end of the line above.
    fn is_overflow(&self, at: usize) -> bool {
        let (Some(above), Some(line), Some(below)) =
            (at.checked_sub(1).map(|at| &self.lines[at]), self.lines.get(at), self.lines.get(at + 1))
        else {
            return false;
        };
        let first_word = line.text.split_whitespace().next().map_or(0, str::len);
        self.kinds[at - 1] == ZoneKind::Quote
            && above.depth > self.base
            && line.depth == self.base
            && below.depth == above.depth
            && line.text.len() < 40
            && above.range.len() + first_word > 74
    }

    /// A marker or rule and the header block below it.
    fn announced(&mut self, at: usize) -> Option<usize> {
        let line = &self.lines[at];
        let marker = markers::marker(line);
        if marker.is_none() && !markers::is_rule(line.text) && !line.history_header {
            return None;
        }
        if line.history_header && marker.is_none() {
            let block = label_block::read(self.lines, at, true).unwrap_or_else(|| LabelBlock::unread(at + 1));
            return self.block_found(at, block);
        }
        // People and web forms draw lines too: below a mere rule the block must be one by itself.
        let said = marker.is_some();
        let block = next_filled(self.lines, at + 1).and_then(|next| {
            let block = label_block::read(self.lines, next, said)?;
            (next - at <= 3 && (said || !self.is_form(&block))).then_some(block)
        });
        match (marker, block) {
            (Some(Marker::Forwarded | Marker::MaybeForwarded), Some(block)) => Some(self.forwarded(at, block)),
            (Some(Marker::Forwarded), None) => Some(self.forwarded(at, one_line_block(line.text, at + 1))),
            (Some(Marker::Original) | None, Some(block)) => self.block_found(at, block),
            (Some(Marker::Original), None) if next_filled(self.lines, at + 1).is_some() && self.own_text => {
                self.block_found(at, LabelBlock::unread(at + 1))
            }
            _ => None,
        }
    }

    fn header_block(&mut self, at: usize) -> Option<usize> {
        let block = label_block::read(self.lines, at, false)?;
        if self.is_form(&block) {
            return None;
        }
        self.block_found(at, block)
    }

    /// A web form lists a sender, a date and a subject too, but to nobody, and an order whom a thing is from and for, but without a
    /// subject: in mail that answers nothing, neither is an earlier mail.
    fn is_form(&self, block: &LabelBlock) -> bool {
        let new_mail =
            matches!(self.context.subject, SubjectKind::Other | SubjectKind::Unknown) && !self.context.in_reply;
        new_mail && self.own_text && !(block.has_recipient() && block.subject.is_some())
    }

    /// A header block without the word "forwarded": the subject and the sender's own text tell what it is.
    fn block_found(&mut self, at: usize, block: LabelBlock) -> Option<usize> {
        let passed_on = match self.context.subject {
            SubjectKind::Forward => self.forward.is_none() || self.forwards_again || !self.own_text,
            SubjectKind::Reply => false,
            SubjectKind::Other | SubjectKind::Unknown => {
                !self.context.in_reply && (!self.own_text || self.only_points_below(at))
            }
        };
        if passed_on {
            return Some(self.forwarded(at, block));
        }
        if self.lines[at].depth > self.base {
            // The header stands inside the quote that it introduces.
            self.quotes_open = true;
            return None;
        }
        let next = next_filled(self.lines, block.end);
        if next.is_some_and(|next| self.lines[next].depth > self.lines[at].depth) {
            return Some(self.quote_header(at, block.end));
        }
        Some(self.history(at, block.end))
    }

    /// Whether all that the sender wrote above is a pointer to what follows: "FYI", "please see below".
    fn only_points_below(&self, at: usize) -> bool {
        let mut own = self.lines[..at].iter().filter(|line| !line.is_blank() && !markers::is_punctuation(line.text));
        let first = own.next().map(|line| line.text).filter(|text| text.len() <= MAX_POINTER);
        first.is_some_and(|text| POINTERS.iter().any(|phrase| lower(text).contains(phrase))) && own.next().is_none()
    }

    fn reply(&mut self, at: usize) -> Option<usize> {
        let line = &self.lines[at];
        if line.reply_header && line.depth <= self.base {
            let end = (at..self.lines.len()).find(|&index| !self.lines[index].reply_header).unwrap_or(self.lines.len());
            return Some(self.quote_header(at, end));
        }
        let header = reply_header::read(self.lines, at)?;
        if self.context.subject == SubjectKind::Forward && self.forward.is_none() && !header.quote_follows {
            let from = address::find(&header.text).map(str::to_owned);
            return Some(self.enter_forward(at, header.end, Forward { from, subject: None }));
        }
        if line.depth > self.base {
            self.quotes_open = true;
            return None;
        }
        // With nothing above and nothing quoted below, the sender's words come after the header.
        if header.quote_follows || !self.own_text {
            let end = self.quote_header(at, header.end);
            return Some(self.bar_quote(end));
        }
        Some(self.history(at, header.end))
    }

    /// A header below which quoted lines are the earlier mail.
    fn quote_header(&mut self, at: usize, end: usize) -> usize {
        let start = self.announcement_above(at);
        self.kinds[start..end].fill(ZoneKind::QuoteHeader);
        self.quotes_open = true;
        end
    }

    /// Some programs quote with `|` in place of `>`; that counts only directly below a header.
    fn bar_quote(&mut self, from: usize) -> usize {
        let is_bar = |line: &Line<'_>| line.is_blank() || line.text.starts_with('|');
        let end = (from..self.lines.len()).find(|&at| !is_bar(&self.lines[at])).unwrap_or(self.lines.len());
        if !self.lines[from..end].iter().any(|line| line.text.starts_with('|')) {
            return from;
        }
        self.kinds[from..end].fill(ZoneKind::Quote);
        end
    }

    fn reply_above(&mut self, at: usize) -> usize {
        self.kinds[at] = ZoneKind::Delimiter;
        if !self.own_text {
            return at + 1;
        }
        self.kinds[at + 1..].fill(ZoneKind::Quote);
        self.lines.len()
    }

    /// A header whose mail is not quoted: all that follows belongs to it.
    fn history(&mut self, at: usize, header_end: usize) -> usize {
        let at = self.announcement_above(at);
        self.kinds[at..header_end].fill(ZoneKind::QuoteHeader);
        self.kinds[header_end..].fill(ZoneKind::Quote);
        self.lines.len()
    }

    /// Where the dashed or empty lines above a header start: they announce it, in whatever language.
    fn announcement_above(&self, header: usize) -> usize {
        let mut start = header;
        for at in (0..header).rev() {
            let text = self.lines[at].text;
            if self.kinds[at] != ZoneKind::Text {
                break;
            } else if markers::is_punctuation(text) || markers::is_dashed(text) {
                start = at;
            } else if !text.is_empty() {
                break;
            }
        }
        start
    }

    fn forwarded(&mut self, at: usize, block: LabelBlock) -> usize {
        let from = block.from.as_deref().and_then(address::find).map(str::to_owned);
        self.forwards_again = subject::kind(block.subject.as_deref()) == SubjectKind::Forward;
        self.enter_forward(at, block.end, Forward { from, subject: block.subject })
    }

    fn enter_forward(&mut self, at: usize, end: usize, forward: Forward) -> usize {
        let at = self.announcement_above(at);
        self.kinds[at..end].fill(ZoneKind::ForwardHeader);
        self.forward.get_or_insert(forward);
        self.base = next_filled(self.lines, end).map_or(self.base, |next| self.lines[next].depth);
        self.own_text = false;
        self.quotes_open = true;
        end
    }
}

/// The header block that Yahoo writes behind the dashes on one line.
fn one_line_block(text: &str, end: usize) -> LabelBlock {
    LabelBlock::on_one_line(text.trim_start_matches(['-', ' ']).split_once("---").map_or("", |(_, rest)| rest), end)
}
