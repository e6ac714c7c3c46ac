// "How sure?": how near the engine came where the truth is known, and what it does not count.
import { accuracy } from "tidemark:accuracy";
import { h } from "./dom.js";
import { t } from "./messages.js";

const pages = { accuracy: "accuracy/", method: "method/", docs: "" };

/** Where the documentation lies, if the page was put beside it (web/site). */
const docs = () => document.querySelector('meta[name="tidemark-docs"]')?.getAttribute("content");

/**
 * What is known of the kind of that model and of how it is trained: [words, [runs, worst error]].
 * @returns {[string, [number, number] | undefined][]}
 */
function evidence({ model, recipe }, values, models) {
  const type = values.config?.model_type ?? models.find(({ id }) => id === model)?.model_type;
  const how = `${values.method ?? "full"} ${recipe.name}`;
  return [
    [type ?? model, accuracy.types[type]],
    [how, accuracy.methods[how]],
    [t("sure.all"), accuracy.runs],
  ];
}

function line([name, runs]) {
  const [amount, worst] = runs ?? [];
  return h("li", {}, runs ? t("sure.runs", { name, amount, worst }) : t("sure.none", { name }));
}

/** models() → the catalog's. Returns {button, node, render(estimate, values)}. */
export function createSure({ models }) {
  const node = h("div", { class: "sure", id: "how-sure", hidden: true, "data-testid": "sure-box" });
  const attributes = { "aria-expanded": "false", "aria-controls": node.id, "data-testid": "sure" };
  const button = h("button", { type: "button", class: "link", ...attributes, onclick: toggle }, t("sure.label"));
  let shown = null;

  function toggle() {
    node.hidden = !node.hidden;
    button.setAttribute("aria-expanded", String(!node.hidden));
    draw();
  }
  function draw() {
    if (node.hidden || !shown) return node.replaceChildren();
    const [estimate, values] = shown;
    const { low, expected, high } = estimate.allocated;
    const percent = ((Math.max(high - expected, expected - low) / expected) * 100).toFixed(1);
    const [amount, median, worst, left] = accuracy.measured;
    const [own, within] = accuracy.own;
    const base = docs();
    const link = ([key, path]) => [h("a", { href: `${base}${path}` }, t(`sure.${key}`)), " "];
    return node.replaceChildren(
      h("p", {}, t("sure.range", { percent })),
      h(
        "ul",
        {},
        evidence(estimate, values, models()).map(line),
        h("li", {}, t("sure.own", { amount: own, within })),
        h("li", {}, t("sure.measured", { amount, median, worst, left })),
      ),
      h("p", {}, t("sure.uncounted")),
      base ? h("p", {}, Object.entries(pages).map(link)) : h("p", { class: "hint" }, t("sure.where")),
    );
  }
  return {
    button,
    node,
    /** @param {import("../../wasm/tidemark.js").Estimate | null} estimate */
    render(estimate, values) {
      shown = estimate && [estimate, values];
      button.hidden = !estimate;
      draw();
    },
  };
}
