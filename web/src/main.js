// The page: engine in, state in the middle, panels out. Every change of the state asks the engine once per animation frame
// at most; what it answers is drawn part by part, so that the page never stands still.
import { createEngine } from "./engine.js";
import { createLocalWorker } from "./engineHost.js";
import { createAdvice } from "./advice.js";
import { createAnnouncer } from "./announce.js";
import { currentHash, followAddress, permalinkOf } from "./address.js";
import { createBar } from "./bar.js";
import { createBreakdown } from "./breakdown.js";
import { createCards } from "./cards.js";
import { createCompare } from "./compare.js";
import { commandOf, createCopy, markdownOf } from "./copy.js";
import { breath, h, painted, perFrame, setText } from "./dom.js";
import { example } from "./example.js";
import { installExactly } from "./exactly.js";
import { createFitMap } from "./fitmap.js";
import { createForm } from "./form.js";
import { gib } from "./format.js";
import { t } from "./messages.js";
import { acceptAnywhere, createModelPicker } from "./modelPicker.js";
import { readPermalink } from "./permalink.js";
import { createDock, createHeadline, createIssues, createVerdict } from "./results.js";
import { savePage } from "./savePage.js";
import { createSchema } from "./schema.js";
import { createStore } from "./state.js";
import { createThemeSwitch } from "./theme.js";
import { createTimeline } from "./timeline.js";
import { verdictSentence, verdictWord } from "./verdict.js";

async function start(makeWorker) {
  const root = document.getElementById("tidemark");
  const data = (name) => document.getElementById(`data-${name}`).textContent;
  const engine = createEngine({
    partsOf: async () => {
      // They stand behind the script.
      if (document.readyState === "loading") await new Promise((resolve) => document.addEventListener("DOMContentLoaded", resolve));
      return { wasm: data("wasm"), models: data("models"), gpus: data("gpus") };
    },
    makeWorker,
    makeLocal: createLocalWorker,
    // For whoever looks into the page: where it computes.
    onready: (isLocal) => {
      document.documentElement.dataset.engine = isLocal ? "page" : "worker";
    },
    describeFailure: (reason) => t("issues.failed", { reason }),
  });
  const schema = createSchema(JSON.parse(data("describe")));
  const hash = currentHash();
  const store = createStore(schema, hash === "" ? { values: example } : readPermalink(hash, schema));
  // Here already, or on its way while the page is built.
  const first = hash === "" ? JSON.parse(data("example")) : ask("estimate", store.get().values);
  const announcer = createAnnouncer();
  const tell = (text, delay) => announcer.say(text, delay);

  let catalog = {};
  const gpus = () => catalog.gpus ?? [];
  const modelPicker = createModelPicker({ store, schema, models: () => catalog.models ?? [], tell });
  const inputs = h("div", { class: "inputs" });
  let form = null;
  const issues = createIssues({ schema, store, focusOption: (name) => form?.focus(name) });
  const headline = createHeadline();
  const verdict = createVerdict();
  const bar = createBar();
  const timeline = createTimeline();
  const breakdown = createBreakdown();
  const cards = createCards({ store, gpus });
  const compare = createCompare({ schema, store });
  const fitMap = createFitMap({ engine, store, tell });
  const advice = createAdvice({ schema, store, ask: (values, tables) => askAdvice("tables", values, tables), tell, showComparison: () => compare.show() });
  const copy = createCopy({ tell, texts: {
    link: () => permalinkOf(store.get(), schema),
    markdown: () => (answer?.estimate ? markdownOf(answer, store.get(), schema, permalinkOf(store.get(), schema)) : null),
    json: () => (answer ? JSON.stringify(answer, null, 2) : null),
    command: () => commandOf(store.get().values, schema),
  } });
  // On paper, where the form is not: the job, as the command that asks for it.
  const asked = h("p", { class: "asked code", "data-testid": "asked" });
  const figures = h("div", { class: "figures" }, asked, headline.node, verdict.node, advice.node, bar.node, timeline.node, h("div", { class: "pair" }, fitMap.node, cards.node), breakdown.node);
  const result = h("section", { class: "result", id: "result", tabindex: "-1", "aria-label": t("result.label") }, issues.node, figures, compare.node, copy.node);
  const dock = createDock(() => {
    result.scrollIntoView({ block: "start" });
    result.focus({ preventScroll: true });
  });
  const veil = h("div", { class: "veil", hidden: true, "aria-hidden": "true" }, h("p", {}, t("page.drop")));
  const undo = h("button", { type: "button", class: "button quiet small", disabled: true, "data-testid": "undo", onclick: () => store.undo() }, t("page.undo"));
  const notice = h("span", { class: "notice" });
  const save = h("button", { type: "button", class: "button quiet small", "data-testid": "save", onclick: () => {
    try {
      savePage("tidemark.html");
      setText(notice, t("page.saved", { name: "tidemark.html" }));
    } catch {
      setText(notice, t("page.saveRefused"));
    }
    tell(notice.textContent, 0);
  } }, t("page.save"));
  const versions = h("p", {}, t("page.versions", { engine: schema.describe.engine, catalog: schema.describe.catalog }));

  root.replaceChildren(
    h("a", { class: "skip", href: "#result", onclick: (event) => {
      event.preventDefault();
      result.focus();
    } }, t("page.skip")),
    h("header", { class: "masthead" },
      h("div", { class: "brand" }, wave(), h("h1", {}, t("page.name")), h("p", { class: "tagline" }, t("page.tagline"))),
      h("div", { class: "tools" }, undo, h("button", { type: "button", class: "button quiet small", "data-testid": "reset", onclick: () => store.replace({ values: example }, { source: "reset" }) }, t("page.reset")), save, createThemeSwitch(() => fitMap.repaint()))),
    h("main", { class: "bench" }, inputs, result, installExactly()),
    h("footer", { class: "foot" }, versions, notice), dock.node, veil, announcer.node);
  acceptAnywhere(modelPicker, veil);

  let answer = null;
  let lastGood = null;

  function ask(kind, values, verb) {
    return engine.ask(kind, { ...schema.toRequest(values), ...(verb ? { verb } : {}) });
  }

  /** The tables of the advice take several times as long as the search: they come when asked for. */
  function askAdvice(kind, values, tables) {
    return engine.ask(kind, { ...schema.toRequest(values), verb: "advise", frontiers: false, tiers: false, modes: false, ...tables });
  }

  // A does not change while B does.
  let pinned = { values: null, response: null };
  async function askPinned(values) {
    if (values && pinned.values !== values) {
      const response = await ask("pin", values);
      if (response) pinned = { values, response };
    }
    return values ? pinned.response : null;
  }

  /** The state changed: the form shows it now, the figures when they are there. */
  async function update(asked) {
    const state = store.get();
    form?.render(state.values, answer?.issues ?? []);
    undo.disabled = !store.canUndo();
    const [next, a] = await Promise.all([asked ?? ask("estimate", state.values), askPinned(state.pin)]);
    // Superseded: the newer one will be shown.
    if (next) await show(state, next, a);
  }

  let shown = 0;
  async function show(state, next, a) {
    answer = next;
    const { estimate, partial, issues: found = [] } = answer;
    const fits = answer.fits ?? [];
    const failed = !estimate;
    const parts = [
      () => {
        issues.render(found, state.notes, failed && lastGood !== null && !partial);
        figures.classList.toggle("is-stale", failed && !partial);
        figures.classList.toggle("is-partial", Boolean(partial));
        if (estimate) {
          lastGood = { answer, values: state.values };
          headline.render(estimate);
          verdict.render(fits);
          advice.expect(fits[0], fits.length);
          setText(asked, commandOf(state.values, schema));
          tell(t("announce.answer", { size: gib(estimate.allocated.expected), verdict: fits[0] ? `${verdictWord(fits[0].verdict)} ${t("verdict.on", { gpu: fits[0].gpu })}. ${verdictSentence(fits[0])}` : "" }));
        } else {
          if (partial) headline.renderPartial(partial);
          else if (!lastGood) headline.renderNothing();
          const errors = found.filter((issue) => issue.severity === "error");
          tell(t("announce.errors", { count: errors.length, first: errors[0]?.message ?? "" }));
        }
        figures.classList.toggle("is-empty", !lastGood && failed && !partial);
        dock.render(estimate, fits);
        document.title = estimate ? `${gib(estimate.allocated.expected)} \u2013 ${t("page.name")}` : t("page.name");
      },
      () => form?.render(store.get().values, found),
      ...(estimate ? [() => bar.render(estimate, fits[0]), () => timeline.render(estimate, fits[0]), () => breakdown.render(estimate)] : []),
      () => compare.render(state, a, answer),
    ];
    shown += 1;
    const mine = shown;
    for (const part of parts) {
      try {
        part();
      } catch (error) {
        // One panel that fails does not keep the others with the job before.
        console.error(error);
      }
      if (mine === 1 && part === parts[0]) {
        // The first headline is worth a picture of its own.
        await painted();
        performance.mark("tidemark-first-answer");
      } else {
        await breath();
      }
      if (mine !== shown) return;
    }
    if (state === store.get()) figures.removeAttribute("aria-busy");
    later(estimate ? state.values : null, fits[0], estimate?.allocated);
  }

  // What may come a moment after the figures: other cards, the map, advice.
  let laterTimer = 0;
  function later(values, fit, allocated) {
    clearTimeout(laterTimer);
    laterTimer = setTimeout(async () => {
      if (!values) {
        fitMap.hide();
        advice.render(null);
        return;
      }
      const withoutCards = { ...values };
      delete withoutCards.gpu;
      delete withoutCards.gpus;
      const spread = allocated.high / allocated.expected;
      const number = (name) => (typeof values[name] === "number" ? values[name] : schema.find(name)?.default ?? 1);
      const isPresent = () => values === store.get().values;
      ask("fit", withoutCards, "fit").then((response) => response && isPresent() && cards.render(response.fits ?? [], fit?.gpu));
      // With the card: its kernels decide what a cell takes.
      fitMap.render(schema.toRequest(values), fit && fit.usable_bytes > 0 ? fit.usable_bytes : null, spread, number("micro_batch_size"), number("sequence_length"));
      const response = fit ? await askAdvice("advise", values) : null;
      if (response !== undefined && isPresent()) advice.render(response, values);
    }, 60);
  }

  const soon = perFrame(update);
  store.subscribe(() => {
    figures.setAttribute("aria-busy", "true");
    soon();
  });
  followAddress(store, schema, example);
  // The form is built while the first answer is on its way.
  const answered = update(first);
  await painted();
  engine.ask("catalog", { verb: "catalog" }).then((response) => {
    catalog = response;
    modelPicker.refresh();
    form?.refresh();
  });
  form = await createForm({ schema, store, modelPicker, gpus, place: inputs });
  form.render(store.get().values, answer?.issues ?? []);
  await answered;
  document.documentElement.dataset.ready = "true";
}

function wave() {
  const namespace = "http://www.w3.org/2000/svg";
  const drawing = document.createElementNS(namespace, "svg");
  drawing.setAttribute("class", "logo");
  drawing.setAttribute("viewBox", "0 0 32 32");
  drawing.setAttribute("aria-hidden", "true");
  for (const [className, d] of [["logo-staff", "M6 3h4v26H6z"], ["logo-marks", "M6 7h4v3.2H6zM6 13.4h4v3.2H6zM6 19.8h4V23H6z"], ["logo-line", "M12 8h17"], ["logo-water", "M12 17c3-3 5.5-3 8.5 0s5.500 3 8.500 0V29H12z"]]) {
    const path = document.createElementNS(namespace, "path");
    path.setAttribute("class", className);
    path.setAttribute("d", d);
    drawing.append(path);
  }
  return drawing;
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
