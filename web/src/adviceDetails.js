// The advice's table: how far each quantity goes on the card. It takes dozens of estimates, so it is asked for when it is unfolded.
import { h, scrollBox, setText } from "./dom.js";
import { figure } from "./exactly.js";
import { gib, grouped } from "./format.js";
import { t } from "./messages.js";
import { said } from "./said.js";
import { mergePatch } from "./schema.js";

/** apply(change) as advice.js has it: {patch, what, before, after}. */
export function createAdviceDetails({ schema, apply }) {
  const working = () => h("p", { class: "hint" }, t("advice.working"));
  const summary = h("summary");
  const body = h("div", { class: "stack" }, working());
  const attributes = { class: "more", hidden: true, "data-testid": "advice-frontiers", ontoggle: refresh };
  const node = h("details", attributes, summary, body);
  let drawn = null;

  const table = (label, columns, rows) =>
    scrollBox(
      label,
      h(
        "table",
        { class: "grid" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            columns.map(([key, number]) =>
              h(
                "th",
                { scope: "col", class: number ? "number" : undefined },
                key === "advice.action" ? h("span", { class: "unseen" }, t(key)) : t(key),
              ),
            ),
          ),
        ),
        h("tbody", {}, rows),
      ),
    );
  const number = (...content) => h("td", { class: "number" }, content);
  const button = (words, what, onclick) =>
    h("button", { type: "button", class: "button small", "aria-label": what, onclick }, words);

  function drawFrontiers(report) {
    const usable = gib(Math.max(0, report.now.fit.usable_bytes));
    body.replaceChildren(
      h("p", { class: "hint" }, t("advice.rule", { usable })),
      table(
        summary.textContent,
        [
          ["advice.quantity"],
          ["advice.now", true],
          ["advice.largest", true],
          ["advice.peakThere", true],
          ["advice.oneMore", true],
          ["advice.action", true],
        ],
        report.frontiers.map((row) => frontierRow(row, report)),
      ),
    );
  }

  /** How far one quantity goes. */
  function frontierRow(row, { combination, now, subject }) {
    // A job that does not fit goes nowhere: the rows are then about the job with the combination's changes.
    const changed = subject === "combination";
    const { label } = schema.find(row.option);
    const what = `${label} ${grouped(row.largest)}`;
    const size = (range) => (range ? figure(range.expected, { focusable: false }) : "–");
    const largest = row.largest === 0 ? t("advice.none") : `${row.open ? "≥\u202f" : ""}${grouped(row.largest)}`;
    const use = t("advice.use", { value: grouped(row.largest) });
    const change = () => ({
      patch: mergePatch(changed ? combination.patch : {}, patchOf(row.option, row.largest)),
      what: changed ? [...combination.steps.map((step) => said(step.title)), what].join(", ") : what,
      before: now.allocated.expected,
      after: row.allocated.expected,
    });
    const spoken = `${use}: ${changed ? t("advice.withChanges", { what: label }) : label}`;
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, label),
      number(grouped(row.current)),
      number(h("strong", {}, largest)),
      number(size(row.allocated)),
      number(row.largest > 0 && row.ends_with_model ? t("advice.ends") : size(row.next_allocated)),
      number(row.largest > 0 && row.largest !== row.current && button(use, spoken, () => apply(change()))),
    );
  }

  let report = null;
  let ask = null;

  async function refresh() {
    if (!report || !node.open || drawn === report) return;
    const mine = report;
    const full = await ask({ frontiers: true });
    if (!full?.now || mine !== report) return;
    drawFrontiers(full);
    body.removeAttribute("aria-busy");
    body.inert = false;
    drawn = mine;
  }

  return {
    nodes: [node],
    /** report: the advice without its table; ask({frontiers}) promises it with that. */
    render(next, asker) {
      report = next;
      ask = asker;
      setText(summary, t(report.subject === "combination" ? "advice.frontiersChanged" : "advice.frontiers"));
      node.hidden = false;
      // What stands there is about another job: it stays, dimmed, only where it will be replaced at once.
      if (node.open) body.setAttribute("aria-busy", "true");
      else body.replaceChildren(working());
      body.inert = true;
      refresh();
    },
  };
}

/** "adapter.r" and 8 as a merge patch: {adapter: {r: 8}}. */
function patchOf(option, value) {
  return option.split(".").reduceRight((inner, key) => ({ [key]: inner }), value);
}
