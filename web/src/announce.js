// What changed, said once to those who listen: a polite live region that waits until the visitor pauses.
import { h } from "./dom.js";

export function createAnnouncer() {
  const node = h("div", {
    class: "unseen",
    role: "status",
    "aria-live": "polite",
    "aria-atomic": "true",
    "data-testid": "live",
  });
  let timer = 0;
  return {
    node,
    /** Says the text after a pause, or at once; a later call replaces one that still waits. */
    say(text, delay = 600) {
      clearTimeout(timer);
      const speak = () => {
        node.textContent = text;
      };
      if (delay === 0) speak();
      else timer = setTimeout(speak, delay);
    },
  };
}
