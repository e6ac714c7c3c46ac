// The tide of one step: stacked areas over its instants, the high-water line, and the brim of the card.
import { categoryClass, categoryName, phaseName, strata } from "./categories.js";
import { drawAtWidth, text, tickText, ticksUpTo } from "./chart.js";
import { h, scrollBox, s, setText } from "./dom.js";
import { exact, gib, gibibyte } from "./format.js";
import { tellExactly } from "./exactly.js";
import { t } from "./messages.js";

const height = 268;
const margin = { left: 34, right: 8, top: 22, bottom: 26 };

export function createTimeline() {
  const box = h("div", { class: "timeline-box" });
  const cursor = h("div", { class: "timeline-cursor", role: "slider", tabindex: "0", "aria-label": t("timeline.instant"), "aria-valuemin": "0", "data-testid": "timeline-cursor" });
  const readout = h("div", { class: "readout", "data-testid": "timeline-readout" });
  const table = h("tbody");
  const toPeak = h("button", { type: "button", class: "button quiet small", onclick: () => point(model.peak) }, t("timeline.toPeak"));
  const node = h("section", { class: "panel", "aria-labelledby": "timeline-heading", "data-testid": "timeline" },
    h("div", { class: "panel-head" }, h("h3", { id: "timeline-heading" }, t("timeline.label")), toPeak),
    h("p", { class: "hint" }, t("timeline.hint")),
    h("div", { class: "timeline-frame" }, box, cursor), readout,
    h("details", { class: "more" }, h("summary", {}, t("timeline.table")),
      scrollBox(t("timeline.table"), h("table", { class: "grid" }, h("thead", {}, h("tr", {}, ["timeline.phase", "timeline.highest", "timeline.at"].map((key) => h("th", { scope: "col" }, t(key))))), table))));
  let model = null;
  let at = -1;
  let geometry = null;

  const redraw = drawAtWidth(box, (width) => {
    if (!model) return;
    const { instants, layers, phases, peak, usable, mark: highMark } = model;
    const inner = width - margin.left - margin.right;
    const bottom = height - margin.bottom;
    const highest = Math.max(...instants.map((instant) => instant.total), highMark, 1);
    // A card far larger than the job would flatten the tide; its brim is drawn where it still tells something.
    const showBrim = usable && usable < highest * 2.2;
    const top = Math.max(highest, showBrim ? usable : 0) * 1.06;
    const y = (bytes) => bottom - (bytes / top) * (bottom - margin.top);
    const x = (position) => margin.left + position * inner;
    const places = instants.map((instant) => x(instant.position));
    const drawing = s("svg", { class: "drawing", width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": t("timeline.description", { size: gib(instants[peak].total), phase: phaseName(instants[peak].phase) }) });

    const { ticks } = ticksUpTo(top, 5);
    for (const tick of ticks) {
      const level = y(tick * gibibyte);
      drawing.append(s("path", { class: "gridline", d: `M${margin.left} ${level}H${width - margin.right}` }), text(margin.left - 6, level + 3.5, tickText(tick), { class: "tick", "text-anchor": "end" }));
    }
    drawing.append(text(margin.left - 6, 11, "GiB", { class: "tick", "text-anchor": "end" }));
    for (const phase of phases) {
      const left = x(phase.from);
      const right = x(phase.to);
      if (phase.from > 0) drawing.append(s("path", { class: "phase-line", d: `M${left} ${margin.top - 6}V${bottom + 6}` }));
      const name = phaseName(phase.name);
      if (right - left > name.length * 6.4) drawing.append(text((left + right) / 2, bottom + 18, name, { class: "tick phase-text", "text-anchor": "middle" }));
    }
    const base = instants.map(() => 0);
    for (const category of layers) {
      const lower = base.map((bytes, index) => `${places[index].toFixed(1)} ${y(bytes).toFixed(1)}`);
      instants.forEach((instant, index) => { base[index] += instant.bytes[category] ?? 0; });
      const upper = base.map((bytes, index) => `${places[index].toFixed(1)} ${y(bytes).toFixed(1)}`);
      drawing.append(s("path", { class: `area ${categoryClass(category)}`, d: `M${upper.join("L")}L${lower.reverse().join("L")}Z` }));
    }
    drawing.append(s("path", { class: inner / instants.length < 3 ? "surface fine" : "surface", d: `M${instants.map((instant, index) => `${places[index].toFixed(1)} ${y(instant.total).toFixed(1)}`).join("L")}` }));
    if (showBrim) {
      const level = y(usable);
      drawing.append(s("path", { class: "brim", d: `M${margin.left} ${level}H${width - margin.right}` }));
      if (Math.abs(level - y(highest)) > 15) drawing.append(text(width - margin.right - 4, level - 5, t("timeline.brim", { size: gib(usable) }), { class: "brim-text halo", "text-anchor": "end" }));
    }
    const highWater = y(highMark);
    const peakAt = places[peak];
    const words = t("timeline.peak", { size: gib(highMark) });
    const onRight = peakAt + words.length * 6.8 + 14 < width;
    drawing.append(
      s("path", { class: "high-water", d: `M${margin.left} ${highWater}H${width - margin.right}` }),
      s("path", { class: "peak-mark", d: `M${peakAt} ${highWater - 2}l-6 -9h12z` }),
      text(peakAt + (onRight ? 10 : -10), highWater - 6, words, { class: "peak-text halo", "text-anchor": onRight ? "start" : "end" }));
    const hair = s("g", { class: "hair", "aria-hidden": "true" }, s("path", { class: "hairline", d: "" }), s("circle", { class: "bead", r: 4, cx: -20, cy: -20 }));
    drawing.append(hair);
    box.replaceChildren(drawing);
    geometry = { places, y, bottom, hair };
    if (at >= 0) mark();
  });

  function mark() {
    if (!geometry) return;
    const instant = model.instants[at];
    geometry.hair.firstChild.setAttribute("d", `M${geometry.places[at]} ${margin.top}V${geometry.bottom}`);
    geometry.hair.lastChild.setAttribute("cx", geometry.places[at]);
    geometry.hair.lastChild.setAttribute("cy", geometry.y(instant.total));
  }

  function point(index) {
    if (!model) return;
    at = Math.max(0, Math.min(model.instants.length - 1, index));
    const instant = model.instants[at];
    cursor.setAttribute("aria-valuenow", String(at));
    cursor.setAttribute("aria-valuetext", t("timeline.value", { instant: instant.instant, total: gib(instant.total) }));
    const parts = model.layers.filter((category) => instant.bytes[category] > 0).reverse();
    readout.replaceChildren(
      h("span", { class: "readout-where" }, instant.instant),
      tellExactly(h("span", { class: "readout-total" }, gib(instant.total)), instant.total),
      h("span", { class: "readout-exact" }, exact(instant.total)),
      h("span", { class: "readout-parts" }, parts.map((category) => h("span", { class: "readout-part" },
        h("span", { class: `swatch ${categoryClass(category)}`, "aria-hidden": "true" }), `${categoryName(category)} ${gib(instant.bytes[category])}`))));
    mark();
  }

  function nearest(event) {
    if (!geometry) return;
    const left = event.clientX - cursor.getBoundingClientRect().left;
    let best = 0;
    geometry.places.forEach((place, index) => {
      if (Math.abs(place - left) < Math.abs(geometry.places[best] - left)) best = index;
    });
    point(best);
  }
  cursor.addEventListener("pointermove", nearest);
  cursor.addEventListener("pointerdown", nearest);
  cursor.addEventListener("keydown", (event) => {
    if (!model) return;
    const phaseOf = (index) => model.instants[index].phase;
    const jump = (step) => {
      let next = at + step;
      while (next > 0 && next < model.instants.length - 1 && phaseOf(next) === phaseOf(at)) next += step;
      return next;
    };
    const moves = { ArrowLeft: () => at - 1, ArrowDown: () => at - 1, ArrowRight: () => at + 1, ArrowUp: () => at + 1, Home: () => 0, End: () => model.instants.length - 1, PageUp: () => jump(-1), PageDown: () => jump(1) };
    if (!moves[event.key]) return;
    event.preventDefault();
    point(moves[event.key]());
  });

  return {
    node,
    render(estimate, fit) {
      const instants = estimate.timeline;
      node.hidden = instants.length === 0;
      if (instants.length === 0) return;
      const { positions, phases } = layOut(instants);
      let peak = 0;
      instants.forEach((instant, index) => {
        if (instant.total > instants[peak].total) peak = index;
      });
      const present = new Set();
      for (const instant of instants) for (const [category, bytes] of Object.entries(instant.bytes)) if (bytes > 0) present.add(category);
      const before = model && at >= 0 ? { label: model.instants[at].instant, atPeak: at === model.peak } : null;
      model = { instants: instants.map((instant, index) => ({ ...instant, position: positions[index] })), layers: strata(present), phases, peak, mark: estimate.allocated.expected, usable: fit && fit.usable_bytes > 0 ? fit.usable_bytes : null };
      cursor.setAttribute("aria-valuemax", String(instants.length - 1));
      const again = before && !before.atPeak ? instants.findIndex((instant) => instant.instant === before.label) : -1;
      table.replaceChildren(...phases.map((phase) => {
        const own = instants.slice(phase.first, phase.last + 1);
        const highest = own.reduce((best, instant) => (instant.total > best.total ? instant : best));
        return h("tr", {}, h("th", { scope: "row" }, phaseName(phase.name)), tellExactly(h("td", { class: "number" }, gib(highest.total)), highest.total), h("td", {}, highest.instant));
      }));
      // The instant that was pointed at may lie beyond the end of this step.
      at = again >= 0 ? again : peak;
      redraw();
      point(at);
    },
  };
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
