// <tidemark-calculator model="…" gpu="…" controls="model,gpu,sequence">: the calculator as an element for any page.
// Its attributes are the job; docs/widget.md lists them, its events and its parts.
import { h } from "../src/dom.js";
import { t } from "../src/messages.js";
import { writePermalink } from "../src/permalink.js";
import { createQuestions } from "../src/questions.js";
import { createStore } from "../src/state.js";
import { attributesOf, controlsOf, readAttributes, writeAttributes } from "./attributes.js";
import { createCalculator } from "./calculator.js";
import { openService, speak } from "./service.js";
import { styles } from "tidemark:styles";

let sheet = null;
function sharedSheet() {
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(styles);
  }
  return sheet;
}

export class TidemarkCalculator extends HTMLElement {
  #root = this.attachShadow({ mode: "open" });
  #isStarted = false;
  #job = null;
  #answer = null;
  #view = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && this.#start(), {
    rootMargin: "200px",
  });
  #changes = new MutationObserver(() => this.#followAttributes());

  constructor() {
    super();
    this.#root.adoptedStyleSheets = [sharedSheet()];
    // What stands between the tags, until there is an answer.
    this.#root.append(h("slot"));
  }

  connectedCallback() {
    // Set before this script was there.
    if (Object.hasOwn(this, "request")) {
      const { request } = this;
      delete (/** @type {any} */ (this).request);
      this.request = request;
    }
    this.#changes.observe(this, { attributes: true });
    if (this.#isStarted) return;
    if (this.getAttribute("loading") === "eager") this.#start();
    else this.#view.observe(this);
  }

  disconnectedCallback() {
    this.#view.disconnect();
    this.#changes.disconnect();
  }

  /** The job as a request of the engine, or null before there is one; setting it writes the attributes. */
  get request() {
    return this.#job ? this.#job.schema.toRequest(this.#job.store.get().values) : null;
  }
  set request(request) {
    openService().then(({ schema }) => {
      const names = this.#job?.names ?? attributesOf(schema);
      const values = schema.prune(schema.fromRequest(request ?? {}).values);
      writeAttributes(this, schema, names, readAttributes(this, schema, names), values);
    });
  }

  /** The engine's last answer, or null. */
  get answer() {
    return this.#answer;
  }

  async #start() {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#view.disconnect();
    try {
      const [service] = await Promise.all([openService(), speak(this)]);
      this.#open(service);
    } catch (error) {
      this.#isStarted = false;
      const words = t("page.failed", { reason: String(error?.message ?? error) });
      this.#root.replaceChildren(h("slot"), h("p", { class: "problem", role: "alert", part: "issues" }, words));
    }
  }

  #open({ engine, schema, catalog }) {
    const names = attributesOf(schema);
    const store = createStore(schema, { values: readAttributes(this, schema, names) });
    this.#job = { schema, store, names };
    this.#watch();
    const calculator = createCalculator({
      schema,
      store,
      questions: createQuestions(engine.another(), schema),
      controls: controlsOf(this.getAttribute("controls"), schema, names),
      catalog,
      linkOf: (state) => this.#linkOf(state),
      onanswer: (answer) => {
        this.#answer = answer;
        if (!calculator.node.isConnected) this.#root.replaceChildren(calculator.node);
        this.#tell("estimate", answer);
      },
    });
    calculator.update();
  }

  /** What the visitor changes stands in the attributes, and is told of. */
  #watch() {
    const { schema, store, names } = this.#job;
    let before = store.get().values;
    store.subscribe(({ values }, { source }) => {
      if (source !== "attributes") {
        writeAttributes(this, schema, names, before, values);
        // These are ours.
        this.#changes.takeRecords();
        this.#tell("change", schema.toRequest(values));
      }
      before = values;
    });
  }

  #followAttributes() {
    if (!this.#job) return;
    const { schema, store, names } = this.#job;
    const values = readAttributes(this, schema, names);
    const none = Object.fromEntries(Object.keys(store.get().values).map((name) => [name, undefined]));
    store.set({ ...none, ...values }, { source: "attributes" });
  }

  #linkOf(state) {
    const page = this.getAttribute("page");
    return page === null ? null : `${new URL(page, document.baseURI).href}#${writePermalink(state, this.#job.schema)}`;
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
  }
}

// A page that loads the script twice has one element.
if (!customElements.get("tidemark-calculator")) customElements.define("tidemark-calculator", TidemarkCalculator);
