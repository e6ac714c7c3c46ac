// The advice's tables: how far each quantity goes on the card, the micro-batch by size of card, and the modes by budget. Each takes dozens of
// estimates, so it is asked for when it is unfolded.
import { h, scrollBox, setText } from "./dom.js";
import { figure } from "./exactly.js";
import { gib, grouped, percent } from "./format.js";
import { t, tOr } from "./messages.js";
import { mergePatch } from "./schema.js";
import { verdictIcon, verdictWord } from "./verdict.js";

/** apply(change) as advice.js has it: {patch, what, before, after}. */
export function createAdviceDetails({ schema, apply }) {
  const fold = (testid) => {
    const summary = h("summary");
    const body = h("div", { class: "stack" }, h("p", { class: "hint" }, t("advice.working")));
    return {
      summary,
      body,
      node: h("details", { class: "more", hidden: true, "data-testid": testid, ontoggle: refresh }, summary, body),
      drawn: null,
    };
  };
  const frontiers = fold("advice-frontiers");
  const tiers = fold("advice-tiers");
  const modes = fold("advice-modes");

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
    frontiers.body.replaceChildren(
      table(
        frontiers.summary.textContent,
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
      what: changed ? [...combination.steps.map((step) => step.title), what].join(", ") : what,
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

  function drawTiers(report) {
    tiers.body.replaceChildren(
      h("p", { class: "hint" }, t("advice.tiersHint")),
      table(
        tiers.summary.textContent,
        [["advice.tier"], ["advice.tierBatch", true], ["advice.peakThere", true], ["advice.preset", true]],
        report.tiers.map((tier) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, `${tier.vram_gb} GB`),
            number(h("strong", {}, tier.micro_batch_size === 0 ? t("advice.none") : grouped(tier.micro_batch_size))),
            number(tier.allocated ? figure(tier.allocated.expected, { focusable: false }) : "–"),
            number(grouped(tier.preset)),
          ),
        ),
      ),
    );
  }

  function drawModes({ modes: found, now }) {
    const name = (mode) => tOr(`advice.mode.${mode}`, mode);
    modes.body.replaceChildren(
      h(
        "p",
        { class: "hint" },
        t(found.recommended_fits ? "advice.modesFit" : "advice.modesFail", {
          size: gib(found.unoptimised.expected),
          ratio: percent(found.ratio),
          mode: name(found.recommended),
        }),
      ),
      table(
        modes.summary.textContent,
        [["advice.modeName"], ["advice.peak", true], ["advice.techniques"], ["advice.action", true]],
        found.modes.map((mode) =>
          h(
            "tr",
            { class: mode.mode === found.recommended ? "is-chosen" : undefined },
            h(
              "th",
              { scope: "row" },
              verdictIcon(mode.fit.verdict, "row-icon"),
              h("span", { class: "unseen" }, `${verdictWord(mode.fit.verdict)}: `),
              ` ${name(mode.mode)}`,
            ),
            number(figure(mode.allocated.expected, { focusable: false })),
            h("td", { class: "techniques" }, mode.techniques),
            number(
              Object.keys(mode.patch).length > 0 &&
                mode.allocated.expected !== now.allocated.expected &&
                button(t("advice.apply"), `${t("advice.apply")}: ${name(mode.mode)}`, () =>
                  apply({
                    patch: mode.patch,
                    what: name(mode.mode),
                    before: now.allocated.expected,
                    after: mode.allocated.expected,
                  }),
                ),
            ),
          ),
        ),
      ),
    );
  }

  const folds = [
    { fold: frontiers, name: "frontiers", draw: drawFrontiers },
    { fold: tiers, name: "tiers", draw: drawTiers },
    { fold: modes, name: "modes", draw: drawModes },
  ];
  let report = null;
  let ask = null;

  async function refresh() {
    const due = folds.filter(({ fold }) => fold.node.open && fold.drawn !== report);
    if (!report || due.length === 0) return;
    const mine = report;
    const full = await ask(Object.fromEntries(due.map(({ name }) => [name, true])));
    if (!full?.now || mine !== report) return;
    for (const { fold, draw } of due) {
      draw(full);
      fold.body.removeAttribute("aria-busy");
      fold.body.inert = false;
      fold.drawn = mine;
    }
  }

  return {
    nodes: [frontiers.node, tiers.node, modes.node],
    /** report: the advice without tables; ask({frontiers, tiers, modes}) promises it with those that are true. */
    render(next, asker) {
      report = next;
      ask = asker;
      const changed = report.subject === "combination";
      setText(frontiers.summary, t(changed ? "advice.frontiersChanged" : "advice.frontiers"));
      setText(tiers.summary, t(changed ? "advice.tiersChanged" : "advice.tiers"));
      setText(modes.summary, t("advice.modes"));
      for (const { node, body, drawn } of folds.map(({ fold }) => fold)) {
        node.hidden = false;
        if (drawn === report) continue;
        // What stands there is about another job: it stays, dimmed, only where it will be replaced at once.
        if (node.open) body.setAttribute("aria-busy", "true");
        else body.replaceChildren(h("p", { class: "hint" }, t("advice.working")));
        body.inert = true;
      }
      refresh();
    },
  };
}

/** "adapter.r" and 8 as a merge patch: {adapter: {r: 8}}. */
function patchOf(option, value) {
  return option.split(".").reduceRight((inner, key) => ({ [key]: inner }), value);
}
