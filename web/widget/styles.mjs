// The widget's styles: the page's own, made for a shadow tree, and what the calculator adds.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const read = (path) => readFileSync(join(here, path), "utf8");

/** The custom properties of the first block that begins with those words. */
function propertiesOf(text, words) {
  const start = text.indexOf(`${words} {`);
  if (start < 0) throw new Error(`tokens.css has no ${words}`);
  const block = text.slice(start, text.indexOf("}", start));
  return new Map([...block.matchAll(/--([\w-]+):\s*([^;]+);/g)].map(([, name, value]) => [name, value]));
}

/**
 * The page's tokens for an element: light or dark as the place where it stands says (color-scheme), each open to the page's author as
 * --tidemark-….
 */
function tokens() {
  const text = read("../src/tokens.css");
  const light = propertiesOf(text, ":root");
  const dark = propertiesOf(text, ':root[data-theme="dark"]');
  const lines = [...light].map(([name, day]) => {
    const night = dark.get(name);
    const isColour = /^#[0-9a-f]{6}$/.test(day) && night !== undefined;
    return `--${name}: var(--tidemark-${name}, ${isColour ? `light-dark(${day}, ${night})` : day});`;
  });
  return `:host { ${lines.join(" ")} }`;
}

/** What of a stylesheet of the page the widget has a use for: from the one words to the other, or to its end. */
function cut(name, from, to) {
  const text = read(`../src/${name}`);
  const start = text.indexOf(from);
  const end = to === undefined ? text.length : text.indexOf(to, start);
  if (start < 0 || end < 0) throw new Error(`${name} has no ${from} … ${to}`);
  return text.slice(start, end);
}

export const widgetStyles = () =>
  [
    tokens(),
    cut("base.css", "*,\n", "html {"),
    cut("base.css", "[hidden] {", ".skip {"),
    cut("base.css", "/* Buttons */", ".tip {"),
    cut("base.css", "@media (prefers-reduced-motion: reduce", "@media (prefers-reduced-motion: no"),
    cut("form.css", "", "/* Folds */"),
    cut("results.css", "", "/* Old charts"),
    cut("results.css", "svg.is-fits,", "@media"),
    cut("charts.css", "", "/* Timeline */"),
    cut("charts.css", "@media (forced-colors"),
    read("element.css"),
    read("calculator.css"),
  ]
    .join("\n")
    // A page's author may have set the root's size for other things: the page's own root has 15 pixels.
    .replace(/([\d.]+)rem\b/g, (_, size) => `${Math.round(size * 150) / 10}px`);
