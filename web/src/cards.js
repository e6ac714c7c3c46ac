// The cards of the catalog that hold the job: the smallest first.
import { h, setText } from "./dom.js";
import { figure } from "./exactly.js";
import { gib, percent } from "./format.js";
import { t } from "./messages.js";
import { said } from "./said.js";
import { verdictClass, verdictIcon, verdictWord } from "./verdict.js";

const few = 8;

/** Whole cards: the smallest that fits first, then the tight ones and those where it does not fit, the nearest to fitting first. */
export function sortCards(fits) {
  const rank = { fits: 0, tight: 1, does_not_fit: 2 };
  return [...fits].sort((a, b) => {
    const byVerdict = (rank[a.verdict] ?? 3) - (rank[b.verdict] ?? 3);
    if (byVerdict !== 0) return byVerdict;
    return a.verdict === "fits" ? a.usable_bytes - b.usable_bytes : b.usable_bytes - a.usable_bytes;
  });
}

export function createCards({ store, gpus }) {
  const body = h("tbody");
  const summary = h("p", { class: "hint" });
  const maker = h("select", { class: "field small", "aria-label": t("fits.maker"), onchange: () => draw() });
  const more = h("button", { type: "button", class: "button quiet small", onclick: toggle });
  const node = createNode(maker, summary, body, more);
  let fits = [];
  let all = false;
  let chosen = null;
  let vendorOf = null;

  function toggle() {
    all = !all;
    draw();
  }

  function draw() {
    if (!vendorOf) {
      vendorOf = new Map(gpus().map((gpu) => [gpu.name, gpu.vendor]));
      maker.append(...makerOptions([...vendorOf.values()]));
    }
    const own = sortCards(fits.filter((fit) => maker.value === "" || vendorOf.get(fit.gpu) === maker.value));
    setText(summary, summaryOf(own));
    const choose = (gpu) => store.set({ gpu });
    body.replaceChildren(...(all ? own : own.slice(0, few)).map((fit) => cardRow(fit, fit.gpu === chosen, choose)));
    more.hidden = own.length <= few;
    setText(more, all ? t("fits.fewer") : t("fits.all", { count: own.length }));
    more.setAttribute("aria-expanded", String(all));
  }

  return {
    node,
    /** @param {import("../../wasm/tidemark.js").Fit[]} next */
    render(next, gpu) {
      fits = next;
      chosen = gpu;
      node.hidden = fits.length === 0;
      if (fits.length > 0) draw();
    },
  };
}

function createNode(maker, summary, body, more) {
  const column = (key, className) => h("th", { scope: "col", class: className }, t(key));
  const head = h(
    "tr",
    {},
    column("fits.card"),
    column("fits.usable", "number"),
    column("fits.headroom", "number"),
    column("fits.used", "number wide-only"),
    column("fits.takes", "number"),
  );
  return h(
    "section",
    { role: "group", class: "panel", "aria-labelledby": "fits-heading", "data-testid": "fits" },
    h("div", { class: "panel-head" }, h("h3", { id: "fits-heading" }, t("fits.label")), maker),
    summary,
    h("table", { class: "grid cards" }, h("thead", {}, head), body),
    more,
  );
}

/** The makers, the one with the most cards first. */
function makerOptions(vendors) {
  const amounts = new Map();
  for (const vendor of vendors) amounts.set(vendor, (amounts.get(vendor) ?? 0) + 1);
  const names = [...amounts.keys()].sort((a, b) => amounts.get(b) - amounts.get(a));
  return [...names.map((name) => h("option", { value: name }, name)), h("option", { value: "" }, t("fits.anyMaker"))];
}

function summaryOf(cards) {
  const amount = (verdict) => cards.filter((fit) => fit.verdict === verdict).length;
  const [fits, tight] = [amount("fits"), amount("tight")];
  return fits + tight === 0 ? t("fits.none") : t("fits.summary", { fits, all: cards.length, tight });
}

function cardRow(fit, isChosen, choose) {
  const { gpu, verdict } = fit;
  const attributes = {
    type: "button",
    class: "card-name",
    "aria-pressed": String(isChosen),
    onclick: () => choose(gpu),
  };
  const name = h(
    "button",
    attributes,
    verdictIcon(verdict, `row-icon ${verdictClass(verdict)}`),
    h("span", { class: "unseen" }, `${verdictWord(verdict)}: `),
    h("span", {}, gpu),
  );
  const headroom = verdict === "unknown" ? "" : figure(fit.headroom_bytes, { focusable: false });
  return h(
    "tr",
    { class: isChosen ? "is-chosen" : undefined },
    h("th", { scope: "row" }, name),
    h("td", { class: "number" }, gib(fit.usable_bytes)),
    h("td", { class: "number" }, headroom),
    h("td", { class: "number wide-only" }, fit.utilization > 0 ? percent(fit.utilization) : ""),
    h("td", { class: "number", title: said(fit.fewest?.title) }, fit.fewest ? `${fit.fewest.cards} ×` : "–"),
  );
}
