// For a page that holds Tidemark in iframes (index.html#…&view=widget): gives each the height that it asks for, and hands on light or dark.
// <script type="module" src="tidemark-frame.js"></script>, and <iframe class="tidemark" src="…">

const held = () => [.../** @type {NodeListOf<HTMLIFrameElement>} */ (document.querySelectorAll("iframe.tidemark"))];
const say = (frame) =>
  frame.contentWindow?.postMessage({ type: "tidemark-theme", theme: frame.dataset.theme ?? schemeOf(frame) }, "*");

/** "light" or "dark", as the place says where the frame stands; "auto" where that leaves it to the system. */
function schemeOf(frame) {
  const scheme = getComputedStyle(frame).colorScheme;
  return { light: "light", dark: "dark", "only light": "light", "only dark": "dark" }[scheme] ?? "auto";
}

addEventListener("message", ({ source, data }) => {
  if (data?.type !== "tidemark-height" || !(data.height > 0 && data.height < 20000)) return;
  // A sandboxed frame has the origin "null": it is known by its window.
  const frame = held().find((each) => each.contentWindow === source);
  if (!frame) return;
  frame.style.height = `${Math.ceil(data.height)}px`;
  say(frame);
});

// Docs change from light to dark by an attribute of html or body, or with the system.
const all = () => held().forEach(say);
for (const node of [document.documentElement, document.body]) {
  if (node) new MutationObserver(all).observe(node, { attributes: true });
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
