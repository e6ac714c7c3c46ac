// The whole state as a readable URL hash, and back: #v=1&model=gpt2&adapter.r=8&a.model=gpt2
// Only what differs from the defaults is written. Links live for ever: the number after v= says how one was written, and `upgraders`
// brings old ones up to date, step by step. Keys that nobody knows (any more, or yet) are kept as they are, and warned of.

export const permalinkVersion = 1;
const pinPrefix = "a.";
// How the page is to look: as a widget in a frame (view=widget), in which colours and language. No part of the job, and in no link that is written.
const looks = ["view", "theme", "controls", "lang"];

/** upgraders[n] turns the pairs of a version-n link into those of version n+1. Never edit one; add the next. */
const upgraders = [
  // 0: no v= at all, written by hand. The command line's spellings are accepted: batch-size=4, seq-len=4096.
  (pairs, schema) => {
    const names = new Map();
    for (const option of schema.options) {
      for (const flag of option.flags ?? []) names.set(flag.replace(/^-+/, ""), option.name);
    }
    return pairs.map(([key, value]) => {
      if (schema.find(key)) return [key, value];
      const pinned = key.startsWith(pinPrefix) ? pinPrefix : "";
      const name = names.get(key.slice(pinned.length));
      return name ? [pinned + name, value] : [key, value];
    });
  },
];

function encode(text) {
  return encodeURIComponent(text)
    .replace(/%2F/g, "/")
    .replace(/%3A/g, ":")
    .replace(/%2C/g, ",")
    .replace(/%40/g, "@")
    .replace(/%20/g, "+");
}

function decode(text) {
  const spaced = text.replace(/\+/g, " ");
  try {
    return decodeURIComponent(spaced);
  } catch {
    return spaced;
  }
}

function pairsOf(hash) {
  return hash
    .replace(/^#/, "")
    .split("&")
    .filter((part) => part !== "")
    .map((part) => {
      const equals = part.indexOf("=");
      return equals < 0 ? [decode(part), ""] : [decode(part.slice(0, equals)), decode(part.slice(equals + 1))];
    });
}

/** The hash of a state, without "#"; empty when there is nothing to say. */
export function writePermalink(state, schema) {
  const pairs = [];
  const write = (values, prefix) => {
    for (const [name, value] of Object.entries(schema.prune(values)))
      pairs.push([prefix + name, schema.print(name, value)]);
  };
  write(state.values, "");
  if (state.pin) {
    const before = pairs.length;
    write(state.pin, pinPrefix);
    if (pairs.length === before) pairs.push([pinPrefix, ""]);
  }
  for (const [key, value] of state.unknown ?? []) pairs.push([key, value]);
  if (pairs.length === 0) return "";
  return [["v", state.version ?? permalinkVersion], ...pairs]
    .map(([key, value]) => `${encode(key)}=${encode(String(value))}`)
    .join("&");
}

/**
 * The state that a hash describes. Never fails; `notes` says what was odd: {code: "unknown" | "newer" | "repeated", key};
 * `look`, where the link has it: {view, theme, controls, lang}.
 */
export function readPermalink(hash, schema) {
  let pairs = pairsOf(hash);
  const state = { values: {}, pin: null, unknown: [] };
  const notes = [];
  const look = pairs.filter(([key]) => looks.includes(key));
  if (look.length > 0) state.look = Object.fromEntries(look);
  pairs = pairs.filter(([key]) => !looks.includes(key));
  const stated = pairs.find(([key]) => key === "v");
  pairs = pairs.filter(([key]) => key !== "v");
  let version = stated && /^\d{1,6}$/.test(stated[1]) ? Number(stated[1]) : 0;
  if (version > permalinkVersion) {
    notes.push({ code: "newer", key: String(version) });
    state.version = version;
  }
  for (; version < permalinkVersion; version += 1) pairs = upgraders[version](pairs, schema);

  for (const [key, value] of pairs) {
    const pinned = key.startsWith(pinPrefix);
    const name = pinned ? key.slice(pinPrefix.length) : key;
    if (pinned && !state.pin && (name === "" || schema.find(name))) state.pin = {};
    if (pinned && name === "") continue;
    const target = pinned ? state.pin : state.values;
    if (!schema.find(name)) {
      state.unknown.push([key, value]);
      notes.push({ code: "unknown", key });
    } else if (Object.hasOwn(target, name)) {
      notes.push({ code: "repeated", key });
    } else {
      const parsed = schema.parse(name, value);
      if (parsed !== undefined && !schema.isDefault(name, parsed)) target[name] = parsed;
    }
  }
  return { ...state, notes };
}
