// The calculator's answer as HTML without script, for generators of pages: what to put between the element's tags at build time, so that feeds,
// paper and readers without script have the figures, too.
import { categoryName, strata } from "../src/categories.js";
import { gib } from "../src/format.js";
import { t } from "../src/messages.js";
import { createSchema } from "../src/schema.js";
import { verdictSentence, verdictWord } from "../src/verdict.js";
import { attributeText, escaped } from "./attributes.js";

export { createSchema } from "../src/schema.js";
export { attributesOf, ownAttributes } from "./attributes.js";

// On light and on dark paper.
const colours = {
  weights: "#3f82ad",
  optimizer_states: "#67a9cc",
  gradients: "#4f95ab",
  buffers: "#74868d",
  communication: "#a2537a",
  activations: "#2f8f74",
  logits_loss: "#c47e13",
  workspace: "#7f6db3",
};
const brim = "#d0463a";
const width = 640;
const height = 36;

/** A figure of an answer: the bar as SVG, and its words. */
export function figureOf({ estimate, fits = [], issues = [] }) {
  if (!estimate) return `<p>${escaped(issues.find(({ severity }) => severity === "error")?.message ?? "")}</p>`;
  const [fit] = fits;
  const parts = partsOf(estimate);
  const words = parts.map(({ category, bytes }) => `${categoryName(category)} ${gib(bytes)}`).join(", ");
  const { low, expected, high } = estimate.allocated;
  const takes = t("embed.sentence", { model: estimate.model, size: gib(expected) });
  const range = t("result.range", { low: gib(low), high: gib(high) });
  const verdict = fit && `${verdictWord(fit.verdict)} ${t("verdict.on", { gpu: fit.gpu })}. ${verdictSentence(fit)}`;
  const caption = [`${takes}, ${range}.`, verdict, `${words}.`].filter(Boolean).join(" ");
  return `<figure>${bar(parts, estimate, fit, words)}<figcaption>${escaped(caption)}</figcaption></figure>`;
}

function partsOf({ breakdown }) {
  const bytesOf = new Map(breakdown.map(({ category, bytes }) => [category, bytes]));
  return strata(bytesOf.keys())
    .map((category) => ({ category, bytes: bytesOf.get(category) }))
    .filter(({ bytes }) => bytes > 0);
}

function bar(parts, { allocated }, fit, words) {
  const usable = fit?.usable_bytes > 0 ? fit.usable_bytes : 0;
  const scale = width / (Math.max(allocated.high, usable) * 1.02);
  const at = (bytes) => (bytes * scale).toFixed(1);
  let from = 0;
  const rects = parts.map(({ category, bytes }) => {
    const x = at(from);
    from += bytes;
    return `<rect x="${x}" y="6" width="${at(bytes)}" height="24" fill="${colours[category] ?? colours.buffers}"/>`;
  });
  const line = (x, colour) => `<path d="M${x} 0V${height}" stroke="${colour}" stroke-width="2"/>`;
  const whisker = `<path d="M${at(allocated.low)} 3H${at(allocated.high)}" stroke="currentColor" stroke-width="2"/>`;
  const label = escaped(t("bar.description", { parts: words }));
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="100%" role="img" aria-label="${label}">`;
  return `${head}${rects.join("")}${whisker}${usable > 0 ? line(at(usable), brim) : ""}</svg>`;
}

/**
 * The element with the answer of now between its tags. tidemark: the engine with its catalog; request: the job; more: attributes that are none of the job's
 * ({controls: "gpu"}).
 */
export function staticCalculator(tidemark, request, more = {}) {
  const schema = createSchema(tidemark.handle({ verb: "describe" }));
  const { values } = schema.fromRequest(request);
  const others = Object.entries(more).map(([name, value]) => ` ${name}="${escaped(String(value))}"`);
  const attributes = attributeText(schema.prune(values), schema) + others.join("");
  const answer = tidemark.handle(schema.toRequest(values));
  return `<tidemark-calculator ${attributes}>${figureOf(answer)}</tidemark-calculator>`;
}

/** A request from words as links have them: model=gpt2 batch-size=4. */
export function requestOf(words, schema, names) {
  const values = {};
  for (const word of words) {
    const equals = word.indexOf("=");
    const name = names.get(word.slice(0, equals).toLowerCase().replace(/[._]/g, "-"));
    if (equals < 1 || !name) throw new Error(`"${word}" is no option=value that Tidemark knows.`);
    values[name] = schema.parse(name, word.slice(equals + 1));
  }
  return schema.toRequest(values);
}
