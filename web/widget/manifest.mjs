// custom-elements.json (custom-elements-manifest 1.0): what editors and docs read of the element. Its attributes are the engine's options.
import { attributesOf, ownAttributes } from "./attributes.js";

const own = {
  controls: ["string", "Which options can be changed, by their attributes' names: model,gpu,sequence; none for none."],
  theme: ["'light' | 'dark'", "Without it: as color-scheme says of the place where the element stands."],
  page: ["string", "Address of Tidemark's page, for a link to the same job there. Without it there is no link."],
  loading: ["'lazy' | 'eager'", "eager: the engine starts with the page, not when the element comes near the window."],
};
const parts = {
  box: "All of it.",
  controls: "The form.",
  also: "The job, as far as it has no control.",
  answer: "The box with the answer.",
  verdict: "Fits, tight or not, and on which card.",
  total: "The peak.",
  range: "Between what and what it is.",
  bar: "The drawing.",
  legend: "What the bar consists of.",
  advice: "What would make it fit, and the button that applies it.",
  issues: "Errors and warnings.",
  footer: "Who computed it, and the link.",
  link: "The link to the full page.",
};
const properties = {
  margin: "Space above and below.",
  "font-size": "Size of the text.",
  panel: "Background.",
  ink: "Text.",
  "ink-soft": "Secondary text.",
  line: "Hairlines.",
  accent: "Links, sliders, focus.",
  sans: "Font of the text.",
  radius: "Corners.",
  fits: "Colour of a job that fits.",
  tight: "Colour of one that may.",
  over: "Colour of one that does not.",
};

const rows = (object, toRow) => Object.entries(object).map(([name, value]) => toRow(name, value));

/** schema as createSchema has it. */
export function manifestOf(schema) {
  const options = [...attributesOf(schema)]
    .map(([attribute, name]) => [attribute, schema.find(name)])
    .filter(([attribute, { name, modelled }]) => modelled && attribute === name.toLowerCase().replace(/[._]/g, "-"))
    .map(([name, { type, help, default: standard }]) => ({
      name,
      type: { text: { boolean: "boolean", integer: "number", number: "number" }[type] ?? "string" },
      default: standard === null ? undefined : JSON.stringify(standard),
      description: help,
    }));
  const ours = ownAttributes.map((name) => ({ name, type: { text: own[name][0] }, description: own[name][1] }));
  const declaration = {
    kind: "class",
    customElement: true,
    name: "TidemarkCalculator",
    tagName: "tidemark-calculator",
    description: "How much GPU memory a training job needs, computed on the page.",
    superclass: { name: "HTMLElement" },
    attributes: [...ours, ...options],
    members: [
      { kind: "field", name: "request", type: { text: "Job | null" }, description: "The job, as a request." },
      { kind: "field", name: "answer", type: { text: "EstimateResponse | null" }, readonly: true },
    ],
    events: [
      { name: "change", type: { text: "CustomEvent<Job>" }, description: "The visitor changed the job." },
      { name: "estimate", type: { text: "CustomEvent<EstimateResponse>" }, description: "An answer stands there." },
    ],
    slots: [{ name: "", description: "Shown until there is an answer, and where there is no script." }],
    cssParts: rows(parts, (name, description) => ({ name, description })),
    cssProperties: rows(properties, (name, description) => ({ name: `--tidemark-${name}`, description })),
  };
  const path = "tidemark-calculator.js";
  const place = { name: "TidemarkCalculator", module: path };
  const exports = [
    { kind: "js", name: "TidemarkCalculator", declaration: place },
    { kind: "custom-element-definition", name: "tidemark-calculator", declaration: place },
  ];
  return {
    schemaVersion: "1.0.0",
    modules: [{ kind: "javascript-module", path, declarations: [declaration], exports }],
  };
}
