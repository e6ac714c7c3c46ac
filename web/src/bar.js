// What fills the card at the peak: strata against the usable memory, on a tide staff.
import { categoryClass, categoryName, strata } from "./categories.js";
import { drawAtWidth, text, tickText, ticksUpTo } from "./chart.js";
import { h, s } from "./dom.js";
import { gib, gibibyte, percent } from "./format.js";
import { tellExactly } from "./exactly.js";
import { t } from "./messages.js";

export function createBar() {
  const box = h("div", { class: "bar-box" });
  const legend = h("ul", { class: "legend" });
  const heading = h("h3", { id: "bar-heading" });
  const node = h("section", { class: "panel", "aria-labelledby": "bar-heading", "data-testid": "bar" }, heading, box, legend);
  let model = null;

  const redraw = drawAtWidth(box, (width) => {
    if (!model) return;
    const { parts, total, range, usable } = model;
    const height = 96;
    const top = 26;
    const thick = 34;
    const scale = (Math.max(total, range.high, usable ?? 0) || 1) * 1.02;
    const x = (bytes) => (bytes / scale) * (width - 2) + 1;
    const drawing = s("svg", { class: "drawing", width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": t("bar.description", { parts: parts.map((part) => `${categoryName(part.category)} ${gib(part.bytes)}`).join(", ") }) });
    drawing.append(s("defs", {}, s("pattern", { id: "bar-hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, s("rect", { class: "hatch-line", width: 2, height: 6 }))));
    const brim = usable ?? scale;
    drawing.append(s("rect", { class: "basin", x: 1, y: top, width: Math.max(0, x(Math.min(brim, scale)) - 1), height: thick }));
    let from = 0;
    for (const part of parts) {
      const left = x(from);
      const right = x(from + part.bytes);
      from += part.bytes;
      if (right - left < 0.3) continue;
      const rect = s("rect", { class: `stratum ${categoryClass(part.category)}`, x: left, y: top, width: Math.max(0.5, right - left - (right - left > 3 ? 1 : 0)), height: thick });
      drawing.append(tellExactly(rect, part.bytes));
    }
    if (usable && total > usable) {
      drawing.append(s("rect", { class: "over", x: x(usable), y: top, width: Math.max(2, x(total) - x(usable)), height: thick, fill: "url(#bar-hatch)" }));
    }
    // The range of the estimate, as a gauge's whisker.
    const middle = top - 8;
    drawing.append(s("path", { class: "whisker", d: `M${x(range.low)} ${middle}H${x(range.high)}M${x(range.low)} ${middle - 4}v8M${x(range.high)} ${middle - 4}v8` }));
    drawing.append(s("path", { class: "level", d: `M${x(total)} ${middle - 5}V${top + thick + 4}` }));
    if (usable) {
      const at = x(usable);
      drawing.append(s("path", { class: "brim", d: `M${at} ${top - 4}V${top + thick + 4}` }));
      const words = t("bar.usable", { size: gib(usable) });
      const before = at > words.length * 6.6 + 8;
      // Above the bar, on the side where the level is not.
      if (Math.abs(at - x(total)) > words.length * 6.6 + 40 && before) drawing.append(text(at - 6, top - 7, words, { class: "brim-text", "text-anchor": "end" }));
    }
    drawing.append(...staff(width, top + thick + 6, scale, x));
    box.replaceChildren(drawing);
  });

  return {
    node,
    /** estimate; fit: the chosen card's, or undefined. */
    render(estimate, fit) {
      const byCategory = new Map(estimate.breakdown.map((group) => [group.category, group.bytes]));
      const parts = strata(byCategory.keys()).map((category) => ({ category, bytes: byCategory.get(category) })).filter((part) => part.bytes > 0);
      model = { parts, total: estimate.allocated.expected, range: estimate.allocated, usable: fit && fit.usable_bytes > 0 ? fit.usable_bytes : null };
      heading.textContent = t(fit ? "bar.label" : "bar.noCard");
      const rows = parts.map((part) => tellExactly(h("li", {},
        h("span", { class: `swatch ${categoryClass(part.category)}`, "aria-hidden": "true" }), h("span", { class: "legend-name" }, categoryName(part.category)),
        h("span", { class: "legend-size" }, gib(part.bytes))), part.bytes));
      if (model.usable) {
        const left = model.usable - model.total;
        rows.push(h("li", { class: "legend-free" }, h("span", { class: left < 0 ? "swatch swatch-over" : "swatch swatch-free", "aria-hidden": "true" }),
          h("span", { class: "legend-name" }, left < 0 ? t("bar.over", { size: gib(-left) }) : t("bar.free")),
          h("span", { class: "legend-size" }, left < 0 ? percent(model.total / model.usable) : gib(left))));
      }
      legend.replaceChildren(...rows);
      redraw();
    },
  };
}

/** A surveyor's staff under the bar: alternating blocks with numbers. */
function staff(width, y, scale, x) {
  const { step, ticks } = ticksUpTo(scale, Math.max(3, Math.floor(width / 70)));
  const marks = [];
  const small = step / 4;
  let index = 0;
  for (let value = 0; value * gibibyte < scale; value += small) {
    const left = x(value * gibibyte);
    const right = Math.min(x((value + small) * gibibyte), width - 1);
    if (index % 2 === 0 && right > left) marks.push(s("rect", { class: "staff-block", x: left, y, width: right - left, height: 4 }));
    index += 1;
  }
  marks.push(s("rect", { class: "staff-frame", x: 1, y, width: width - 2, height: 4 }));
  for (const tick of ticks) {
    const at = x(tick * gibibyte);
    if (at > width - 8 && tick !== 0) continue;
    marks.push(text(tick === 0 ? 1 : at, y + 18, tick === ticks[ticks.length - 1] || tick === 0 ? `${tickText(tick)}${tick === 0 ? "" : " GiB"}` : tickText(tick),
      { class: "tick", "text-anchor": tick === 0 ? "start" : at > width - 44 ? "end" : "middle" }));
  }
  return marks;
}
