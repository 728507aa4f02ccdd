// Two mails' maps beside each other and their difference: of one head, of a layer, or over all layers.

import { choice, fill, h } from './dom.js';
import { postJson } from './api.js';
import { SCALES, SPECIALS, numbered } from './choices.js';
import { HeatMap } from './heatmap.js';
import { zooms } from './mapcard.js';
import { DEEP } from './maps.js';
import { colours, depth } from './paint.js';
import { difference, largest, places, spread } from './paired.js';
import { label } from './text.js';
import { CLUE } from './words.js';

const ALLOWED = { over: ['head', 'layer', ...DEEP], scale: ['linear', 'sqrt', 'log'], special: ['keep', 'drop'] };

export class Contrast {
  /** `light(row, column)` while the pointer is over a cell: places of both mails, or nothing. */
  constructor(app, light) {
    Object.assign(this, { app, light, element: h('div.card'), over: 'layer', layer: null, head: 0, scale: 'sqrt', special: 'drop' });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.maps && this.refresh());
  }

  view() {
    const { over, layer, head, scale, special } = this;
    return { over, scale, special, head, ...(layer === null ? {} : { layer }) };
  }

  restore(view) {
    for (const [name, values] of Object.entries(ALLOWED)) if (values.includes(view[name])) this[name] = view[name];
    for (const name of ['layer', 'head']) if (/^\d{1,3}$/.test(view[name])) this[name] = Number(view[name]);
  }

  forget() {
    this.stop?.abort();
    this.maps = null;
  }

  /** Shows the maps of two mails; `reply` says which of their words are the same. */
  async show(mails, reply) {
    this.forget();
    const { layers, heads } = this.app.model.encoder;
    Object.assign(this, { mails, reply, window: 0, counts: null, kept: new Map() });
    // Where nothing was chosen: a layer in the middle, whose rows are still about single words.
    this.layer = Math.min(this.layer ?? Math.floor(layers / 2), layers - 1);
    this.head = Math.min(this.head, heads - 1);
    this.frame();
    await this.load();
  }

  frame() {
    const canvas = (name) => h('canvas', { tabindex: '0', role: 'application', 'aria-roledescription': 'heat map',
      'aria-label': `${name}. Rows: this word looks at. Columns: is looked at. Arrow keys move in all three maps, plus and minus zoom.` });
    const figure = (kind, title, name, ...below) => {
      const own = canvas(name);
      const box = h('div.canvas', {}, own);
      this.heats.push(new HeatMap(own, { hover: (cross) => this.hovered(cross), pick: () => {}, beside: this.heats[0] }));
      return h(`div.${kind}`, {}, h('h4', {}, title), box, ...below);
    };
    this.heats = [];
    this.notes = h('div');
    this.controls = h('div.row.controls');
    this.readout = h('output.readout', { 'aria-live': 'polite' }, '\u00a0');
    this.legend = h('div.legend');
    const figures = [figure('of-a', 'A', 'Heat map of A'), figure('of-b', 'B', 'Heat map of B'), figure('of-both', 'B minus A', 'Heat map of the difference, B minus A', this.readout, this.legend)];
    fill(this.element,
      h('div.row.spread', {}, h('h3', {}, 'What words look at, in A and in B'), zooms((factor) => this.heats[2].zoomBy(factor))),
      this.controls, this.notes, h('div.contrast', {}, figures), h('p.quiet', {}, CLUE));
    this.drawControls();
  }

  drawControls() {
    const { layers, heads } = this.app.model.encoder;
    const set = (name, asked, read = String) => (value) => {
      this[name] = read(value);
      if (!asked) return this.refresh();
      this.drawControls();
      this.load();
    };
    const parts = Math.min(...(this.counts ?? [1]));
    const of = this.app.name(this.reply.a.prediction.queue);
    fill(this.controls,
      choice('Maps', [['head', 'one head'], ['layer', 'mean of a layer'], ['rollout', 'rollout over layers'], ['relevance', `relevance for ${of}`]], this.over, set('over', true)),
      !DEEP.includes(this.over) && choice('Layer', numbered(layers), String(this.layer), set('layer', true, Number)),
      this.over === 'head' && choice('Head', numbered(heads), String(this.head), set('head', true, Number)),
      choice('Colour', SCALES, this.scale, set('scale')),
      choice('[CLS], [SEP]', SPECIALS, this.special, set('special')),
      parts > 1 && choice('Part', numbered(parts, (index) => `window ${index + 1}`), String(this.window), set('window', true, Number)));
  }

  async load() {
    this.stop?.abort();
    const stop = this.stop = new AbortController();
    fill(this.notes);
    this.element.setAttribute('aria-busy', 'true');
    try {
      if (!this.counts) {
        const counts = [];
        for (const mail of this.mails) counts.push((await this.ask(mail, {})).windows?.length ?? 1);
        this.counts = counts;
        if (Math.min(...counts) > 1) this.drawControls();
      }
      const maps = [await this.map(0), await this.map(1)];
      if (stop.signal.aborted) return;
      this.maps = maps;
      this.refresh();
    } catch (problem) {
      if (stop.signal.aborted) return;
      this.app.complain(this.notes, problem);
    }
    this.element.removeAttribute('aria-busy');
  }

  ask(mail, parameters) {
    return postJson('v1/attention', mail, { offsets: 'utf16', ...parameters }, this.stop.signal);
  }

  /** A map of one of the mails, each fetched once. */
  async map(side) {
    const { over, layer, head, window } = this;
    const id = [side, window, over, ...(DEEP.includes(over) ? [] : [layer, over === 'head' && head])].join();
    if (this.kept.has(id)) return this.kept.get(id);
    const which = {
      head: { layers: layer, heads: head, reduce: 'none' },
      layer: { layers: layer, heads: 'all', reduce: 'mean' },
      rollout: { layers: 'all', heads: 'all', reduce: 'rollout' },
      relevance: { layers: 'all', heads: 'all', reduce: 'relevance', class: this.reply.a.prediction.queue },
    }[over];
    const { units, attention } = await this.ask(this.mails[side],
      { ...which, rows: 'all', words: true, special: 'keep', precision: 6, ...(this.counts[side] > 1 ? { window } : {}) });
    const clsOnly = attention.rows_that_can_matter === 'cls_only_in_the_last_layer' && !DEEP.includes(over) && layer === this.app.model.encoder.layers - 1;
    const map = { rows: units, columns: units, data: Float32Array.from(attention.data[0][0].flat()), dead: clsOnly ? (unit) => unit.i !== 0 : null };
    this.kept.set(id, map);
    return map;
  }

  refresh() {
    if (!this.maps) return;
    const [a, b] = this.maps;
    const list = places(a.columns, b.columns, [this.reply.a.units, this.reply.b.units], this.reply.pairs);
    const shared = this.over !== 'relevance';
    const [left, right] = [spread(a, list, 'a', this.special, shared), spread(b, list, 'b', this.special, shared)];
    const between = difference(left, right);
    this.shown = { left, right, between };
    const look = { largest: Math.max(largest(left), largest(right)), scale: this.scale };
    this.look = { largest: largest(between), scale: this.scale, signed: true };
    this.heats[0].set(left, look);
    this.heats[1].set(right, look);
    this.heats[2].set(between, this.look);
    this.drawLegend(list);
    this.hovered(null);
  }

  drawLegend(list) {
    const most = this.look.largest;
    if (most === 0) return void fill(this.legend, h('span', {}, 'There is no difference.'));
    const palette = colours();
    const bar = h('canvas', { width: '160', height: '10', role: 'img', 'aria-label': `From ${signed(-most)}, where A looks more, to ${signed(most)}, where B does` });
    const context = bar.getContext('2d');
    for (let x = 0; x < 160; x++) {
      context.fillStyle = palette.cssBetween(depth(((x - 79.5) / 79.5) * most, this.look));
      context.fillRect(x, 0, 1, 10);
    }
    const lone = list.filter((place) => !place.a || !place.b).length;
    fill(this.legend, h('span', {}, `more in A ${signed(-most)}`), bar, h('span', {}, `${signed(most)} more in B`),
      lone > 0 && h('span', {}, h('span.hatched', { 'aria-hidden': 'true' }), ` ${lone === 1 ? 'a word' : `${lone} words`} of one mail only`),
      this.special === 'drop' && h('span', {}, 'Rows are shared out anew; the strips show what went to [CLS] and [SEP].'));
  }

  hovered(cross) {
    if (!cross || !this.shown) {
      this.readout.textContent = '\u00a0';
      return this.light();
    }
    const { left, right, between } = this.shown;
    const [row, column] = [between.rows[cross[0]], between.columns[cross[1]]];
    const at = ({ data, columns }) => data[cross[0] * columns.length + cross[1]];
    const told = (weight) => (Number.isNaN(weight) ? 'not there' : weight.toFixed(3));
    const change = at(between);
    this.readout.textContent = `row '${label(row.text)}' \u2192 column '${label(column.text)}': A ${told(at(left))}, B ${told(at(right))}`
      + (Number.isNaN(change) ? '' : `, difference ${signed(change)}`);
    this.light(row, column);
  }
}

function signed(value) {
  return `${value < 0 ? '\u2212' : '+'}${Math.abs(value).toFixed(3)}`;
}
