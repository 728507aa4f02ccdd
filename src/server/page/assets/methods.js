// Ways to say what mattered, side by side, each with its verdict: measured ones, and attention, which is a clue.

import { choice, fill, h } from './dom.js';
import { postMail } from './api.js';
import { label, percent } from './text.js';
import { VERDICTS } from './words.js';

const METHODS = {
  occlusion: ['taken out', 'The word is taken out and the mail routed again: both legs of the router, signed.'],
  ig: ['integrated gradients', 'Gradients on the way from an empty mail: the encoder alone, signed.'],
  relevance: ['relevance', 'Gradients along the attention of all layers: the encoder alone, what speaks for the queue.'],
  rollout: ['rollout', 'The attention of all layers multiplied: no sign, no queue.'],
  attention: ['attention', 'The attention of the last layer: no sign, no queue.'],
};

export class Methods {
  constructor(app) {
    Object.assign(this, { app, element: h('div.card'), order: null });
  }

  /** Offers the comparison for a mail; it costs a hundred passes and more, so it waits to be asked. */
  offer(mail, scores) {
    Object.assign(this, { mail, scores, queue: scores[0].queue, reply: null });
    this.draw();
  }

  async ask() {
    const mail = this.mail;
    this.problem = null;
    this.busy = true;
    this.draw();
    try {
      const reply = await postMail('v1/explain', mail, { method: Object.keys(METHODS).join(), unit: 'word', classes: this.queue, offsets: 'utf16' });
      if (this.mail === mail) this.reply = reply;
    } catch (problem) {
      this.problem = problem;
    }
    this.busy = false;
    this.draw();
  }

  draw() {
    const problem = h('div');
    fill(this.element,
      h('h3', {}, 'Ways to say what mattered'),
      h('p.quiet', {}, 'Attention beside methods that were measured, word by word, and whether what each marks decides anything.'),
      h('div.row', {}, choice('For', this.scores.map(({ queue }) => [queue, this.app.name(queue)]), this.queue, (queue) => {
        Object.assign(this, { queue, reply: null });
        this.draw();
      }), h('button', { type: 'button', disabled: Boolean(this.busy), onclick: () => this.ask() }, this.busy ? 'Measuring \u2026' : 'Measure them')),
      problem, this.reply && this.results());
    if (this.problem) this.app.complain(problem, this.problem);
  }

  results() {
    const { evidence, checks, agreement } = this.reply;
    const { app } = this;
    const methods = Object.keys(METHODS).map((name) => ({ name, ...evidence.find(({ method }) => method === name), check: checks.find(({ method }) => method === name) })).filter(({ items }) => items);
    const words = methods.reduce((most, { items }) => (items.length > most.length ? items : most), []);
    // Where a method put words together, each of them has the value of all.
    const value = ({ items }, word) => {
      const item = items.find(({ field, start, end }) => field === word.field && start <= word.start && word.end <= end);
      return item ? item.logit ?? item.weight : null;
    };
    const rows = words.map((word) => ({ word, values: methods.map((method) => value(method, word)) }));
    const most = methods.map((_, column) => Math.max(1e-9, ...rows.map(({ values }) => Math.abs(values[column] ?? 0))));
    if (this.order !== null) rows.sort((a, b) => Math.abs(b.values[this.order] ?? 0) - Math.abs(a.values[this.order] ?? 0));
    const head = (text, column, title) => h('th', { scope: 'col', 'aria-sort': this.order === column ? 'descending' : 'none' },
      h('button.small', { type: 'button', title, onclick: () => {
        this.order = column;
        this.draw();
      } }, text));
    const warned = [
      ...methods.filter(({ converged }) => converged === false).map(({ name, approximation_error: error }) => `${METHODS[name][0]} did not converge (error ${percent(error)}): it is not painted.`),
      ...checks.filter(({ why }) => why === 'prior_wins').slice(0, 1).map((check) => `A mail without any text gets ${app.name(check.class)} at least as surely: no word needs to have decided it.`),
    ];
    return [
      warned.map((warning) => h('p.banner', {}, warning.replace(/^./, (first) => first.toUpperCase()))),
      h('div.scroll', { tabindex: '0', role: 'region', 'aria-label': 'Words and methods' }, h('table.methods', {},
        h('thead', {}, h('tr', {}, head('word', null, 'In the order of the mail'), methods.map(({ name }, column) => head(METHODS[name][0], column, METHODS[name][1]))),
          h('tr', {}, h('td', {}, 'verdict'), methods.map((method) => h('td', {}, verdict(app, method))))),
        h('tbody', {}, rows.map(({ word, values }) => h('tr', {}, h('th', { scope: 'row' }, h('bdi', {}, label(word.text ?? '', 24))),
          values.map((one, column) => cell(one, one / most[column], methods[column]))))))),
      h('h3', {}, 'Do they agree?'),
      h('div.scroll', {}, agreements(methods, agreement)),
      h('p.quiet', {}, 'Rank agreement of the words (Kendall\u2019s tau: 1 the same order, 0 none, \u22121 the opposite), and how many of the ten strongest words both name.'),
    ];
  }
}

/** The check is about the likeliest queue, whichever was chosen, so it names it. */
function verdict(app, { converged, approximation_error: error, check }) {
  if (converged === false) return `not converged (error ${percent(error)}): not painted`;
  const [word, meaning] = VERDICTS[check?.why] ?? VERDICTS[check?.verdict] ?? ['\u2013'];
  const moved = check ? `${app.name(check.class)} ${percent(check.p_full)} \u2192 ${percent(check.p_without_top)}, at random ${percent(check.p_without_random_mean)}` : '';
  return [h('b', { title: meaning }, word), h('br'), moved, error === null || error === undefined ? null : [h('br'), `error ${percent(error)}`]];
}

function agreements(methods, agreement) {
  const name = (method) => METHODS[method.name][0];
  const told = (a, b) => {
    const found = agreement.find((pair) => (pair.a === a.name && pair.b === b.name) || (pair.a === b.name && pair.b === a.name));
    if (!found) return '';
    const tau = found.kendall_tau_b === null ? '\u2013' : (found.kendall_tau_b || 0).toFixed(2);
    return `${tau}, ${Math.round(found.top10_overlap * 10)} of 10`;
  };
  return h('table.methods', {}, h('thead', {}, h('tr', {}, h('td'), methods.map((method) => h('th', { scope: 'col' }, name(method))))),
    h('tbody', {}, methods.map((a) => h('tr', {}, h('th', { scope: 'row' }, name(a)), methods.map((b) => h('td.number', {}, told(a, b)))))));
}

/** What has no sign is painted neutrally: attention knows neither for nor against. */
function cell(value, part, { signed, converged }) {
  if (value === null) return h('td', {}, '\u2013');
  const painted = converged !== false && Math.abs(part) >= 0.05;
  const kind = !signed ? 'word' : value > 0 ? 'for' : 'against';
  return h('td.number', {}, h(painted ? `span.${kind}` : 'span', { style: { '--weight': Math.abs(part).toFixed(3) } }, `${signed && value > 0 ? '+' : ''}${value.toFixed(3)}`));
}
