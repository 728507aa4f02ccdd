// The tab "Compare": two mails side by side, or a mail and what a small change makes of it.

import { choice, fill, h, say } from './dom.js';
import { postJson, postMail } from './api.js';
import { CHANGES } from './changes.js';
import { Contrast } from './contrast.js';
import { evidenceMarks, evidenceOf, strongest } from './evidence.js';
import { mailView } from './mailview.js';
import { align, percent, readAsHtml, wordsOf } from './text.js';

/** Words that are aligned here at most: the table behind it grows with their square. */
const MOST_WORDS = 3000;

const SIDES = ['a', 'b'];

export class Compare {
  constructor(panel, app) {
    Object.assign(this, { panel, app, mail: null, stale: true, reply: null, contrast: new Contrast(app, (row, column) => this.light(row, column)) });
  }

  view() {
    return this.contrast.view();
  }

  restore(view) {
    this.contrast.restore(view);
  }

  forget() {
    this.stop?.abort();
    this.contrast.forget();
    this.stale = true;
  }

  show({ mail }) {
    if (!this.stale) return;
    this.stale = false;
    // The same mail again, of another router: what was written for B stays, and what stood is asked anew.
    const same = this.mail?.subject === mail.subject && this.mail.text === mail.text;
    this.mail = mail;
    if (same) return this.reply ? void this.run() : undefined;
    this.reply = null;
    this.write(mail);
  }

  /** Both mails as fields; B is to be changed. */
  write(mail) {
    const field = (name, letter) => {
      const subject = h('input', { id: `subject-${name}`, autocomplete: 'off', spellcheck: 'false' });
      const text = h('textarea', { id: `text-${name}`, rows: '7', spellcheck: 'false' });
      subject.value = mail.subject;
      text.value = mail.text;
      return { subject, text, card: h('div.card', {}, h('h3', {}, letter), h('label', { for: `subject-${name}` }, 'Subject'), subject,
        h('label', { for: `text-${name}` }, 'Mail'), text) };
    };
    this.a = field('a', 'A');
    this.b = field('b', 'B');
    this.result = h('div');
    const change = ([name, make]) => h('button.small', { type: 'button', onclick: () => {
      this.b.subject.value = this.a.subject.value;
      this.b.text.value = make(this.a.text.value);
      this.run(this.b.text.value === this.a.text.value ? `There is nothing to change in A for \u201c${name.toLowerCase()}\u201d.` : null);
    } }, name);
    fill(this.panel,
      h('p.say', {}, 'What does a small change do? Choose one for B, or write it yourself.'),
      h('div.row.chips', { role: 'group', 'aria-label': 'Changes for B' }, CHANGES.map(change)),
      h('div.two.even', {}, this.a.card, this.b.card),
      h('div.row', {}, h('button.main', { type: 'button', onclick: () => this.run() }, 'Compare')),
      this.result);
  }

  async run(note = null) {
    this.stop?.abort();
    this.contrast.forget();
    const stop = this.stop = new AbortController();
    const mails = SIDES.map((side) => ({ subject: this[side].subject.value, text: this[side].text.value }));
    this.result.setAttribute('aria-busy', 'true');
    try {
      const reply = await this.ask(mails);
      if (stop.signal.aborted) return;
      Object.assign(this, { mails, reply, marked: 'words', explained: null });
      this.draw(note);
      this.contrast.show(mails, reply);
    } catch (problem) {
      if (stop.signal.aborted) return;
      this.app.complain(this.result, problem);
    }
    this.result.removeAttribute('aria-busy');
  }

  /** Both answers, aligned: by the server, or where it cannot compare, by two routings and the words of the texts. */
  async ask([a, b]) {
    const { signal } = this.stop;
    try {
      return await postJson('v1/compare', { a, b }, { offsets: 'utf16' }, signal);
    } catch (problem) {
      if (!problem.missing) throw problem;
      const side = async (mail) => {
        const { candidates } = await postMail('v1/route', mail, {}, signal);
        const scores = candidates.map(({ queue, confidence: p }) => ({ queue, p }));
        return { prediction: { queue: scores[0]?.queue, scores }, units: [...wordsOf(mail.subject, 'subject'), ...wordsOf(mail.text)].slice(0, MOST_WORDS) };
      };
      const [left, right] = [await side(a), await side(b)];
      const pairs = align(left.units.map(({ text }) => text), right.units.map(({ text }) => text));
      const alone = (units, which) => units.map((_, index) => index).filter((index) => !pairs.some((pair) => pair[which] === index));
      return { a: left, b: right, pairs, only_a: alone(left.units, 0), only_b: alone(right.units, 1) };
    }
  }

  draw(note) {
    const { app, reply } = this;
    const [left, right] = [reply.a.prediction, reply.b.prediction];
    const best = ({ scores }) => scores.slice(0, 4).filter(({ p }, index) => index === 0 || p >= 0.005).map(({ queue }) => queue);
    this.queues = [...new Set([...best(left), ...best(right)])];
    const cell = ({ scores }, id) => {
      const p = scores.find(({ queue }) => queue === id)?.p;
      return [h('td.track', { 'aria-hidden': 'true' }, h('span.fill', { style: { width: `${(p ?? 0) * 100}%` } })), h('td.number', {}, p === undefined ? '\u2013' : percent(p))];
    };
    const name = (prediction) => (prediction.queue ? app.name(prediction.queue) : 'no queue');
    const said = left.queue === right.queue ? `Both: ${name(left)}` : `${name(left)} \u2192 ${name(right)}`;
    say(note ?? said);
    this.shown = h('div');
    this.problem = h('div');
    fill(this.result,
      note && h('p.banner', {}, note),
      h('div.card', {}, h('p.queue', {}, said),
        h('table.bars.pair', {}, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Queue'), h('th', { scope: 'col', colspan: 2 }, 'A'), h('th', { scope: 'col', colspan: 2 }, 'B'))),
          h('tbody', {}, this.queues.map((id) => h('tr', {}, h('th', { scope: 'row' }, app.name(id)), cell(left, id), cell(right, id))))),
        [['A', reply.a], ['B', reply.b]].map(([letter, side]) => side.order && h('p', {}, order(app, letter, side.order)))),
      h('div.row.marked', {}, choice('Marked', [['words', 'what differs'], ...this.queues.map((id) => [id, `what speaks for ${app.name(id)}`])], this.marked, (value) => this.mark(value))),
      this.problem, this.shown, this.contrast.element);
    this.drawMails();
  }

  /** Marks the words that differ, or what speaks for a queue, which is measured when first asked for. */
  async mark(what) {
    const { stop, mails } = this;
    this.marked = what;
    fill(this.problem);
    if (what !== 'words' && !this.explained) {
      this.shown.setAttribute('aria-busy', 'true');
      try {
        const explained = [];
        for (const mail of mails) explained.push(await postJson('v1/explain', mail, { offsets: 'utf16', classes: this.queues.join(), check: false }, stop.signal));
        this.explained = explained;
      } catch (problem) {
        if (stop.signal.aborted) return;
        this.app.complain(this.problem, problem);
      }
      this.shown.removeAttribute('aria-busy');
    }
    this.drawMails();
  }

  drawMails() {
    const { app, reply, mails } = this;
    const painted = this.marked !== 'words' && this.explained;
    const evidence = painted && this.explained.map((one) => evidenceOf(one, this.marked));
    const largest = painted && strongest(...evidence.flatMap(({ sentence = [], word = [] }) => [sentence, word]));
    this.spans = { a: [], b: [] };
    const view = (side, index) => {
      const { units, text } = reply[side];
      const alone = new Set(painted ? [] : reply[`only_${side}`]);
      const words = units.map((unit, at) => ({ ...unit, paint: (span) => {
        (this.spans[side][at] ??= []).push(span);
        span.classList.toggle('alone', alone.has(at));
      } }));
      const letter = side.toUpperCase();
      const marks = [...(painted ? evidenceMarks(evidence[index], app.name(this.marked), largest) : []), ...words];
      return h('div.card', {}, h('h3', {}, letter), mailView({ ...mails[index], html: readAsHtml(mails[index].text, units) },
        { marks, blocks: app.unreadBlocks(text ?? {}), label: `Mail ${letter}` }));
    };
    fill(this.shown, h('div.two.even', {}, SIDES.map(view)),
      painted ? h('p.quiet.keys', {}, h('span.for', { style: { '--weight': '0.7' } }, `speaks for ${app.name(this.marked)}`), ' ', h('span.against', { style: { '--weight': '0.7' } }, 'speaks against it'))
        : h('p.quiet', {}, 'Underlined words stand in one mail only, or in another place.'));
  }

  /** Lights the words of a row and a column in both mails, or none. */
  light(row, column) {
    for (const element of this.result?.querySelectorAll('.lit-row, .lit-column') ?? []) element.classList.remove('lit-row', 'lit-column');
    for (const side of SIDES) {
      for (const span of this.spans?.[side][row?.[side]?.word] ?? []) span.classList.add('lit-row');
      for (const span of this.spans?.[side][column?.[side]?.word] ?? []) span.classList.add('lit-column');
    }
  }
}

/** Whether the order of the words matters for a mail, measured by shuffling them. */
function order(app, letter, { class: queue, p, p_shuffled: shuffled, queue_changes: changes, shuffles, matters }) {
  const [low, high] = [Math.min(...shuffled), Math.max(...shuffled)];
  const range = percent(low) === percent(high) ? percent(low) : `${percent(low)} to ${percent(high)}`;
  return [h('b', {}, `Word order matters for ${letter}: ${matters ? 'yes' : 'no'}. `),
    `With its words shuffled ${shuffles} times, ${app.name(queue)} is at ${range} instead of ${percent(p)}`,
    changes ? `, and ${changes} of ${shuffles} times another queue wins.` : '.'];
}
