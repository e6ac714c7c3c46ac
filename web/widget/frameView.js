// index.html#…&view=widget: the page as a widget in a frame, also in a sandboxed one and from file://. It writes no address and keeps nothing;
// its host hears how tall it is ({type: "tidemark-height", height}) and may say {type: "tidemark-theme", theme}. widget/frame.js is a host.
import { isHosted, permalinkOf } from "../src/address.js";
import { h } from "../src/dom.js";
import { createStore } from "../src/state.js";
import { attributesOf, controlsOf } from "./attributes.js";
import { createCalculator } from "./calculator.js";

/** asked: the state of the link, with its `look`. */
export function openFrameView({ schema, questions, asked }) {
  const { theme, controls } = asked.look;
  const root = document.documentElement;
  root.dataset.view = "widget";
  turnTo(theme);
  const calculator = createCalculator({
    schema,
    store: createStore(schema, asked),
    questions,
    controls: controlsOf(controls, schema, attributesOf(schema)),
    catalog: () => questions.catalog(),
    linkOf: (state) => (isHosted() || location.protocol === "file:" ? permalinkOf(state, schema) : null),
    onanswer: () => {
      root.dataset.ready = "true";
    },
  });
  const frame = h("main", { class: "frame-view" }, calculator.node);
  document.getElementById("tidemark").replaceChildren(frame);
  if (parent !== self) followHost(frame);
  calculator.update();
}

function turnTo(theme) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

function followHost(node) {
  const tell = () => parent.postMessage({ type: "tidemark-height", height: node.scrollHeight }, "*");
  new ResizeObserver(tell).observe(node);
  // A sandboxed page cannot tell its host by origin.
  addEventListener("message", ({ source, data }) => {
    if (source === parent && data?.type === "tidemark-theme") turnTo(data.theme);
  });
}
