// Batch × sequence, as a chart of depths, that is read and adopted by pointer, by keyboard and in a table.
import { drawAtWidth } from "./chart.js";
import { h, scrollBox, setText } from "./dom.js";
import { exact, gib, grouped } from "./format.js";
import { changesFor, createCardsField } from "./mapCards.js";
import { drawMap, height, margin, readPalette } from "./mapDrawing.js";
import { bandAt, batches, cells, cellOf, columnEdges, rowEdges, sequences, verdictOf } from "./mapSizes.js";
import { mapTable } from "./mapTable.js";
import { t } from "./messages.js";

const keyMoves = {
  ArrowUp: [1, 0],
  ArrowDown: [-1, 0],
  ArrowRight: [0, 1],
  ArrowLeft: [0, -1],
  PageUp: [8, 0],
  PageDown: [-8, 0],
  Home: [0, -cells],
  End: [0, cells],
};
const cellWords = { fits: "map.cellFits", tight: "map.cellTight", over: "map.cellOver" };

/** jobOn(values) promises what `render` takes for another job, or null where it has no estimate. */
export function createFitMap({ engine, store, tell, jobOn }) {
  const cards = createCardsField(turnTo);
  const { node, box, canvas, pad, readout, details, tableBox } = createNodes(cards.node);
  details.addEventListener("toggle", () => details.open && drawTable());
  const bytes = new Float64Array(cells * cells).fill(NaN);
  // What is drawn, as `render` has it; null before the first map.
  let model = null;
  let cursor = null;
  let round = 0;
  let computed = "";
  // The job itself, and what the cards that are looked at change of it.
  let own = null;
  let changes = {};
  let palette = null;
  let pixelWidth = 0;
  const redraw = drawAtWidth(box, (width) => {
    pixelWidth = width;
    paint();
  });

  function paint() {
    if (!model || pixelWidth === 0) return;
    palette ??= readPalette(node);
    drawMap(canvas, pixelWidth, { model, bytes, cursor, palette });
  }

  async function compute(next, key) {
    const mine = round;
    const answer = await engine.map(next.request, batches, sequences);
    if (!answer || mine !== round) return false;
    const before = performance.now();
    model = next;
    computed = key;
    bytes.set(answer.bytes);
    redraw();
    // What all cells cost, computed and painted: the tests hold it against its bound.
    node.dataset.milliseconds = (answer.milliseconds + performance.now() - before).toFixed(1);
    describeCursor(false);
    if (details.open) drawTable();
    return true;
  }

  function describeCursor(live) {
    if (!model) return;
    readout.setAttribute("aria-live", live ? "polite" : "off");
    if (!cursor) {
      delete readout.dataset.exactly;
      setText(readout, model.usable ? largestWords(model, bytes) : t("map.noCard"));
      return;
    }
    const value = bytes[cursor.row * cells + cursor.column];
    readout.textContent = wordsOf(model, batches[cursor.row], sequences[cursor.column], value);
    readout.dataset.exactly = Number.isNaN(value) ? "" : exact(value);
  }

  async function turnTo(count) {
    round += 1;
    const mine = round;
    const wanted = changesFor(own.values, count);
    const next = Object.keys(wanted).length === 0 ? own.next : await jobOn({ ...own.values, ...wanted });
    if (mine !== round) return;
    if (!next) {
      setText(readout, t("map.noSuchCards", { count }));
      return;
    }
    changes = wanted;
    await compute(next, "");
  }

  function adopt(batch, sequence) {
    store.set({ micro_batch_size: batch, sequence_length: sequence, ...changes }, { source: "map" });
    tell(t("map.adopted", { batch, sequence: grouped(sequence) }));
  }

  listen(pad, {
    here: () => cursor ?? (model && cellOf(model)),
    hasCursor: () => cursor !== null,
    adopt: ({ row, column }) => adopt(batches[row], sequences[column]),
    move(next, live) {
      cursor = next;
      describeCursor(live);
      paint();
    },
  });

  function drawTable() {
    if (!model) return;
    const focused = [...tableBox.querySelectorAll(".cell")].indexOf(document.activeElement);
    tableBox.replaceChildren(mapTable({ model, bytes, words: (...cell) => wordsOf(model, ...cell), adopt }));
    // The keyboard stays in the cell where it was.
    if (focused >= 0) tableBox.querySelectorAll(".cell")[focused]?.focus({ preventScroll: true });
  }

  return {
    node,
    /**
     * next: {request, usable, low, high, batch, sequence}: a request that has an estimate, the card's bytes or null, the ends of the range over what
     * is expected (the same for all sizes of a job), and where the job is; values: the state's. Promises whether the map is now about it; until then
     * it stays what it was.
     */
    async render(next, values) {
      if (Object.keys(changes).length > 0) computed = "";
      own = { next, values };
      changes = {};
      cards.render(values);
      node.hidden = false;
      node.classList.toggle("no-card", !next.usable);
      round += 1;
      // The map does not depend on where one stands in it.
      const key = JSON.stringify({ ...next.request, micro_batch_size: 0, sequence_length: 0 });
      if (key !== computed) return compute(next, key);
      model = next;
      if (!cursor) describeCursor(false);
      redraw();
      return true;
    },
    hide() {
      round += 1;
      computed = "";
      node.hidden = true;
    },
    /** The colours have changed. */
    repaint() {
      palette = null;
      paint();
    },
  };
}

function createNodes(cards) {
  const canvas = h("canvas", { class: "map-canvas" });
  const pad = h("div", {
    class: "map-pad",
    tabindex: "0",
    role: "application",
    "aria-roledescription": t("map.role"),
    "aria-label": `${t("map.label")}. ${t("map.hint")}`,
    "data-testid": "fit-map-pad",
  });
  const box = h("div", { class: "map-box" }, canvas, pad);
  const readout = h("p", { class: "readout map-readout", role: "status", "data-testid": "fit-map-readout" });
  const keys = [
    ["water", "fits"],
    ["tight", "tight"],
    ["land", "over"],
    ["now", "current"],
  ];
  const key = /** @param {string[]} each */ ([name, word]) =>
    h(
      "span",
      { class: name === "now" ? undefined : "with-card" },
      h("span", { class: `key key-${name}`, "aria-hidden": "true" }),
      t(`map.${word}`),
    );
  const legend = h("p", { class: "map-legend" }, keys.map(key));
  const tableBox = scrollBox(t("map.table"));
  const details = h("details", { class: "more" }, h("summary", {}, t("map.table")), tableBox);
  const node = h(
    "section",
    { role: "group", class: "panel", "aria-labelledby": "map-heading", "data-testid": "fit-map" },
    h("div", { class: "panel-head" }, h("h3", { id: "map-heading" }, t("map.label")), legend),
    h("p", { class: "hint" }, t("map.hint")),
    cards,
    box,
    readout,
    details,
  );
  return { node, box, canvas, pad, readout, details, tableBox };
}

/** What a cell says. */
function wordsOf(model, batch, sequence, value) {
  const size = Number.isNaN(value) ? t("map.cellNone") : gib(value);
  const cell = t("map.cell", { batch, sequence: grouped(sequence), size });
  if (Number.isNaN(value) || !model.usable) return cell;
  const headroom = gib(Math.abs(model.usable - value));
  const verdict = verdictOf(model, value);
  const short = verdict === "tight" && value > model.usable;
  return `${cell} · ${t(short ? "map.cellTightOver" : cellWords[verdict], { headroom })}`;
}

/** The largest batch that fits at the job's own length, in words. */
function largestWords(model, bytes) {
  const { column } = cellOf(model);
  let best = -1;
  for (let at = 0; at < cells; at += 1) if (verdictOf(model, bytes[at * cells + column]) === "fits") best = at;
  const sequence = grouped(sequences[column]);
  return best < 0 ? t("map.largestNone", { sequence }) : t("map.largest", { sequence, batch: batches[best] });
}

function cellAt(event, pad) {
  const bounds = pad.getBoundingClientRect();
  const across = bounds.width - margin.left - margin.right;
  const up = height - margin.bottom - margin.top;
  const column = bandAt(columnEdges, (event.clientX - bounds.left - margin.left) / across);
  const row = bandAt(rowEdges, (height - margin.bottom - (event.clientY - bounds.top)) / up);
  return row < 0 || column < 0 ? null : { row, column };
}

/** Pointer and keys on the pad. here() → the cell to start from, or null without a map. */
function listen(pad, { here, hasCursor, move, adopt }) {
  pad.addEventListener("pointermove", (event) => move(cellAt(event, pad), false));
  pad.addEventListener("pointerleave", () => document.activeElement !== pad && move(null, false));
  // A finger hides what it touches: its first tap reads a cell, a second one there adopts it.
  let read = null;
  pad.addEventListener("click", (event) => {
    const cell = cellAt(event, pad);
    const isTap = /** @type {PointerEvent} */ (event).pointerType === "touch";
    const again = read && cell && Math.abs(read.row - cell.row) < 3 && Math.abs(read.column - cell.column) < 3;
    if (cell && (!isTap || again)) adopt(isTap ? read : cell);
    read = isTap && cell && !again ? cell : null;
    if (read) move(read, true);
  });
  pad.addEventListener("focus", () => {
    if (!hasCursor() && here() && pad.matches(":focus-visible")) move(here(), true);
  });
  pad.addEventListener("blur", () => move(null, false));
  pad.addEventListener("keydown", (event) => {
    const cell = here();
    const step = keyMoves[event.key];
    if (!cell) return;
    if (step) {
      event.preventDefault();
      const size = event.shiftKey ? 8 : 1;
      const within = (value) => Math.max(0, Math.min(cells - 1, value));
      move({ row: within(cell.row + step[0] * size), column: within(cell.column + step[1] * size) }, true);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      adopt(cell);
    } else if (event.key === "Escape") {
      move(null, false);
    }
  });
}
