// Whether the job fits: a line for each card that was asked about, and the result in a line for narrow screens.
import { become, h, setText } from "./dom.js";
import { figure } from "./exactly.js";
import { gib, percent } from "./format.js";
import { t } from "./messages.js";
import { said } from "./said.js";
import { verdictClass, verdictIcon, verdictSentence, verdictWord } from "./verdict.js";

/** showAdvice() leads to what would make the job fit. */
export function createVerdict(showAdvice) {
  const node = h("section", {
    role: "group",
    class: "verdict",
    "aria-label": t("compare.verdict"),
    "data-testid": "verdict",
    tabindex: "-1",
  });
  // A place of its own from the beginning, so that nothing moves when the plan is found.
  let isSought = false;
  const plan = h("p", { class: "verdict-plan row", "data-testid": "verdict-plan" });
  return {
    node,
    reach: [plan],
    /** plan: as advice.js has it, or null: nothing that is known makes it fit. */
    renderPlan(found) {
      if (!isSought) return;
      if (!found) return plan.replaceChildren(t("calculator.nothing"));
      const sentence = t("verdict.plan", found);
      const words = h("span", { title: sentence }, sentence);
      const name = `${t("advice.apply")}: ${found.what}`;
      const attributes = { type: "button", class: "button small", "aria-label": name, "data-testid": "plan-apply" };
      const button = h("button", { ...attributes, onclick: () => found.apply(node) }, t("advice.apply"));
      return plan.replaceChildren(words, button);
    },
    /** @param {import("../../wasm/tidemark.js").Fit[]} fits */
    render(fits) {
      const [fit, ...others] = fits;
      node.className = `verdict ${fit ? verdictClass(fit.verdict) : "is-none"}`;
      const none = [verdictIcon("unknown"), h("p", { class: "verdict-text" }, t("verdict.noCard"))];
      isSought = ["tight", "does_not_fit"].includes(fit?.verdict);
      const smaller = h("button", { type: "button", class: "link", onclick: showAdvice }, t("advice.smaller"));
      plan.replaceChildren(isSought ? t("advice.searching") : fit ? smaller : "");
      become(node, ...(fit ? cardLines(fit, others, showAdvice) : none), plan);
    },
    /** There is no answer: why, in the place of the verdict. */
    renderNone(reason) {
      node.className = "verdict is-none";
      isSought = false;
      const text = h("p", { class: "verdict-line" }, h("strong", {}, t("result.noAnswer")));
      const why = h("p", { class: "verdict-sentence", title: reason }, reason);
      plan.replaceChildren();
      node.replaceChildren(verdictIcon("unknown"), h("div", { class: "verdict-text" }, text, why), plan);
    },
  };
}

/** The first card in words; of further ones the verdict beside the name, which the list of cards tells more of. */
function cardLines(fit, others, showAdvice) {
  const used = fit.utilization > 0 && ` ${t("verdict.used", { percent: percent(fit.utilization) })}`;
  const card = [h("strong", {}, verdictWord(fit.verdict)), " ", t("verdict.on", { gpu: fit.gpu })];
  const isKnown = fit.usable_bytes > 0;
  const isShort = fit.verdict === "tight" || fit.verdict === "does_not_fit";
  const attributes = { type: "button", class: "link", onclick: showAdvice, "data-testid": "to-advice" };
  const more = isShort && [" ", h("button", attributes, t("verdict.advice"))];
  const also = others.map((other) => [
    " ",
    verdictIcon(other.verdict, "row-icon"),
    ` ${verdictWord(other.verdict)} ${t("verdict.on", { gpu: other.gpu })}.`,
  ]);
  const isSaid = verdictSentence(fit) === fit.reason;
  const reason = isKnown && fit.reason && !isSaid && h("span", { class: "hint" }, ` ${said(fit.reason)}`);
  const sentence = [isKnown ? withFigure(fit) : said(verdictSentence(fit)), used, more, also, reason];
  const text = h("p", { class: "verdict-sentence", title: said(fit.reason) }, sentence);
  const line = h("p", { class: "verdict-line", title: fit.gpu }, card);
  return [verdictIcon(fit.verdict), h("div", { class: "verdict-text" }, line, text)];
}

/** The sentence, its amount telling its bytes. */
function withFigure(fit) {
  const amount = Math.abs(fit.headroom_bytes);
  const [before, after] = verdictSentence(fit).split(gib(amount));
  return after === undefined ? [verdictSentence(fit)] : [before, figure(amount), after];
}

/** Stays in sight while the form is used. */
export function createDock(onclick) {
  const icon = h("span", { class: "dock-icon" });
  const size = h("strong", { class: "dock-size" });
  const words = h("span", { class: "dock-words" });
  const arrow = h("span", { class: "dock-arrow", "aria-hidden": "true" }, "↓");
  const node = h("button", { type: "button", class: "dock", onclick, "data-testid": "dock" }, icon, size, words, arrow);
  return {
    node,
    render(estimate, [fit]) {
      node.hidden = !estimate;
      if (!estimate) return;
      setText(size, gib(estimate.allocated.expected));
      setText(words, fit ? `${verdictWord(fit.verdict)} ${t("verdict.on", { gpu: fit.gpu })}` : "");
      become(icon, ...(fit ? [verdictIcon(fit.verdict)] : []));
      node.className = `dock ${fit ? verdictClass(fit.verdict) : ""}`;
    },
  };
}
