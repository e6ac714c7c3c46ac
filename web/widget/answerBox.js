// The answer in one box: the verdict in words, the total with its range, the bar with the card's brim, and what would make the job fit.
import { barOf, drawBar, legendRows } from "../src/bar.js";
import { drawAtWidth } from "../src/chart.js";
import { h, setText } from "../src/dom.js";
import { exact, gib, scaled } from "../src/format.js";
import { t } from "../src/messages.js";
import { verdictClass, verdictIcon, verdictSentence, verdictWord } from "../src/verdict.js";

/** advice: what acts on the figures. render(answer), then renderAdvice(response) where there is any. */
export function createAnswerBox({ schema, store }) {
  const verdict = h("p", { class: "calc-verdict", part: "verdict" });
  const total = h("p", { class: "calc-total", part: "total" });
  const sentence = h("p", { class: "hint" });
  const bar = createBarPart();
  const advice = h("div", { class: "calc-advice", part: "advice" });
  const issues = h("ul", { class: "calc-issues", part: "issues" });
  const node = h("div", { class: "calc-answer", part: "answer", tabindex: "-1" });
  node.append(verdict, total, sentence, bar.node, advice, issues);
  // The state that an applied plan made: while it is the present one, Undo takes it back.
  let applied = null;

  function apply(patch, what) {
    store.set(missing(store.get().values, schema.patched(store.get().values, patch)), { source: "advice" });
    applied = { what, state: store.get() };
    node.focus({ preventScroll: true });
  }

  /** The plan's place: what was just applied, or that a plan is looked for, or nothing. */
  function renderPlace(fit) {
    const undo = h("button", { type: "button", class: "button small", onclick: () => store.undo() }, t("page.undo"));
    if (applied?.state === store.get())
      return advice.replaceChildren(h("p", {}, t("advice.applied", { what: applied.what })), undo);
    const sought = fit && fit.verdict !== "fits" && fit.verdict !== "unknown";
    return advice.replaceChildren(sought ? h("p", { class: "hint" }, t("advice.searching")) : "");
  }

  return {
    node,
    advice,
    /** @param {import("../../wasm/tidemark.js").Response} response */
    render({ estimate, partial, fits = [], issues: found = [] }) {
      const [fit] = fits;
      node.className = `calc-answer ${fit ? verdictClass(fit.verdict) : "is-unknown"}`;
      verdict.replaceChildren(...verdictWords(fit, estimate));
      total.replaceChildren(...totalWords(estimate, partial));
      setText(sentence, estimate && fit ? verdictSentence(fit) : (partial?.note ?? ""));
      bar.render(estimate, fit);
      renderPlace(estimate ? fit : undefined);
      // A card's reason is often the warning itself.
      const told = ({ severity, message }) => severity !== "note" && message !== sentence.textContent;
      issues.replaceChildren(...found.filter(told).map(issueRow));
    },
    /** @param {import("../../wasm/tidemark.js").AdviseResponse} response */
    renderAdvice({ combination }) {
      if (!combination?.found) return advice.replaceChildren(h("p", {}, t("calculator.nothing")));
      const what = combination.steps.map(({ title }) => title).join(", ");
      const words = t("calculator.plan", { what, size: gib(combination.allocated.expected) });
      const onclick = () => apply(combination.patch, what);
      const name = `${t("advice.apply")}: ${what}`;
      const button = h("button", { type: "button", class: "button small", "aria-label": name, onclick });
      button.textContent = t("advice.apply");
      return advice.replaceChildren(h("p", {}, words), button);
    },
  };
}

/** As a change of a state: what goes is undefined. */
function missing(before, after) {
  return { ...Object.fromEntries(Object.keys(before).map((name) => [name, undefined])), ...after };
}

function createBarPart() {
  let shown = null;
  const box = h("div", { class: "bar-box", part: "bar" });
  const legend = h("ul", { class: "legend", part: "legend" });
  const redraw = drawAtWidth(box, (width) => shown && box.replaceChildren(drawBar(shown, width)));
  const node = h("div", {}, box, legend);
  return {
    node,
    render(estimate, fit) {
      node.hidden = !estimate;
      if (!estimate) return;
      shown = barOf(estimate, fit);
      legend.replaceChildren(...legendRows(shown));
      redraw();
    },
  };
}

function verdictWords(fit, estimate) {
  if (!fit) return [estimate ? t("verdict.noCard") : ""];
  const card = h("span", {}, h("strong", {}, verdictWord(fit.verdict)), " ", t("verdict.on", { gpu: fit.gpu }));
  return [verdictIcon(fit.verdict), card];
}

function amount(bytes) {
  const [text, unit] = scaled(bytes);
  const big = h("data", { class: "calc-big", value: String(bytes), title: exact(bytes) }, text);
  return [big, " ", h("span", { class: "calc-unit" }, unit)];
}

function totalWords(estimate, partial) {
  if (estimate) {
    const { low, expected, high } = estimate.allocated;
    const range = t("result.range", { low: gib(low), high: gib(high) });
    return [h("span", {}, amount(expected)), h("span", { class: "range", part: "range" }, range)];
  }
  if (!partial) return [];
  const least = partial.weights + partial.gradients + partial.optimizer_states;
  return [h("span", {}, h("span", { class: "calc-unit" }, t("calculator.least")), " ", amount(least))];
}

function issueRow({ severity, message, suggestion }) {
  const words = `${message}${suggestion && severity === "error" ? ` (${suggestion})` : ""}`;
  return h("li", { class: severity === "error" ? "problem" : "hint" }, words);
}
