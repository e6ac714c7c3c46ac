// The answer itself: the headline, the verdict, the three ways to count, what the engine notes.
import { figure } from "./exactly.js";
import { h, setText } from "./dom.js";
import { count, gb, gib, inGib, percent } from "./format.js";
import { phaseName } from "./categories.js";
import { t } from "./messages.js";
import { labelOf } from "./form.js";
import { verdictClass, verdictIcon, verdictSentence, verdictWord } from "./verdict.js";

export function createHeadline() {
  const node = h("section", { class: "headline", "aria-labelledby": "headline-heading", "data-testid": "headline" });
  const heading = h("h2", { id: "headline-heading", class: "eyebrow" }, t("result.headline"));
  return {
    node,
    render(estimate) {
      const { allocated, reserved, device } = estimate;
      const big = figure(allocated.expected, { text: inGib(allocated.expected), className: "figure big" });
      const reading = (key, bytes) => h("div", { class: "reading" },
        h("dt", {}, t(`result.${key}`)), h("dd", {}, figure(bytes)), h("dd", { class: "hint" }, t(`result.${key}Help`)));
      const { recipe, parameters } = estimate;
      node.replaceChildren(
        heading,
        h("p", { class: "reading-main" }, big, h("span", { class: "big-unit" }, " GiB"),
          h("span", { class: "reading-side" }, h("span", { class: "nowrap" }, gb(allocated.expected)), " ",
            h("span", { class: "range" }, t("result.range", { low: gib(allocated.low), high: gib(allocated.high) })))),
        h("p", { class: "reading-where" }, t("result.for", { model: estimate.model, parameters: count(parameters.total), trainable: count(parameters.trainable) }), ". ",
          t("result.peakAt", { phase: phaseName(estimate.peak.phase), at: estimate.peak.at }), "."),
        h("dl", { class: "readings" }, reading("allocated", allocated.expected), reading("reserved", reserved.expected), reading("device", device.expected), reading("first", estimate.first_step_allocated)),
        h("p", { class: "hint recipe" }, t("result.recipe", { name: recipe.name, weights: recipe.weights, gradients: recipe.gradients, master: recipe.master_weights, states: recipe.optimizer_states, autocast: recipe.autocast })));
    },
    /** What can be said of a model that is not modelled: count × bytes. */
    renderPartial(partial) {
      const total = partial.weights + partial.gradients + partial.optimizer_states;
      node.replaceChildren(h("h2", { id: "headline-heading", class: "eyebrow" }, t("result.partial", { model: partial.model })),
        h("p", { class: "reading-main" }, h("span", { class: "big-unit" }, "≥ "), figure(total, { text: inGib(total), className: "figure big" }), h("span", { class: "big-unit" }, " GiB"),
          h("span", { class: "reading-side" }, gb(total))),
        h("p", { class: "reading-where" }, partial.note || t("result.partialNote")),
        h("dl", { class: "readings" }, ["weights", "gradients", "optimizer_states"].map((key) => h("div", { class: "reading" }, h("dt", {}, t(`category.${key}`)), h("dd", {}, figure(partial[key]))))));
    },
    renderNothing() {
      node.replaceChildren(heading, h("p", { class: "reading-where" }, t("result.none")));
    },
  };
}

export function createVerdict() {
  const node = h("section", { class: "verdict", "aria-label": t("compare.verdict"), "data-testid": "verdict" });
  return {
    node,
    render(fits) {
      if (fits.length === 0) {
        node.className = "verdict is-none";
        node.replaceChildren(verdictIcon("unknown"), h("p", { class: "verdict-text" }, t("verdict.noCard")));
        return;
      }
      node.className = `verdict ${verdictClass(fits[0].verdict)}`;
      node.replaceChildren(...fits.flatMap((fit) => [
        verdictIcon(fit.verdict),
        h("div", { class: "verdict-text" },
          h("p", { class: "verdict-line" }, h("strong", {}, verdictWord(fit.verdict)), " ", t("verdict.on", { gpu: fit.gpu }),
            fit.utilization > 0 && h("span", { class: "verdict-used" }, t("verdict.used", { percent: percent(fit.utilization) }))),
          h("p", {}, fit.usable_bytes > 0 ? withFigure(fit) : verdictSentence(fit)),
          fit.usable_bytes > 0 && fit.reason && h("p", { class: "hint" }, fit.reason)),
      ]));
    },
  };
}

function withFigure(fit) {
  const amount = figure(Math.abs(fit.headroom_bytes));
  const [before, after] = verdictSentence(fit).split(gib(Math.abs(fit.headroom_bytes)));
  return after === undefined ? [verdictSentence(fit)] : [before, amount, after];
}

// Issues whose suggestion is a value for the option that they point at.
const takeable = new Set(["INVALID_VALUE", "UNKNOWN_MODEL", "UNKNOWN_GPU", "UNSUPPORTED_OPTION"]);

/** Errors, warnings and notes, each with a way to the option that it speaks of. */
export function createIssues({ schema, store, focusOption }) {
  const list = h("ul", { class: "issues" });
  const stale = h("p", { class: "hint", hidden: true }, t("result.stale"));
  const node = h("section", { class: "issues-box", "aria-label": t("issues.label"), "data-testid": "issues", hidden: true }, list, stale);
  return {
    node,
    render(issues, notes, isStale) {
      const rows = issues.map((issue) => {
        const severity = ["error", "warning", "note"].includes(issue.severity) ? issue.severity : "note";
        const name = schema.optionAt(issue.path);
        const option = name && schema.find(name);
        const way = option && h("button", { type: "button", class: "link", onclick: () => focusOption(name) }, t("issues.goto", { name: labelOf(option, schema) }));
        const usable = issue.suggestion && option && takeable.has(issue.code) && ["choice", "integer", "number", "string", "gpu", "boolean"].includes(option.type);
        const use = usable && h("button", { type: "button", class: "link", onclick: () => store.set({ [name]: schema.parse(name, issue.suggestion) }) }, t("issues.use", { value: issue.suggestion }));
        const advice = issue.suggestion && !usable && severity !== "note" ? h("span", { class: "issue-suggestion" }, issue.suggestion) : null;
        return item(severity, issue.message, [use, way, advice]);
      });
      for (const note of notes) {
        const key = { unknown: "issues.unknownKey", newer: "issues.newer", repeated: "issues.repeated" }[note.code];
        rows.push(item("warning", t(key, { key: note.key.slice(0, 60) }), note.code === "unknown" ? [h("button", { type: "button", class: "link", onclick: () => store.dropUnknown() }, t("issues.forget"))] : []));
      }
      list.replaceChildren(...rows);
      stale.hidden = !isStale;
      node.hidden = rows.length === 0;
    },
  };
}

function item(severity, message, actions) {
  const shown = actions.filter(Boolean);
  return h("li", { class: `issue is-${severity}` }, h("span", { class: "issue-kind" }, t(`issues.${severity}`)), h("span", { class: "issue-text" }, message, shown.map((action) => [" ", action])));
}

/** The result in a line, for narrow screens: it stays in sight while the form is used. */
export function createDock(onclick) {
  const icon = h("span", { class: "dock-icon" });
  const size = h("strong", { class: "dock-size" });
  const words = h("span", { class: "dock-words" });
  const node = h("button", { type: "button", class: "dock", onclick, "data-testid": "dock" }, icon, size, words, h("span", { class: "dock-arrow", "aria-hidden": "true" }, "↓"));
  return {
    node,
    render(estimate, fits) {
      node.hidden = !estimate;
      if (!estimate) return;
      setText(size, gib(estimate.allocated.expected));
      setText(words, fits[0] ? `${verdictWord(fits[0].verdict)} ${t("verdict.on", { gpu: fits[0].gpu })}` : "");
      icon.replaceChildren(fits[0] ? verdictIcon(fits[0].verdict) : "");
      node.className = `dock ${fits[0] ? verdictClass(fits[0].verdict) : ""}`;
    },
  };
}
