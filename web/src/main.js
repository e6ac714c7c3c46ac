// The page: engine in, state in the middle, panels out. Every change of the state asks the engine once per animation frame
// at most; what it answers is drawn part by part, so that the page never stands still.
import { currentHash, followAddress } from "./address.js";
import { createAnnouncer } from "./announce.js";
import { begin, breath, h, painted, perFrame, withinFrame } from "./dom.js";
import { createEngine } from "./engine.js";
import { createLocalWorker } from "./engineHost.js";
import { installExactly } from "./exactly.js";
import { example } from "./example.js";
import { createForm, problemsOf } from "./form.js";
import { createImporter } from "./importer.js";
import { createImportPanel } from "./importPanel.js";
import { createLanguageSwitch, speak } from "./language.js";
import { createMasthead } from "./masthead.js";
import { t } from "./messages.js";
import { acceptAnywhere, createModelPicker } from "./modelPicker.js";
import { readPermalink } from "./permalink.js";
import { openPacked } from "./openPacked.js";
import { createQuestion } from "./question.js";
import { createQuestions } from "./questions.js";
import { createLocalReader } from "./readerHost.js";
import { createResult } from "./result.js";
import { createSchema } from "./schema.js";
import { createStore } from "./state.js";
import { createThemeSwitch } from "./theme.js";
import { inWords } from "./titles.js";
import { textOf, unpackUpTo } from "./unpack.js";
import { openFrameView } from "../widget/frameView.js";

/** What the page carries in blocks that no browser runs. */
const data = (name) => document.getElementById(`data-${name}`).textContent;

/**
 * Two engines, each in a worker: one for what people wait for, one, made with the first question for it, for what may come a moment later. No
 * estimate stands behind a search for advice.
 */
function openEngine(makeWorker) {
  const [soon, later] = [openOneEngine(makeWorker), openOneEngine(makeWorker)];
  const waitedFor = ["estimate", "pin", "trial"];
  return {
    ask: (kind, request) => (waitedFor.includes(kind) ? soon : later).ask(kind, request),
    map: later.map,
  };
}

/** All that the page carries: what it starts from stands before the script, the rest behind it. */
async function allParts() {
  if (document.readyState === "loading")
    await new Promise((resolve) => document.addEventListener("DOMContentLoaded", resolve));
  return { packed: data("first") + data("rest") };
}

/** What reads other people's files: a module and a worker of its own, made with the first file. */
const openReader = (makeWorker) =>
  createEngine({
    partsOf: allParts,
    makeWorker: () => makeWorker("reader"),
    makeLocal: createLocalReader,
    describeFailure: (reason) => t("import.failed", { reason }),
    onready: undefined,
  });

function openOneEngine(makeWorker) {
  return createEngine({
    partsOf: allParts,
    makeWorker,
    makeLocal: () => createLocalWorker(openPacked),
    // For whoever looks into the page: where it computes.
    onready: (isLocal) => {
      document.documentElement.dataset.engine = isLocal ? "page" : "worker";
    },
    describeFailure: (reason) => t("issues.failed", { reason }),
  });
}

/** Puts the page together, without the form, which takes longer. */
function layOut({ schema, result, masthead, modelPicker, question, importPanel, inputs, announcer, notice }) {
  const skip = h("a", { class: "skip", href: "#result", onclick: focusResult }, t("page.skip"));
  function focusResult(event) {
    event.preventDefault();
    result.node.focus();
  }
  const veil = h("div", { class: "veil", hidden: true, "aria-hidden": "true" }, h("p", {}, t("page.drop")));
  const { engine, catalog } = schema.describe;
  document
    .getElementById("tidemark")
    .replaceChildren(
      skip,
      masthead.node,
      h(
        "main",
        { class: "bench" },
        question.node,
        importPanel.node,
        result.node,
        inputs,
        result.below,
        installExactly(),
      ),
      h(
        "footer",
        { class: "foot" },
        h("p", {}, t("page.versions", { engine, catalog })),
        h("p", {}, t("page.notices")),
        notice,
      ),
      result.dock.node,
      veil,
      announcer.node,
    );
  acceptAnywhere(modelPicker, veil);
}

// Milliseconds from one drawing of the charts to the next.
const often = 120;

/** Does some of the work on an answer; false where another one has come meanwhile. */
async function drawn(parts, isPresent) {
  begin();
  for (const part of parts) {
    try {
      part();
    } catch (error) {
      // One panel that fails does not keep the others with the job before.
      console.error(error);
    }
    await breath();
    if (!isPresent()) return false;
  }
  return true;
}

/** Asks for the present job and draws its answer; renderForm(issues) shows what is asked, and what is wrong with it. */
function createUpdate({ store, questions, result, masthead, renderForm, showBeside }) {
  let answer = null;
  let rounds = 0;
  let later = 0;
  let charted = Number.NEGATIVE_INFINITY;
  // A does not change while B does.
  let pinned = { values: null, response: null };

  async function askPinned(values) {
    if (values && pinned.values !== values) {
      const response = await questions.pinned(values);
      if (response) pinned = { values, response };
    }
    return values ? pinned.response : null;
  }

  async function draw(state, a, number) {
    rounds += 1;
    const mine = rounds;
    const { head, figures, charts } = result.partsOf(state, answer, a, number);
    const isPresent = () => mine === rounds;
    if (!(await drawn([head], isPresent))) return;
    if (mine === 1) {
      // The first headline is worth a picture of its own.
      await painted();
      performance.mark("tidemark-first-answer");
    }
    if (!(await drawn([() => renderForm(answer.issues ?? []), ...figures], isPresent))) return;
    // While a slider moves, the answer follows at each stop, the charts a few times a second.
    const early = charted + often - performance.now();
    if (early > 0) await new Promise((resume) => setTimeout(resume, early));
    if (!isPresent()) return;
    charted = performance.now();
    if (!(await drawn(charts, isPresent))) return;
    if (state === store.get()) result.settle();
    showBeside(answer.estimate);
    clearTimeout(later);
    later = setTimeout(() => result.askForMore(state, answer, number), 60);
  }

  return {
    issues: () => answer?.issues ?? [],
    /**
     * The state changed: the form shows it with the figures where these are there within a frame, which is then laid out once, else before
     * them. `asked`: an answer that is on its way already.
     */
    async update(asked) {
      clearTimeout(later);
      const state = store.get();
      const number = result.turnTo(state.values);
      const both = Promise.all([asked ?? questions.estimate(state.values), askPinned(state.pin)]);
      if (asked || !(await withinFrame(both))) renderForm(answer?.issues ?? []);
      masthead.update();
      const [next, a] = await both;
      // Superseded: the newer one will be shown.
      if (!next) return;
      answer = next;
      await draw(state, a, number);
    },
  };
}

/** Ctrl+Z takes a step back; in a field it is the field's. */
function undoByKey(store) {
  addEventListener("keydown", (event) => {
    const isUndo =
      event.key.toLowerCase() === "z" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
    const field =
      event.target instanceof Element &&
      event.target.closest("input:not([type=range], [type=radio], [type=checkbox]), textarea");
    if (!isUndo || field) return;
    event.preventDefault();
    store.undo();
  });
}

/** Every change of the state is asked about, and stands in the address. */
function follow({ store, schema, address, result, importPanel, update }) {
  const soon = perFrame(update);
  store.subscribe(({ values }) => {
    result.turnTo(values);
    importPanel.update(values);
    soon();
  });
  followAddress(store, schema, example, address);
  undoByKey(store);
}

async function start(makeWorker) {
  const engine = openEngine(makeWorker);
  /** @type {Record<string, Uint8Array> | undefined} */
  let carried;
  await speak({
    zh: async () => {
      carried = await unpackUpTo(data("first"), "zh");
      return JSON.parse(textOf(carried.zh));
    },
  });
  // Of a language alone the example is asked for, as of nothing.
  const address = currentHash();
  const hash = address.replace(/^lang=[\w-]*$/, "");
  carried ??= await unpackUpTo(data("first"), hash === "" ? "example" : "describe");
  const schema = createSchema(inWords(JSON.parse(textOf(carried.describe))));
  const questions = createQuestions(engine, schema);
  /** @type {any} */
  const asked = hash === "" ? { values: example } : readPermalink(hash, schema);
  if (asked.look?.view === "widget") return openFrameView({ schema, questions, asked });
  const store = createStore(schema, asked);
  // Here already, or on its way while the page is built.
  const first = hash === "" ? JSON.parse(textOf(carried.example)) : questions.estimate(store.get().values);
  // Reading the script, building the page and laying it out are a task each.
  await breath();
  return open({ makeWorker, engine, schema, questions, store, address, first });
}

/** Builds the page; `first`: the answer to its first question, or what promises it; `address`: the hash that asks it. */
async function open({ makeWorker, engine, schema, questions, store, address, first }) {
  const opened = store.get();
  const announcer = createAnnouncer();
  const tell = (text, delay) => announcer.say(text, delay);
  let catalog = {};
  let form = null;
  const gpus = () => catalog.gpus ?? [];
  const inputs = h("div", { class: "inputs" });
  const notice = h("span", { class: "notice" });
  const importer = createImporter({ reader: openReader(makeWorker), questions, schema, store });
  const focusOption = (name) => question.focus(name) || form?.focus(name);
  const importPanel = createImportPanel({ schema, store, tell, focusOption, gpus });
  const showFound = (found) => {
    importPanel.show(found);
    showBeside(result.estimate());
  };
  const models = () => catalog.models ?? [];
  const modelPicker = createModelPicker({ store, schema, models, tell, take: importer.take, showFound });
  const question = createQuestion({ schema, store, modelPicker, gpus });
  const result = createResult({ schema, store, engine, questions, gpus, models, tell, focusOption, importer });
  await breath();
  const showBeside = async (estimate) => importPanel.beside(await importer.beside(estimate));
  const switches = { themeSwitch: createThemeSwitch(result.repaint), languageSwitch: createLanguageSwitch() };
  const masthead = createMasthead({ store, example, notice, tell, ...switches });
  layOut({ schema, result, masthead, modelPicker, question, importPanel, inputs, announcer, notice });

  let rendered = [];
  const renderForm = (found) => {
    const { values } = store.get();
    const problems = problemsOf(found, schema);
    // Most answers say nothing about the options that their question did not.
    const now = [values, form, JSON.stringify([...problems])];
    if (now.every((one, at) => one === rendered[at])) return;
    rendered = now;
    question.render(values, problems);
    form?.render(values, problems);
  };
  const { update, issues } = createUpdate({ store, questions, result, masthead, renderForm, showBeside });
  follow({ store, schema, address, result, importPanel, update });
  // The form is built while the first answer is on its way.
  const answered = update(store.get() === opened ? first : undefined);
  await painted();
  // Another engine's matter, which would unpack itself beside the one that people wait for.
  Promise.resolve(first)
    .then(questions.catalog)
    .then((response) => {
      catalog = response;
      question.refresh();
      form?.refresh();
    });
  form = await createForm({ schema, store, gpus, place: inputs });
  renderForm(issues());
  await answered;
  document.documentElement.dataset.ready = "true";
}

/** makeWorker() makes one that runs this script, or throws. */
export function openPage(makeWorker) {
  start(makeWorker).catch((error) => {
    const message = document.createElement("p");
    message.setAttribute("role", "alert");
    message.textContent = t("page.failed", { reason: String(error?.message ?? error) });
    document.getElementById("tidemark").replaceChildren(message);
  });
}
