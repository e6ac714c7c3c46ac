// The titles of the options, their groups and units in the page's words: the engine's own where a language has none for them.
import { tOr } from "./messages.js";

/**
 * A `describe` answer in those words.
 * @param {import("../../wasm/tidemark.js").DescribeResponse} describe
 */
export function inWords(describe) {
  const option = (own) => ({
    ...own,
    label: tOr(`option.${own.name}`, own.label),
    // Help that only repeats the title helps nobody.
    help: own.help === `${own.label}.` ? "" : tOr(`help.${own.name}`, own.help),
    ...(own.unit && { unit: tOr(`unit.${own.unit}`, own.unit) }),
  });
  const group = (own) => ({ ...own, title: tOr(`group.${own.name}`, own.title) });
  return { ...describe, options: describe.options.map(option), groups: describe.groups.map(group) };
}
