// A beside B: what was pinned, what is asked now, and what the difference is made of.
import { categoryName, strata } from "./categories.js";
import { h, scrollBox } from "./dom.js";
import { figure, tellExactly } from "./exactly.js";
import { difference, gib } from "./format.js";
import { t } from "./messages.js";
import { said } from "./said.js";
import { createVariants } from "./variants.js";
import { verdictIcon, verdictWord } from "./verdict.js";

const button = (key, onclick, testId) =>
  h("button", { type: "button", class: "button small", onclick, "data-testid": testId }, t(key));

/** present() brings the comparison into view. */
export function createCompare({ schema, store, present }) {
  const body = h("div", { class: "stack" });
  const heading = h("h3", { id: "compare-heading" }, t("compare.label"));
  const attributes = {
    role: "group",
    class: "panel",
    tabindex: "-1",
    "aria-labelledby": "compare-heading",
    "data-testid": "compare",
  };
  // Beside the headline: the difference, or what pins.
  const chip = h("div", { class: "chip row", "data-testid": "delta" });
  const variants = createVariants({ schema, store });
  const node = h("section", attributes, heading, body, variants.node);
  function pin(values) {
    store.pin(values);
    chip.querySelector("button")?.focus();
  }
  /** The pinned job becomes the present one; `left` is what is pinned then. */
  function exchange(left) {
    const { pin: values, unknown, notes } = store.get();
    store.replace({ values, pin: left, unknown, notes }, { source: "swap" });
  }

  const pinButton = () => button("compare.pin", () => pin({ ...store.get().values }), "pin");
  function show() {
    present();
    node.focus({ preventScroll: true });
  }
  function drawChip(isPinned, a, b) {
    // A button that has the focus keeps it.
    const focused = chip.contains(document.activeElement);
    if (!isPinned && chip.firstChild?.dataset?.testid === "pin") return;
    const toView = button("view.compare", show, "to-compare");
    chip.replaceChildren(...(isPinned ? [deltaOf(a, b), toView] : [pinButton()]));
    if (focused) chip.querySelector("button").focus();
  }

  return {
    node,
    chip,
    /** Brings the comparison into view, for the keyboard too. */
    show,
    /** What stands beside the headline. a, b: responses; a is null when nothing is pinned. */
    renderChip({ pin: pinned }, a, b) {
      node.classList.toggle("is-pinned", Boolean(pinned));
      drawChip(Boolean(pinned), a, b);
    },
    render({ pin: pinned, values }, a, b) {
      variants.render(values, b);
      if (!pinned) return body.replaceChildren(h("p", { class: "hint" }, t("compare.hint")));
      const changes = changeList(changedOptions(schema, pinned, values));
      const result = a?.estimate && b?.estimate ? table(a, b) : h("p", { class: "problem" }, reasonOf(a));
      return body.replaceChildren(actions(store, pin, exchange), changes, result);
    },
  };
}

/** The class of a change for the better or the worse. */
export const directionOf = (before, after) => (after < before ? "is-less" : after > before ? "is-more" : "");

const actions = (store, pin, exchange) =>
  h(
    "div",
    { class: "row" },
    button("compare.unpin", () => pin(null), "unpin"),
    button("compare.swap", () => exchange(store.get().values), "swap"),
    button("compare.back", () => exchange(null), "back-to-a"),
  );

/** "A 60.61 GiB: −28.9 GiB", or nothing where either has no figure. */
function deltaOf(a, b) {
  if (!a?.estimate || !b?.estimate) return "";
  const [before, after] = [a, b].map(({ estimate }) => estimate.allocated.expected);
  const change = h("strong", { class: directionOf(before, after) }, difference(after - before));
  const words = h("span", { class: "nowrap" }, t("compare.from", { size: gib(before) }), " ", change);
  return tellExactly(words, after - before);
}

function changeList(changes) {
  if (changes.length === 0) return h("p", { class: "hint" }, t("compare.same"));
  const line = ({ label, before, after }) =>
    h(
      "li",
      {},
      h("span", {}, `${label} `),
      h("span", { class: "code before" }, before),
      " → ",
      h("span", { class: "code after" }, after),
    );
  return h("div", {}, h("h4", {}, t("compare.changes")), h("ul", { class: "changes" }, changes.map(line)));
}

/** Why there is nothing to compare. */
function reasonOf(a) {
  if (a?.estimate) return t("result.none");
  return t("compare.failedA", { reason: said(a?.issues?.find((issue) => issue.severity === "error")?.message ?? "") });
}

function table(a, b) {
  const columns = ["compare.a", "compare.b", "compare.difference"];
  const column = (key) => h("th", { scope: "col", class: "number" }, t(key));
  const head = h("thead", {}, h("tr", {}, h("td", {}), columns.map(column)));
  const rows = h("tbody", {}, verdictRow(a.fits[0], b.fits[0]), totalRows(a, b), categoryRows(a, b));
  return scrollBox(t("compare.label"), h("table", { class: "grid compare-table" }, head, rows));
}

function verdictRow(a, b) {
  if (!a && !b) return null;
  const words = (fit) => (fit ? [verdictIcon(fit.verdict, "row-icon"), " ", verdictWord(fit.verdict)] : "–");
  const cell = (fit) => h("td", { class: "number" }, words(fit));
  return h("tr", {}, h("th", { scope: "row" }, t("compare.verdict")), cell(a), cell(b), h("td", { class: "number" }));
}

function sizeRow(name, before, after, className, category) {
  const direction = directionOf(before, after);
  const cell = (bytes) => h("td", { class: "number" }, figure(bytes, { focusable: false }));
  const change = h("td", { class: `number ${direction}` }, difference(after - before));
  const heading = h("th", { scope: "row" }, name);
  return h(
    "tr",
    { class: className, "data-category": category },
    heading,
    cell(before),
    cell(after),
    tellExactly(change, after - before),
  );
}

function totalRows(a, b) {
  const row = (key) => {
    const className = key === "allocated" ? "total-row" : undefined;
    return sizeRow(t(`result.${key}`), a.estimate[key].expected, b.estimate[key].expected, className);
  };
  return ["allocated", "reserved", "device"].map(row);
}

/** Of all that either has. */
function categoryRows(a, b) {
  const bytesOf = ({ estimate }) => new Map(estimate.breakdown.map(({ category, bytes }) => [category, bytes]));
  const [before, after] = [bytesOf(a), bytesOf(b)];
  return strata([...before.keys(), ...after.keys()])
    .map((category) => [category, before.get(category) ?? 0, after.get(category) ?? 0])
    .filter(([, was, is]) => was !== 0 || is !== 0)
    .map(([category, was, is]) => sizeRow(categoryName(category), was, is, "part-row", category));
}

/** The options in which two sets of values differ. */
export function changedOptions(schema, a, b) {
  const show = (option, value) => {
    const used = value === undefined ? option.default : value;
    const text =
      used === null || used === undefined
        ? t("form.none")
        : option.type === "object"
          ? (used.model_type ?? "{…}")
          : schema.print(option.name, used) || t("form.none");
    return text.length > 48 ? `${text.slice(0, 48)}…` : text;
  };
  return schema.options
    .filter((option) => JSON.stringify(a[option.name]) !== JSON.stringify(b[option.name]))
    .map((option) => ({
      name: option.name,
      label: option.label,
      before: show(option, a[option.name]),
      after: show(option, b[option.name]),
    }));
}

export const differenceInWords = (a, b) => `${difference(b - a)} (${gib(a)} → ${gib(b)})`;
