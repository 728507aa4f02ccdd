"use strict";
// Draws every map of the answer: rows look at columns, darker is more. Words are only ever set as text.
const answer = JSON.parse(document.getElementById("data").textContent);
const main = document.getElementById("maps");
const value = document.getElementById("value");
const MAX_SIDE = 480;

function shade(share) {
  const level = Math.sqrt(Math.max(0, Math.min(1, share)));
  const mix = (light, dark) => Math.round(light + (dark - light) * level);
  return `rgb(${mix(255, 63)},${mix(255, 32)},${mix(255, 112)})`;
}

function draw(map, rows, columns, title) {
  const cell = Math.max(2, Math.min(20, Math.floor(MAX_SIDE / Math.max(rows.length, columns.length, 1))));
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  caption.textContent = title;
  const canvas = document.createElement("canvas");
  canvas.width = columns.length * cell;
  canvas.height = rows.length * cell;
  const brush = canvas.getContext("2d");
  const highest = Math.max(1e-9, ...map.map((row) => Math.max(...row)));
  map.forEach((row, y) => row.forEach((weight, x) => {
    brush.fillStyle = shade(weight / highest);
    brush.fillRect(x * cell, y * cell, cell, cell);
  }));
  canvas.addEventListener("mousemove", (event) => {
    const x = Math.floor(event.offsetX / cell);
    const y = Math.floor(event.offsetY / cell);
    if (map[y] !== undefined && map[y][x] !== undefined) {
      value.textContent = `${title}: "${rows[y]}" looks at "${columns[x]}" with ${map[y][x]}`;
    }
  });
  figure.append(caption, canvas);
  main.append(figure);
}

const windows = answer.windows || [answer];
windows.forEach((part, index) => {
  const shown = part.attention;
  const words = (axis) => shown[axis].map((unit) => part.units[unit].text || "");
  const place = windows.length > 1 ? `window ${index + 1}, ` : "";
  shown.data.forEach((heads, layer) => heads.forEach((map, head) => {
    draw(map, words("queries"), words("keys"), `${place}layer ${shown.layers[layer]}, head ${shown.heads[head]}`);
  }));
});
