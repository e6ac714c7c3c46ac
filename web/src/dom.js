// Elements without innerHTML: text stays text, whatever it says.

const svgNamespace = "http://www.w3.org/2000/svg";

function dress(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.setAttribute("class", value);
    else if (name === "value" && "value" in node) node.value = value;
    else if (name === "checked") node.checked = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** An HTML element: h("button", {class: "quiet", onclick}, "Reset"). */
export function h(tag, attributes = {}, ...children) {
  return dress(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s(tag, attributes = {}, ...children) {
  return dress(document.createElementNS(svgNamespace, tag), attributes, children);
}

/** A box that scrolls sideways where it must, by keyboard too. */
export function scrollBox(label, ...children) {
  return h("div", { class: "scroll", role: "group", tabindex: "0", "aria-label": label }, children);
}

/** Whether it has the focus, in the page or in a shadow tree of its own. */
export function hasFocus(node) {
  const root = node.getRootNode();
  return "activeElement" in root && root.activeElement === node;
}

let counter = 0;
/** An id that nothing else on the page has. */
export function uniqueId(stem) {
  counter += 1;
  return `${stem}-${counter}`;
}

/** Sets a text only where it differs, so that selections and live regions stay quiet. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

let drawn = 0;
/** Lets the browser do other things if this thread has been busy for a while; awaited between parts of longer work. */
export async function breath() {
  if (performance.now() - drawn < 8) return;
  await new Promise((resume) => setTimeout(resume, 0));
  drawn = performance.now();
}

/** Resolves once the browser has drawn what is there now; in a hidden tab, which is not drawn, soon. */
export function painted() {
  return new Promise((resolve) => {
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = resolve;
      port2.postMessage(null);
    });
    setTimeout(resolve, document.hidden ? 0 : 300);
  });
}

/** Calls `work` once per animation frame at most, with the latest arguments. */
export function perFrame(work) {
  let pending = false;
  return () => {
    if (pending) return;
    pending = true;
    const run = () => {
      pending = false;
      work();
    };
    // A hidden tab gets no frames, and still owes its answer.
    if (document.hidden) setTimeout(run, 0);
    else requestAnimationFrame(run);
  };
}
