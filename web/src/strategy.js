// How several GPUs share the model: one choice in place of two options, there as soon as there are several.
import { h } from "./dom.js";
import { t } from "./messages.js";

const [fsdp, zero] = ["parallelism.fsdp", "parallelism.zero_stage"];
const strategies = {
  ddp: { [fsdp]: undefined, [zero]: undefined },
  zero1: { [fsdp]: undefined, [zero]: 1 },
  zero2: { [fsdp]: undefined, [zero]: 2 },
  zero3: { [fsdp]: undefined, [zero]: 3 },
  fsdp2: { [fsdp]: "fsdp2", [zero]: undefined },
  fsdp1: { [fsdp]: "full_shard", [zero]: undefined },
};
const words = () => ({
  ddp: t("strategy.ddp"),
  zero1: t("strategy.zero1"),
  zero2: t("strategy.zero2"),
  zero3: t("strategy.zero3"),
  fsdp2: t("strategy.fsdp2"),
  fsdp1: t("strategy.fsdp1"),
});

/** The strategy of a state, or undefined where its options say something else. */
export const strategyOf = (values) =>
  Object.keys(strategies).find((key) =>
    Object.entries(strategies[key]).every(([name, value]) => values[name] === value),
  );

/** A field as optionField.js has it. */
export function createStrategyField(store) {
  const select = h("select", {
    id: "strategy",
    class: "field",
    "data-testid": "strategy",
    onchange: () => select.value && store.set(strategies[select.value], { name: "strategy" }),
  });
  const other = h("option", { value: "", disabled: true }, t("strategy.other"));
  select.append(...Object.entries(words()).map(([value, text]) => h("option", { value }, text)), other);
  const label = h("label", { class: "label", for: select.id }, t("strategy.label"));
  const node = h("div", { class: "option strategy" }, h("div", { class: "option-head" }, label), select);
  return {
    node,
    focus: () => select.focus(),
    refresh: () => {},
    render(values) {
      node.hidden = !(values["parallelism.data"] > 1);
      select.value = strategyOf(values) ?? "";
    },
  };
}
