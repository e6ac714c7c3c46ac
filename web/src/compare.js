// A beside B: what was pinned, what is asked now, and what the difference is made of.
import { categoryName, strata } from "./categories.js";
import { figure, tellExactly } from "./exactly.js";
import { h, scrollBox } from "./dom.js";
import { difference, gib } from "./format.js";
import { labelOf } from "./form.js";
import { t } from "./messages.js";
import { verdictIcon, verdictWord } from "./verdict.js";

export function createCompare({ schema, store }) {
  const body = h("div", { class: "stack" });
  const node = h("section", { class: "panel", tabindex: "-1", "aria-labelledby": "compare-heading", "data-testid": "compare" }, h("h3", { id: "compare-heading" }, t("compare.label")), body);
  const button = (key, onclick, testId) => h("button", { type: "button", class: "button small", onclick, "data-testid": testId }, t(key));

  const pin = () => {
    store.pin({ ...store.get().values });
    node.querySelector("button")?.focus();
  };
  const unpin = () => {
    store.pin(null);
    node.querySelector("button")?.focus();
  };
  const swap = () => {
    const { values, pin: pinned, unknown, notes } = store.get();
    store.replace({ values: pinned, pin: values, unknown, notes }, { source: "swap" });
  };
  const back = () => {
    const { pin: pinned, unknown, notes } = store.get();
    store.replace({ values: pinned, pin: null, unknown, notes }, { source: "swap" });
  };

  return {
    node,
    /** Brings the comparison into view, for the keyboard too. */
    show() {
      node.scrollIntoView({ block: "start" });
      node.focus({ preventScroll: true });
    },
    /** a, b: responses; a is null when nothing is pinned. */
    render(state, a, b) {
      node.classList.toggle("is-pinned", Boolean(state.pin));
      if (!state.pin) {
        body.replaceChildren(h("div", { class: "row" }, button("compare.pin", pin, "pin"), h("p", { class: "hint" }, t("compare.hint"))));
        return;
      }
      const buttons = h("div", { class: "row" }, button("compare.unpin", unpin, "unpin"), button("compare.swap", swap, "swap"), button("compare.back", back, "back-to-a"));
      const changes = changedOptions(schema, state.pin, state.values);
      const list = changes.length === 0 ? h("p", { class: "hint" }, t("compare.same"))
        : h("div", {}, h("h4", {}, t("compare.changes")), h("ul", { class: "changes" }, changes.map((change) =>
          h("li", {}, h("span", {}, `${change.label} `), h("span", { class: "code before" }, change.before), " → ", h("span", { class: "code after" }, change.after)))));
      if (!a?.estimate || !b?.estimate) {
        const reason = a?.estimate ? t("result.none") : t("compare.failedA", { reason: a?.issues?.find((issue) => issue.severity === "error")?.message ?? "" });
        body.replaceChildren(buttons, list, h("p", { class: "problem" }, reason));
        return;
      }
      const rows = [];
      const line = (name, before, after, className) => rows.push(h("tr", { class: className }, h("th", { scope: "row" }, name), h("td", { class: "number" }, figure(before, { focusable: false })), h("td", { class: "number" }, figure(after, { focusable: false })),
        tellExactly(h("td", { class: `number ${after < before ? "is-less" : after > before ? "is-more" : ""}` }, difference(after - before)), after - before)));
      for (const key of ["allocated", "reserved", "device"]) line(t(`result.${key}`), a.estimate[key].expected, b.estimate[key].expected, key === "allocated" ? "total-row" : undefined);
      const bytesOf = (response) => new Map(response.estimate.breakdown.map((group) => [group.category, group.bytes]));
      const before = bytesOf(a);
      const after = bytesOf(b);
      for (const category of strata([...before.keys(), ...after.keys()])) {
        const was = before.get(category) ?? 0;
        const is = after.get(category) ?? 0;
        if (was !== 0 || is !== 0) line(categoryName(category), was, is, "part-row");
      }
      const verdictCell = (response) => h("td", { class: "number" }, response.fits[0] ? [verdictIcon(response.fits[0].verdict, "row-icon"), " ", verdictWord(response.fits[0].verdict)] : "–");
      const verdicts = a.fits[0] || b.fits[0] ? h("tr", {}, h("th", { scope: "row" }, t("compare.verdict")), verdictCell(a), verdictCell(b),
        h("td", { class: "number" }, a.fits[0] && b.fits[0] && a.fits[0].gpu === b.fits[0].gpu ? "" : "")) : null;
      body.replaceChildren(buttons, list, scrollBox(t("compare.label"), h("table", { class: "grid compare-table" },
        h("thead", {}, h("tr", {}, h("td", {}), ["compare.a", "compare.b", "compare.difference"].map((key) => h("th", { scope: "col", class: "number" }, t(key))))),
        h("tbody", {}, verdicts, rows))));
    },
  };
}

/** The options in which two sets of values differ. */
export function changedOptions(schema, a, b) {
  const show = (option, value) => {
    const used = value === undefined ? option.default : value;
    const text = used === null || used === undefined ? t("form.none") : option.type === "object" ? (used.model_type ?? "{…}") : schema.print(option.name, used) || t("form.none");
    return text.length > 48 ? `${text.slice(0, 48)}…` : text;
  };
  return schema.options.filter((option) => JSON.stringify(a[option.name]) !== JSON.stringify(b[option.name]))
    .map((option) => ({ name: option.name, label: labelOf(option, schema), before: show(option, a[option.name]), after: show(option, b[option.name]) }));
}

export const differenceInWords = (a, b) => `${difference(b - a)} (${gib(a)} → ${gib(b)})`;
