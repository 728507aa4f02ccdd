// The grid of heads: one small picture for each, with a number; to point at, to keep, to walk with the arrow keys.

import { fill, h } from './dom.js';
import { thumbnail } from './paint.js';

/** Numbers of a head: what each is called, and what it means. */
export const MEASURES = {
  sink: ['on special tokens', 'How much of its attention goes to [CLS] and [SEP]: a head at rest.'],
  spread: ['spread out', 'How evenly it looks at everything: 100% is uniform.'],
  effect: ['effect', 'What the decision loses when this head is switched off, measured, in logits.'],
};

export class Heads {
  /** `peek(layer, head)` while the pointer is over a head, `choose` when it is clicked. */
  constructor({ layers, heads }, { peek, choose }) {
    this.across = heads;
    this.element = h('div.heads', { role: 'group', 'aria-label': 'Heads: one picture for each', style: { '--heads': heads } });
    this.thumbs = Array.from({ length: layers }, (_, layer) => Array.from({ length: heads }, (__, head) => this.thumb(layer, head, peek, choose)));
    this.arrange('layer', null);
  }

  thumb(layer, head, peek, choose) {
    const canvas = h('canvas', { width: '1', height: '1', 'aria-hidden': 'true' });
    const badge = h('span.badge');
    const button = h('button.thumb', { type: 'button', 'aria-pressed': 'false', 'aria-label': `layer ${layer} head ${head}`,
      onclick: () => choose(layer, head), onpointerenter: () => peek(layer, head), onfocus: () => peek(layer, head), onkeydown: (event) => this.walk(event, button) },
    canvas, h('span.name', { 'aria-hidden': 'true' }, `${layer}\u00b7${head}`), badge);
    return { layer, head, button, canvas, badge };
  }

  walk(event, button) {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.across, ArrowDown: this.across }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = [...this.element.children];
    all[all.indexOf(button) + step]?.focus();
  }

  /** Draws a layer's pictures from `mapOf(head)`, which may answer nothing yet. */
  draw(layer, mapOf) {
    for (const { head, canvas } of this.thumbs[layer]) {
      const map = mapOf(head);
      if (map) thumbnail(canvas, map, 48);
    }
  }

  /** Orders the heads by a measure, strongest first, or by layer. */
  arrange(order, measures) {
    const all = this.thumbs.flat();
    const worth = ({ layer, head }) => Math.abs(measures?.[layer]?.[head]?.[order] ?? 0);
    if (order !== 'layer') all.sort((a, b) => worth(b) - worth(a));
    fill(this.element, all.map((thumb) => thumb.button));
    this.element.classList.toggle('mixed', order !== 'layer');
  }

  /** Writes a measure under each head. */
  badges(measures, name) {
    const [text, explained] = MEASURES[name];
    for (const { layer, head, button, badge } of this.thumbs.flat()) {
      const values = measures?.[layer]?.[head];
      if (!values) continue;
      const value = values[name];
      const shown = value === null ? '' : name === 'effect' ? value.toFixed(2) : `${Math.round(value * 100)}%`;
      badge.textContent = shown;
      button.title = explained;
      button.classList.toggle('rests', values.sink > 0.9);
      button.setAttribute('aria-label', `layer ${layer} head ${head}, ${shown} ${text}`);
    }
  }

  mark(layer, head, kept) {
    for (const thumb of this.thumbs.flat()) {
      const here = thumb.layer === layer && thumb.head === head;
      thumb.button.classList.toggle('here', here);
      thumb.button.setAttribute('aria-pressed', String(here && kept));
    }
  }
}
