// Painting maps: queries on rows ("this word looks at"), keys on columns ("is looked at"), the whole square, row 0 on top.

import { label } from './text.js';

export const AXES = { rows: 'this word looks at', columns: 'is looked at' };
const FONT = '10.5px system-ui, sans-serif';
/** How wide the strip is that shows what went to columns left out. */
export const STRIP = 6;
/** How opaque rows are that cannot matter, of 255. */
export const FADED = 70;

/** 0 to 1 for a weight, given the largest one. */
export function scaled(weight, largest, scale) {
  const part = largest > 0 ? Math.min(1, weight / largest) : 0;
  if (scale === 'sqrt') return Math.sqrt(part);
  // Four decades: what is smaller than a ten-thousandth of the largest is as good as nothing.
  if (scale === 'log') return part > 0 ? Math.max(0, 1 + Math.log10(part) / 4) : 0;
  return part;
}

/** The page's neutral colours for weights, in the light or the dark: never those of for and against. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  const rgb = (name) => read(name).split(' ').map(Number);
  const [low, high, more, less] = ['--map-low', '--map-high', '--map-more', '--map-less'].map(rgb);
  const mix = (end, t) => low.map((value, channel) => Math.round(value + (end[channel] - value) * t));
  const at = (t) => mix(high, t);
  /** Differences, from -1 to 1: a pair of colours that colour-blind people tell apart, neither of them that of evidence. */
  const between = (t) => (t < 0 ? mix(less, -t) : mix(more, t));
  const css = (colour) => (t) => `rgb(${colour(t).join(' ')})`;
  return { at, between, css: css(at), cssBetween: css(between), ink: read('--ink'), quiet: read('--quiet'), line: read('--line'), mark: read('--accent'), ground: read('--card') };
}

/** How deep a weight is painted in a look: 0 to 1, in a map of differences -1 to 1. */
export function depth(weight, { largest, scale, signed }) {
  return signed ? Math.sign(weight) * scaled(Math.abs(weight), largest, scale) : scaled(weight, largest, scale);
}

/** A picture with one pixel a weight. */
export function bitmap(map, look, palette = colours()) {
  const [rows, columns] = [map.rows.length, map.columns.length];
  const canvas = document.createElement('canvas');
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext('2d');
  const image = context.createImageData(columns, rows);
  const colour = look.signed ? palette.between : palette.at;
  for (let i = 0; i < rows * columns; i++) {
    // There is no weight between words that are not both there: the ground shows, hatched.
    if (Number.isNaN(map.data[i])) continue;
    image.data.set(colour(depth(map.data[i], look)), i * 4);
    image.data[i * 4 + 3] = map.dead?.(map.rows[Math.floor(i / columns)]) ? FADED : 255;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** Small picture of a head: the largest weight under each pixel, so that no thin line is lost. */
export function thumbnail(canvas, map, side) {
  const [rows, columns] = [map.rows.length, map.columns.length];
  const [height, width] = [Math.min(side, rows), Math.min(side, columns)];
  const pooled = new Float32Array(height * width);
  for (let row = 0; row < rows; row++) {
    const down = Math.floor((row * height) / rows) * width;
    for (let column = 0; column < columns; column++) {
      const at = down + Math.floor((column * width) / columns);
      const weight = map.data[row * columns + column];
      if (weight > pooled[at]) pooled[at] = weight;
    }
  }
  const largest = pooled.reduce((a, b) => Math.max(a, b), 0);
  const small = { rows: Array(height), columns: Array(width), data: pooled };
  const picture = bitmap(small, { largest, scale: 'sqrt' });
  canvas.width = width;
  canvas.height = height;
  canvas.getContext('2d').drawImage(picture, 0, 0);
}

/**
 * Paints a map with its axes into a context. `place` is {width, height, cell, left, top, x, y}: the size, the side of a cell,
 * the margins for labels, and how far the map is scrolled. `cross` is [row, column] or null.
 */
export function paint(context, map, look, place, cross, picture = bitmap(map, look)) {
  const palette = colours();
  const { width, height, cell, left, top, x, y } = place;
  context.clearRect(0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(left, top, width - left, height - top);
  context.clip();
  context.imageSmoothingEnabled = false;
  if (map.gap) hatch(context, map, place, palette);
  context.drawImage(picture, left - x, top - y, map.columns.length * cell, map.rows.length * cell);
  if (look.signed) signs(context, map, look, place, palette);
  if (cross) {
    const [atX, atY] = [left - x + cross[1] * cell, top - y + cross[0] * cell];
    context.fillStyle = context.strokeStyle = look.signed ? palette.ink : palette.mark;
    // A tint over differences would pass for one of them: there the row and the column have an edge instead.
    context.globalAlpha = look.signed ? 0.4 : 0.14;
    const band = (...place) => (look.signed ? context.strokeRect(...place) : context.fillRect(...place));
    band(left - x, atY, map.columns.length * cell, cell);
    band(atX, top - y, cell, map.rows.length * cell);
    context.globalAlpha = 1;
    context.lineWidth = 2;
    context.strokeRect(atX - 1, atY - 1, cell + 2, cell + 2);
  }
  context.restore();
  if (map.removed) {
    // How much of each row went to columns that are not shown.
    map.removed.forEach((mass, row) => {
      const at = top - y + row * cell;
      if (at < top - 1 || at > height) return;
      context.fillStyle = palette.css(mass);
      context.fillRect(left - STRIP - 3, at, STRIP, Math.max(1, cell - (cell > 6 ? 1 : 0)));
    });
  }
  labels(context, map, place, cross, palette);
}

/** Rows and columns of words that have no partner. */
function hatch(context, map, { width, height, cell, left, top, x, y }, palette) {
  const [rows, columns] = [map.rows.length * cell, map.columns.length * cell];
  context.save();
  context.beginPath();
  map.rows.forEach((unit, row) => map.gap(unit) && context.rect(left - x, top - y + row * cell, columns, cell));
  map.columns.forEach((unit, column) => map.gap(unit) && context.rect(left - x + column * cell, top - y, cell, rows));
  context.clip();
  context.beginPath();
  for (let at = left - height; at < width; at += 5) {
    context.moveTo(at, height);
    context.lineTo(at + height, 0);
  }
  context.strokeStyle = palette.quiet;
  context.globalAlpha = 0.45;
  context.stroke();
  context.restore();
}

/** The sign of what differs most, where a cell has room for it: colour alone is not enough. */
function signs(context, map, look, { cell, left, top, x, y }, palette) {
  if (cell < 15) return;
  context.font = FONT;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillStyle = palette.ground;
  map.data.forEach((weight, i) => {
    const deep = depth(weight, look);
    if (!(Math.abs(deep) > 0.55)) return;
    const [row, column] = [Math.floor(i / map.columns.length), i % map.columns.length];
    context.fillText(deep > 0 ? '+' : '\u2212', left - x + (column + 0.5) * cell, top - y + (row + 0.5) * cell);
  });
}

function labels(context, map, { width, height, cell, left, top, x, y }, cross, palette) {
  context.font = FONT;
  context.textBaseline = 'middle';
  const every = Math.max(1, Math.ceil(10 / cell));
  const gap = map.removed ? STRIP + 7 : 6;
  // What has to be squeezed is not read: where there is little room, fewer letters stand there.
  const letters = left < 90 ? 8 : 11;
  map.rows.forEach((unit, row) => {
    const at = top - y + (row + 0.5) * cell;
    const lit = cross?.[0] === row;
    if (at < top || at > height || (!lit && (row % every || near(cross?.[0], row, every)))) return;
    context.textAlign = 'right';
    context.fillStyle = lit ? palette.mark : palette.ink;
    context.fillText(label(unit.text, letters), left - gap, at, left - 26);
  });
  map.columns.forEach((unit, column) => {
    const at = left - x + (column + 0.5) * cell;
    const lit = cross?.[1] === column;
    if (at < left || at > width || (!lit && (column % every || near(cross?.[1], column, every)))) return;
    context.save();
    context.translate(at, top - 6);
    context.rotate(-Math.PI / 2);
    context.textAlign = 'left';
    context.fillStyle = lit ? palette.mark : palette.ink;
    context.fillText(label(unit.text, letters), 0, 0, top - 28);
    context.restore();
  });
  context.fillStyle = palette.quiet;
  context.textAlign = 'left';
  context.fillText(`${AXES.columns} \u2192`, left, 8);
  context.save();
  context.translate(8, height);
  context.rotate(-Math.PI / 2);
  context.textAlign = 'right';
  context.fillText(`\u2190 ${AXES.rows}`, height - top, 0);
  context.restore();
}

/** Labels beside the lit one make room for it. */
function near(lit, index, every) {
  return every > 1 && lit !== undefined && lit !== index && Math.abs(lit - index) < every;
}
