// The address bar follows the state, and the state follows back and forward. In a sandboxed frame either may be refused: then the page
// works without.
import { readPermalink, writePermalink } from "./permalink.js";
import { quiet } from "./state.js";

// Milliseconds without a further step of a gesture, after which its address is written.
const pause = 200;

/**
 * Keeps location.hash and the store in step; `written` is the hash that the store was made from, which may be another by now. Steps of one
 * control in quick succession make one entry in the history.
 */
export function followAddress(store, schema, example, written) {
  let lastName = null;
  let lastTime = 0;
  // What is yet to be written of a gesture: for each new address a browser looks at the page's icon again, which takes it milliseconds.
  let owed = null;
  let rest;

  function write(how) {
    clearTimeout(rest);
    owed = null;
    try {
      history[how](null, "", `#${written}`);
    } catch {
      try {
        location.hash = written;
      } catch {
        // A frame that may not even do this still answers.
      }
    }
    // The browser may have written it its own way.
    written = currentHash() || written;
  }
  const pay = () => owed && write(owed);

  function read() {
    const hash = currentHash();
    if (hash === written) return;
    clearTimeout(rest);
    owed = null;
    written = hash;
    lastName = null;
    const state = hash === "" ? { values: example } : readPermalink(hash, schema);
    store.replace(state, { source: "address" });
  }

  store.subscribe((state, change) => {
    if (change.source === "address") return undefined;
    const hash = writePermalink(state, schema);
    if (hash === written) return undefined;
    const now = Date.now();
    const merge = change.source === "form" && change.name === lastName && now - lastTime < quiet;
    lastName = change.name;
    lastTime = now;
    if (!merge) {
      pay();
      written = hash;
      return write("pushState");
    }
    written = hash;
    owed = "replaceState";
    clearTimeout(rest);
    rest = setTimeout(pay, pause);
    return undefined;
  });
  addEventListener("pagehide", pay);
  addEventListener("popstate", read);
  addEventListener("hashchange", read);
  read();
}

/** Whether others can open this page's address, too: neither a file of this machine's nor text in a frame. */
export const isHosted = () => /^https?:$/.test(location.protocol);

export function currentHash() {
  return location.hash.replace(/^#/, "");
}

/** A link for others. The address of a file on this machine would lead them nowhere and tells of it: then the end alone, which a page reads. */
export const linkFor = (state, schema) =>
  location.protocol === "file:" ? `#${writePermalink(state, schema)}` : permalinkOf(state, schema);

/** The address of the present state; without the page's own address where that says nothing (about:srcdoc). */
export function permalinkOf(state, schema) {
  const hash = writePermalink(state, schema);
  const base = location.href.split("#")[0];
  return hash === "" ? base : `${base}#${hash}`;
}
