// The mail beside a map: words lit under the pointer, shaded by the row or the column of the one that was picked.

import { fill, h, toggle } from './dom.js';
import { scaled } from './paint.js';
import { mailView } from './mailview.js';
import { label } from './text.js';

export class LitMail {
  /** `pick(unit)` when a word is clicked, `turn(way)` when rows and columns change places: 'looks' or 'looked'. */
  constructor(app, { pick, turn }) {
    Object.assign(this, { app, pick, element: h('div.card.last'), units: null, way: 'looks' });
    this.specials = h('div.row');
    this.caption = h('p.quiet', { role: 'status' });
    this.body = h('div');
    fill(this.element, h('div.row.spread', {}, h('h3', {}, 'In the mail'), h('div.row', {}, this.specials,
      toggle('Who looks at it', false, (on) => {
        this.way = on ? 'looked' : 'looks';
        turn();
      }, 'Shade by the column of the word instead of its row'))), this.caption, this.body);
  }

  /** Draws a mail and its units, unless they stand there already. */
  show(mail, units) {
    if (this.units === units) return;
    this.units = units;
    this.spans = units.map(() => []);
    const dress = (element, unit) => {
      this.spans[unit.i].push(element);
      element.classList.add('word');
      element.addEventListener('click', () => this.pick(unit.i));
    };
    const marks = units.filter((unit) => !unit.special).map((unit) => ({ ...unit, paint: (span) => dress(span, unit) }));
    fill(this.specials, units.filter((unit) => unit.special).map((unit) => {
      const button = h('button.small', { type: 'button' }, unit.text);
      dress(button, unit);
      return button;
    }));
    fill(this.body, mailView(mail, { marks, blocks: this.app.unreadBlocks() }));
  }

  /** Shades every word by what the picked one gives it or gets from it; `map` is the one in view, `name` says which. */
  shade(map, picked, scale, name) {
    const weights = picked === null ? new Map() : this.weights(map, picked);
    const largest = Math.max(0, ...weights.values());
    this.spans.forEach((spans, unit) => {
      const weight = weights.get(unit);
      for (const span of spans) {
        span.classList.toggle('picked', unit === picked);
        span.style.setProperty('--weight', weight === undefined ? '0' : scaled(weight, largest, scale).toFixed(3));
        span.title = weight === undefined ? '' : weight.toFixed(4);
      }
    });
    const whose = picked === null ? null : label(this.units[picked].text);
    this.caption.textContent = whose === null ? 'Click a word to see what it looks at, or who looks at it.'
      : `${this.way === 'looks' ? `What '${whose}' looks at` : `Who looks at '${whose}'`}: ${name}`;
  }

  /** Unit by unit: the weights of its row, or of its column. */
  weights({ rows, columns, data }, unit) {
    const at = (list) => list.findIndex((one) => one.i === unit);
    const [row, column] = [at(rows), at(columns)];
    if (this.way === 'looks') return new Map(row < 0 ? [] : columns.map((one, index) => [one.i, data[row * columns.length + index]]));
    return new Map(column < 0 ? [] : rows.map((one, index) => [one.i, data[index * columns.length + column]]));
  }

  /** Lights the words of a row and a column, or none. */
  light(row, column) {
    for (const element of this.element.querySelectorAll('.lit-row, .lit-column')) element.classList.remove('lit-row', 'lit-column');
    this.spans[row?.i]?.forEach((span) => span.classList.add('lit-row'));
    this.spans[column?.i]?.forEach((span) => span.classList.add('lit-column'));
  }
}
