// The question in one line: which model, on which card and how many, trained how, on how much at a time. Everything else has a default.
import { h, setText } from "./dom.js";
import { t } from "./messages.js";
import { modelWays } from "./modelSearch.js";
import { createOptionField } from "./optionField.js";
import { createStrategyField } from "./strategy.js";

/** The options that the question asks for: the form has the others. */
export const askedFor = ["gpu", "parallelism.data", "method", "sequence_length", "micro_batch_size"];

/** What multiplies the GPUs that each see other rows. */
const othersOfMesh = ["parallelism.tensor", "parallelism.pipeline", "parallelism.context"];

/** A form's parts have {node, focus(), render(values, problems)}; problems: option's name → issue. */
export function createQuestion({ schema, store, modelPicker, gpus }) {
  const change = (name, value) => store.set({ [name]: value });
  const fields = new Map(
    askedFor.map((name) => [name, createOptionField(schema.find(name), { schema, store, gpus, change, asked: true })]),
  );
  const inAll = h("span", { class: "hint", "data-testid": "gpus-in-all" });
  fields.get("parallelism.data").node.append(inAll);
  const strategy = createStrategyField(store);
  fields.set("strategy", strategy);
  const onsubmit = (event) => event.preventDefault();
  const attributes = { class: "question", autocomplete: "off", novalidate: true, onsubmit, "data-testid": "question" };
  const label = h("label", { class: "label", for: modelPicker.input.id }, t("model.label"));
  const model = h("div", { class: "option", "data-group": "model" }, h("div", { class: "option-head" }, label));
  model.append(modelPicker.node);
  const nodes = [...fields.values()].map((field) => field.node);
  const node = h("form", { ...attributes, "aria-label": t("question.label") }, model, nodes, modelPicker.message);
  return {
    node,
    /** Focuses an option that is asked for here; false where it is not. */
    focus(name) {
      const target = modelWays.includes(name) ? modelPicker.input : fields.get(name);
      target?.focus();
      return Boolean(target);
    },
    render(values, problems) {
      modelPicker.render(values);
      const trouble = modelWays.map((name) => problems.get(name)).find(({ severity } = {}) => severity === "error");
      if (trouble) modelPicker.input.setAttribute("aria-invalid", "true");
      else modelPicker.input.removeAttribute("aria-invalid");
      for (const field of fields.values()) field.render(values, problems);
      const each = othersOfMesh.reduce((product, name) => product * (Number(values[name]) || 1), 1);
      const count = each * (Number(values["parallelism.data"]) || 1);
      setText(inAll, t("question.inAll", { count }));
      inAll.hidden = each === 1;
    },
    /** The catalog has come. */
    refresh() {
      modelPicker.refresh();
      for (const field of fields.values()) field.refresh();
    },
  };
}
