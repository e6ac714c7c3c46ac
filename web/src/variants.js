// Further variants of a job, beside the pair that is compared.
import { changedOptions, directionOf } from "./compare.js";
import { h, scrollBox } from "./dom.js";
import { figure } from "./exactly.js";
import { difference } from "./format.js";
import { t } from "./messages.js";
import { saveText } from "./savePage.js";
import { verdictIcon, verdictWord } from "./verdict.js";

const button = (key, onclick, testid, name = undefined) => {
  const attributes = { type: "button", class: "button small", "data-testid": testid, "aria-label": name, onclick };
  return h("button", attributes, t(key));
};

/** Jobs that were kept, a line each with how they differ from the first one; for as long as the page is open. */
export function createVariants({ schema, store }) {
  const kept = [];
  let now = null;
  const box = h("div");
  const save = button("compare.csv", () => saveText("tidemark.csv", csvOf(rowsOf(), schema), "text/csv"), "csv");
  const keep = button("compare.keep", () => now && change(() => kept.push({ ...now })), "keep");
  const node = h("div", { class: "stack", "data-testid": "variants" }, h("div", { class: "row" }, keep, save), box);

  /** The kept ones, and the present one if it is none of them. */
  function rowsOf() {
    const same = ({ values }) => JSON.stringify(values) === JSON.stringify(now?.values);
    return now && !kept.some(same) ? [...kept, now] : kept;
  }
  function change(how) {
    how();
    draw();
  }
  function draw() {
    const rows = rowsOf();
    save.hidden = kept.length === 0;
    if (kept.length === 0) return box.replaceChildren();
    const actionsOf = (one, at) => {
      const name = wordsOf(schema, rows[0], one);
      const use = () => store.replace({ values: one.values, pin: store.get().pin }, { source: "variant" });
      const drop = () => change(() => kept.splice(at, 1));
      if (at >= kept.length) return [name, t("advice.now")];
      const first = button("compare.use", use, "use-variant", `${t("compare.use")}: ${name}`);
      return [name, [first, " ", button("compare.drop", drop, "drop-variant", `${t("compare.drop")}: ${name}`)]];
    };
    const lineOf = (one, at) => rowOf(one, rows[0], one.values === now?.values, ...actionsOf(one, at));
    const columns = ["compare.variant", "result.headline", "compare.toFirst", "compare.verdict", "advice.action"];
    const column = (key, at) => h("th", { scope: "col", class: at === 1 || at === 2 ? "number" : undefined }, t(key));
    const head = h("thead", {}, h("tr", {}, columns.map(column)));
    const grid = h("table", { class: "grid" }, head, h("tbody", {}, rows.map(lineOf)));
    return box.replaceChildren(scrollBox(t("compare.variants"), grid));
  }
  draw();
  return {
    node,
    render(values, { estimate, fits = [] }) {
      now = estimate ? { values, model: estimate.model, ...estimate.allocated, fit: fits[0] } : null;
      keep.disabled = !now;
      draw();
    },
  };
}

function rowOf(one, first, isNow, name, actions) {
  const number = (className, words) => h("td", { class: `number ${className}` }, words);
  return h(
    "tr",
    { class: isNow ? "is-chosen" : undefined },
    h("th", { scope: "row" }, name),
    number("", figure(one.expected, { focusable: false })),
    number(directionOf(first.expected, one.expected), difference(one.expected - first.expected)),
    h("td", {}, one.fit ? [verdictIcon(one.fit.verdict, "row-icon"), " ", verdictWord(one.fit.verdict)] : "–"),
    h("td", { class: "nowrap" }, actions),
  );
}

/** The first one by its model, the others by what they have changed. */
function wordsOf(schema, first, one) {
  const changes = changedOptions(schema, first.values, one.values).map(({ label, after }) => `${label} ${after}`);
  return changes.length === 0 ? one.model : changes.join(", ");
}

/** Lines of a spreadsheet: the figures in bytes. */
export function csvOf(rows, schema) {
  const cell = (value) => (/[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  const names = schema.options
    .map(({ name }) => name)
    .filter((name) => rows.some(({ values }) => values[name] !== undefined));
  const head = [...names, "low_bytes", "expected_bytes", "high_bytes", "card", "usable_bytes", "verdict"];
  const lines = rows.map(({ values, low, expected, high, fit }) => [
    ...names.map((name) => schema.print(name, values[name])),
    ...[low, expected, high, fit?.gpu ?? "", fit?.usable_bytes ?? "", fit?.verdict ?? ""],
  ]);
  return [head, ...lines].map((line) => `${line.map(cell).join(",")}\r\n`).join("");
}
