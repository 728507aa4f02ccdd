// The choices above a map and above the grid of heads. Each names what it sets; what follows from that is its owner's.

import { choice } from './dom.js';
import { MEASURES } from './heads.js';
import { lacks } from './maps.js';

export const SCALES = [['linear', 'linear'], ['sqrt', 'square root'], ['log', 'logarithm']];
export const SPECIALS = [['keep', 'shown'], ['drop', 'left out']];

/** 0 to `count`, each called by `name(index)`. */
export function numbered(count, name = String) {
  return Array.from({ length: count }, (_, index) => [String(index), name(index)]);
}

/** For the map in view. `set(name)` answers what to call with a new value of that name. */
export function mapChoices(view, windows, set) {
  return [
    choice('Map', [['head', 'one head'], ['layer', 'mean of its layer'], ['all', 'mean of all heads'], ['rollout', 'rollout over layers'], ['relevance', 'relevance for the queue']], view.over, set('over')),
    choice('Colour', SCALES, view.scale, set('scale')),
    choice('By', [['words', 'words'], ['pieces', 'word pieces']], view.units, set('units')),
    choice('[CLS], [SEP]', SPECIALS, view.special, set('special')),
    choice('Weight', [['alpha', 'attention'], ['norm', lacks.norm ? 'times value (not on this server)' : 'times value', lacks.norm]], view.weight, set('weight')),
    windows > 1 && choice('Part', numbered(windows, (index) => `window ${index + 1} of ${windows}`), String(view.window), set('window')),
  ];
}

/** What the chosen map is called. */
export function mapName({ over, layer, head }, queue) {
  if (over === 'all') return 'Mean of all heads';
  if (over === 'rollout') return 'Rollout: the means of all layers, one after the other';
  if (over === 'relevance') return `Relevance for ${queue}`;
  if (over === 'layer') return `Layer ${layer}, mean of its heads`;
  return `Layer ${layer}, head ${head}`;
}

/** For the grid of heads. */
export function headChoices(view, set) {
  const measures = Object.entries(MEASURES);
  return [
    choice('Number', measures.map(([name, [text]]) => [name, text]), view.measure, set('measure')),
    choice('Order', [['layer', 'by layer'], ...measures.map(([name, [text]]) => [name, `most ${text}`])], view.order, set('order')),
  ];
}
