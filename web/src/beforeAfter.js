// A job's level before and after a change, against the brim of the card. For the eyes: the figures stand beside it in words.
import { h } from "./dom.js";
import { verdictClass } from "./verdict.js";

/** How many bytes the picture is wide, one measure for all changes of a job: to its level, unless that is far over the brim and a change is not. */
export function measureOf(before, afters, usable) {
  const near = 3 * usable;
  return Math.max(usable, before <= near || Math.min(...afters) > near ? before : near) * 1.03;
}

/** Bytes now and then, and the fit of what is then (its card's usable memory, its verdict). What is wider than the measure is torn off. */
export function beforeAfter(before, after, fit, measure) {
  const level = (name, bytes) => h("span", { class: bytes > measure ? `${name} is-torn` : name });
  const node = h(
    "span",
    { class: `levels ${verdictClass(fit.verdict)}`, "aria-hidden": "true" },
    level("level-before", before),
    level("level-after", after),
    h("span", { class: "level-brim" }),
  );
  const share = (bytes) => `${Math.min(100, (bytes / measure) * 100).toFixed(2)}%`;
  node.style.setProperty("--before", share(before));
  node.style.setProperty("--after", share(after));
  node.style.setProperty("--full", share(fit.usable_bytes));
  return node;
}
