// The page: engine in, state in the middle, panels out. Every change of the state asks the engine once per animation frame.
import { startEngine } from "./engine.js";
import { createAdvice } from "./advice.js";
import { createAnnouncer } from "./announce.js";
import { currentHash, followAddress, permalinkOf } from "./address.js";
import { createBar } from "./bar.js";
import { createBreakdown } from "./breakdown.js";
import { createCards } from "./cards.js";
import { createCompare } from "./compare.js";
import { commandOf, createCopy, markdownOf } from "./copy.js";
import { h, perFrame, setText } from "./dom.js";
import { installExactly } from "./exactly.js";
import { createFitMap } from "./fitmap.js";
import { createForm } from "./form.js";
import { gib } from "./format.js";
import { t } from "./messages.js";
import { acceptAnywhere, createModelPicker } from "./modelPicker.js";
import { readPermalink } from "./permalink.js";
import { createDock, createHeadline, createIssues, createVerdict } from "./results.js";
import { rememberPage, savePage } from "./savePage.js";
import { createSchema } from "./schema.js";
import { createStore } from "./state.js";
import { createThemeSwitch } from "./theme.js";
import { createTimeline } from "./timeline.js";
import { verdictSentence, verdictWord } from "./verdict.js";

// What an address without a state shows: a job that many people run, on a card that many people have.
const example = { model: "meta-llama/Llama-3.2-3B", method: "lora", precision: "bf16_amp", gpu: "NVIDIA GeForce RTX 4090" };

function start(engine) {
  const root = document.getElementById("tidemark");
  const schema = createSchema(engine.handle({ schema: 1, verb: "describe" }));
  const hash = currentHash();
  const store = createStore(schema, hash === "" ? { values: example } : readPermalink(hash, schema));
  const announcer = createAnnouncer();
  const tell = (text, delay) => announcer.say(text, delay);

  let catalog = null;
  const theCatalog = () => (catalog ??= engine.handle({ schema: 1, verb: "catalog" }));
  const gpus = () => theCatalog().gpus ?? [];

  const modelPicker = createModelPicker({ store, schema, models: () => theCatalog().models ?? [], tell });
  const form = createForm({ schema, store, modelPicker, gpus });
  const issues = createIssues({ schema, store, focusOption: (name) => form.focus(name) });
  const headline = createHeadline();
  const verdict = createVerdict();
  const bar = createBar();
  const timeline = createTimeline();
  const breakdown = createBreakdown();
  const cards = createCards({ store, gpus });
  const compare = createCompare({ schema, store });
  const fitMap = createFitMap({ engine, store, tell });
  const advice = createAdvice({ schema, store, tell, showComparison: () => compare.show() });
  const copy = createCopy({ tell, texts: {
    link: () => permalinkOf(store.get(), schema),
    markdown: () => (answer?.estimate ? markdownOf(answer, store.get(), schema, permalinkOf(store.get(), schema)) : null),
    json: () => (answer ? JSON.stringify(answer, null, 2) : null),
    command: () => commandOf(store.get().values, schema),
  } });
  const figures = h("div", { class: "figures" }, headline.node, verdict.node, advice.node, bar.node, timeline.node, h("div", { class: "pair" }, fitMap.node, cards.node), breakdown.node);
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
    h("main", { class: "bench" }, h("div", { class: "inputs" }, form.node), result, installExactly()),
    h("footer", { class: "foot" }, versions, notice), dock.node, veil, announcer.node);
  acceptAnywhere(modelPicker, veil);

  let answer = null;
  let lastGood = null;

  function ask(values, verb) {
    try {
      return engine.handle({ ...schema.toRequest(values), ...(verb ? { verb } : {}) });
    } catch (error) {
      return { schema: 1, issues: [{ code: "ENGINE", severity: "error", path: "", message: t("issues.failed", { reason: error.message }), suggestion: "" }] };
    }
  }

  // A does not change while B does.
  let pinned = { values: null, response: null };
  function askPinned(values) {
    if (pinned.values !== values) pinned = { values, response: ask(values) };
    return pinned.response;
  }

  function update() {
    const state = store.get();
    answer = ask(state.values);
    const { estimate } = answer;
    const fits = answer.fits ?? [];
    const found = answer.issues ?? [];
    form.render(state.values, found);
    undo.disabled = !store.canUndo();
    const failed = !estimate;
    issues.render(found, state.notes, failed && lastGood !== null && !answer.partial);
    figures.classList.toggle("is-stale", failed && !answer.partial);
    figures.classList.toggle("is-partial", Boolean(answer.partial));
    if (estimate) {
      lastGood = { answer, values: state.values };
      headline.render(estimate);
      verdict.render(fits);
      bar.render(estimate, fits[0]);
      timeline.render(estimate, fits[0]);
      breakdown.render(estimate);
      advice.expect(fits[0]);
      tell(t("announce.answer", { size: gib(estimate.allocated.expected), verdict: fits[0] ? `${verdictWord(fits[0].verdict)} ${t("verdict.on", { gpu: fits[0].gpu })}. ${verdictSentence(fits[0])}` : "" }));
    } else {
      if (answer.partial) headline.renderPartial(answer.partial);
      else if (!lastGood) headline.renderNothing();
      const errors = found.filter((issue) => issue.severity === "error");
      tell(t("announce.errors", { count: errors.length, first: errors[0]?.message ?? "" }));
    }
    figures.classList.toggle("is-empty", !lastGood && failed && !answer.partial);
    dock.render(estimate, fits);
    compare.render(state, state.pin ? askPinned(state.pin) : null, answer);
    document.title = estimate ? `${gib(estimate.allocated.expected)} \u2013 ${t("page.name")}` : t("page.name");
    later(estimate ? state.values : null, fits[0]);
  }

  // What may come a moment after the figures: other cards, the map, advice.
  let laterTimer = 0;
  function later(values, fit) {
    clearTimeout(laterTimer);
    laterTimer = setTimeout(() => {
      if (!values) {
        fitMap.hide();
        advice.render(null);
        return;
      }
      const withoutCards = { ...values };
      delete withoutCards.gpu;
      delete withoutCards.gpus;
      cards.render(ask(withoutCards, "fit").fits ?? [], fit?.gpu);
      const number = (name) => (typeof values[name] === "number" ? values[name] : schema.find(name)?.default ?? 1);
      fitMap.render(schema.toRequest(withoutCards), fit && fit.usable_bytes > 0 ? fit.usable_bytes : null, number("micro_batch_size"), number("sequence_length"));
      laterTimer = setTimeout(() => advice.render(fit ? ask(values, "advise") : null, values), 150);
    }, lastGood ? 60 : 0);
  }

  const soon = perFrame(update);
  store.subscribe(soon);
  followAddress(store, schema, example);
  update();
  document.documentElement.dataset.ready = "true";
  return { store, schema, engine };
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

rememberPage();
startEngine().then(start).catch((error) => {
  const root = document.getElementById("tidemark");
  const message = document.createElement("p");
  message.setAttribute("role", "alert");
  message.textContent = t("page.failed", { reason: String(error?.message ?? error) });
  root.replaceChildren(message);
});
