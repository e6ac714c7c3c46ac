// The verdict in words, in colour and in shape: a wave under, at, or over the brim.
import { s } from "./dom.js";
import { gib } from "./format.js";
import { t } from "./messages.js";

export const verdictClass = (verdict) =>
  ({ fits: "is-fits", tight: "is-tight", does_not_fit: "is-over" })[verdict] ?? "is-unknown";

// Disc with a tick, triangle with a bar, octagon with a cross, ring with a dot: told apart without colour.
const shapes = {
  fits: [
    ["circle", { cx: 12, cy: 12, r: 10.5 }],
    ["path", { class: "sign", d: "M7 12.5l3.4 3.4L17 8.8" }],
  ],
  tight: [
    ["path", { d: "M12 1.8 23 21.6H1z" }],
    ["path", { class: "sign", d: "M12 9v6M12 18v.4" }],
  ],
  does_not_fit: [
    ["path", { d: "M7.4 1.5h9.2l5.9 5.9v9.2l-5.9 5.9H7.4l-5.9-5.9V7.4z" }],
    ["path", { class: "sign", d: "M8 8l8 8M16 8l-8 8" }],
  ],
  unknown: [
    ["circle", { class: "hollow", cx: 12, cy: 12, r: 9.5 }],
    ["path", { class: "mark", d: "M12 12v.1" }],
  ],
};

/** The shape alone, for the eyes: words always stand beside it. */
export function verdictIcon(verdict, className = "verdict-icon") {
  return s(
    "svg",
    { class: `${className} ${verdictClass(verdict)}`, viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" },
    (shapes[verdict] ?? shapes.unknown).map(([tag, attributes]) => s(tag, attributes)),
  );
}

/** "Fits", "Tight", … */
export function verdictWord(verdict) {
  return t(shapes[verdict] ? `verdict.${verdict}` : "verdict.unknown");
}

/**
 * The sentence with the headroom.
 * @param {import("../../wasm/tidemark.js").Fit} fit
 */
export function verdictSentence(fit) {
  // Of a card that its context fills alone there is nothing to have headroom in.
  if (!shapes[fit.verdict] || fit.verdict === "unknown" || fit.usable_bytes <= 0) return fit.reason ?? "";
  const key = fit.verdict === "tight" && fit.headroom_bytes < 0 ? "tightOver" : fit.verdict;
  return t(`verdict.${key}Text`, {
    headroom: gib(Math.abs(fit.headroom_bytes)),
    usable: gib(fit.usable_bytes),
  });
}
