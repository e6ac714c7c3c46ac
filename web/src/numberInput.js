// A field for a number, that arrow keys move, and the stops of a slider beside it.
import { h, hasFocus } from "./dom.js";
import { grouped } from "./format.js";
import { t } from "./messages.js";

/** change(name, value) is called with what the text stands for. Returns {node, show(value)}. */
export function createNumberInput(option, change, schema) {
  const { name, minimum, maximum } = option;
  const limited = minimum !== undefined && maximum !== undefined;
  const read = () => schema.parse(name, node.value);

  function step(event) {
    const direction = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    const value = read();
    if (!direction || typeof value !== "number" || option.type !== "integer") return;
    event.preventDefault();
    const wanted = value + direction * (event.shiftKey ? 10 : 1);
    const next = Math.min(maximum ?? Infinity, Math.max(minimum ?? -Infinity, wanted));
    node.value = String(next); // at once: the next press may come before the page is drawn
    change(name, next);
  }

  const node = h("input", {
    id: `option-${name}`,
    type: "text",
    inputmode: option.type === "integer" ? "numeric" : "decimal",
    class: "field number",
    autocomplete: "off",
    placeholder: option.default === null ? t("form.none") : undefined,
    title: limited ? t("form.range", { minimum: grouped(minimum), maximum: grouped(maximum) }) : undefined,
    oninput: () => change(name, read()),
    onblur: () => node.value.trim() === "" && show(option.default),
    onkeydown: step,
  });

  function show(value) {
    const text = value === null || value === undefined ? "" : String(value);
    // While somebody types "1e" or "16." over the same value, their text stays.
    if (hasFocus(node) && (node.value.trim() === "" || read() === value)) return;
    if (node.value !== text) node.value = text;
  }
  return { node, show };
}

/** Powers of two and the halves between: 1, 2, 3, 4, 6, 8, 12 … */
export function stopsBetween(low, high) {
  const stops = [];
  for (let power = 1; power <= high; power *= 2) {
    if (power >= low) stops.push(power);
    const half = power * 1.5;
    if (power > 1 && half >= low && half < high) stops.push(half);
  }
  return stops;
}

/** The stop nearest to a number, in octaves. */
export function nearestStop(stops, number) {
  const distance = (stop) => Math.abs(Math.log(stop / number));
  return stops.reduce((best, stop, index) => (distance(stop) < distance(stops[best]) ? index : best), 0);
}
