// The maps of two mails over the words of both, and their difference. Plain functions.

import { dropSpecial } from './maps.js';

const key = ({ field, start }) => `${field}:${start}`;

/**
 * Words of both mails in one order: those that pair stand once, the others where they stand in their mail. `a` and `b` are
 * the units of two maps, `words` and `pairs` what the comparison says: the words of each mail, and which are the same.
 * Each place is {i, text, special, a, b}: `a` and `b` are {at, word}, the unit and the word of that mail, or null.
 */
export function places(a, b, words, pairs) {
  const [left, right] = [a, b].map((units, side) => {
    const known = new Map(words[side].map((word, index) => [key(word), index]));
    return units.map((unit, at) => ({ at, word: unit.special ? null : known.get(key(unit)) ?? null }));
  });
  const at = (list) => new Map(list.filter(({ word }) => word !== null).map((one) => [one.word, one.at]));
  const [atLeft, atRight] = [at(left), at(right)];
  const both = pairs.map(([i, j]) => [atLeft.get(i), atRight.get(j)]).filter(([i, j]) => i !== undefined && j !== undefined);
  const found = [];
  const put = (one, other) => {
    const unit = one ? a[one.at] : b[other.at];
    found.push({ i: found.length, text: unit.text, special: unit.special, a: one ?? null, b: other ?? null });
  };
  let [i, j] = [0, 0];
  // [CLS] is the first of both, [SEP] the last.
  for (const [p, q] of [[0, 0], ...both, [a.length - 1, b.length - 1]]) {
    while (i < p) put(left[i++], null);
    while (j < q) put(null, right[j++]);
    if (i === p && j === q) put(left[i++], right[j++]);
  }
  return found;
}

/** A mail's map over the places of both: rows and columns that it lacks are gaps, without weights. */
export function spread(map, list, side, special, shared) {
  const own = special === 'drop' ? dropSpecial(map, shared) : map;
  const columns = list.filter((place) => special === 'keep' || !place.special);
  const across = new Map(own.columns.map((unit, index) => [unit.i, index]));
  const units = map.columns;
  const data = new Float32Array(list.length * columns.length).fill(NaN);
  list.forEach((row, y) => columns.forEach((column, x) => {
    if (!row[side] || !column[side]) return;
    data[y * columns.length + x] = own.data[row[side].at * across.size + across.get(units[column[side].at].i)];
  }));
  const removed = own.removed && list.map((row) => (row[side] ? own.removed[row[side].at] : 0));
  const dead = own.dead && ((place) => Boolean(place[side]) && own.dead(units[place[side].at]));
  return { rows: list, columns, data, removed, dead, gap: (place) => !place[side] };
}

/** What B has more than A, for words that both have. */
export function difference(a, b) {
  return { ...b, data: b.data.map((weight, i) => weight - a.data[i]), removed: undefined, gap: (place) => !place.a || !place.b };
}

export function largest(map) {
  return map.data.reduce((most, weight) => (Math.abs(weight) > most ? Math.abs(weight) : most), 0);
}
