// The mail on the page: line breaks kept, stretches marked, each character where the offsets say.

import { h } from './dom.js';
import { pieces, readable, visible } from './text.js';

/**
 * Draws both fields of a mail. `blocks` ({field, start, end, make}) do not overlap; each becomes the element that its
 * `make` answers, with the text inside. `marks` ({field, start, end, paint}) may overlap; `paint` gets a span for each piece.
 */
export function mailView(mail, { blocks = [], marks = [], label = 'The mail' }) {
  return h('div.mail', { role: 'group', 'aria-label': label },
    mail.subject !== '' && h('p.mail-subject', { dir: 'auto' }, flow(mail, 'subject', blocks, marks)),
    h('div.mail-body', { dir: 'auto' }, flow(mail, 'body', blocks, marks)));
}

function flow(mail, field, blocks, marks) {
  const text = field === 'subject' ? mail.subject : mail.text;
  const html = mail.html && field === 'body';
  const own = (ranges) => ranges.filter((range) => range.field === field);
  const outer = new Set(own(blocks));
  const children = [];
  let block = null;
  let inside = null;
  for (const { start, end, over } of pieces(text.length, [...outer, ...own(marks)])) {
    const now = over.find((range) => outer.has(range)) ?? null;
    if (now !== block) {
      block = now;
      inside = now?.make() ?? null;
      if (inside) children.push(inside);
    }
    const slice = text.slice(start, end);
    let child = visible(html ? readable(slice) : slice);
    if (child === '') continue;
    for (const mark of over) {
      if (outer.has(mark)) continue;
      const span = h('span', {}, child);
      mark.paint(span, mark);
      child = span;
    }
    if (inside) inside.append(child);
    else children.push(child);
  }
  return children;
}
