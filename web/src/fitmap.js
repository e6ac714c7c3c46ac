// Batch × sequence, as a chart of depths: water where the job fits, land where it does not, the shore between.
import { drawAtWidth } from "./chart.js";
import { h, scrollBox, setText } from "./dom.js";
import { exact, gib, gibibyte, grouped } from "./format.js";
import { t } from "./messages.js";

const cells = 64;
const margin = { left: 44, right: 10, top: 8, bottom: 34 };
const height = 400;

/** Sizes in even steps of the logarithm, eight to an octave, so that every power of two is among them; multiples of `unit`, none twice. */
export function octaves(low, amount, unit) {
  const values = [];
  for (let index = 0; index < amount; index += 1) values.push(Math.round((low * 2 ** (index / 8)) / unit) * unit);
  return values;
}

/** The 64 batch sizes: each up to 32, then in eighths of an octave up to 512. */
export const batches = [...Array.from({ length: 32 }, (_, index) => index + 1), ...octaves(32, 33, 1).slice(1)];
/** The 64 sequence lengths, multiples of 128 (kernels pad to that): each up to 2048, then in eighths of an octave up to 131 072. */
export const sequences = [...Array.from({ length: 16 }, (_, index) => 128 * (index + 1)), ...octaves(2048, 49, 128).slice(1)];

export function createFitMap({ engine, store, tell }) {
  const canvas = h("canvas", { class: "map-canvas" });
  const pad = h("div", { class: "map-pad", tabindex: "0", role: "application", "aria-roledescription": t("map.role"), "data-testid": "fit-map-pad" });
  const box = h("div", { class: "map-box" }, canvas, pad);
  const readout = h("p", { class: "readout map-readout", role: "status", "data-testid": "fit-map-readout" });
  const legend = h("p", { class: "map-legend" }, h("span", { class: "key key-water", "aria-hidden": "true" }), t("map.fits"), h("span", { class: "key key-tight", "aria-hidden": "true" }), t("map.tight"), h("span", { class: "key key-land", "aria-hidden": "true" }), t("map.over"), h("span", { class: "key key-now", "aria-hidden": "true" }), t("map.current"));
  const tableBox = scrollBox(t("map.table"));
  const details = h("details", { class: "more", ontoggle: () => details.open && drawTable() }, h("summary", {}, t("map.table")), tableBox);
  const node = h("section", { class: "panel", "aria-labelledby": "map-heading", "data-testid": "fit-map" },
    h("div", { class: "panel-head" }, h("h3", { id: "map-heading" }, t("map.label")), legend), h("p", { class: "hint" }, t("map.hint")), box, readout, details);
  pad.setAttribute("aria-label", `${t("map.label")}. ${t("map.hint")}`);

  const bytes = new Float64Array(cells * cells).fill(NaN);
  const rowEdges = edges(batches);
  const columnEdges = edges(sequences);
  let model = null;
  let cursor = null;
  let job = 0;
  let computed = "";

  async function compute() {
    job += 1;
    const mine = job;
    const answer = await engine.map(model.request, batches, sequences);
    if (!answer || mine !== job) return;
    const before = performance.now();
    bytes.set(answer.bytes);
    paint();
    // What all cells cost, computed and painted: the tests hold it against its bound.
    node.dataset.milliseconds = (answer.milliseconds + performance.now() - before).toFixed(1);
    describeCursor(false);
    if (details.open) drawTable();
  }

  let pixelWidth = 0;
  const redraw = drawAtWidth(box, (width) => {
    pixelWidth = width;
    paint();
  });

  function paint() {
    if (!model || pixelWidth === 0) return;
    const ratio = Math.min(3, devicePixelRatio || 1);
    const width = pixelWidth;
    if (canvas.width !== Math.round(width * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const context = canvas.getContext("2d");
    const style = getComputedStyle(node);
    const colour = (name) => style.getPropertyValue(name).trim();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const inner = width - margin.left - margin.right;
    const bottom = height - margin.bottom;
    const left = (column) => margin.left + columnEdges[column] * inner;
    const floor = (row) => bottom - rowEdges[row] * (bottom - margin.top);
    const depth = [1, 2, 3, 4, 5, 6].map((step) => colour(`--depth-${step}`));
    const landColour = colour("--land");
    const tight = colour("--tight");
    const landFar = colour("--land-far");
    const none = colour("--basin");
    const usable = model.usable;
    let top = 0;
    for (const value of bytes) if (value > top) top = value;
    const shade = (value) => {
      if (Number.isNaN(value)) return none;
      if (usable) {
        const ratioUsed = value / usable;
        if (ratioUsed > 2) return landFar;
        if (ratioUsed > 1) return landColour;
        if (verdictOf(value) === "tight") return tight;
        return depth[Math.min(5, Math.floor(ratioUsed * 6))];
      }
      return depth[Math.min(5, Math.floor((Math.log(value / gibibyte + 1) / Math.log(top / gibibyte + 1.001)) * 6))];
    };
    for (let row = 0; row < cells; row += 1) {
      const y = floor(row + 1);
      // Runs of one shade in one stroke.
      for (let column = 0; column < cells;) {
        const fill = shade(bytes[row * cells + column]);
        let end = column + 1;
        while (end < cells && shade(bytes[row * cells + end]) === fill) end += 1;
        context.fillStyle = fill;
        context.fillRect(left(column), y, left(end) - left(column) + 0.5, floor(row) - y + 0.5);
        column = end;
      }
    }
    if (usable) {
      // The shore, and hatching on the land: shape as well as colour.
      const over = (row, column) => bytes[row * cells + column] > usable;
      context.save();
      context.beginPath();
      for (let row = 0; row < cells; row += 1) for (let column = 0; column < cells; column += 1) if (over(row, column)) context.rect(left(column), floor(row + 1), left(column + 1) - left(column), floor(row) - floor(row + 1));
      context.clip();
      context.strokeStyle = colour("--land-hatch");
      context.lineWidth = 1;
      context.beginPath();
      for (let offset = -height; offset < width; offset += 9) {
        context.moveTo(offset, height);
        context.lineTo(offset + height, 0);
      }
      context.stroke();
      context.restore();
      context.strokeStyle = colour("--brim");
      context.lineWidth = 2;
      context.beginPath();
      for (let row = 0; row < cells; row += 1) for (let column = 0; column < cells; column += 1) {
        const x = left(column);
        const y = floor(row + 1);
        if (column > 0 && over(row, column) !== over(row, column - 1)) {
          context.moveTo(x, y);
          context.lineTo(x, floor(row));
        }
        if (row > 0 && over(row, column) !== over(row - 1, column)) {
          context.moveTo(x, floor(row));
          context.lineTo(left(column + 1), floor(row));
        }
      }
      context.stroke();
    }
    context.fillStyle = colour("--ink-soft");
    context.font = `11px ${style.fontFamily}`;
    context.textAlign = "right";
    for (const batch of [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]) {
      const row = nearestIndex(batches, batch);
      context.fillText(String(batches[row]), margin.left - 6, (floor(row) + floor(row + 1)) / 2 + 4);
    }
    context.textAlign = "center";
    for (const sequence of [256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072]) {
      const column = nearestIndex(sequences, sequence);
      const x = Math.min(width - 20, (left(column) + left(column + 1)) / 2);
      context.fillText(sequences[column] >= 1024 ? `${Math.round(sequences[column] / 1024)}k` : String(sequences[column]), x, bottom + 15);
    }
    context.fillText(t("map.sequence"), margin.left + inner / 2, height - 4);
    context.save();
    context.translate(11, margin.top + (bottom - margin.top) / 2);
    context.rotate(-Math.PI / 2);
    context.fillText(t("map.batch"), 0, 0);
    context.restore();
    const spot = (row, column, draw) => draw((left(column) + left(column + 1)) / 2, (floor(row) + floor(row + 1)) / 2);
    spot(nearestIndex(batches, model.batch), nearestIndex(sequences, model.sequence), (x, y) => {
      context.beginPath();
      context.arc(x, y, 6, 0, 7);
      context.fillStyle = colour("--panel");
      context.fill();
      context.lineWidth = 2.5;
      context.strokeStyle = colour("--ink");
      context.stroke();
      context.beginPath();
      context.arc(x, y, 1.6, 0, 7);
      context.fillStyle = colour("--ink");
      context.fill();
    });
    if (cursor) spot(cursor.row, cursor.column, (x, y) => {
      context.lineWidth = 2;
      context.strokeStyle = colour("--ink");
      context.strokeRect(x - 6, y - 6, 12, 12);
      context.lineWidth = 1;
      context.strokeStyle = colour("--panel");
      context.strokeRect(x - 7.5, y - 7.5, 15, 15);
    });
  }

  /** A cell's verdict, as of the job itself: it fits when the high end of its range does. */
  function verdictOf(value) {
    if (Number.isNaN(value)) return "none";
    if (value > model.usable) return "over";
    return value * model.spread > model.usable ? "tight" : "fits";
  }

  function wordsOf(batch, sequence, value) {
    if (Number.isNaN(value)) return `${t("map.cell", { batch, sequence: grouped(sequence), size: t("map.cellNone") })}`;
    const cell = t("map.cell", { batch, sequence: grouped(sequence), size: gib(value) });
    if (!model.usable) return cell;
    const left = model.usable - value;
    return `${cell} · ${t({ fits: "map.cellFits", tight: "map.cellTight", over: "map.cellOver" }[verdictOf(value)], { headroom: gib(Math.abs(left)) })}`;
  }

  function describeCursor(live) {
    if (!model) return;
    readout.setAttribute("aria-live", live ? "polite" : "off");
    if (cursor) {
      const value = bytes[cursor.row * cells + cursor.column];
      readout.textContent = wordsOf(batches[cursor.row], sequences[cursor.column], value);
      readout.dataset.exactly = Number.isNaN(value) ? "" : exact(value);
      return;
    }
    delete readout.dataset.exactly;
    if (!model.usable) return setText(readout, "");
    const column = nearestIndex(sequences, model.sequence);
    let best = -1;
    for (let at = 0; at < cells; at += 1) if (verdictOf(bytes[at * cells + column]) === "fits") best = at;
    setText(readout, best < 0 ? t("map.largestNone", { sequence: grouped(sequences[column]) }) : t("map.largest", { sequence: grouped(sequences[column]), batch: batches[best] }));
  }

  function cellAt(event) {
    const bounds = pad.getBoundingClientRect();
    const inner = bounds.width - margin.left - margin.right;
    const column = cellBetween(columnEdges, (event.clientX - bounds.left - margin.left) / inner);
    const row = cellBetween(rowEdges, (height - margin.bottom - (event.clientY - bounds.top)) / (height - margin.bottom - margin.top));
    if (row < 0 || row >= cells || column < 0 || column >= cells) return null;
    return { row, column };
  }
  function move(next, live) {
    cursor = next;
    describeCursor(live);
    paint();
  }
  function adopt(batch, sequence) {
    store.set({ micro_batch_size: batch, sequence_length: sequence }, { source: "map" });
    tell(t("map.adopted", { batch, sequence: grouped(sequence) }));
  }
  pad.addEventListener("pointermove", (event) => move(cellAt(event), false));
  pad.addEventListener("pointerleave", () => document.activeElement !== pad && move(null, false));
  pad.addEventListener("click", (event) => {
    const cell = cellAt(event);
    if (cell) adopt(batches[cell.row], sequences[cell.column]);
  });
  pad.addEventListener("focus", () => cursor ?? (pad.matches(":focus-visible") && move({ row: nearestIndex(batches, model.batch), column: nearestIndex(sequences, model.sequence) }, true)));
  pad.addEventListener("blur", () => move(null, false));
  pad.addEventListener("keydown", (event) => {
    if (!model) return;
    const here = cursor ?? { row: nearestIndex(batches, model.batch), column: nearestIndex(sequences, model.sequence) };
    const step = event.shiftKey ? 8 : 1;
    const moves = { ArrowUp: [step, 0], ArrowDown: [-step, 0], ArrowRight: [0, step], ArrowLeft: [0, -step], PageUp: [8, 0], PageDown: [-8, 0], Home: [0, -cells], End: [0, cells] };
    if (moves[event.key]) {
      event.preventDefault();
      const clamp = (value) => Math.max(0, Math.min(cells - 1, value));
      move({ row: clamp(here.row + moves[event.key][0]), column: clamp(here.column + moves[event.key][1]) }, true);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      adopt(batches[here.row], sequences[here.column]);
    } else if (event.key === "Escape") {
      move(null, false);
    }
  });

  function drawTable() {
    if (!model) return;
    const powers = (sizes) => sizes.flatMap((size, at) => (Number.isInteger(Math.log2(size)) ? [at] : []));
    const rows = powers(batches);
    const columns = powers(sequences);
    const focused = [...tableBox.querySelectorAll(".cell")].indexOf(document.activeElement);
    tableBox.replaceChildren(h("table", { class: "grid map-table" },
      h("caption", { class: "unseen" }, t("map.label")),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, `${t("map.batch")} \\ ${t("map.sequence")}`), columns.map((column) => h("th", { scope: "col", class: "number" }, grouped(sequences[column]))))),
      h("tbody", {}, rows.map((row) => h("tr", {}, h("th", { scope: "row", class: "number" }, batches[row]), columns.map((column) => {
        const batch = batches[row];
        const sequence = sequences[column];
        const value = bytes[row * cells + column];
        const verdict = model.usable ? verdictOf(value) : null;
        return h("td", { class: `number ${{ fits: "is-water", tight: "is-tight", over: "is-land" }[verdict] ?? ""}` }, Number.isNaN(value) ? "–" : h("button", { type: "button", class: "cell", "data-exactly": exact(value), "aria-label": `${wordsOf(batch, sequence, value)}. ${t("map.adopt", { batch, sequence })}`,
          onclick: () => adopt(batch, sequence) }, gib(value).replace(" GiB", ""), verdict === "over" && h("span", { "aria-hidden": "true" }, " ×"), verdict === "tight" && h("span", { "aria-hidden": "true" }, " *")));
      }))))));
    // The keyboard stays in the cell where it was.
    if (focused >= 0) tableBox.querySelectorAll(".cell")[focused]?.focus({ preventScroll: true });
  }

  return {
    node,
    /** request: without batch and sequence it may be anything that has an estimate; usable: the card's bytes or null; spread: the high end of the
     * range over what is expected (it is the same for all sizes of a job). */
    render(request, usable, spread, batch, sequence) {
      model = { request, usable, spread, batch, sequence };
      node.hidden = false;
      // The map does not depend on where one stands in it.
      const key = JSON.stringify({ ...request, micro_batch_size: 0, sequence_length: 0 });
      if (key !== computed) {
        computed = key;
        compute();
      } else if (!cursor) {
        describeCursor(false);
      }
      redraw();
    },
    hide() {
      job += 1;
      computed = "";
      node.hidden = true;
    },
    repaint: paint,
  };
}

/** Where each size's band begins, 0 … 1 on a logarithmic scale; halfway between neighbours. */
function edges(values) {
  const logs = values.map(Math.log);
  const between = logs.slice(1).map((log, index) => (log + logs[index]) / 2);
  const all = [logs[0] - (logs[1] - logs[0]) / 2, ...between, logs[logs.length - 1] + (logs[logs.length - 1] - logs[logs.length - 2]) / 2];
  const span = all[all.length - 1] - all[0];
  return all.map((log) => (log - all[0]) / span);
}

function cellBetween(bounds, place) {
  if (place < 0 || place > 1) return -1;
  let index = 0;
  while (index < bounds.length - 2 && bounds[index + 1] < place) index += 1;
  return index;
}

function nearestIndex(values, wanted) {
  let best = 0;
  values.forEach((value, index) => {
    if (Math.abs(Math.log(value / wanted)) < Math.abs(Math.log(values[best] / wanted))) best = index;
  });
  return best;
}
