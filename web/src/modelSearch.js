// The catalog's models, found by typing.
import { createCombobox, narrow } from "./combobox.js";
import { count } from "./format.js";
import { t } from "./messages.js";
import { readCount } from "./numbers.js";

/** The options of which one says which model. */
export const modelWays = ["model", "config", "parameters"];
/** What goes when another model is chosen. */
export const noModel = { ...Object.fromEntries(modelWays.map((key) => [key, undefined])), architecture: undefined };

/** models() → the catalog's models, none before refresh(). Returns {node, input, refresh(), show(value)}. */
export function createModelSearch({ store, models }) {
  let rows = null;
  const allRows = () => {
    rows ??= models()
      .map((model) => ({
        value: model.id,
        label: model.id,
        key: [model.id, ...(model.aliases ?? []), model.family ?? ""].join(" ").toLowerCase(),
        detail: model.parameters ? count(model.parameters) : "",
        note: model.modelled === false ? t("model.partial") : "",
        modelled: model.modelled !== false,
      }))
      .sort((a, b) => Number(b.modelled) - Number(a.modelled));
    return rows;
  };
  const choose = (model) => store.set({ ...noModel, ...(typeof model === "object" ? model : { model }) });
  /** What no name of the catalog is: a size, or a name for the engine, which knows other spellings or says what comes nearest. */
  function otherwise(typed) {
    const parameters = readCount(typed);
    if (parameters === undefined) return { value: typed, label: t("model.asTyped", { text: typed }), text: typed };
    return { value: { parameters }, label: t("model.countOf", { count: count(parameters) }) };
  }

  const picker = createCombobox({
    id: "option-model",
    label: t("model.label"),
    placeholder: t("model.placeholder"),
    search: (text) => {
      const typed = text.trim();
      const found = narrow(allRows(), text, 300);
      return found.length > 0 || typed === "" ? found : [otherwise(typed)];
    },
    onchoose: choose,
    oncommit: (text) => text.trim() !== "" && choose(otherwise(text.trim()).value),
  });
  return {
    node: picker.node,
    input: picker.input,
    refresh() {
      rows = null;
      picker.refresh();
    },
    show: (value) => picker.show(typeof value === "string" ? value : ""),
  };
}
