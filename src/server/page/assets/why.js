// The tab "Why": which sentences spoke for the queue and which against, as measured facts. No word of the trade.

import { fill, h, say, toggle } from './dom.js';
import { postMail } from './api.js';
import { dress, evidenceMarks, evidenceOf, strongest } from './evidence.js';
import { compared, facts, verdict } from './facts.js';
import { mailView } from './mailview.js';
import { Strikes } from './strikes.js';
import { percent } from './text.js';

export class Why {
  constructor(panel, app) {
    Object.assign(this, { panel, app, queue: null, against: false, strikes: new Strikes(() => this.struck()) });
    this.forget();
  }

  view() {
    return { ...(this.queue ? { queue: this.queue } : {}), ...(this.against ? { against: 'runner_up' } : {}), ...(this.strikes.byWord ? { strike: 'word' } : {}) };
  }

  restore(view) {
    this.wanted = /^[\w.-]{1,64}$/.test(view.queue ?? '') ? view.queue : null;
    this.against = view.against === 'runner_up';
    this.strikes.byWord = view.strike === 'word';
  }

  forget() {
    this.stop?.abort();
    Object.assign(this, { mail: null, reply: null, problem: null, queue: null, after: null });
    this.strikes.forget();
  }

  show({ mail }) {
    if (this.mail === mail) return;
    this.mail = mail;
    this.queue = this.app.names.has(this.wanted) ? this.wanted : null;
    this.wanted = null;
    this.load();
  }

  /** Asks for measured evidence, for all queues at once; a server without it still lets sentences be struck out. */
  async load() {
    this.stop = new AbortController();
    Object.assign(this, { reply: null, problem: null, waiting: true });
    this.draw();
    try {
      this.reply = await postMail('v1/explain', this.mail, { offsets: 'utf16', classes: 'all' }, this.stop.signal);
    } catch (problem) {
      if (problem.name === 'AbortError') return;
      this.problem = problem;
    }
    this.waiting = false;
    this.draw();
  }

  draw() {
    const scores = (this.reply ?? this.app.look)?.prediction?.scores ?? [];
    const queue = this.queue ?? scores[0]?.queue ?? null;
    this.chosen = queue;
    this.other = this.against ? scores.find((score) => score.queue !== queue)?.queue : null;
    const evidence = evidenceOf(this.reply, this.chosen, this.other);
    const focused = this.panel.querySelector('.mail [role=button]:focus') !== null;
    fill(this.panel,
      this.reply && this.chips(scores, queue),
      h('div.why', {},
        h('div.card', {}, this.change(), this.marked(evidence), this.legend(evidence)),
        h('div.card.aside', {}, this.aside(evidence), verdict(this.app, this.reply?.check))));
    // Evidence may come while somebody walks through the mail.
    if (focused) this.strikes.focus();
  }

  /** Draws anew and gives the focus to what stands where it was. */
  again(selector) {
    this.draw();
    this.panel.querySelector(selector)?.focus({ preventScroll: true });
  }

  chips(scores, queue) {
    return h('div.row.chips', { role: 'group', 'aria-label': 'Queue to look at' },
      scores.slice(0, 5).map(({ queue: id, p }) => h('button.chip', { type: 'button', 'aria-pressed': String(id === queue), onclick: () => {
        this.queue = id;
        this.again('.chip[aria-pressed=true]');
      } }, this.app.name(id), ' ', h('span.number', {}, percent(p)))),
      toggle('Against the runner-up', this.against, (on) => {
        this.against = on;
        this.again('.chips .toggle');
      }, 'What speaks for this queue rather than for the next likely one'));
  }

  /** The mail: parts can be struck out; painted ones carry their sign as a colour, a line and a hatch. */
  marked({ sentence, word }) {
    const { strikes } = this;
    const name = this.app.name(this.chosen);
    const largest = strongest(sentence ?? [], word ?? []);
    strikes.offer(this.mail, this.app.look, sentence);
    const blocks = strikes.blocks((element, item) => 'logit' in item && dress(element, item, name, largest));
    const marks = evidenceMarks({ sentence: strikes.byWord ? sentence : [], word }, name, largest);
    return strikes.watch(mailView(this.mail, { blocks: [...blocks, ...this.app.unreadBlocks()], marks: [...marks, ...strikes.marks()], label: 'The mail as sent' }));
  }

  legend({ sentence }) {
    const name = this.app.name(this.chosen) + (this.other ? ` rather than ${this.app.name(this.other)}` : '');
    return h('div.row.keys', {},
      sentence && [h('span.for', { style: { '--weight': '0.7' } }, `speaks for ${name}`), h('span.against', { style: { '--weight': '0.7' } }, 'speaks against it')],
      this.app.unreadBlocks().length > 0 && h('span.unread', {}, 'not read'),
      h('span', {}, `Click a ${this.strikes.byWord ? 'word' : 'sentence'} to strike it out.`),
      toggle('Word by word', this.strikes.byWord, (on) => {
        this.strikes.byWord = on;
        this.again('.keys .toggle');
      }, 'Strike out single words instead of sentences'));
  }

  // Striking out: the rest is routed again at once.

  struck() {
    this.draw();
    this.strikes.focus();
    this.routeAgain();
  }

  async routeAgain() {
    const { mail, strikes } = this;
    const run = strikes.run;
    this.after = null;
    if (strikes.some) {
      try {
        const after = await postMail('v1/route', strikes.rest());
        if (this.mail !== mail || strikes.run !== run) return;
        this.after = after;
      } catch (problem) {
        return this.app.complain(this.panel.querySelector('.change'), problem);
      }
    }
    this.app.showDecision(this.after ?? this.app.decision, this.after && this.app.decision);
    const line = this.panel.querySelector('.change');
    line.replaceWith(this.change());
    say(this.panel.querySelector('.change').textContent);
  }

  change() {
    const line = h('div.change', { hidden: !this.strikes.some });
    if (!this.strikes.some) return line;
    line.append(this.after ? compared(this.app, this.app.decision, this.after) : 'Routing again \u2026', ' ',
      h('button.small', { type: 'button', onclick: () => {
        this.strikes.forget();
        this.draw();
        this.routeAgain();
      } }, 'Put everything back'));
    return line;
  }

  aside({ sentence }) {
    if (this.waiting) return h('p.quiet', { role: 'status' }, 'Measuring: each sentence is taken out once and the rest routed again \u2026');
    if (!this.problem) return facts(this.app, this.mail, sentence ?? [], this.chosen);
    return this.problem.missing
      ? [h('h3', {}, 'Try it yourself'), h('p', {}, 'This server does not measure evidence. Strike sentences out on the left: the rest is routed again at once.')]
      : [h('h3', {}, 'No evidence'), h('p', {}, this.problem.message), this.problem.remedy && h('p.quiet', {}, this.problem.remedy)];
  }
}
