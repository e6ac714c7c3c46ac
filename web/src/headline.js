// The headline: the peak in large, where it is reached, the other ways to count it, and what is kept in which dtype.
import { phaseName } from "./categories.js";
import { become, h } from "./dom.js";
import { figure } from "./exactly.js";
import { count, gb, gib, scaled } from "./format.js";
import { t } from "./messages.js";

export function createHeadline() {
  const node = h("section", {
    role: "group",
    class: "headline",
    "aria-labelledby": "headline-heading",
    "data-testid": "headline",
  });
  // The other ways to count, for the view of what fills the memory.
  const others = h("div", { class: "panel readings-box", "data-testid": "readings" });
  const heading = (words) => h("h2", { id: "headline-heading", class: "eyebrow" }, words);
  const none = (words, reason) => [
    h("p", { class: "reading-main" }, h("span", { class: "big" }, words)),
    where(reason),
  ];
  return {
    node,
    others,
    /** @param {import("../../wasm/tidemark.js").Estimate} estimate */
    render(estimate) {
      become(node, heading(t("result.headline")), ...peak(estimate), where(wordsAbout(estimate)));
    },
    /** @param {import("../../wasm/tidemark.js").Estimate} estimate */
    renderOthers(estimate) {
      others.hidden = false;
      others.replaceChildren(readings(estimate), h("p", { class: "hint recipe" }, recipeWords(estimate.recipe)));
    },
    /**
     * What can be said of a model that is not modelled: count × bytes.
     * @param {import("../../wasm/tidemark.js").Response["partial"]} partial
     */
    renderPartial(partial) {
      const note = partial.note || t("result.partialNote");
      node.replaceChildren(heading(t("result.partial", { model: partial.model })), least(partial), where(note));
      others.hidden = false;
      others.replaceChildren(partialReadings(partial));
    },
    /** No figure of a former job stands where the answer is. */
    renderNothing(reason) {
      node.replaceChildren(heading(t("result.headline")), ...none(t("result.noAnswer"), reason));
      others.hidden = true;
    },
  };
}

/** A figure that stands large, with its unit. */
function large(bytes) {
  const [text, name] = scaled(bytes);
  return [figure(bytes, { text, className: "figure big" }), unit(` ${name}`)];
}

const unit = (words) => h("span", { class: "big-unit" }, words);

function peak({ allocated: { low, expected, high } }) {
  const range = h("span", { class: "range" }, t("result.range", { low: gib(low), high: gib(high) }));
  return [
    h("p", { class: "reading-main" }, large(expected)),
    h("p", { class: "reading-side", title: gb(expected) }, range),
  ];
}

const where = (words) => h("p", { class: "reading-where", title: words }, words);

function wordsAbout({ model, parameters, peak: { phase, at } }) {
  const [total, trainable] = [count(parameters.total), count(parameters.trainable)];
  const job = t("result.for", { model, parameters: total, trainable });
  return t("result.about", { job, peak: t("result.peakAt", { phase: phaseName(phase), at }) });
}

function readings({ allocated, reserved, device, first_step_allocated: first, host }) {
  const bytes = { allocated: allocated.expected, reserved: reserved.expected, device: device.expected, first };
  if (host.expected > 0) bytes.host = host.expected;
  if (host.load > 0) bytes.load = host.load;
  const reading = ([key, amount]) =>
    h(
      "div",
      { class: "reading" },
      h("dt", {}, t(`result.${key}`)),
      h("dd", {}, figure(amount)),
      h("dd", { class: "hint" }, t(`result.${key}Help`, { high: gib(host.high) })),
    );
  return h("dl", { class: "readings" }, Object.entries(bytes).map(reading));
}

const countable = ["weights", "gradients", "optimizer_states"];

function least(partial) {
  const total = countable.reduce((sum, key) => sum + partial[key], 0);
  return h("p", { class: "reading-main" }, unit("≥ "), large(total), h("span", { class: "reading-side" }, gb(total)));
}

function partialReadings(partial) {
  const reading = (key) =>
    h("div", { class: "reading" }, h("dt", {}, t(`category.${key}`)), h("dd", {}, figure(partial[key])));
  return h("dl", { class: "readings" }, countable.map(reading));
}

/**
 * What is kept in which dtype. Of a recipe's gradients and states an adapter has none: only it is trained, in its own dtype.
 * @param {import("../../wasm/tidemark.js").Recipe} recipe
 */
export function recipeWords(recipe) {
  const { name, weights, gradients, autocast, adapters } = recipe;
  if (adapters) return t("result.recipeAdapters", { name, weights, autocast, adapters });
  const { master_weights: master, optimizer_states: states } = recipe;
  return t("result.recipe", { name, weights, gradients, master, states, autocast });
}
