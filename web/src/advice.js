// What would make the job fit, or smaller: the engine's advice, each change applied by one click and taken back by another.
import { createAdviceDetails } from "./adviceDetails.js";
import { beforeAfter, measureOf } from "./beforeAfter.js";
import { changedOptions } from "./compare.js";
import { h, setText } from "./dom.js";
import { figure, tellExactly } from "./exactly.js";
import { gib } from "./format.js";
import { t, tOr } from "./messages.js";
import { said } from "./said.js";
import { verdictIcon, verdictWord } from "./verdict.js";

const few = 5;

/** schema, store; ask(values, tables) promises advice with those tables; tell(text, delay) announces; showComparison() brings the comparison into view. */
export function createAdvice({ schema, store, ask, tell, showComparison }) {
  const heading = h("h3", { id: "advice-heading" });
  const applied = h("div", { class: "applied row", hidden: true, "data-testid": "advice-applied" });
  const plan = h("div", { class: "plan", "data-testid": "advice-plan" });
  const singlesSummary = h("summary");
  const singlesHint = h("p", { class: "hint" });
  const list = h("ul", { class: "suggestions", "data-testid": "advice-singles" });
  const more = h("button", {
    type: "button",
    class: "button quiet small",
    "data-testid": "advice-all",
    onclick: () => {
      all = !all;
      drawSingles();
    },
  });
  const singles = h("details", { class: "more" }, singlesSummary, singlesHint, list, more);
  const details = createAdviceDetails({ schema, apply });
  const node = h(
    "section",
    {
      role: "group",
      id: "advice",
      class: "panel advice",
      tabindex: "-1",
      "aria-labelledby": "advice-heading",
      hidden: true,
      "data-testid": "advice",
    },
    heading,
    applied,
    plan,
    singles,
    details.nodes,
  );
  let report = null;
  // The values that the report is about.
  let subject = null;
  let measure = 1;
  let all = false;
  let fitted = null;
  // What was just applied, and the state that came of it: as long as that is the present one, Undo takes it back.
  let latest = null;

  /** change: {patch, what}; the peak before and the promised one, in bytes. */
  function apply({ patch, what, before, after }, compared = false, stay = null) {
    const { values, pin, unknown, notes, version } = store.get();
    const next = schema.patched(values, patch);
    const state = { values: next, pin: compared ? values : pin, unknown, notes, version };
    store.replace(state, { source: "advice" });
    // Changed since the advice was asked for: its figures are about another job.
    const sizes = values === subject ? { before, after } : null;
    latest = { what, sizes, state: store.get() };
    showApplied();
    tell(sizes ? t("advice.announce", { what, size: gib(after) }) : t("advice.applied", { what }), 0);
    if (compared) showComparison();
    else if (stay) stay.focus({ preventScroll: true });
    else applied.querySelector("button").focus();
  }

  function showApplied() {
    applied.hidden = latest === null;
    if (!latest) return;
    applied.replaceChildren(
      h(
        "p",
        {},
        t("advice.applied", { what: latest.what }),
        latest.sizes && [
          " ",
          h("span", { class: "nowrap" }, `${gib(latest.sizes.before)} → ${gib(latest.sizes.after)}`),
        ],
      ),
      h(
        "button",
        {
          type: "button",
          class: "button small",
          "data-testid": "advice-undo",
          onclick: () => {
            const { what } = latest;
            store.undo();
            node.focus();
            tell(t("advice.undone", { what }), 0);
          },
        },
        t("page.undo"),
      ),
    );
  }

  store.subscribe((state) => {
    if (latest && latest.state !== state) {
      latest = null;
      showApplied();
    }
  });

  const changeOf = (entry, what) => ({
    patch: entry.patch,
    what,
    before: report.now.allocated.expected,
    after: entry.allocated.expected,
  });

  function buttons(change, testid) {
    return h(
      "span",
      { class: "row apply" },
      h(
        "button",
        {
          type: "button",
          class: "button small",
          "data-testid": testid,
          "aria-label": `${t("advice.apply")}: ${change.what}`,
          onclick: () => apply(change),
        },
        t("advice.apply"),
      ),
      h(
        "button",
        {
          type: "button",
          class: "button quiet small",
          "data-testid": `${testid}-compare`,
          "aria-label": `${t("advice.applyAndCompare")}: ${change.what}`,
          onclick: () => apply(change, true),
        },
        t("advice.applyAndCompare"),
      ),
    );
  }

  /** "Precision amp_bf16 → pure_bf16", as the comparison words it. */
  function settings(patch) {
    return h(
      "p",
      { class: "settings" },
      changedOptions(schema, subject, schema.patched(subject, patch)).map(({ label, before, after }) =>
        h(
          "span",
          {},
          `${label} `,
          h("span", { class: "code before" }, before),
          " → ",
          h("span", { class: "code after" }, after),
        ),
      ),
    );
  }

  function costs(cost) {
    const parts = ["speed", "exactness", "quality"].filter(
      (key) => cost[key] && !(key === "quality" && cost[key] === "none"),
    );
    return h(
      "p",
      { class: "hint" },
      parts.map((key) => t(`advice.${key}`, { words: said(cost[key]) })).join(" "),
      " ",
      h("span", { class: "source" }, t("advice.source", { source: cost.source })),
    );
  }

  const harm = (cost) => h("span", { class: `tag harm-${cost.harm}` }, tOr(`advice.harm.${cost.harm}`, cost.harm));

  function figures(entry) {
    return h(
      "div",
      { class: "outcome" },
      h(
        "p",
        { class: "outcome-words" },
        verdictIcon(entry.fit.verdict, "row-icon"),
        h("span", { class: "unseen" }, `${verdictWord(entry.fit.verdict)}: `),
        h("strong", {}, figure(entry.allocated.expected, { focusable: false })),
        " ",
        tellExactly(
          h(
            "span",
            { class: "hint nowrap" },
            entry.saved_bytes >= 0
              ? t("advice.saved", { size: gib(entry.saved_bytes) })
              : t("advice.added", { size: gib(-entry.saved_bytes) }),
          ),
          entry.saved_bytes,
        ),
      ),
      beforeAfter(report.now.allocated.expected, entry.allocated.expected, entry.fit, measure),
    );
  }

  function cardRow(card, key) {
    const changes = key === "advice.cardAsIs" ? null : report.combination;
    const change = {
      patch: { ...changes?.patch, gpu: card.gpu, gpus: null },
      what: [...(changes?.steps ?? []).map((step) => said(step.title)), card.gpu].join(", "),
      before: report.now.allocated.expected,
      after: card.allocated.expected,
    };
    return h(
      "p",
      { class: "row card-row" },
      h("span", {}, t(key, { gpu: card.gpu, size: gib(card.allocated.expected), usable: gib(card.usable_bytes) })),
      h(
        "button",
        {
          type: "button",
          class: "button small",
          "data-testid": "advice-card",
          "aria-label": `${t(changes ? "advice.useCardChanged" : "advice.useCard")}: ${card.gpu}`,
          onclick: () => apply(change),
        },
        t(changes ? "advice.useCardChanged" : "advice.useCard"),
      ),
    );
  }

  function drawPlan() {
    const { combination, smallest_card: asIs, smallest_card_changed: changed, now } = report;
    const parts = [];
    const ways = report.ways.map(({ cards, gpu, how }) => t("advice.way", { cards, gpu, how: said(how) }));
    if (now.fit.verdict !== "fits" && ways.length > 0) {
      parts.push(h("p", { "data-testid": "advice-ways" }, t("advice.ways", { ways: ways.join("; ") })));
    }
    const steps = combination?.steps ?? [];
    const changes = h(
      "ol",
      { class: "steps" },
      steps.map((step) =>
        h(
          "li",
          {},
          h("p", { class: "step-title" }, h("strong", {}, said(step.title)), " ", harm(step.cost)),
          settings(step.patch),
          costs(step.cost),
        ),
      ),
    );
    if (combination?.found) {
      parts.push(
        h(
          "p",
          {},
          t(steps.length === 1 ? "advice.one" : "advice.together", { count: steps.length }),
          " ",
          !combination.proven && t("advice.unproven"),
        ),
        changes,
        h(
          "div",
          { class: "plan-outcome" },
          figures(combination),
          buttons(changeOf(combination, steps.map((step) => said(step.title)).join(", ")), "advice-apply"),
        ),
      );
    } else if (combination) {
      parts.push(
        h(
          "p",
          { class: "plan-nothing" },
          t("advice.nothing", {
            gpu: report.gpu,
            size: gib(combination.allocated.expected),
            usable: gib(Math.max(0, now.fit.usable_bytes)),
          }),
        ),
        changes,
      );
      if (changed) parts.push(cardRow(changed, "advice.cardChanged"));
      else if (!asIs) parts.push(h("p", {}, t("advice.noCard")));
    }
    if (now.fit.verdict !== "fits" && asIs) parts.push(cardRow(asIs, "advice.cardAsIs"));
    plan.hidden = parts.length === 0;
    plan.replaceChildren(...parts);
  }

  function suggestion(entry, harmed, outcome) {
    const title = h("p", { class: "step-title" }, h("strong", {}, said(entry.title)), " ", harmed);
    return h(
      "li",
      { class: "suggestion" },
      h("div", {}, title, settings(entry.patch), costs(entry.cost)),
      outcome,
      buttons(changeOf(entry, said(entry.title)), "advice-apply-one"),
    );
  }

  function drawSingles() {
    const { suggestions, expandable_segments: expandable, now } = report;
    const fits = now.fit.verdict === "fits";
    const enough = fits ? [] : suggestions.filter((entry) => entry.fit.verdict === "fits");
    const short = (enough.length > 0 ? enough : suggestions).slice(0, few);
    const shown = all ? suggestions : short;
    setText(singlesSummary, t("advice.singles", { count: suggestions.length }));
    setText(
      singlesHint,
      fits
        ? t("advice.ranked")
        : t(
            enough.length === 0 ? "advice.noneEnough" : enough.length === 1 ? "advice.oneEnough" : "advice.someEnough",
            { count: enough.length },
          ),
    );
    const rows = shown.map((entry) => suggestion(entry, harm(entry.cost), figures(entry)));
    rows.push(...(report.more_cards ?? []).map((entry) => suggestion(entry, null, figures(entry))));
    if (expandable && (all || suggestions.length <= short.length)) {
      const size = gib(now.reserved.expected - expandable.reserved.expected);
      const outcome = h("p", { class: "hint outcome" }, t("advice.expandable", { size }));
      rows.push(suggestion(expandable, null, outcome));
    }
    list.replaceChildren(...rows);
    singles.hidden = rows.length === 0;
    more.hidden = suggestions.length <= short.length;
    setText(more, all ? t("fits.fewer") : t("advice.all", { count: suggestions.length }));
    more.setAttribute("aria-expanded", String(all));
  }

  return {
    node,
    /** What must not be used once it is about a former job; what was just applied can still be taken back. */
    reach: [plan, singles, ...details.nodes],
    /** The estimate is there, the advice is still being looked for; fit: the card's, or undefined; of several cards it is about the first. */
    expect(fit, cards) {
      node.hidden = !fit || fit.verdict === "unknown";
      if (node.hidden) return;
      node.setAttribute("aria-busy", "true");
      const fits = fit.verdict === "fits";
      setText(
        heading,
        cards > 1
          ? t(fits ? "advice.smallerOn" : "advice.labelOn", { gpu: fit.gpu })
          : t(fits ? "advice.smaller" : "advice.label"),
      );
      // Unfolded where it is needed; from then on as the visitor leaves it.
      if (fits !== fitted) singles.open = !fits;
      fitted = fits;
      if (!report) {
        plan.hidden = fits;
        plan.replaceChildren(h("p", { class: "hint" }, t("advice.searching")));
        singles.hidden = true;
      }
    },
    /** The plan of least harm, for the verdict: {what, size, apply(stay)}; stay: what then has the focus. Null where there is none. */
    plan() {
      const combination = report?.combination;
      if (!combination?.found) return null;
      const what = combination.steps.map(({ title }) => said(title)).join(", ");
      const apply_ = (stay) => apply(changeOf(combination, what), false, stay);
      return { what, size: gib(combination.allocated.expected), apply: apply_ };
    },
    /** response: what `advise` answered for those values, or anything without advice. */
    render(response, values) {
      node.removeAttribute("aria-busy");
      report = response?.now ? response : null;
      subject = values;
      if (!report) {
        node.hidden = true;
        return;
      }
      // What has the focus is drawn anew: keep the place.
      const inside =
        node.contains(document.activeElement) &&
        document.activeElement !== node &&
        !applied.contains(document.activeElement)
          ? document.activeElement
          : null;
      const { now, combination, suggestions } = report;
      measure = measureOf(
        now.allocated.expected,
        [combination?.found ? combination : now, ...suggestions].map((entry) => entry.allocated.expected),
        now.fit.usable_bytes,
      );
      drawPlan();
      drawSingles();
      details.render(report, (tables) => ask(values, tables));
      if (inside && !inside.isConnected) node.focus({ preventScroll: true });
    },
  };
}
