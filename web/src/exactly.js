// Human figures that show the exact bytes on hover and on focus: one tooltip for the page, dismissed by Escape.
import { h } from "./dom.js";
import { exact, gib } from "./format.js";

let tip = null;
let owner = null;

function show(node) {
  owner = node;
  tip.textContent = node.dataset.exactly;
  tip.hidden = false;
  const box = node.getBoundingClientRect();
  const width = tip.offsetWidth;
  const left = Math.max(
    8,
    Math.min(box.left + box.width / 2 - width / 2, document.documentElement.clientWidth - width - 8),
  );
  const above = box.top - tip.offsetHeight - 8;
  tip.style.left = `${left + scrollX}px`;
  tip.style.top = `${(above < 4 ? box.bottom + 8 : above) + scrollY}px`;
}

function hide() {
  tip.hidden = true;
  owner = null;
}

/** Puts the tooltip on the page and listens. */
export function installExactly() {
  tip = h("div", { class: "tip", role: "tooltip", id: "exactly", hidden: true });
  const target = (event) => (event.target instanceof Element ? event.target.closest("[data-exactly]") : null);
  for (const type of ["pointerover", "focusin"]) {
    document.addEventListener(type, (event) => {
      const node = target(event);
      if (node) show(node);
      else if (owner && event.target !== tip && !tip.contains(event.target)) hide();
    });
  }
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && owner) hide();
  });
  return tip;
}

/** A figure: "23.05 GiB" that tells its bytes. Focusable where it stands alone. */
export function figure(bytes, { text = gib(bytes), focusable = true, className = "figure" } = {}) {
  const node = h(
    "data",
    { class: className, value: bytes, "data-exactly": exact(bytes), tabindex: focusable ? "0" : undefined },
    text,
  );
  node.setAttribute("value", String(bytes));
  if (focusable) {
    node.setAttribute("aria-describedby", "exactly");
  }
  return node;
}

/** Makes any node tell those bytes. */
export function tellExactly(node, bytes) {
  node.dataset.exactly = exact(bytes);
  return node;
}
