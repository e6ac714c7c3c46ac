// The calculator: a few controls, and the answer in one box. The widget holds it in a shadow tree, index.html#…&view=widget as the whole page.
import { createAnnouncer } from "../src/announce.js";
import { changedOptions } from "../src/compare.js";
import { createCurrentJob } from "../src/currentJob.js";
import { h, perFrame, setText } from "../src/dom.js";
import { gib } from "../src/format.js";
import { errorWords } from "../src/issues.js";
import { t } from "../src/messages.js";
import { createOptionField } from "../src/optionField.js";
import { verdictWord } from "../src/verdict.js";
import { createAnswerBox } from "./answerBox.js";

/**
 * schema, store, questions as the page has them. controls: names of options. catalog() promises {models, gpus}. linkOf(state) → the full page's
 * address, or null. onanswer(answer) is called when one is drawn.
 */
export function createCalculator({ schema, store, questions, controls, catalog, linkOf, onanswer }) {
  const job = createCurrentJob();
  const announcer = createAnnouncer();
  const form = createControls({ schema, store, controls, catalog });
  const box = createAnswerBox({ schema, store });
  const also = h("p", { class: "hint calc-also", part: "also" });
  const open = h("a", { target: "_blank", rel: "noopener", part: "link" }, t("calculator.open"));
  const engine = t("calculator.engine", { engine: schema.describe.engine });
  const foot = h("p", { class: "hint calc-foot", part: "footer" }, h("span", {}, engine), open);
  // A group, no landmark: a page may have many.
  const attributes = {
    class: "calculator",
    part: "box",
    lang: t("lang"),
    role: "group",
    "aria-label": t("calculator.label"),
  };
  const node = h("div", attributes, form.node, also, box.node, foot, announcer.node);
  const draw = job.part(box.node, [box.advice]);

  function show(state, answer, number) {
    draw(number, () => box.render(answer));
    form.render(state.values, answer.issues ?? []);
    announcer.say(spoken(answer));
    onanswer?.(answer, state);
    askForAdvice(state, answer, number);
  }

  async function askForAdvice(state, { fits = [] }, number) {
    const [fit] = fits;
    if (!fit || fit.verdict === "fits" || fit.verdict === "unknown") return;
    const advice = await questions.advice(state.values);
    if (advice) draw(number, () => box.renderAdvice(advice));
  }

  async function update() {
    const state = store.get();
    const number = job.turnTo(state.values);
    form.render(state.values, []);
    setText(also, alsoSet(schema, state.values, controls));
    also.hidden = also.textContent === "";
    const address = linkOf?.(state);
    open.hidden = !address;
    if (address) open.href = address;
    const answer = await questions.estimate(state.values);
    // Superseded: the newer one will be shown.
    if (answer) show(state, answer, number);
  }

  store.subscribe(perFrame(update));
  return { node, update };
}

function createControls({ schema, store, controls, catalog }) {
  let known = {};
  const change = (name, value) => store.set({ [name]: value });
  const context = {
    schema,
    store,
    change,
    ungrouped: true,
    gpus: () => known.gpus ?? [],
    models: () => known.models ?? [],
  };
  const fields = controls.map((name) => createOptionField(schema.find(name), context));
  const onsubmit = (event) => event.preventDefault();
  const attributes = { class: "calc-controls", part: "controls", autocomplete: "off", novalidate: true, onsubmit };
  const node = h(
    "form",
    attributes,
    fields.map((field) => field.node),
  );
  node.hidden = fields.length === 0;
  // What the lists list is asked for when somebody turns to them.
  const ask = async () => {
    node.removeEventListener("focusin", ask);
    known = (await catalog()) ?? {};
    for (const field of fields) field.refresh();
  };
  node.addEventListener("focusin", ask);
  return {
    node,
    render(values, issues) {
      const problems = new Map();
      for (const issue of issues) {
        const name = schema.optionAt(issue.path);
        if (name && issue.severity === "error" && !problems.has(name)) problems.set(name, issue);
      }
      for (const field of fields) field.render(values, problems);
    },
  };
}

/** What is set and has no control here, in words. */
function alsoSet(schema, values, controls) {
  const set = changedOptions(schema, {}, values).filter(({ name }) => !controls.includes(name));
  return set.map(({ label, after }) => `${label} ${after}`).join(" \u00b7 ");
}

/** The answer as it is read aloud. */
function spoken({ estimate, fits = [], issues = [] }) {
  const errors = issues.filter(({ severity }) => severity === "error");
  if (!estimate) return errorWords(errors);
  const [fit] = fits;
  const verdict = fit ? `${verdictWord(fit.verdict)} ${t("verdict.on", { gpu: fit.gpu })}.` : "";
  return t("announce.answer", { size: gib(estimate.allocated.expected), verdict });
}
