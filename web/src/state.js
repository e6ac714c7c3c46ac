// What the visitor has asked for: values that differ from the defaults, a pinned copy to compare with, and keys of the link that nobody
// knows. Every change makes a new state; the past ones are kept, so that a change can be taken back.

/** How long a gesture rests before the next change is a step of its own, in milliseconds. */
export const quiet = 700;

/** initial: {values, pin, unknown, notes}; now() tells the time. */
export function createStore(schema, initial, now = Date.now) {
  let state = freeze(schema, initial);
  const listeners = new Set();
  const past = [];
  // What was changed last, and when: keystrokes and a slider's stops in quick succession are one step.
  let gesture = { name: null, time: 0 };

  function move(next, change) {
    const frozen = freeze(schema, { ...state, ...next }, state);
    if (same(frozen, state)) return;
    if (change.source !== "undo") remember(change);
    state = frozen;
    for (const listener of listeners) listener(state, change);
  }

  function remember({ source, name }) {
    const time = now();
    const goesOn = source === "form" && name === gesture.name && time - gesture.time < quiet;
    gesture = { name: source === "form" ? name : null, time };
    if (goesOn) return;
    past.push(state);
    if (past.length > 200) past.shift();
  }

  return {
    get: () => state,
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    /** Changes some values; undefined goes back to the default. `change` tells the listeners who did it: {source, name}. */
    set(patch, change = {}) {
      move({ values: { ...state.values, ...patch } }, { source: "form", name: Object.keys(patch).join(), ...change });
    },
    /** Replaces values, pin and unknown keys: a link was followed, a request pasted. */
    replace(next, change = {}) {
      move({ pin: null, unknown: [], notes: [], version: undefined, ...next }, { source: "replace", ...change });
    },
    pin(values) {
      move({ pin: values }, { source: "pin" });
    },
    dropUnknown() {
      move({ unknown: [], notes: [] }, { source: "unknown" });
    },
    /** The last state but one again, or false. */
    undo() {
      const before = past.pop();
      gesture = { name: null, time: 0 };
      if (!before) return false;
      move({ pin: null, version: undefined, ...before }, { source: "undo" });
      return true;
    },
    canUndo: () => past.length > 0,
  };
}

function freeze(schema, { values, pin, unknown, notes, version }, before) {
  return Object.freeze({
    values: Object.freeze(schema.prune(values ?? {})),
    // The same object as long as the pinned result is the same.
    pin: pin && before?.pin === pin ? pin : pin ? Object.freeze(schema.prune(pin)) : null,
    unknown: unknown ?? [],
    notes: notes ?? [],
    version,
  });
}

/** Whether two states ask for the same. */
export function same(a, b) {
  return JSON.stringify([a.values, a.pin, a.unknown]) === JSON.stringify([b.values, b.pin, b.unknown]);
}
