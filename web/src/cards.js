// The cards of the catalog that hold the job: the smallest first.
import { figure } from "./exactly.js";
import { h, setText } from "./dom.js";
import { gib, percent } from "./format.js";
import { t } from "./messages.js";
import { verdictClass, verdictIcon, verdictWord } from "./verdict.js";

const few = 8;

/** Whole cards, smallest that fits first, then the tight ones, then those that come nearest. */
export function sortCards(fits) {
  const rank = { fits: 0, tight: 1, does_not_fit: 2 };
  return [...fits].sort((a, b) => {
    const byVerdict = (rank[a.verdict] ?? 3) - (rank[b.verdict] ?? 3);
    if (byVerdict !== 0) return byVerdict;
    return a.verdict === "does_not_fit" ? b.usable_bytes - a.usable_bytes : a.usable_bytes - b.usable_bytes;
  });
}

export function createCards({ store, gpus }) {
  const body = h("tbody");
  const summary = h("p", { class: "hint" });
  const maker = h("select", { class: "field small", "aria-label": t("fits.maker"), onchange: () => draw() });
  const more = h("button", { type: "button", class: "button quiet small", onclick: () => {
    all = !all;
    draw();
  } });
  const node = h("section", { class: "panel", "aria-labelledby": "fits-heading", "data-testid": "fits" },
    h("div", { class: "panel-head" }, h("h3", { id: "fits-heading" }, t("fits.label")), maker), summary,
    h("table", { class: "grid cards" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("fits.card")), h("th", { scope: "col", class: "number" }, t("fits.usable")),
      h("th", { scope: "col", class: "number" }, t("fits.headroom")), h("th", { scope: "col", class: "number wide-only" }, t("fits.used")))), body), more);
  let fits = [];
  let all = false;
  let chosen = null;
  let vendorOf = null;

  function draw() {
    if (!vendorOf) {
      vendorOf = new Map(gpus().map((gpu) => [gpu.name, gpu.vendor]));
      const vendors = new Map();
      for (const vendor of vendorOf.values()) vendors.set(vendor, (vendors.get(vendor) ?? 0) + 1);
      const names = [...vendors.keys()].sort((a, b) => vendors.get(b) - vendors.get(a));
      maker.append(...names.map((vendor) => h("option", { value: vendor }, vendor)), h("option", { value: "" }, t("fits.anyMaker")));
    }
    const own = sortCards(fits.filter((fit) => maker.value === "" || vendorOf.get(fit.gpu) === maker.value));
    const fitting = own.filter((fit) => fit.verdict === "fits").length;
    const tight = own.filter((fit) => fit.verdict === "tight").length;
    setText(summary, fitting + tight === 0 ? t("fits.none") : t("fits.summary", { fits: fitting, all: own.length, tight }));
    const shown = all ? own : own.slice(0, few);
    body.replaceChildren(...shown.map((fit) => h("tr", { class: fit.gpu === chosen ? "is-chosen" : undefined },
      h("th", { scope: "row" }, h("button", { type: "button", class: "card-name", "aria-pressed": String(fit.gpu === chosen), onclick: () => store.set({ gpu: fit.gpu }) },
        verdictIcon(fit.verdict, `row-icon ${verdictClass(fit.verdict)}`), h("span", { class: "unseen" }, `${verdictWord(fit.verdict)}: `), h("span", {}, fit.gpu))),
      h("td", { class: "number" }, gib(fit.usable_bytes)),
      h("td", { class: "number" }, fit.verdict === "unknown" ? "" : figure(fit.headroom_bytes, { focusable: false })),
      h("td", { class: "number wide-only" }, fit.utilization > 0 ? percent(fit.utilization) : ""))));
    more.hidden = own.length <= few;
    setText(more, all ? t("fits.fewer") : t("fits.all", { count: own.length }));
    more.setAttribute("aria-expanded", String(all));
  }

  return {
    node,
    render(next, gpu) {
      fits = next;
      chosen = gpu;
      node.hidden = fits.length === 0;
      if (fits.length > 0) draw();
    },
  };
}
