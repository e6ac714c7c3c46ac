// The fit map's third axis: on how many cards the job is.
import { h } from "./dom.js";
import { t } from "./messages.js";

const amounts = [1, 2, 4, 8, 16];
const data = "parallelism.data";
const strategies = ["parallelism.fsdp", "parallelism.zero_stage"];
// Cards that share a layer, a stretch of layers or a process are no matter of their number alone.
const others = [
  "parallelism.tensor",
  "parallelism.pipeline",
  "parallelism.device_map",
  "parallelism.context",
  "parallelism.data_parallel",
];

export const cardsOf = (values) => (typeof values[data] === "number" ? values[data] : 1);

/** What a state says more on so many cards: divided as it says, else by FSDP 2. */
export function changesFor(values, count) {
  if (count === cardsOf(values)) return {};
  if (count === 1) return { [data]: undefined };
  const says = strategies.some((name) => values[name] !== undefined);
  return says ? { [data]: count } : { [data]: count, "parallelism.fsdp": "fsdp2" };
}

/** choose(count) is called when another number is chosen. */
export function createCardsField(choose) {
  const legend = h("legend", { class: "unseen" }, t("map.cards"));
  const node = h("fieldset", { class: "segments small map-cards", "data-testid": "map-cards" });
  return {
    node,
    render(values) {
      node.hidden = others.some((name) => values[name] !== undefined);
      const own = cardsOf(values);
      const counts = [...new Set([...amounts, own])].sort((a, b) => a - b);
      node.replaceChildren(
        legend,
        ...counts.map((count) =>
          h(
            "label",
            {},
            h("input", {
              type: "radio",
              name: "map-cards",
              value: String(count),
              checked: count === own,
              onchange: () => choose(count),
            }),
            h("span", {}, count === 1 ? t("map.oneCard") : t("map.manyCards", { count })),
          ),
        ),
      );
    },
  };
}
