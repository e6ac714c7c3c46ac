// The fit map as a table of its powers of two, for whoever does not read the picture. Each cell can be adopted.
import { h } from "./dom.js";
import { exact, gib, grouped } from "./format.js";
import { batches, cells, sequences, verdictOf } from "./mapSizes.js";
import { t } from "./messages.js";

const powers = (sizes) => sizes.flatMap((size, at) => (Number.isInteger(Math.log2(size)) ? [at] : []));
const classes = { fits: "is-water", tight: "is-tight", over: "is-land" };

/** words(batch, sequence, bytes) says a cell; adopt(batch, sequence) makes it the job. */
export function mapTable({ model, bytes, words, adopt }) {
  const columns = powers(sequences);
  const head = h(
    "tr",
    {},
    h("th", { scope: "col" }, `${t("map.batch")} \\ ${t("map.sequence")}`),
    columns.map((column) => h("th", { scope: "col", class: "number" }, grouped(sequences[column]))),
  );

  function cell(row, column) {
    const [batch, sequence, value] = [batches[row], sequences[column], bytes[row * cells + column]];
    const verdict = model.usable ? verdictOf(model, value) : null;
    const label = `${words(batch, sequence, value)}. ${t("map.adopt", { batch, sequence })}`;
    const content = [
      gib(value).replace(" GiB", ""),
      verdict === "over" && h("span", { "aria-hidden": "true" }, " ×"),
      verdict === "tight" && h("span", { "aria-hidden": "true" }, " *"),
    ];
    const attributes = { type: "button", class: "cell", "data-exactly": exact(value), "aria-label": label };
    const button = h("button", { ...attributes, onclick: () => adopt(batch, sequence) }, content);
    return h("td", { class: `number ${classes[verdict] ?? ""}` }, Number.isNaN(value) ? "–" : button);
  }

  const rows = powers(batches).map((row) =>
    h(
      "tr",
      {},
      h("th", { scope: "row", class: "number" }, batches[row]),
      columns.map((column) => cell(row, column)),
    ),
  );
  const caption = h("caption", { class: "unseen" }, t("map.label"));
  return h("table", { class: "grid map-table" }, caption, h("thead", {}, head), h("tbody", {}, rows));
}
