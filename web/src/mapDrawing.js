// The fit map on its canvas: water where the job fits, land where it does not, the shore between.
import { gibibyte } from "./format.js";
import { batches, cells, cellOf, columnEdges, nearestIndex, rowEdges, sequences, verdictOf } from "./mapSizes.js";
import { t } from "./messages.js";

export const margin = { left: 44, right: 10, top: 8, bottom: 34 };
export const height = 400;

const colourNames = ["land", "land-far", "land-hatch", "tight", "basin", "brim", "ink", "ink-soft", "panel"];
const depthNames = ["depth-1", "depth-2", "depth-3", "depth-4", "depth-5", "depth-6"];

/** What the theme says, read once: asking the browser for each picture costs more than the picture. */
export function readPalette(node) {
  const style = getComputedStyle(node);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    ...Object.fromEntries(colourNames.map((name) => [name, colour(name)])),
    depths: depthNames.map(colour),
    font: style.fontFamily,
  };
}

/** Draws a map of that width. model as fitmap.js has it; cursor: a cell, or null. */
export function drawMap(canvas, width, { model, bytes, cursor, palette }) {
  const ratio = Math.min(3, devicePixelRatio || 1);
  if (canvas.width !== Math.round(width * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  const inner = width - margin.left - margin.right;
  const bottom = height - margin.bottom;
  const chart = {
    context,
    palette,
    width,
    inner,
    bottom,
    bytes,
    left: (column) => margin.left + columnEdges[column] * inner,
    floor: (row) => bottom - rowEdges[row] * (bottom - margin.top),
  };
  drawDepths(chart, shadesOf(model, bytes, palette));
  if (model.usable) {
    drawHatching(chart, (row, column) => bytes[row * cells + column] * model.low > model.usable);
    drawShore(chart, (row, column) => bytes[row * cells + column] > model.usable);
  }
  drawAxes(chart);
  drawMarks(chart, cellOf(model), cursor);
}

/** bytes → colour. Without a card, by the logarithm of the largest. */
function shadesOf(model, bytes, palette) {
  const { depths } = palette;
  const deep = (share) => depths[Math.min(depths.length - 1, Math.floor(share * depths.length))];
  let top = 0;
  for (const value of bytes) if (value > top) top = value;
  const logOf = (value, more) => Math.log(value / gibibyte + more);
  return (value) => {
    if (Number.isNaN(value)) return palette.basin;
    if (!model.usable) return deep(logOf(value, 1) / logOf(top, 1.001));
    if (value > 2 * model.usable) return palette["land-far"];
    const verdict = verdictOf(model, value);
    if (verdict === "over") return palette.land;
    return verdict === "tight" ? palette.tight : deep(value / model.usable);
  };
}

/** Runs of one shade in one stroke. */
function drawDepths({ context, bytes, left, floor }, shade) {
  for (let row = 0; row < cells; row += 1) {
    const y = floor(row + 1);
    for (let column = 0; column < cells; ) {
      const fill = shade(bytes[row * cells + column]);
      let end = column + 1;
      while (end < cells && shade(bytes[row * cells + end]) === fill) end += 1;
      context.fillStyle = fill;
      context.fillRect(left(column), y, left(end) - left(column) + 0.5, floor(row) - y + 0.5);
      column = end;
    }
  }
}

function eachCell(work) {
  for (let row = 0; row < cells; row += 1) for (let column = 0; column < cells; column += 1) work(row, column);
}

/** Hatching on the land: shape as well as colour. */
function drawHatching({ context, palette, width, left, floor }, over) {
  context.save();
  context.beginPath();
  eachCell((row, column) => {
    const y = floor(row + 1);
    if (over(row, column)) context.rect(left(column), y, left(column + 1) - left(column), floor(row) - y);
  });
  context.clip();
  context.strokeStyle = palette["land-hatch"];
  context.lineWidth = 1;
  context.beginPath();
  for (let offset = -height; offset < width; offset += 9) {
    context.moveTo(offset, height);
    context.lineTo(offset + height, 0);
  }
  context.stroke();
  context.restore();
}

/** The line along which just what the card gives is expected. */
function drawShore({ context, palette, left, floor }, over) {
  context.strokeStyle = palette.brim;
  context.lineWidth = 2;
  context.beginPath();
  eachCell((row, column) => {
    const x = left(column);
    if (column > 0 && over(row, column) !== over(row, column - 1)) {
      context.moveTo(x, floor(row + 1));
      context.lineTo(x, floor(row));
    }
    if (row > 0 && over(row, column) !== over(row - 1, column)) {
      context.moveTo(x, floor(row));
      context.lineTo(left(column + 1), floor(row));
    }
  });
  context.stroke();
}

function drawAxes({ context, palette, width, inner, bottom, left, floor }) {
  context.fillStyle = palette["ink-soft"];
  context.font = `11px ${palette.font}`;
  context.textAlign = "right";
  for (const batch of [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]) {
    const row = nearestIndex(batches, batch);
    context.fillText(String(batches[row]), margin.left - 6, (floor(row) + floor(row + 1)) / 2 + 4);
  }
  context.textAlign = "center";
  // From the longest down, as far as they stand apart.
  let free = width;
  for (const sequence of [131072, 65536, 32768, 16384, 8192, 4096, 2048, 1024, 512, 256]) {
    const column = nearestIndex(sequences, sequence);
    const x = Math.min(width - 20, (left(column) + left(column + 1)) / 2);
    const words = sequence >= 1024 ? `${sequence / 1024}k` : String(sequence);
    const half = context.measureText(words).width / 2 + 3;
    if (x + half > free) continue;
    context.fillText(words, x, bottom + 15);
    free = x - half;
  }
  context.fillText(t("map.sequence"), margin.left + inner / 2, height - 4);
  context.save();
  context.translate(11, margin.top + (bottom - margin.top) / 2);
  context.rotate(-Math.PI / 2);
  context.fillText(t("map.batch"), 0, 0);
  context.restore();
}

/** Where the job is, and where one reads. */
function drawMarks({ context, palette, left, floor }, now, cursor) {
  const middle = ({ row, column }) => [(left(column) + left(column + 1)) / 2, (floor(row) + floor(row + 1)) / 2];
  const disc = (x, y, radius, colour) => {
    context.beginPath();
    context.arc(x, y, radius, 0, 7);
    context.fillStyle = colour;
    context.fill();
  };
  const [x, y] = middle(now);
  disc(x, y, 6, palette.panel);
  context.lineWidth = 2.5;
  context.strokeStyle = palette.ink;
  context.stroke();
  disc(x, y, 1.6, palette.ink);
  if (!cursor) return;
  const [left_, top] = middle(cursor);
  context.lineWidth = 2;
  context.strokeStyle = palette.ink;
  context.strokeRect(left_ - 6, top - 6, 12, 12);
  context.lineWidth = 1;
  context.strokeStyle = palette.panel;
  context.strokeRect(left_ - 7.5, top - 7.5, 15, 15);
}
