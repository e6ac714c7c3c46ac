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

/** Makes a node's contents those of other nodes, by what differs: what stays the same is neither styled nor laid out again. Listeners stay with the
 *  nodes that they were given to: of what is replaced they must do the same. */
export function become(node, ...wanted) {
  let now = node.firstChild;
  for (const next of wanted) {
    if (next.parentNode === node) now = upTo(next, now);
    const after = now?.nextSibling;
    if (now?.nodeName !== next.nodeName) node.insertBefore(next, now);
    else {
      if (!now.isEqualNode(next)) patch(now, next);
      now = after;
    }
  }
  upTo(null, now);
}

/** Removes what stands before a node, or before the end. Returns that node. */
function upTo(end, now) {
  while (now !== end) {
    const after = now.nextSibling;
    now.remove();
    now = after;
  }
  return end;
}

function patch(now, next) {
  if (next.nodeType === Node.TEXT_NODE) {
    now.data = next.data;
    return;
  }
  for (const name of now.getAttributeNames()) if (!next.hasAttribute(name)) now.removeAttribute(name);
  for (const name of next.getAttributeNames()) {
    const value = next.getAttribute(name);
    if (now.getAttribute(name) !== value) now.setAttribute(name, value);
  }
  become(now, ...next.childNodes);
}

/** Tells whether something is other than what it was told last; forget() makes it so. */
export function memory() {
  let last;
  const isOther = (what) => {
    const before = last;
    last = JSON.stringify(what);
    return last !== before;
  };
  const forget = () => {
    last = undefined;
  };
  return { isOther, forget };
}

/** Sets a text only where it differs, so that selections and live regions stay quiet. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

let drawn = 0;
/** Work begins now, after this thread did nothing or something else. */
export function begin() {
  drawn = performance.now();
}

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

// Milliseconds of an animation frame.
const frame = 16;

/** Calls `work` once per animation frame at most: behind what runs now, or, where it was called within a frame, at that one's end. */
export function perFrame(work) {
  let pending = false;
  let last = Number.NEGATIVE_INFINITY;
  const run = () => {
    pending = false;
    last = performance.now();
    work();
  };
  return () => {
    if (pending) return;
    pending = true;
    const early = last + frame - performance.now();
    if (early > 0) setTimeout(run, early);
    else queueMicrotask(run);
  };
}

/** Whether what is promised comes within a frame. */
export function withinFrame(promise) {
  return Promise.race([promise.then(() => true), new Promise((resolve) => setTimeout(resolve, frame, false))]);
}
