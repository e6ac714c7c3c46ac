// The tide of one step, read by pointer, by keys and as a table.
import { categoryClass, categoryName, phaseName, strata } from "./categories.js";
import { drawAtWidth } from "./chart.js";
import { become, h, scrollBox } from "./dom.js";
import { exact, gib } from "./format.js";
import { tellExactly } from "./exactly.js";
import { t } from "./messages.js";
import { drawTimeline, layOut } from "./timelineDrawing.js";

/** "forward: layers.3 (end)" in the page's language; the place is a module's name, or the engine's word. */
function nameOf({ instant, phase }) {
  const [, at, which] = instant.match(/^[^:]*: (.+) \((highest|end)\)$/s) ?? [];
  const words = which === "end" ? "timeline.atEnd" : "timeline.atHighest";
  return which ? t(words, { phase: phaseName(phase), at }) : instant;
}

/** onpick(instant) shows what fills the memory at an instant. */
export function createTimeline(onpick) {
  const box = h("div", { class: "timeline-box" });
  const cursor = h("div", {
    class: "timeline-cursor",
    role: "slider",
    tabindex: "0",
    "aria-label": t("timeline.instant"),
    "aria-valuemin": "0",
    "data-testid": "timeline-cursor",
  });
  const readout = h("div", { class: "readout", "data-testid": "timeline-readout" });
  const table = h("tbody");
  const toPeak = h(
    "button",
    { type: "button", class: "button quiet small", onclick: () => point(model.peak) },
    t("timeline.toPeak"),
  );
  const node = h(
    "section",
    { role: "group", class: "panel", "aria-labelledby": "timeline-heading", "data-testid": "timeline" },
    h("div", { class: "panel-head" }, h("h3", { id: "timeline-heading" }, t("timeline.label")), toPeak),
    h("p", { class: "hint" }, t("timeline.hint")),
    h("div", { class: "timeline-frame" }, box, cursor),
    readout,
    h(
      "details",
      { class: "more", ontoggle: tabulate },
      h("summary", {}, t("timeline.table")),
      scrollBox(
        t("timeline.table"),
        h(
          "table",
          { class: "grid" },
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ["timeline.phase", "timeline.highest", "timeline.at"].map((key) => h("th", { scope: "col" }, t(key))),
            ),
          ),
          table,
        ),
      ),
    ),
  );
  const pickNow = () => onpick(at === model.peak ? null : model.instants[at]);
  const pick = h(
    "button",
    { type: "button", class: "link", "data-testid": "pick", onclick: pickNow },
    t("timeline.pick"),
  );
  let model = null;
  let at = -1;
  let picture = null;

  const redraw = drawAtWidth(box, (width) => {
    if (!model) return;
    picture = drawTimeline(model, width);
    if (at >= 0) picture.point(at);
    become(box, picture.drawing);
  });

  /** The table, where it can be seen. */
  function tabulate() {
    if (!model || !table.closest("details").open) return;
    const { instants, phases } = model;
    table.replaceChildren(
      ...phases.map((phase) => {
        const own = instants.slice(phase.first, phase.last + 1);
        const highest = own.reduce((best, instant) => (instant.total > best.total ? instant : best));
        return h(
          "tr",
          {},
          h("th", { scope: "row" }, phaseName(phase.name)),
          tellExactly(h("td", { class: "number" }, gib(highest.total)), highest.total),
          h("td", {}, highest.name),
        );
      }),
    );
  }

  function point(index) {
    if (!model) return;
    at = Math.max(0, Math.min(model.instants.length - 1, index));
    const instant = model.instants[at];
    cursor.setAttribute("aria-valuenow", String(at));
    cursor.setAttribute("aria-valuetext", t("timeline.value", { instant: instant.name, total: gib(instant.total) }));
    const parts = model.layers.filter((category) => instant.bytes[category] > 0).reverse();
    become(
      readout,
      h("span", { class: "readout-where" }, instant.name),
      tellExactly(h("span", { class: "readout-total" }, gib(instant.total)), instant.total),
      h("span", { class: "readout-exact" }, exact(instant.total)),
      pick,
      h(
        "span",
        { class: "readout-parts" },
        parts.map((category) =>
          h(
            "span",
            { class: "readout-part", "data-category": category },
            h("span", { class: `swatch ${categoryClass(category)}`, "aria-hidden": "true" }),
            `${categoryName(category)} ${gib(instant.bytes[category])}`,
          ),
        ),
      ),
    );
    if (box.firstChild) picture.point(at, box.firstChild);
  }

  function nearest(event) {
    if (!picture) return;
    const left = event.clientX - cursor.getBoundingClientRect().left;
    let best = 0;
    picture.places.forEach((place, index) => {
      if (Math.abs(place - left) < Math.abs(picture.places[best] - left)) best = index;
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
    const moves = {
      ArrowLeft: () => at - 1,
      ArrowDown: () => at - 1,
      ArrowRight: () => at + 1,
      ArrowUp: () => at + 1,
      Home: () => 0,
      End: () => model.instants.length - 1,
      PageUp: () => jump(-1),
      PageDown: () => jump(1),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    point(moves[event.key]());
  });

  return {
    node,
    /**
     * @param {import("../../wasm/tidemark.js").Estimate} estimate
     * @param {import("../../wasm/tidemark.js").Fit} [fit]
     * @param {number} [ghost] what the pinned job takes
     */
    render(estimate, fit, ghost) {
      const instants = estimate.timeline;
      node.hidden = instants.length === 0;
      if (instants.length === 0) return;
      const { positions, phases } = layOut(instants);
      let peak = 0;
      instants.forEach((instant, index) => {
        if (instant.total > instants[peak].total) peak = index;
      });
      const present = new Set();
      for (const instant of instants)
        for (const [category, bytes] of Object.entries(instant.bytes)) if (bytes > 0) present.add(category);
      const before = model && at >= 0 ? { label: model.instants[at].instant, atPeak: at === model.peak } : null;
      model = {
        instants: instants.map((instant, index) => ({
          ...instant,
          name: nameOf(instant),
          position: positions[index],
        })),
        layers: strata(present),
        phases,
        peak,
        mark: estimate.allocated.expected,
        ghost,
        usable: fit && fit.usable_bytes > 0 ? fit.usable_bytes : null,
      };
      cursor.setAttribute("aria-valuemax", String(instants.length - 1));
      const again = before && !before.atPeak ? instants.findIndex((instant) => instant.instant === before.label) : -1;
      tabulate();
      // The instant that was pointed at may lie beyond the end of this step.
      at = again >= 0 ? again : peak;
      redraw();
      point(at);
    },
  };
}
