// What `describe` says about the options, ready to be asked: the page knows no option by heart.
import { readCard, readNumber } from "./numbers.js";

/**
 * Reads a `describe` answer. Options are flat names ("adapter.r"), as in describe; requests are nested.
 * @param {import("../../wasm/tidemark.js").DescribeResponse} describe
 */
export function createSchema(describe) {
  const byName = new Map(describe.options.map((option) => [option.name, option]));
  const children = new Map();
  for (const option of describe.options) {
    const dot = option.name.lastIndexOf(".");
    const parent = dot < 0 ? "" : option.name.slice(0, dot);
    if (!byName.has(parent)) continue;
    if (!children.has(parent)) children.set(parent, []);
    children.get(parent).push(option.name);
  }

  const find = (name) => byName.get(name);
  /** "precision.recipe", which holds the word of precision where other keys refine it. */
  const wordsOfParents = new Set(
    describe.options.filter(({ word_key: key }) => key).map(({ name, word_key: key }) => `${name}.${key}`),
  );
  const isWordOfParent = (name) => wordsOfParents.has(name);

  function isDefault(name, value) {
    const option = byName.get(name);
    if (value === undefined || value === null) return true;
    if (!option || option.default === null) return false;
    if (option.type === "choice") return String(value) === String(option.default);
    return JSON.stringify(value) === JSON.stringify(option.default);
  }

  /** A value as JSON, from the text of a field or of a link. What does not parse stays text, for the engine to refuse. */
  function parse(name, text) {
    const option = byName.get(name);
    const trimmed = text.trim();
    if (!option) return text;
    switch (option.type) {
      case "boolean":
        if (/^(true|1|yes|on)$/i.test(trimmed)) return true;
        if (/^(false|0|no|off)$/i.test(trimmed)) return false;
        return text;
      case "integer":
      case "number": {
        if (trimmed === "") return undefined;
        return readNumber(trimmed, option.type === "integer") ?? text;
      }
      case "strings":
      case "choices":
      case "gpus": {
        const list = option.type === "gpus" ? splitList(text).map(cardOf) : splitList(text);
        // A word alone is text; with a comma behind it, a list of one.
        if (option.type === "strings" && list.length === 1 && !text.includes(",")) return list[0];
        return list;
      }
      case "gpu": {
        if (trimmed === "") return undefined;
        const card = cardOf(trimmed);
        return card === trimmed ? text : card;
      }
      case "object":
      case "any":
        if (trimmed === "") return undefined;
        try {
          return JSON.parse(text);
        } catch {
          return text;
        }
      default:
        return text === "" ? undefined : text;
    }
  }

  /** The inverse of `parse`. */
  function print(name, value) {
    if (value === undefined || value === null) return "";
    const option = byName.get(name);
    if (Array.isArray(value) && option && ["strings", "choices", "gpus"].includes(option.type))
      return joinList(value) + (option.type === "strings" && value.length === 1 ? "," : "");
    if (option && option.type === "strings" && typeof value === "string") return joinList([value]);
    if (option && option.type === "gpu") return cardText(value);
    if (typeof value === "object") return JSON.stringify(value);
    return String(value);
  }

  /** The request for a set of flat values. An option that others refine (precision, precision.weights) becomes an object. */
  function toRequest(values) {
    const request = { schema: describe.schema };
    for (const option of describe.options) {
      const { name } = option;
      // Its parent has written it.
      if (isWordOfParent(name)) continue;
      const value = values[name];
      const refined = (children.get(name) ?? []).filter((child) => values[child] !== undefined);
      const recipe = option.word_key && `${name}.${option.word_key}`;
      if (refined.length === 1 && refined[0] === recipe) {
        place(request, name, values[recipe]);
      } else if (refined.length > 0) {
        const object = {};
        if (recipe) object[option.word_key] = values[recipe] ?? value ?? option.word_default;
        request[name] = object;
      } else if (value !== undefined) {
        place(request, name, value);
      }
    }
    return request;
  }

  /** Flat values from a request that somebody pasted. Keys that no option has come back in `unknown`. */
  function fromRequest(request) {
    const values = {};
    const unknown = [];
    const walk = (object, prefix) => {
      for (const [key, value] of Object.entries(object)) {
        const name = prefix + key;
        if (prefix === "" && (key === "schema" || key === "verb")) continue;
        const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
        const option = byName.get(name);
        const isGroup = describe.options.some((other) => other.name.startsWith(`${name}.`));
        if (isObject && isGroup) {
          walk(value, `${name}.`);
        } else if (option) {
          if (prefix !== "" && key === find(prefix.slice(0, -1))?.word_key) values[prefix.slice(0, -1)] = value;
          else values[name] = value;
        } else {
          unknown.push([name, typeof value === "string" ? value : JSON.stringify(value)]);
        }
      }
    };
    walk(request, "");
    return { values, unknown };
  }

  /** Flat values after a JSON merge patch (RFC 7396) of their request, as advice has them. */
  function patched(values, patch) {
    return prune(fromRequest(mergePatch(toRequest(values), patch)).values);
  }

  /** Only what differs from the defaults, in describe's order. */
  function prune(values) {
    const kept = {};
    for (const option of describe.options) {
      const value = values[option.name];
      if (value !== undefined && !isDefault(option.name, value)) kept[option.name] = value;
    }
    return kept;
  }

  /** The option that an issue's JSON pointer speaks of: "/adapter/r" or "/adapter" → an option's name. */
  function optionAt(pointer) {
    const parts = String(pointer ?? "")
      .split("/")
      .filter(Boolean);
    while (parts.length > 0) {
      const name = parts.join(".");
      if (byName.has(name)) return name;
      parts.pop();
    }
    return undefined;
  }

  /** Whether an option, or a group of them, decides anything: its rule {"method": ["lora", "qlora"]} holds, or it has none. */
  function isRelevant({ relevant = {} }, values) {
    const holds = ([name, words]) => words.includes(String(values[name] ?? find(name)?.default));
    return Object.entries(relevant).every(holds);
  }

  return {
    describe,
    options: describe.options,
    groups: describe.groups,
    find,
    isDefault,
    parse,
    print,
    toRequest,
    fromRequest,
    patched,
    prune,
    optionAt,
    isRelevant,
    isWordOfParent,
    titleOf: (group) => describe.groups.find(({ name }) => name === group)?.title ?? "",
  };
}

/** RFC 7396: objects are merged key by key, null removes, anything else replaces. */
export function mergePatch(target, patch) {
  if (patch === null || typeof patch !== "object" || Array.isArray(patch)) return patch;
  const result = target !== null && typeof target === "object" && !Array.isArray(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = mergePatch(result[key], value);
  }
  return result;
}

function place(request, name, value) {
  const parts = name.split(".");
  let object = request;
  for (const part of parts.slice(0, -1)) {
    if (typeof object[part] !== "object" || object[part] === null) object[part] = {};
    object = object[part];
  }
  object[parts[parts.length - 1]] = value;
}

/** A card from its text: 24GiB, 24576 MiB, {"vram_gb":24}, or a name, which stays text. */
function cardOf(text) {
  if (!text.startsWith("{")) return readCard(text);
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function cardText(card) {
  if (card === null || typeof card !== "object") return String(card);
  return Object.keys(card).length === 1 && typeof card.memory_gib === "number"
    ? `${card.memory_gib}GiB`
    : JSON.stringify(card);
}

function joinList(list) {
  return list.map((item) => cardText(item).replace(/[%,]/g, encodeURIComponent)).join(",");
}

function splitList(text) {
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "")
    .map((item) => {
      try {
        return decodeURIComponent(item);
      } catch {
        return item;
      }
    });
}
