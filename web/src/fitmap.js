// Batch × sequence, as a chart of depths: water where the job fits, land where it does not, the shore between.
import { drawAtWidth } from "./chart.js";
import { h, setText } from "./dom.js";
import { exact, gib, gibibyte, grouped } from "./format.js";
import { t } from "./messages.js";
import { stopsBetween } from "./form.js";

const cells = 64;
const margin = { left: 44, right: 10, top: 8, bottom: 34 };
const height = 320;
const slice = 10;

/** 64 sizes from low to high, near enough to even steps of the logarithm, each a multiple of `unit`, none twice. */
export function axis(low, high, unit, amount = cells) {
  const values = [];
  let last = 0;
  for (let index = 0; index < amount; index += 1) {
    const even = low * (high / low) ** (index / (amount - 1));
    const remaining = amount - 1 - index;
    let value = Math.max(unit, Math.round(even / unit) * unit);
    if (value <= last) value = last + unit;
    value = Math.min(value, Math.max(last + unit, high - remaining * unit));
    values.push(value);
    last = value;
  }
  return values;
}

export function createFitMap({ engine, store, tell }) {
  const canvas = h("canvas", { class: "map-canvas" });
  const pad = h("div", { class: "map-pad", tabindex: "0", role: "application", "aria-roledescription": t("map.role"), "data-testid": "fit-map-pad" });
  const box = h("div", { class: "map-box" }, canvas, pad);
  const readout = h("p", { class: "readout map-readout", role: "status", "data-testid": "fit-map-readout" });
  const legend = h("p", { class: "map-legend" }, h("span", { class: "key key-water", "aria-hidden": "true" }), t("map.fits"), h("span", { class: "key key-land", "aria-hidden": "true" }), t("map.over"), h("span", { class: "key key-now", "aria-hidden": "true" }), t("map.current"));
  const tableBox = h("div", { class: "scroll" });
  const details = h("details", { class: "more", ontoggle: () => details.open && drawTable() }, h("summary", {}, t("map.table")), tableBox);
  const node = h("section", { class: "panel", "aria-labelledby": "map-heading", "data-testid": "fit-map" },
    h("div", { class: "panel-head" }, h("h3", { id: "map-heading" }, t("map.label")), legend), h("p", { class: "hint" }, t("map.hint")), box, readout, details);
  pad.setAttribute("aria-label", `${t("map.label")}. ${t("map.hint")}`);

  const batches = axis(1, 128, 1);
  const sequences = axis(256, 65536, 64);
  const bytes = new Float64Array(cells * cells).fill(NaN);
  let model = null;
  let cursor = null;
  let job = 0;
  let visible = false;
  let due = false;

  new IntersectionObserver(([entry]) => {
    visible = entry.isIntersecting;
    if (visible && due) compute();
  }, { rootMargin: "200px" }).observe(node);

  /** In slices that leave the page responsive; coarse first where the engine is slow. */
  function compute() {
    due = false;
    job += 1;
    const mine = job;
    const { request } = model;
    let perCell = model.perCell ?? 0.02;
    const passes = [];
    const started = performance.now();
    const rowsAtOnce = () => Math.max(1, Math.min(cells, Math.floor(slice / Math.max(1e-6, perCell * cells))));
    // Bit-reversed rows: the picture is whole early, then sharpens.
    for (let stride = 32, seen = new Set(); stride >= 1; stride /= 2) {
      for (let row = 0; row < cells; row += stride) if (!seen.has(row)) {
        seen.add(row);
        passes.push(row);
      }
    }
    const done = new Uint8Array(cells);
    const run = () => {
      if (mine !== job) return;
      const from = performance.now();
      let worked = 0;
      while (passes.length > 0) {
        const rows = passes.splice(0, rowsAtOnce());
        const before = performance.now();
        let part;
        try {
          part = engine.map(request, rows.map((row) => batches[row]), sequences);
        } catch {
          part = new Float64Array(rows.length * cells).fill(NaN);
        }
        rows.forEach((row, index) => {
          bytes.set(part.subarray(index * cells, (index + 1) * cells), row * cells);
          done[row] = 1;
        });
        worked += rows.length;
        perCell = Math.max(1e-5, (performance.now() - before) / (rows.length * cells));
        model.perCell = perCell;
        if (performance.now() - from > slice * 0.6) break;
      }
      // Rows not there yet borrow from the nearest one above.
      for (let row = 0, last = 0; row < cells; row += 1) {
        if (done[row]) last = row;
        else bytes.copyWithin(row * cells, last * cells, (last + 1) * cells);
      }
      paint();
      if (passes.length > 0) setTimeout(run, 0);
      else {
        node.dataset.milliseconds = (performance.now() - started).toFixed(1);
        describeCursor(false);
        if (details.open) drawTable();
      }
    };
    run();
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
    const cellWidth = inner / cells;
    const cellHeight = (bottom - margin.top) / cells;
    const depth = [1, 2, 3, 4, 5, 6].map((step) => colour(`--depth-${step}`));
    const landColour = colour("--land");
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
        return depth[Math.min(5, Math.floor(ratioUsed * 6))];
      }
      return depth[Math.min(5, Math.floor((Math.log(value / gibibyte + 1) / Math.log(top / gibibyte + 1.001)) * 6))];
    };
    for (let row = 0; row < cells; row += 1) {
      const y = bottom - (row + 1) * cellHeight;
      // Runs of one shade in one stroke.
      for (let column = 0; column < cells;) {
        const fill = shade(bytes[row * cells + column]);
        let end = column + 1;
        while (end < cells && shade(bytes[row * cells + end]) === fill) end += 1;
        context.fillStyle = fill;
        context.fillRect(margin.left + column * cellWidth, y, (end - column) * cellWidth + 0.5, cellHeight + 0.5);
        column = end;
      }
    }
    if (usable) {
      // The shore, and hatching on the land: shape as well as colour.
      const over = (row, column) => bytes[row * cells + column] > usable;
      context.save();
      context.beginPath();
      for (let row = 0; row < cells; row += 1) for (let column = 0; column < cells; column += 1) if (over(row, column)) context.rect(margin.left + column * cellWidth, bottom - (row + 1) * cellHeight, cellWidth, cellHeight);
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
        const x = margin.left + column * cellWidth;
        const y = bottom - (row + 1) * cellHeight;
        if (column > 0 && over(row, column) !== over(row, column - 1)) {
          context.moveTo(x, y);
          context.lineTo(x, y + cellHeight);
        }
        if (row > 0 && over(row, column) !== over(row - 1, column)) {
          context.moveTo(x, y + cellHeight);
          context.lineTo(x + cellWidth, y + cellHeight);
        }
      }
      context.stroke();
    }
    context.fillStyle = colour("--ink-soft");
    context.font = `11px ${style.fontFamily}`;
    context.textAlign = "right";
    for (const batch of [1, 2, 4, 8, 16, 32, 64, 128]) {
      const row = nearestIndex(batches, batch);
      context.fillText(String(batches[row]), margin.left - 6, bottom - (row + 0.5) * cellHeight + 4);
    }
    context.textAlign = "center";
    for (const sequence of [256, 1024, 4096, 16384, 65536]) {
      const column = nearestIndex(sequences, sequence);
      const x = Math.min(width - 20, margin.left + (column + 0.5) * cellWidth);
      context.fillText(sequences[column] >= 1024 ? `${Math.round(sequences[column] / 1024)}k` : String(sequences[column]), x, bottom + 15);
    }
    context.fillText(t("map.sequence"), margin.left + inner / 2, height - 4);
    context.save();
    context.translate(11, margin.top + (bottom - margin.top) / 2);
    context.rotate(-Math.PI / 2);
    context.fillText(t("map.batch"), 0, 0);
    context.restore();
    const spot = (row, column, draw) => draw(margin.left + (column + 0.5) * cellWidth, bottom - (row + 0.5) * cellHeight);
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

  function wordsOf(batch, sequence, value) {
    if (Number.isNaN(value)) return `${t("map.cell", { batch, sequence: grouped(sequence), size: t("map.cellNone") })}`;
    const cell = t("map.cell", { batch, sequence: grouped(sequence), size: gib(value) });
    if (!model.usable) return cell;
    const left = model.usable - value;
    return `${cell} · ${t(left >= 0 ? "map.cellFits" : "map.cellOver", { headroom: gib(Math.abs(left)) })}`;
  }

  function describeCursor(live) {
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
    for (let row = 0; row < cells; row += 1) if (bytes[row * cells + column] <= model.usable) best = row;
    setText(readout, best < 0 ? t("map.largestNone", { sequence: grouped(sequences[column]) }) : t("map.largest", { sequence: grouped(sequences[column]), batch: batches[best] }));
  }

  function cellAt(event) {
    const bounds = pad.getBoundingClientRect();
    const inner = bounds.width - margin.left - margin.right;
    const column = Math.floor(((event.clientX - bounds.left - margin.left) / inner) * cells);
    const row = Math.floor(((height - margin.bottom - (event.clientY - bounds.top)) / (height - margin.bottom - margin.top)) * cells);
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
    const rows = stopsBetween(1, 128).filter((batch) => Number.isInteger(Math.log2(batch)));
    const columns = stopsBetween(256, 65536).filter((sequence) => Number.isInteger(Math.log2(sequence)));
    const values = engine.map(model.request, rows, columns);
    tableBox.replaceChildren(h("table", { class: "grid map-table" },
      h("caption", { class: "unseen" }, t("map.label")),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, `${t("map.batch")} \\ ${t("map.sequence")}`), columns.map((sequence) => h("th", { scope: "col", class: "number" }, grouped(sequence))))),
      h("tbody", {}, rows.map((batch, row) => h("tr", {}, h("th", { scope: "row", class: "number" }, batch), columns.map((sequence, column) => {
        const value = values[row * columns.length + column];
        const fits = model.usable ? value <= model.usable : null;
        return h("td", { class: `number ${fits === null ? "" : fits ? "is-water" : "is-land"}` }, Number.isNaN(value) ? "–" : h("button", { type: "button", class: "cell", "data-exactly": exact(value), "aria-label": `${wordsOf(batch, sequence, value)}. ${t("map.adopt", { batch, sequence })}`,
          onclick: () => adopt(batch, sequence) }, gib(value).replace(" GiB", ""), fits === false && h("span", { "aria-hidden": "true" }, " ×")));
      }))))));
  }

  return {
    node,
    /** request: without batch and sequence it may be anything that has an estimate; usable: the card's bytes or null. */
    render(request, usable, batch, sequence) {
      const perCell = model?.perCell;
      model = { request, usable, batch, sequence, perCell };
      node.hidden = false;
      if (visible) compute();
      else due = true;
      redraw();
    },
    hide() {
      job += 1;
      node.hidden = true;
    },
    repaint: paint,
  };
}

function nearestIndex(values, wanted) {
  let best = 0;
  values.forEach((value, index) => {
    if (Math.abs(Math.log(value / wanted)) < Math.abs(Math.log(values[best] / wanted))) best = index;
  });
  return best;
}
