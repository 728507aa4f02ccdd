// The card with the map in view: its title, the picture, what the pointer is on, the legend, and the ways to save it.

import { fill, h } from './dom.js';
import { HeatMap } from './heatmap.js';
import { colours, scaled } from './paint.js';
import { FORMATS } from './save.js';
import { label, percent } from './text.js';

export class MapCard {
  /** `hover(cross)` for the cell under the pointer or none, `pick(row)` for a click, `save(format)` for a file. */
  constructor({ hover, pick, save }) {
    const canvas = h('canvas', { tabindex: '0', role: 'application', 'aria-roledescription': 'heat map',
      'aria-label': 'Heat map. Rows: this word looks at. Columns: is looked at. Arrow keys move, Enter keeps the row, plus and minus zoom.' });
    const box = h('div.canvas', {}, canvas);
    this.heat = new HeatMap(canvas, { hover, pick });
    this.title = h('h3', {}, '\u00a0');
    this.controls = h('div.row.controls');
    this.readout = h('output.readout', { 'aria-live': 'polite' }, '\u00a0');
    this.legend = h('div.legend');
    this.element = h('div.card.map', {}, h('div.row.spread', {}, this.title, zooms((factor) => this.heat.zoomBy(factor))),
      this.controls, box, this.readout, this.legend,
      h('div.row.saves', { role: 'group', 'aria-label': 'Save what is seen' }, h('span.quiet', {}, 'Save as'),
        FORMATS.map((format) => h('button.small', { type: 'button', onclick: () => save(format) }, format))));
  }

  /** Shows a map; `dropped` where [CLS] and [SEP] are left out of it. */
  show(map, look, title, dropped) {
    this.title.textContent = title;
    this.heat.set(map, look);
    const palette = colours();
    const bar = h('canvas', { width: '120', height: '10', role: 'img', 'aria-label': `Light is 0, dark is ${look.largest.toFixed(3)}` });
    const context = bar.getContext('2d');
    for (let x = 0; x < 120; x++) {
      context.fillStyle = palette.css(scaled((x / 119) * look.largest, look.largest, look.scale));
      context.fillRect(x, 0, 1, 10);
    }
    fill(this.legend, h('span', {}, '0'), bar, h('span', {}, look.largest.toFixed(3)),
      dropped && h('span', {}, 'Rows are shared out anew; the strip on the left shows what went to [CLS] and [SEP].'),
      map.dead && h('span', {}, 'Faded rows cannot reach the decision.'));
  }

  /** Says what a cell holds; `where` is the map's name. */
  tell({ rows, columns, data, removed }, [row, column], where) {
    const weight = data[row * columns.length + column].toFixed(3);
    const gone = removed ? `; ${percent(removed[row])} of the row went to [CLS] and [SEP]` : '';
    this.readout.textContent = `row '${label(rows[row].text)}' \u2192 column '${label(columns[column].text)}' ${weight}, ${where}${gone}`;
  }

  clear() {
    this.readout.textContent = '\u00a0';
  }
}

/** Buttons that zoom: `zoom(factor)`, 0 for the whole map. */
export function zooms(zoom) {
  const button = (factor, text, name) => h('button.small', { type: 'button', 'aria-label': name, onclick: () => zoom(factor) }, text);
  return h('div.row', {}, button(0.8, '\u2212', 'Zoom out'), button(1.25, '+', 'Zoom in'), button(0, 'All', 'Show the whole map'));
}
