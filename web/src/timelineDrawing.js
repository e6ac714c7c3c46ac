// The tide of one step as a drawing: stacked areas over its instants, the high-water line, and the brim of the card.
import { categoryClass, phaseName } from "./categories.js";
import { text, ticksUpTo, tickText } from "./chart.js";
import { s } from "./dom.js";
import { gib, gibibyte } from "./format.js";
import { t } from "./messages.js";

const height = 268;
const margin = { left: 34, right: 8, top: 22, bottom: 26 };
// How wide letters are, on the safe side: names that have no room are left out.
const letterWidth = 6.4;
// A card far larger than the job would flatten the tide; its brim is drawn where it still tells something.
const farBrim = 2.2;

/**
 * model: {instants with positions, layers, phases, peak, mark, usable} as timeline.js has it. Returns {drawing, places, point(at, drawing)}: where each instant lies,
 * and what points at one.
 */
export function drawTimeline(model, width) {
  const { instants, peak, usable, mark } = model;
  const bottom = height - margin.bottom;
  const inner = width - margin.left - margin.right;
  const highest = Math.max(...instants.map((instant) => instant.total), mark, model.ghost ?? 0, 1);
  const brim = usable && usable < highest * farBrim ? usable : null;
  const top = Math.max(highest, brim ?? 0) * 1.06;
  const x = (position) => margin.left + position * inner;
  const y = (bytes) => bottom - (bytes / top) * (bottom - margin.top);
  const places = instants.map((instant) => x(instant.position));
  const chart = { ...model, width, bottom, inner, top, highest, places, x, y };
  const pointer = [s("path", { class: "hairline" }), s("circle", { class: "bead", r: 4 })];
  const where = { size: gib(instants[peak].total), phase: phaseName(instants[peak].phase) };
  const drawing = s(
    "svg",
    {
      class: "drawing",
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": t("timeline.description", where),
    },
    drawLevels(chart),
    drawPhases(chart),
    drawAreas(chart),
    brim && drawBrim(chart, brim),
    drawHighWater(chart),
    model.ghost > 0 && drawGhost(chart, model.ghost),
    s("g", { class: "hair", "aria-hidden": "true" }, pointer),
  );
  /** Points at an instant, in the drawing or in what became it. */
  function point(at, { lastChild: { firstChild: hairline, lastChild: bead } } = drawing) {
    hairline.setAttribute("d", `M${places[at]} ${margin.top}V${bottom}`);
    bead.setAttribute("cx", String(places[at]));
    bead.setAttribute("cy", String(y(instants[at].total)));
  }
  return { drawing, places, point };
}

const across = (className, level, width) =>
  s("path", { class: className, d: `M${margin.left} ${level}H${width - margin.right}` });

function drawLevels({ top, width, y }) {
  const beside = { class: "tick", "text-anchor": "end" };
  const { ticks } = ticksUpTo(top, 5);
  const levels = ticks.map((tick) => {
    const level = y(tick * gibibyte);
    return [across("gridline", level, width), text(margin.left - 6, level + 3.5, tickText(tick), beside)];
  });
  return [levels, text(margin.left - 6, 11, "GiB", beside)];
}

function drawPhases({ phases, bottom, x }) {
  return phases.map((phase) => {
    const [left, right, name] = [x(phase.from), x(phase.to), phaseName(phase.name)];
    const middle = { class: "tick phase-text", "text-anchor": "middle" };
    return [
      phase.from > 0 && s("path", { class: "phase-line", d: `M${left} ${margin.top - 6}V${bottom + 6}` }),
      right - left > name.length * letterWidth && text((left + right) / 2, bottom + 18, name, middle),
    ];
  });
}

/** The categories, each on top of those before, and the surface of them all. */
function drawAreas({ instants, layers, places, inner, y }) {
  const columns = places.map((place) => place.toFixed(1));
  // Of a stretch that is level its ends are enough.
  const line = (levels) => {
    const rows = levels.map((bytes) => y(bytes).toFixed(1));
    const bends = (row, index) => row !== rows[index - 1] || row !== rows[index + 1];
    return rows.flatMap((row, index) => (bends(row, index) ? `${columns[index]} ${row}` : []));
  };
  let base = instants.map(() => 0);
  let lower = line(base);
  const areas = layers.map((category) => {
    base = base.map((bytes, index) => bytes + (instants[index].bytes[category] ?? 0));
    const upper = line(base);
    const d = `M${upper.join("L")}L${lower.reverse().join("L")}Z`;
    lower = upper;
    return s("path", { class: `area ${categoryClass(category)}`, "data-category": category, d });
  });
  const className = inner / instants.length < 3 ? "surface fine" : "surface";
  return [areas, s("path", { class: className, d: `M${line(instants.map(({ total }) => total)).join("L")}` })];
}

function drawBrim({ highest, width, y }, usable) {
  const level = y(usable);
  const words = t("timeline.brim", { size: gib(usable) });
  const beside = { class: "brim-text halo", "text-anchor": "end" };
  const hasRoom = Math.abs(level - y(highest)) > 15;
  return [across("brim", level, width), hasRoom && text(width - margin.right - 4, level - 5, words, beside)];
}

function drawHighWater({ mark, peak, places, width, y }) {
  const level = y(mark);
  const at = places[peak];
  const words = t("timeline.peak", { size: gib(mark) });
  const onRight = at + words.length * (letterWidth + 0.4) + 14 < width;
  const beside = { class: "peak-text halo", "text-anchor": onRight ? "start" : "end" };
  return [
    across("high-water", level, width),
    s("path", { class: "peak-mark", d: `M${at} ${level - 2}l-6 -9h12z` }),
    text(at + (onRight ? 10 : -10), level - 6, words, beside),
  ];
}

/** How high the pinned job stands. */
function drawGhost({ width, y }, bytes) {
  const beside = { class: "ghost-text halo", "text-anchor": "start" };
  return [across("ghost", y(bytes), width), text(margin.left + 4, y(bytes) - 4, t("compare.ghost"), beside)];
}

/** Positions 0 … 1: each phase gets room by the square root of its instants, so that a long one leaves the others legible. */
export function layOut(instants) {
  const phases = [];
  instants.forEach((instant, index) => {
    const last = phases[phases.length - 1];
    if (last && last.name === instant.phase) last.last = index;
    else phases.push({ name: instant.phase, first: index, last: index });
  });
  const weights = phases.map((phase) => Math.sqrt(phase.last - phase.first + 1) + 1.2);
  const sum = weights.reduce((total, weight) => total + weight, 0);
  const positions = [];
  let from = 0;
  phases.forEach((phase, index) => {
    const width = weights[index] / sum;
    const instantsHere = phase.last - phase.first + 1;
    for (let k = 0; k < instantsHere; k += 1) {
      // The step starts at the left edge and ends at the right one.
      const inside = (k + 0.5) / instantsHere;
      const first = index === 0 && k === 0;
      const final = index === phases.length - 1 && k === instantsHere - 1;
      positions.push(first ? 0 : final ? 1 : from + inside * width);
    }
    phase.from = from;
    from += width;
    phase.to = from;
  });
  return { positions, phases };
}
