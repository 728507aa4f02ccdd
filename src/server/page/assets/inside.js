// The tab "Inside": every head's map, for somebody who knows what a head is.

import { postMail } from './api.js';
import { headChoices, mapChoices, mapName } from './choices.js';
import { fill, h, say } from './dom.js';
import { Heads, MEASURES } from './heads.js';
import { LitMail } from './lit.js';
import { MapCard } from './mapcard.js';
import { DEEP, Maps, part } from './maps.js';
import { Methods } from './methods.js';
import { save } from './save.js';
import { CLUE } from './words.js';

export class Inside {
  constructor(panel, app) {
    Object.assign(this, { panel, app, mail: null, maps: null, units: 'words', special: 'keep', scale: 'sqrt' });
    Object.assign(this, { weight: 'alpha', over: 'head', layer: null, head: null, locked: false, window: 0, measure: 'sink' });
    Object.assign(this, { order: 'layer', picked: null, effects: null });
    this.methods = new Methods(app);
    document.addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && !panel.hidden && this.locked) this.free();
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.maps && this.redraw());
  }

  // What a link keeps of the view.

  view() {
    const { units, special, scale, weight, over, measure, order, locked, layer, head } = this;
    return { units, special, scale, weight, over, measure, order, ...(locked ? { layer, head } : {}) };
  }

  restore(view) {
    const allowed = { units: ['words', 'pieces'], special: ['keep', 'drop'], scale: ['linear', 'sqrt', 'log'],
      weight: ['alpha', 'norm'], over: ['head', 'layer', 'all', ...DEEP], measure: ['sink', 'spread', 'effect'] };
    for (const [name, values] of Object.entries(allowed)) if (values.includes(view[name])) this[name] = view[name];
    if (view.order === 'layer' || MEASURES[view.order]) this.order = view.order;
    if (/^\d{1,3}$/.test(view.layer) && /^\d{1,3}$/.test(view.head)) {
      Object.assign(this, { layer: Number(view.layer), head: Number(view.head), locked: true });
    }
  }

  /** Shows a mail. */
  show({ mail, look }) {
    if (this.mail === mail && (this.maps || !look)) return;
    Object.assign(this, { mail, look, window: 0 });
    this.load();
  }

  forget() {
    this.maps?.stop.abort();
    Object.assign(this, { mail: null, maps: null, effects: null, picked: null });
  }

  async load() {
    this.maps?.stop.abort();
    if (!this.look) return void fill(this.panel, h('p.banner', {}, this.app.lookProblem ?? 'There is nothing to look at in this mail.'));
    const { units, weight, window } = this;
    const maps = new Maps(this.mail, this.look, this.app.model, { units, weight, window });
    Object.assign(this, { maps, picked: null, measures: null });
    this.frame();
    try {
      await maps.load((layer) => {
        this.drawLayer(layer);
        if (layer === 0) this.select(this.layer ?? this.app.model.encoder.layers - 1, this.head ?? 0);
        else if (layer === this.layer || this.over === 'all') this.refresh();
      });
      this.weight = maps.weight;
      this.status.textContent = '';
      this.measureAll();
      this.refresh();
      if (DEEP.includes(this.over)) await this.loadDeep();
      await this.loadEffects();
    } catch (problem) {
      if (problem.name !== 'AbortError') this.complain(problem);
    }
  }

  /** Fetches the map over all layers that was chosen; where there is none, one head is shown again. */
  async loadDeep() {
    try {
      await this.maps.loadDeep(this.over);
    } catch (problem) {
      if (problem.name === 'AbortError') return;
      this.over = 'head';
      this.drawControls();
      this.refresh();
      return this.complain(problem);
    }
    this.refresh();
  }

  /** What each head does for the decision, where that is asked for: each is switched off in turn, so it costs a pass for every head. */
  async loadEffects() {
    if (this.effects || ![this.measure, this.order].includes('effect')) return;
    this.status.textContent = 'Measuring what each head does for the decision \u2026';
    try {
      const reply = await postMail('v1/heads', this.mail, { ablate: true }, this.maps.stop.signal);
      this.effects = reply.ablation;
      this.status.textContent = '';
      this.measureAll();
    } catch (problem) {
      if (problem.name === 'AbortError') return;
      for (const name of ['measure', 'order']) if (this[name] === 'effect') this[name] = name === 'order' ? 'layer' : 'sink';
      this.measureAll();
      this.complain(problem);
    }
  }

  complain(problem) {
    this.status.textContent = '';
    this.notes.dataset.shown = '';
    this.app.complain(this.notes, problem);
  }

  // The frame: drawn once for a mail.

  frame() {
    this.notes = h('div');
    this.status = h('p.quiet', { role: 'status' }, 'Asking for the maps \u2026');
    this.heads = new Heads(this.app.model.encoder, {
      peek: (layer, head) => !this.locked && this.maps.windows && this.select(layer, head),
      choose: (layer, head) => {
        if (this.locked && this.layer === layer && this.head === head) return this.free();
        this.locked = true;
        this.select(layer, head);
      },
    });
    this.card = new MapCard({ hover: (cross) => this.hovered(cross), pick: (row) => this.pick(this.shown.rows[row].i), save: (format) => this.save(format) });
    this.lit = new LitMail(this.app, { pick: (unit) => this.pick(unit), turn: () => this.shade() });
    this.gridControls = h('div.row.controls');
    fill(this.panel,
      h('p.clue', {}, CLUE), this.notes, this.status,
      h('div.inside', {},
        h('div.stack', {},
          h('div.card', {}, h('h3', {}, 'Heads'), this.gridControls, this.heads.element,
            h('p.quiet', {}, 'Point at a head to see it, click to keep it, Esc to let go. Dimmed heads rest on special tokens.')),
          this.lit.element),
        this.card.element),
      this.methods.element);
    this.methods.offer(this.mail, this.look.prediction.scores);
    this.drawControls();
  }

  drawControls() {
    const set = (name) => (value) => {
      this[name] = value;
      if (name === 'units' || name === 'weight') this.load();
      else if (DEEP.includes(this.over) && !this.maps.has(this.over)) this.loadDeep();
      else this.refresh();
    };
    const turn = (value) => {
      Object.assign(this, { window: Number(value), picked: null });
      if (!this.maps.windows?.[this.window]) return void this.load();
      this.maps.window = this.window;
      this.measureAll();
      this.redraw();
    };
    const grid = (name) => (value) => {
      this[name] = value;
      if (name === 'measure') this.heads.badges(this.measures, value);
      else this.heads.arrange(value, this.measures);
      this.loadEffects();
    };
    fill(this.card.controls, mapChoices(this, this.maps.count, (name) => (name === 'window' ? turn : set(name))));
    fill(this.gridControls, headChoices(this, grid));
  }

  // Heads and the map in view.

  drawLayer(layer) {
    this.heads.draw(layer, (head) => (this.maps.has('head', layer, head) ? this.maps.map('head', layer, head, 'keep') : null));
  }

  redraw() {
    this.maps.weights.forEach((_, layer) => this.drawLayer(layer));
    this.refresh();
  }

  measureAll() {
    this.measures = this.maps.measures(this.effects);
    this.drawControls();
    this.heads.badges(this.measures, this.measure);
    this.heads.arrange(this.order, this.measures);
  }

  select(layer, head) {
    const { layers, heads } = this.app.model.encoder;
    Object.assign(this, { layer: Math.min(layer, layers - 1), head: Math.min(head, heads - 1) });
    this.heads.mark(this.layer, this.head, this.locked);
    this.refresh();
  }

  free() {
    this.locked = false;
    this.select(this.layer, this.head);
    say('Let go. Point at another head.');
  }

  name() {
    return mapName(this, this.app.name(this.look.prediction.queue));
  }

  refresh() {
    if (!this.maps?.has(this.over, this.layer, this.head)) return;
    const map = this.maps.map(this.over, this.layer, this.head, this.special);
    const largest = map.data.reduce((a, b) => Math.max(a, b), 0);
    this.shown = map;
    this.lookOf = { largest, scale: this.scale };
    const kept = this.locked && ['head', 'layer'].includes(this.over) ? ' (kept)' : '';
    this.card.show(map, this.lookOf, this.name() + kept, this.special === 'drop');
    this.lit.show(this.mail, this.maps.windows[this.window].units);
    this.shade();
    this.banners();
  }

  banners() {
    const notes = this.maps.warnings(this.over === 'head' ? this.measures?.[this.layer]?.[this.head] : null);
    if (this.notes.dataset.shown === notes.join()) return;
    this.notes.dataset.shown = notes.join();
    fill(this.notes, notes.map((note) => h('p.banner', {}, note)));
  }

  // The words of the mail.

  pick(unit) {
    this.picked = this.picked === unit ? null : unit;
    this.shade();
  }

  shade() {
    this.lit.shade(this.shown, this.picked, this.scale, this.name().toLowerCase());
  }

  hovered(cross) {
    if (!cross) {
      this.lit.light();
      return this.card.clear();
    }
    this.card.tell(this.shown, cross, this.over === 'head' ? `layer ${this.layer} head ${this.head}` : this.name().toLowerCase());
    this.lit.light(this.shown.rows[cross[0]], this.shown.columns[cross[1]]);
  }

  save(format) {
    const { prediction } = this.look;
    const about = { model: `${this.maps.about.id} ${this.maps.about.revision}`, queue: prediction.queue, confidence: prediction.confidence,
      map: this.name(), kind: DEEP.includes(this.over) ? this.over : this.weight, units: this.units, special: this.special, scale: this.scale,
      window: this.maps.count > 1 ? this.window : null, date: new Date().toISOString(), clue: CLUE };
    save(format, part(this.shown, this.card.heat.seen()), this.lookOf, about);
    say(`Saved as ${format}.`);
  }
}
