// A map to look around in: hover, arrow keys, zoom, scrolling by dragging.

import { bitmap, paint } from './paint.js';

export class HeatMap {
  /** Maps of the same words that stand beside each other are zoomed, scrolled and pointed at as one. */
  constructor(canvas, { hover, pick, beside = null }) {
    Object.assign(this, { canvas, hover, pick });
    /** How far the map is scrolled, in cells, and the cell in view, for all maps that share it. */
    this.view = beside?.view ?? { zoom: 1, x: 0, y: 0, cross: null, maps: [] };
    this.view.maps.push(this);
    canvas.addEventListener('pointermove', (event) => this.moved(event));
    canvas.addEventListener('pointerdown', (event) => this.pressed(event));
    canvas.addEventListener('pointerup', (event) => this.released(event));
    canvas.addEventListener('pointerleave', () => !this.drag && document.activeElement !== canvas && this.point(null));
    canvas.addEventListener('blur', () => this.point(null));
    canvas.addEventListener('keydown', (event) => this.key(event));
    canvas.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoomBy(event.deltaY < 0 ? 1.25 : 0.8, this.cellAt(event));
    }, { passive: false });
    new ResizeObserver(() => this.map && this.draw()).observe(canvas.parentElement);
  }

  set(map, look) {
    if (this.map && (this.map.rows.length !== map.rows.length || this.map.columns.length !== map.columns.length)) {
      Object.assign(this.view, { zoom: 1, x: 0, y: 0, cross: null });
    }
    this.map = map;
    this.look = look;
    this.picture = bitmap(map, look);
    this.render();
  }

  place() {
    const width = Math.max(240, this.canvas.parentElement.clientWidth);
    const narrow = width < 480;
    const [left, top] = narrow ? [78, 76] : [104, 92];
    const fit = Math.min((width - left - 2) / this.map.columns.length, Math.max(14, (720 - top) / this.map.rows.length));
    // A single row is a ribbon, and a tiny mail does not need cells like tiles.
    const whole = Math.max(1.2, Math.min(fit, 34));
    const cell = whole * this.view.zoom;
    const height = top + Math.min(Math.max(this.map.rows.length * whole, 40), this.map.rows.length * cell) + 2;
    const x = clamp(this.view.x * cell, 0, this.map.columns.length * cell - (width - left - 2));
    const y = clamp(this.view.y * cell, 0, this.map.rows.length * cell - (height - top - 2));
    return { width, height, cell, left, top, x, y };
  }

  draw() {
    for (const one of this.view.maps) one.render();
  }

  render() {
    if (!this.map) return;
    const place = this.place();
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(place.width * ratio);
    this.canvas.height = Math.round(place.height * ratio);
    this.canvas.style.setProperty('width', `${place.width}px`);
    this.canvas.style.setProperty('height', `${place.height}px`);
    this.canvas.style.setProperty('touch-action', this.view.zoom > 1 ? 'none' : 'pan-y');
    const context = this.canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint(context, this.map, this.look, place, this.view.cross, this.picture);
  }

  /** The part of the map that can be seen: [first row, end, first column, end]. */
  seen() {
    const { width, height, cell, left, top, x, y } = this.place();
    const part = (from, size, count) => [Math.floor(from / cell + 0.01), Math.min(count, Math.ceil((from + size) / cell - 0.01))];
    return [...part(y, height - top - 2, this.map.rows.length), ...part(x, width - left - 2, this.map.columns.length)];
  }

  cellAt(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const { cell, left, top, x, y } = this.place();
    const column = Math.floor((event.clientX - bounds.left - left + x) / cell);
    const row = Math.floor((event.clientY - bounds.top - top + y) / cell);
    const inside = event.clientX - bounds.left >= left && event.clientY - bounds.top >= top;
    return inside && row < this.map.rows.length && column < this.map.columns.length ? [row, column] : null;
  }

  moved(event) {
    if (!this.map) return;
    if (this.drag && this.view.zoom > 1) {
      this.scroll(this.drag.x - event.clientX, this.drag.y - event.clientY);
      this.drag.moved = true;
      return this.draw();
    }
    this.point(this.cellAt(event));
  }

  pressed(event) {
    if (!this.map) return;
    const { x, y } = this.place();
    this.drag = { x: x + event.clientX, y: y + event.clientY };
    if (this.view.zoom > 1) this.canvas.setPointerCapture(event.pointerId);
  }

  released(event) {
    const dragged = this.drag?.moved;
    this.drag = null;
    if (dragged || !this.map) return;
    const at = this.cellAt(event);
    if (!at) return;
    this.point(at);
    this.pick(...at);
  }

  key(event) {
    if (!this.map) return;
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const { cross } = this.view;
    const [row, column] = cross ?? [0, 0];
    const [rows, columns] = [this.map.rows.length, this.map.columns.length];
    let to = null;
    if (steps[event.key]) to = cross ? [row + steps[event.key][0], column + steps[event.key][1]] : [0, 0];
    else if (event.key === 'Home') to = [row, 0];
    else if (event.key === 'End') to = [row, columns - 1];
    else if (event.key === 'PageUp') to = [0, column];
    else if (event.key === 'PageDown') to = [rows - 1, column];
    else if (event.key === '+' || event.key === '=') this.zoomBy(1.25);
    else if (event.key === '-') this.zoomBy(0.8);
    else if (event.key === '0') this.zoomBy(0);
    else if (event.key === 'Enter' && cross) this.pick(row, column);
    else return;
    event.preventDefault();
    if (to) this.point([clamp(to[0], 0, rows - 1), clamp(to[1], 0, columns - 1)], true);
  }

  /** Multiplies the zoom and keeps a cell in sight; 0 shows everything. */
  zoomBy(factor, around = this.view.cross) {
    if (!this.map) return;
    const { zoom } = this.view;
    this.view.zoom = factor === 0 ? 1 : clamp(zoom * factor, 1, Math.max(1, 48 / (this.place().cell / zoom)));
    if (around) this.bring(around);
    this.draw();
  }

  bring([row, column]) {
    const { width, height, cell, left, top, x, y } = this.place();
    this.scroll(clamp(x, (column + 1) * cell - (width - left - 2), column * cell), clamp(y, (row + 1) * cell - (height - top - 2), row * cell));
  }

  /** Scrolls to a place in pixels. */
  scroll(x, y) {
    const { cell } = this.place();
    Object.assign(this.view, { x: Math.max(0, x / cell), y: Math.max(0, y / cell) });
  }

  point(cross, bring = false) {
    if (String(cross) === String(this.view.cross)) return;
    this.view.cross = cross;
    if (cross && bring) this.bring(cross);
    if (this.map) this.draw();
    this.hover(cross);
  }
}

function clamp(value, low, high) {
  return Math.max(low, Math.min(value, Math.max(low, high)));
}
