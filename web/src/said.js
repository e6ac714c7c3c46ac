// What the engine says, in the page's language. The engine speaks English; of a language's pairs (said.zh.js) each has the English, {1} and {2} being
// whatever stands there, and the same in that language. What has no pair stays as the engine said it.

let sentences = new Map();
let patterns = [];

const places = /\{(\d)\}/;
const literal = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** Every other part of the split is a place's number. */
function patternOf([own, words]) {
  const parts = own.split(places);
  const source = parts.map((part, at) => (at % 2 === 1 ? "(.+?)" : literal(part))).join("");
  return { pattern: new RegExp(`^${source}$`, "s"), words };
}

/** Replaces the pairs. */
export function setSaid(pairs = []) {
  sentences = new Map(pairs);
  patterns = pairs.filter(([own]) => places.test(own)).map(patternOf);
}

function find(text) {
  const known = sentences.get(text);
  if (known !== undefined) return known;
  for (const { pattern, words } of patterns) {
    const found = text.match(pattern);
    if (found) return words.replace(/\{(\d)\}/g, (_, place) => said(found[place]));
  }
  return undefined;
}

/** A sentence, a title or a list of titles that the engine said. */
export function said(text) {
  if (sentences.size === 0 || !text) return text;
  return (
    find(text) ??
    text
      .split("; ")
      .map((part) => find(part) ?? part)
      .join("; ")
  );
}
