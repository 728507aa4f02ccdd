// Saving a map exactly as it is seen. Every file says which model, queue and day it is of, and that attention is a clue.

import { h } from './dom.js';
import { AXES, FADED, STRIP, bitmap, colours, paint, scaled } from './paint.js';
import { label } from './text.js';

export const FORMATS = ['PNG', 'SVG', 'JSON', 'safetensors', 'HTML'];

/** Past this many units a vector picture holds the map as an image: a hundred thousand squares help nobody. */
const MOST_VECTOR_UNITS = 128;

export async function save(format, map, look, about) {
  const made = { PNG: png, SVG: svgFile, JSON: json, safetensors, HTML: html }[format];
  const blob = await made(map, look, about);
  const name = `attention-${about.map.toLowerCase().replace(/[^a-z0-9]+/g, '-')}.${format.toLowerCase()}`;
  const link = h('a', { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function caption(about) {
  return [`${about.map} (${about.kind}, ${about.units}), ${about.model}, ${about.queue}, ${about.date.slice(0, 10)}`, about.clue];
}

function sizes(map) {
  const cell = Math.max(2, Math.min(28, Math.floor(1500 / Math.max(map.rows.length, map.columns.length))));
  const [left, top, foot] = [110, 100, 44];
  return { cell, left, top, foot, x: 0, y: 0,
    width: Math.max(left + cell * map.columns.length + 8, 560), height: top + cell * map.rows.length + 2 };
}

function png(map, look, about) {
  const place = sizes(map);
  const canvas = document.createElement('canvas');
  canvas.width = place.width;
  canvas.height = place.height + place.foot;
  const context = canvas.getContext('2d');
  const layer = document.createElement('canvas');
  layer.width = place.width;
  layer.height = place.height;
  paint(layer.getContext('2d'), map, look, place, null);
  const palette = colours();
  context.fillStyle = palette.ground;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(layer, 0, 0);
  context.font = '11px system-ui, sans-serif';
  context.fillStyle = palette.quiet;
  caption(about).forEach((line, index) => context.fillText(line, 8, place.height + 18 + index * 16, canvas.width - 16));
  return new Promise((done) => canvas.toBlob(done, 'image/png'));
}

function svg(map, look, about) {
  const space = 'http://www.w3.org/2000/svg';
  const make = (tag, attributes, ...children) => {
    const element = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const { cell, left, top, foot, width, height } = sizes(map);
  const palette = colours();
  const text = (x, y, content, more = {}) => make('text', { x, y, fill: palette.ink, ...more }, content);
  const root = make('svg', { width, height: height + foot, viewBox: `0 0 ${width} ${height + foot}`, 'font-family': 'system-ui, sans-serif', 'font-size': 11 },
    make('title', {}, about.map), make('desc', {}, caption(about).join('\n')),
    make('rect', { width, height: height + foot, fill: palette.ground }),
    text(left, 12, `${AXES.columns} \u2192`, { fill: palette.quiet }),
    text(-height + 4, 12, `\u2190 ${AXES.rows}`, { fill: palette.quiet, transform: 'rotate(-90)' }),
    ...caption(about).map((line, index) => text(8, height + 18 + index * 16, line, { fill: palette.quiet })));
  const [rows, columns] = [map.rows.length, map.columns.length];
  if (Math.max(rows, columns) > MOST_VECTOR_UNITS) {
    root.append(make('image', { x: left, y: top, width: columns * cell, height: rows * cell, preserveAspectRatio: 'none',
      'image-rendering': 'pixelated', href: bitmap(map, look).toDataURL('image/png') }));
    return root;
  }
  map.rows.forEach((unit, row) => {
    const faded = map.dead?.(unit) ? { opacity: FADED / 255 } : {};
    if (map.removed) root.append(make('rect', { x: left - STRIP - 3, y: top + row * cell, width: STRIP, height: cell - 1, fill: palette.css(map.removed[row]) }));
    root.append(text(left - (map.removed ? STRIP + 7 : 6), top + (row + 0.5) * cell + 4, label(unit.text, 14), { 'text-anchor': 'end' }));
    for (let column = 0; column < columns; column++) {
      const fill = palette.css(scaled(map.data[row * columns + column], look.largest, look.scale));
      root.append(make('rect', { x: left + column * cell, y: top + row * cell, width: cell, height: cell, fill, ...faded }));
    }
  });
  map.columns.forEach((unit, column) => {
    const [x, y] = [left + (column + 0.5) * cell + 4, top - 6];
    root.append(text(x, y, label(unit.text, 14), { transform: `rotate(-90 ${x} ${y})` }));
  });
  return root;
}

function svgFile(map, look, about) {
  return new Blob([new XMLSerializer().serializeToString(svg(map, look, about))], { type: 'image/svg+xml' });
}

function plain(map, about) {
  const unit = ({ i, text, special, field, start, end }) => ({ i, text, special, field, start, end });
  const columns = map.columns.length;
  return { schema: 'attention-view/1', ...about, offset_unit: 'utf16', rows_mean: AXES.rows, columns_mean: AXES.columns,
    rows: map.rows.map(unit), columns: map.columns.map(unit), ...(map.removed ? { special_mass: map.removed } : {}),
    data: map.rows.map((_, row) => Array.from(map.data.subarray(row * columns, (row + 1) * columns), (weight) => Number(weight.toFixed(6)))) };
}

function json(map, look, about) {
  return new Blob([JSON.stringify(plain(map, about))], { type: 'application/json' });
}

/** `attention` F32 [rows, columns] and the places of columns, `offsets` U32 [columns, 2] (0, 0 for special tokens). */
function safetensors(map, look, about) {
  const { data: _, ...meta } = plain(map, about);
  const offsets = Uint32Array.from(map.columns.flatMap((unit) => [unit.start ?? 0, unit.end ?? 0]));
  const weights = Float32Array.from(map.data);
  const split = weights.byteLength;
  const head = JSON.stringify({
    __metadata__: { meta: JSON.stringify(meta) },
    attention: { dtype: 'F32', shape: [map.rows.length, map.columns.length], data_offsets: [0, split] },
    offsets: { dtype: 'U32', shape: [map.columns.length, 2], data_offsets: [split, split + offsets.byteLength] },
  });
  const bytes = new TextEncoder().encode(head);
  const padded = Math.ceil(bytes.length / 8) * 8;
  const start = new DataView(new ArrayBuffer(8));
  start.setBigUint64(0, BigInt(padded), true);
  return new Blob([start, bytes, ' '.repeat(padded - bytes.length), weights, offsets], { type: 'application/octet-stream' });
}

const HEAD = '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
  + '<meta http-equiv="content-security-policy" content="default-src \'none\'; img-src data:; style-src \'unsafe-inline\'"><title>Attention</title>'
  + '<style>body{font:15px/1.5 system-ui,sans-serif;margin:2rem;max-width:70rem}svg{max-width:100%;height:auto}td{padding:0 1rem 0 0}</style></head>\n';

/** One file that needs nothing else: the picture, the words and the numbers, no script. Its body is built as nodes, so nothing in it is markup. */
function html(map, look, about) {
  const body = h('body', {}, h('h1', {}, about.map),
    h('table', {}, Object.entries(about).map(([name, value]) => h('tr', {}, h('td', {}, name), h('td', {}, String(value ?? ''))))),
    svg(map, look, about));
  // Inside a script element HTML and XML read `<` and `&` differently: neither may stand there.
  const data = JSON.stringify(plain(map, about)).replace(/[<>&]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`);
  const script = document.createElement('script');
  Object.assign(script, { type: 'application/json', id: 'data', textContent: data });
  body.append(script);
  return new Blob([HEAD, new XMLSerializer().serializeToString(body), '\n</html>\n'], { type: 'text/html' });
}
