// GPUs that differ, a line for each kind of them: stages of a pipeline hold other layers, and more or fewer activations.
import { phaseName } from "./categories.js";
import { h, scrollBox } from "./dom.js";
import { figure } from "./exactly.js";
import { count } from "./format.js";
import { t } from "./messages.js";

export function createRanks() {
  const body = h("tbody");
  const columns = [
    "ranks.gpus",
    "ranks.layers",
    "ranks.parameters",
    "result.allocated",
    "result.reserved",
    "timeline.phase",
  ];
  const column = (key, at) => h("th", { scope: "col", class: at > 1 && at < 5 ? "number" : undefined }, t(key));
  const head = h("thead", {}, h("tr", {}, columns.map(column)));
  const heading = h("h3", { id: "ranks-heading" }, t("ranks.label"));
  const attributes = {
    role: "group",
    class: "panel ranks",
    "aria-labelledby": "ranks-heading",
    "data-testid": "ranks",
  };
  const grid = scrollBox(t("ranks.label"), h("table", { class: "grid" }, head, body));
  const node = h("section", { ...attributes, hidden: true }, heading, h("p", { class: "hint" }, t("ranks.hint")), grid);
  const number = (words) => h("td", { class: "number" }, words);

  function rowOf({ first, last, layers, parameters, allocated, reserved, phase }, highest) {
    return h(
      "tr",
      { class: allocated === highest ? "is-chosen" : undefined },
      h("th", { scope: "row" }, first === last ? String(first) : `${first} – ${last}`),
      h("td", {}, layers),
      number(count(parameters)),
      number(figure(allocated, { focusable: false })),
      number(figure(reserved, { focusable: false })),
      h("td", {}, phaseName(phase)),
    );
  }
  return {
    node,
    /** @param {import("../../wasm/tidemark.js").Estimate} estimate */
    render({ ranks = [] }) {
      node.hidden = ranks.length === 0;
      const highest = Math.max(...ranks.map(({ allocated }) => allocated));
      body.replaceChildren(...ranks.map((rank) => rowOf(rank, highest)));
    },
  };
}
