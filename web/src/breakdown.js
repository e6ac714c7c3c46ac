// Where it comes from: a table whose rows open to formula, numbers, source and confidence.
import { categoryClass, categoryName, strata } from "./categories.js";
import { h, setText } from "./dom.js";
import { exact, gib, percent } from "./format.js";
import { tellExactly } from "./exactly.js";
import { t, tOr } from "./messages.js";

const negligible = 0.002;

export function createBreakdown() {
  const body = h("tbody");
  const foot = h("tfoot");
  const hint = h("p", { class: "hint", "data-testid": "breakdown-at" });
  const node = h(
    "section",
    { role: "group", class: "panel", "aria-labelledby": "breakdown-heading", "data-testid": "breakdown" },
    h("h3", { id: "breakdown-heading" }, t("breakdown.label")),
    hint,
    h(
      "table",
      { class: "grid breakdown" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, t("breakdown.part")),
          h("th", { scope: "col", class: "number" }, t("breakdown.size")),
          h("th", { scope: "col", class: "number share" }, t("breakdown.share")),
        ),
      ),
      body,
      foot,
    ),
  );
  const open = new Set();
  let latest = null;

  function toggle(key, focusKey) {
    if (open.has(key)) open.delete(key);
    else open.add(key);
    draw();
    for (const button of body.querySelectorAll("button")) if (button.dataset.key === focusKey) button.focus();
  }

  function row(key, className, name, bytes, total, extra) {
    return h(
      "tr",
      { class: className, "data-category": key.split("/")[0] },
      h(
        "th",
        { scope: "row" },
        tellExactly(
          h(
            "button",
            {
              type: "button",
              class: "opener",
              "aria-expanded": String(open.has(key)),
              "data-key": key,
              onclick: () => toggle(key, key),
            },
            h("span", { class: "chevron", "aria-hidden": "true" }),
            extra,
            h("span", { class: "opener-name" }, name),
          ),
          bytes,
        ),
      ),
      tellExactly(h("td", { class: "number" }, gib(bytes)), bytes),
      shareCell(bytes, total),
    );
  }

  /** Another instant than the peak: its categories, of which no items are known. */
  function drawInstant({ name, bytes, total }) {
    const back = h("button", { type: "button", class: "link", onclick: () => showAt(null) }, t("timeline.toPeak"));
    hint.replaceChildren(t("breakdown.at", { instant: name }), " ", back);
    const rowOf = (category) =>
      h(
        "tr",
        { class: "group-row", "data-category": category },
        h("th", { scope: "row" }, swatchOf(category), " ", categoryName(category)),
        tellExactly(h("td", { class: "number" }, gib(bytes[category])), bytes[category]),
        shareCell(bytes[category], total),
      );
    const present = strata(Object.keys(bytes)).filter((category) => bytes[category] > 0);
    body.replaceChildren(...present.map(rowOf));
    drawTotal(t("breakdown.totalAt"), total);
  }

  function showAt(instant) {
    if (instant) drawInstant(instant);
    else draw();
  }

  function draw() {
    const { breakdown, total } = latest;
    setText(hint, t("breakdown.hint"));
    const rows = [];
    for (const group of breakdown) {
      if (group.bytes === 0) continue;
      rows.push(
        row(group.category, "group-row", categoryName(group.category), group.bytes, total, swatchOf(group.category)),
      );
      if (!open.has(group.category)) continue;
      const restKey = `${group.category}/…`;
      const entries = [...group.entries].sort((a, b) => b.bytes - a.bytes);
      const large = entries.filter((entry) => entry.bytes >= total * negligible);
      const shown = open.has(restKey) || entries.length - large.length < 3 ? entries : large;
      const seen = new Map();
      shown.forEach((entry) => {
        // Open rows stay open while the job changes: an entry is known by its name, and by which of that name it is.
        const nth = (seen.get(entry.name) ?? 0) + 1;
        seen.set(entry.name, nth);
        const key = `${group.category}/${entry.name}/${nth}`;
        rows.push(row(key, "entry-row", entry.name, entry.bytes, total));
        if (open.has(key)) rows.push(detailRow(entry));
      });
      if (entries.length - large.length >= 3) {
        const rest = entries.slice(large.length);
        rows.push(
          row(
            restKey,
            "entry-row rest-row",
            t("breakdown.smaller", { count: rest.length }),
            rest.reduce((sum, entry) => sum + entry.bytes, 0),
            total,
          ),
        );
      }
    }
    body.replaceChildren(...rows);
    drawTotal(t("breakdown.total"), total);
  }

  function drawTotal(name, total) {
    const size = tellExactly(h("td", { class: "number" }, gib(total)), total);
    foot.replaceChildren(h("tr", {}, h("th", { scope: "row" }, name), size, h("td", { class: "number share" })));
  }

  return {
    node,
    /** Shows an instant of the step, or the peak: null. */
    showAt,
    /** @param {import("../../wasm/tidemark.js").Estimate} estimate */
    render(estimate) {
      latest = { breakdown: estimate.breakdown, total: estimate.allocated.expected };
      // Live updates must not steal the focus of an open row.
      const focused = body.contains(document.activeElement) ? document.activeElement.getAttribute("data-key") : null;
      draw();
      if (focused)
        for (const button of body.querySelectorAll("button"))
          if (button.dataset.key === focused) button.focus({ preventScroll: true });
    },
  };
}

const swatchOf = (category) => h("span", { class: `swatch ${categoryClass(category)}`, "aria-hidden": "true" });

function shareCell(bytes, total) {
  const ratio = total > 0 ? bytes / total : 0;
  const meter = h("span", { class: "share-bar", "aria-hidden": "true" });
  meter.style.setProperty("--share", String(Math.min(1, ratio)));
  return h("td", { class: "number share" }, meter, h("span", { class: "share-text" }, percent(ratio)));
}

function detailRow(entry) {
  const line = (key, value, className) => (value ? [h("dt", {}, t(key)), h("dd", { class: className }, value)] : []);
  return h(
    "tr",
    { class: "detail-row" },
    h(
      "td",
      { colspan: "3" },
      h(
        "dl",
        { class: "derivation" },
        line("breakdown.formula", entry.formula, "code"),
        line("breakdown.substituted", `${entry.substituted} = ${exact(entry.bytes)}`, "code"),
        line("breakdown.source", entry.source, "code"),
        line(
          "breakdown.confidence",
          tOr(`breakdown.${entry.confidence}`, entry.confidence),
          `confidence is-${entry.confidence}`,
        ),
      ),
    ),
  );
}
