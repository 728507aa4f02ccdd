// The mail's text: plain functions. Offsets count UTF-16 units, as slices do here and as the server is asked to count.

/** 0.914 as "91%"; what is nearly nothing or nearly all is not rounded to it. */
export function percent(p) {
  if (p < 0.01) return 'under 1%';
  if (p > 0.99) return 'over 99%';
  return `${Math.round(p * 100)}%`;
}

/** Whether a pasted text is a whole message: header lines, an empty line, and a header that every mail has. */
export function isMessage(text) {
  const lines = text.slice(0, 65536).split(/\r?\n/);
  let telling = false;
  for (const [index, line] of lines.entries()) {
    if (line === '') return index > 1 && telling;
    // Folded lines, and the line that mbox files put before a mail.
    if (index > 0 ? /^[ \t]/.test(line) : line.startsWith('From ')) continue;
    const header = /^([!-9;-~]{1,80}):/.exec(line);
    if (!header) return false;
    telling ||= /^(from|to|subject|date|received|message-id|mime-version)$/i.test(header[1]);
  }
  return false;
}

/**
 * Sentences of a field as stretches, made of the units that the server read: so they never touch what it skipped.
 * A line ends a sentence too, unless it is long enough to have been wrapped and goes on in lower case.
 */
export function sentences(text, units, html) {
  const found = [];
  let last = null;
  for (const unit of units) {
    const gap = last && text.slice(last.end, unit.start);
    const shown = gap && html ? readable(gap) : gap;
    const lineStart = last && text.lastIndexOf('\n', last.end - 1) + 1;
    const wrapped = shown && !html && !/\n\s*\n/.test(shown) && last.end - lineStart > 55 && /^\p{Ll}/u.test(unit.text);
    const ended = last && /^[.!?\u2026\u3002]+$/.test(last.text) && /\s/.test(shown);
    if (!last || ended || (shown.includes('\n') && !wrapped)) found.push({ start: unit.start, end: unit.end });
    else found.at(-1).end = unit.end;
    last = unit;
  }
  return found;
}

export function inOrder(a, b) {
  return a.field === b.field ? a.start - b.start : a.field === 'subject' ? -1 : 1;
}

/** The units of all windows of an answer, each once, in order. */
export function unitsOf(look) {
  if (!look) return [];
  const seen = new Set();
  const windows = look.windows ?? [look];
  const all = windows.flatMap(({ units }) => units).filter((unit) => {
    const key = `${unit.field}${unit.start}`;
    return !unit.special && !seen.has(key) && seen.add(key);
  });
  return all.sort(inOrder);
}

/** The text without some stretches. */
export function without(text, ranges) {
  let kept = '';
  let at = 0;
  for (const { start, end } of [...ranges].sort((a, b) => a.start - b.start)) {
    if (start > at) kept += text.slice(at, start);
    at = Math.max(at, end);
  }
  return kept + text.slice(at);
}

/** Whether the server read the text as HTML: then no unit stands on a tag. */
export function readAsHtml(text, units) {
  const tag = /<\/?[a-z!][^<>]*>/gi;
  for (let found = tag.exec(text); found; found = tag.exec(text)) {
    const at = found.index;
    if (units.some((unit) => unit.field === 'body' && unit.start <= at && at < unit.end)) return false;
    if (units.some((unit) => unit.field === 'body' && unit.start >= at)) return true;
  }
  return false;
}

const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ', shy: '', zwnj: '' };

/** A stretch of HTML as a person would read it; what the mail's look needs falls away. */
export function readable(html) {
  return html
    .replace(/<!--[^]*?-->|<(style|script|head|title)\b[^]*?<\/\1\s*>/gi, '')
    .replace(/\s+/g, ' ')
    .replace(/<(br|\/p|\/div|\/tr|\/li|\/h[1-6]|\/table|\/blockquote|hr)\b[^>]*>/gi, '\n')
    .replace(/<\/t[dh]\b[^>]*>/gi, ' ')
    .replace(/<\/?[a-z!][^<>]*>/gi, '')
    .replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]{2,8}));/gi, (whole, decimal, hex, name) => {
      const code = decimal ? Number(decimal) : parseInt(hex, 16);
      if (name) return ENTITIES[name.toLowerCase()] ?? whole;
      return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : '\ufffd';
    });
}

/** Cuts [0, length) at the ends of all ranges: each piece with the ranges over it. */
export function pieces(length, ranges) {
  const inside = ranges.filter((range) => range.start < range.end && range.start < length);
  const ends = new Set([0, length]);
  for (const { start, end } of inside) ends.add(Math.max(0, start)).add(Math.min(length, end));
  const cuts = [...ends].sort((a, b) => a - b);
  const starting = [...inside].sort((a, b) => a.start - b.start);
  let next = 0;
  let active = [];
  return cuts.slice(0, -1).map((start, index) => {
    while (next < starting.length && starting[next].start <= start) active.push(starting[next++]);
    active = active.filter((range) => range.end > start);
    return { start, end: cuts[index + 1], over: [...active] };
  });
}

/** A text for one line: blanks joined, the middle left out, between words where there are any. */
export function quote(text, longest = 70) {
  const line = text.replace(/\s+/g, ' ').trim();
  const letters = [...line];
  if (letters.length <= longest) return `“${line}”`;
  const half = Math.floor(longest / 2);
  const head = letters.slice(0, half + 8).join('').replace(/\s+\S*$/, '');
  const tail = letters.slice(8 - half).join('').replace(/^\S*\s+/, '');
  return `“${head} … ${tail}”`;
}

/** Which words of two lists are the same, in order: pairs of indices (longest common subsequence). */
export function align(a, b) {
  const wide = b.length + 1;
  const best = new Uint16Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      best[i * wide + j] = a[i] === b[j]
        ? best[(i + 1) * wide + j + 1] + 1
        : Math.max(best[(i + 1) * wide + j], best[i * wide + j + 1]);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) pairs.push([i++, j++]);
    else if (best[(i + 1) * wide + j] >= best[i * wide + j + 1]) i++;
    else j++;
  }
  return pairs;
}

/** Text as it can be shown anywhere: control characters become their pictures, marks of direction cannot leak out. */
export function visible(text) {
  return text.replace(/[\0-\x08\x0b\x0c\x0e-\x1f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)));
}

/** A word for an axis or a sentence of the page: short, on one line, with its direction kept to itself. */
export function label(text, longest = 18) {
  const letters = [...visible(text.replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '').replace(/\s+/g, ' '))];
  return letters.length > longest ? `${letters.slice(0, longest - 1).join('')}\u2026` : letters.join('');
}

/** Words and signs of a text as units, for texts that no answer of the server stands beside. */
export function wordsOf(text, field = 'body') {
  return [...text.matchAll(/[\p{L}\p{N}\p{M}]+(?:['\u2019_-][\p{L}\p{N}\p{M}]+)*|[^\s]/gu)].map((found) => ({
    text: found[0], field, start: found.index, end: found.index + found[0].length,
  }));
}
