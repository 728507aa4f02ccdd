// The maps of one mail: fetched as much at a time as an answer may hold, kept as flat arrays, combined and measured here.

import { postMail } from './api.js';
import { MAP_NOTES } from './words.js';

/** Maps over all layers at once, which the server makes. */
export const DEEP = ['rollout', 'relevance'];

/** What this server turned out not to have: an older one has no other weights, and no choice of window. */
export const lacks = { norm: false, window: false };

export class Maps {
  /** `how` is {units, weight, window}: words or pieces, alpha or norm, the window in view. */
  constructor(mail, look, model, how) {
    Object.assign(this, { mail, look, model, ...how, stop: new AbortController(), deep: {}, short: false });
    /** Weights by layer, head and window, row by row. */
    this.weights = Array.from({ length: model.encoder.layers }, () => []);
    this.windows = null;
  }

  get count() {
    return this.look.windows?.length ?? 1;
  }

  /** Fetches every head; `arrived(layer)` after each layer. */
  async load(arrived) {
    const { layers, heads } = this.model.encoder;
    let together = this.together(heads);
    for (let layer = 0; layer < layers; layer++) {
      for (let head = 0; head < heads;) {
        const last = Math.min(heads, head + together) - 1;
        let reply;
        try {
          reply = await this.ask({ ...this.kind(), layers: layer, heads: `${head}-${last}`, rows: 'all' });
        } catch (problem) {
          if (this.retry(problem)) return this.load(arrived);
          if (problem.code !== 'map_too_large') throw problem;
          if (together === 1) return this.narrow(arrived);
          together = Math.ceil(together / 2);
          continue;
        }
        this.take(reply, layer, head);
        head = last + 1;
      }
      arrived(layer);
    }
  }

  /** A mail too long for whole maps: the row of [CLS] of every head. */
  async narrow(arrived) {
    const reply = await this.ask({ ...this.kind(), layers: 'all', heads: 'all', rows: 'cls' });
    this.short = true;
    const windows = this.windowsOf(reply);
    this.weights.forEach((_, layer) => {
      const one = (window) => ({ ...window, attention: { ...window.attention, data: [window.attention.data[layer]] } });
      this.take({ ...reply, windows: windows.map(one) }, layer, 0);
      arrived(layer);
    });
  }

  /** Fetches a map over all layers. */
  async loadDeep(kind) {
    const reply = await this.ask({ layers: 'all', heads: 'all', rows: 'all', reduce: kind, ...(kind === 'relevance' ? { class: this.look.prediction.queue } : {}) });
    this.deep[kind] = this.windowsOf(reply).map(({ attention }) => Float32Array.from(attention.data[0][0].flat()));
  }

  has(over, layer, head) {
    return DEEP.includes(over) ? Boolean(this.deep[over]?.[this.window]) : Boolean(this.weights[layer]?.[head]?.[this.window]);
  }

  /** A map: {rows, columns, data, removed, dead}, the weights of `rows` on `columns`, row by row. */
  map(over, layer, head, special) {
    const { units, rows: queries } = this.windows[this.window];
    const layers = over === 'all' ? this.weights : [this.weights[layer]];
    const sources = layers.flatMap((heads) => (over === 'head' ? [heads[head]] : heads)).filter(Boolean).map((windows) => windows[this.window]);
    let data = DEEP.includes(over) ? this.deep[over][this.window] : sources[0];
    if (!DEEP.includes(over) && sources.length > 1) data = data.map((_, i) => sources.reduce((sum, one) => sum + one[i], 0) / sources.length);
    const clsOnly = this.matter === 'cls_only_in_the_last_layer' && ['head', 'layer'].includes(over) && layer === this.weights.length - 1;
    const map = { rows: queries.map((row) => units[row]), columns: units, data, dead: clsOnly ? (unit) => unit.i !== 0 : null };
    return special === 'drop' ? dropSpecial(map, this.weight === 'alpha' && over !== 'relevance') : map;
  }

  /** Figures of every head, by layer; `effects` are measured elsewhere. */
  measures(effects) {
    return this.weights.map((heads, layer) => heads.map((_, head) => (
      { ...measure(this.map('head', layer, head, 'keep')), effect: effects?.[layer]?.[head] ?? null })));
  }

  /** What a person should know of these maps, and of the head in view where there is one. */
  warnings(head) {
    const found = (this.notes ?? []).map((note) => MAP_NOTES[note]).filter(Boolean);
    if (this.short) found.push('The mail is too long for whole maps: only the row of [CLS] is shown, for each head.');
    if (head?.spread > 0.98) found.push('This map is nearly uniform: the head looks at everything alike. If all heads do, were the weights loaded?');
    return found;
  }

  kind() {
    return { reduce: 'none', ...(this.weight === 'norm' ? { weight: 'norm' } : {}) };
  }

  /** How many heads fit one answer. */
  together(heads) {
    const { windows } = this.look;
    const side = ({ units, tokens }) => (this.units === 'words' || !tokens ? units.length : tokens.end - tokens.start + 2);
    const sides = windows && lacks.window ? windows.map(side) : [side(windows?.[this.window] ?? this.look)];
    const cells = sides.reduce((sum, one) => sum + one * one, 0);
    return Math.max(1, Math.min(heads, Math.floor(this.model.limits.max_json_cells / cells)));
  }

  /** Asks for maps; of a long mail for those of the window in view. */
  ask(more) {
    const parameters = { words: this.units === 'words', special: 'keep', offsets: 'utf16', precision: 6, ...more };
    if (this.count > 1 && !lacks.window) parameters.window = this.window;
    return postMail('v1/attention', this.mail, parameters, this.stop.signal);
  }

  /** Notes what the server lacks; answers whether asking again without it makes sense. */
  retry({ code }) {
    if (code === 'not_available' && this.weight === 'norm') {
      lacks.norm = true;
      this.weight = 'alpha';
      return true;
    }
    if (code !== 'unknown_parameter' || lacks.window) return false;
    return (lacks.window = true);
  }

  take(reply, layer, head) {
    const windows = this.windowsOf(reply);
    const first = windows.find(Boolean);
    Object.assign(this, { about: reply.model, notes: reply.notes, matter: first.attention.rows_that_can_matter });
    this.windows = windows.map(({ units, attention }) => ({ units, rows: attention.queries }));
    windows.forEach(({ attention }, window) => attention.data[0].forEach((rows, at) => {
      (this.weights[layer][head + at] ??= [])[window] = Float32Array.from(rows.flat());
    }));
  }

  /** The windows of an answer by their number: all of them, or the one that was asked for. */
  windowsOf(reply) {
    if (reply.windows) return reply.windows;
    const windows = [];
    windows[this.window] = reply;
    return windows;
  }
}

/** Columns of [CLS] and [SEP] go, and what went is told; where rows sum to 1 (`shared`), the rest of each is divided by what is left. */
export function dropSpecial({ rows, columns, data, dead }, shared) {
  const kept = columns.map((unit, index) => (unit.special ? -1 : index)).filter((index) => index >= 0);
  const rest = new Float32Array(rows.length * kept.length);
  const removed = rows.map((_, row) => {
    const at = row * columns.length;
    const left = kept.reduce((sum, column) => sum + data[at + column], 0);
    const all = data.subarray(at, at + columns.length).reduce((a, b) => a + b, 0);
    const gone = all > 0 ? 1 - left / all : 1;
    // A row that looks at special tokens alone is not stretched into a pattern.
    if (gone <= 0.99) kept.forEach((column, index) => { rest[row * kept.length + index] = data[at + column] / (shared ? left : 1); });
    return gone;
  });
  return { rows, columns: kept.map((index) => columns[index]), data: rest, removed, dead };
}

/** The part of a map in [first row, end, first column, end]. */
export function part({ rows, columns, data, removed, dead }, [top, bottom, left, right]) {
  const weights = rows.slice(top, bottom).flatMap((_, row) => [...data.subarray((top + row) * columns.length + left, (top + row) * columns.length + right)]);
  return { rows: rows.slice(top, bottom), columns: columns.slice(left, right), data: Float32Array.from(weights), removed: removed?.slice(top, bottom), dead };
}

/** Means over the rows of words: the share on special tokens, and the entropy as a part of the largest possible. */
function measure({ rows, columns, data }) {
  const words = rows.length > 1 ? rows.flatMap((unit, row) => (unit.special ? [] : [row])) : [0];
  const most = Math.log(columns.length) || 1;
  let [sink, spread] = [0, 0];
  for (const row of words) {
    const at = row * columns.length;
    const all = data.subarray(at, at + columns.length).reduce((a, b) => a + b, 0) || 1;
    columns.forEach((unit, column) => {
      const weight = data[at + column] / all;
      if (unit.special) sink += weight;
      if (weight > 0) spread -= (weight * Math.log(weight)) / most;
    });
  }
  return { sink: sink / words.length, spread: spread / words.length };
}
