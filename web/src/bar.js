// What fills the card at the peak: strata against the usable memory, on a tide staff.
import { categoryClass, categoryName, strata } from "./categories.js";
import { drawAtWidth, text, tickText, ticksUpTo } from "./chart.js";
import { become, h, s, setText } from "./dom.js";
import { gib, gibibyte, percent } from "./format.js";
import { tellExactly } from "./exactly.js";
import { t } from "./messages.js";

export function createBar() {
  const box = h("div", { class: "bar-box" });
  const legend = h("ul", { class: "legend" });
  const heading = h("h3", { id: "bar-heading", class: "unseen" }, t("bar.noCard"));
  const node = h(
    "section",
    { role: "group", class: "bar", "aria-labelledby": "bar-heading", "data-testid": "bar" },
    heading,
    box,
    legend,
  );
  let model = null;

  const redraw = drawAtWidth(box, (width) => become(box, ...(model ? [drawBar(model, width)] : [])));

  return {
    node,
    /**
     * @param {import("../../wasm/tidemark.js").Estimate} estimate
     * @param {import("../../wasm/tidemark.js").Fit} [fit] the chosen card's
     * @param {number} [ghost] what the pinned job takes
     */
    render(estimate, fit, ghost) {
      model = { ...barOf(estimate, fit), ghost };
      setText(heading, t(fit ? "bar.label" : "bar.noCard"));
      become(legend, ...legendRows(model));
      redraw();
    },
    clear() {
      model = null;
      setText(heading, t("bar.noCard"));
      legend.replaceChildren();
      redraw();
    },
  };
}

/**
 * What the bar shows: drawBar and legendRows draw it.
 * @param {import("../../wasm/tidemark.js").Estimate} estimate
 * @param {import("../../wasm/tidemark.js").Fit} [fit]
 */
export function barOf(estimate, fit) {
  const byCategory = new Map(estimate.breakdown.map((group) => [group.category, group.bytes]));
  const parts = strata(byCategory.keys())
    .map((category) => ({ category, bytes: byCategory.get(category) }))
    .filter((part) => part.bytes > 0);
  const usable = fit && fit.usable_bytes > 0 ? fit.usable_bytes : null;
  return { parts, total: estimate.allocated.expected, range: estimate.allocated, usable };
}

const barTop = 26;
const barThickness = 34;
const barHeight = 96;

/** ghost: what the job takes that this one is compared with, if there is one. */
export function drawBar({ parts, total, range, usable, ghost = 0 }, width) {
  const scale = (Math.max(total, range.high, usable ?? 0, ghost) || 1) * 1.02;
  const x = (bytes) => (bytes / scale) * (width - 2) + 1;
  const words = parts.map((part) => `${categoryName(part.category)} ${gib(part.bytes)}`).join(", ");
  const basin = { class: "basin", x: 1, y: barTop, width: Math.max(0, x(usable ?? scale) - 1), height: barThickness };
  return s(
    "svg",
    {
      class: "drawing",
      width,
      height: barHeight,
      viewBox: `0 0 ${width} ${barHeight}`,
      role: "img",
      "aria-label": t("bar.description", { parts: words }),
    },
    s("rect", basin),
    drawStrata(parts, x),
    usable && total > usable && drawOver(x(usable), x(total)),
    drawRange(range, total, x),
    ghost > 0 && drawGhost(x(ghost)),
    usable && drawBrim(usable, total, x),
    staff(width, barTop + barThickness + 6, scale, x),
  );
}

function drawStrata(parts, x) {
  const rects = [];
  let from = 0;
  for (const { category, bytes } of parts) {
    const left = x(from);
    from += bytes;
    const width = x(from) - left;
    if (width < 0.3) continue;
    // A hair between two of them, where there is room for one.
    const shown = Math.max(0.5, width - (width > 3 ? 1 : 0));
    const place = { x: left, y: barTop, width: shown, height: barThickness };
    rects.push(
      tellExactly(
        s("rect", { class: `stratum ${categoryClass(category)}`, "data-category": category, ...place }),
        bytes,
      ),
    );
  }
  return rects;
}

/** What is beyond the brim, hatched. */
function drawOver(left, right) {
  const line = s("rect", { class: "hatch-line", width: 2, height: 6 });
  const id = "bar-hatch";
  const turned = { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" };
  const place = { x: left, y: barTop, width: Math.max(2, right - left), height: barThickness };
  return [s("defs", {}, s("pattern", turned, line)), s("rect", { class: "over", ...place, fill: `url(#${id})` })];
}

/** The range of the estimate, as a gauge's whisker, and its level. */
function drawRange({ low, high }, total, x) {
  const middle = barTop - 8;
  const ends = `M${x(low)} ${middle - 4}v8M${x(high)} ${middle - 4}v8`;
  return [
    s("path", { class: "whisker", d: `M${x(low)} ${middle}H${x(high)}${ends}` }),
    s("path", { class: "level", d: `M${x(total)} ${middle - 5}V${barTop + barThickness + 4}` }),
  ];
}

/** Where the pinned job would end. */
function drawGhost(at) {
  const d = `M1 ${barTop + barThickness + 2}H${at}V${barTop - 2}`;
  return [
    s("path", { class: "ghost", d }),
    text(at + 4, barTop + 12, t("compare.ghost"), { class: "ghost-text halo" }),
  ];
}

const letterWidth = 6.6;

function drawBrim(usable, total, x) {
  const at = x(usable);
  const words = t("bar.usable", { size: gib(usable) });
  const needed = words.length * letterWidth;
  // Above the bar, on the side where the level is not.
  const room = at > needed + 8 && Math.abs(at - x(total)) > needed + 40;
  return [
    s("path", { class: "brim", d: `M${at} ${barTop - 4}V${barTop + barThickness + 4}` }),
    room && text(at - 6, barTop - 7, words, { class: "brim-text", "text-anchor": "end" }),
  ];
}

export function legendRows({ parts, total, usable }) {
  const row = (className, swatch, name, size, category) =>
    h(
      "li",
      { class: className, "data-category": category },
      h("span", { class: `swatch ${swatch}`, "aria-hidden": "true" }),
      h("span", { class: "legend-name" }, name),
      h("span", { class: "legend-size" }, size),
    );
  const rows = parts.map(({ category, bytes }) =>
    tellExactly(row(undefined, categoryClass(category), categoryName(category), gib(bytes), category), bytes),
  );
  if (!usable) return rows;
  const left = usable - total;
  const over = row("legend-free", "swatch-over", t("bar.over", { size: gib(-left) }), percent(total / usable));
  return [...rows, left < 0 ? over : row("legend-free", "swatch-free", t("bar.free"), gib(left))];
}

/** A surveyor's staff under the bar: alternating blocks with numbers. */
function staff(width, y, scale, x) {
  const { step, ticks } = ticksUpTo(scale, Math.max(3, Math.floor(width / 70)));
  const small = step / 4;
  let blocks = "";
  for (let value = 0; value * gibibyte < scale; value += 2 * small) {
    const left = x(value * gibibyte);
    const right = Math.min(x((value + small) * gibibyte), width - 1);
    if (right > left) blocks += `M${left} ${y}H${right}v4H${left}z`;
  }
  const marks = [
    s("path", { class: "staff-block", d: blocks }),
    s("rect", { class: "staff-frame", x: 1, y, width: width - 2, height: 4 }),
  ];
  for (const tick of ticks) {
    const at = x(tick * gibibyte);
    if (at > width - 8 && tick !== 0) continue;
    marks.push(
      text(
        tick === 0 ? 1 : at,
        y + 18,
        tick === ticks[ticks.length - 1] || tick === 0
          ? `${tickText(tick)}${tick === 0 ? "" : " GiB"}`
          : tickText(tick),
        { class: "tick", "text-anchor": tick === 0 ? "start" : at > width - 44 ? "end" : "middle" },
      ),
    );
  }
  return marks;
}
