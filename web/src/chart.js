// What the drawings share: a box that redraws at its real width, a scale of GiB, and the tide staff that marks it.
import { s } from "./dom.js";
import { gibibyte, niceStep } from "./format.js";

/** Calls draw(width) whenever the node's width changes. Returns what draws again: at the width that is known, as to ask for it would lay out the page. */
export function drawAtWidth(node, draw) {
  let width = 0;
  const observer = new ResizeObserver(() => {
    const now = Math.floor(node.clientWidth);
    if (now === width || now === 0) return;
    width = now;
    draw(width);
  });
  observer.observe(node);
  return () => {
    width ||= Math.floor(node.clientWidth);
    if (width > 0) draw(width);
  };
}

/** Ticks in GiB from 0 to `top` bytes. */
export function ticksUpTo(top, wanted) {
  const step = niceStep(top / gibibyte, wanted);
  const ticks = [];
  for (let value = 0; value * gibibyte <= top * 1.0001; value += step) ticks.push(value);
  return { step, ticks };
}

/** "16" or "0.5": a tick's number. */
export function tickText(value) {
  return String(Number(value.toPrecision(4)));
}

export const text = (x, y, words, attributes = {}) => s("text", { x, y, ...attributes }, words);
