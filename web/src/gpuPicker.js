// Which card: a name of the catalog, or what somebody types ("24 GB", "rtx4090 laptop"): what that means the engine says.
import { createCombobox, narrow } from "./combobox.js";
import { gib } from "./format.js";
import { t } from "./messages.js";

export function createGpuPicker({ store, schema, gpus, name = "gpu" }) {
  let rows = null;
  const allRows = () => {
    rows ??= gpus().map((gpu) => ({
      value: gpu.name,
      label: gpu.name,
      key: [gpu.name, ...(gpu.aliases ?? []), gpu.architecture ?? ""].join(" ").toLowerCase(),
      detail: gpu.visible_bytes ? gib(gpu.visible_bytes) : "",
    }));
    return rows;
  };
  const picker = createCombobox({
    id: `option-${name}`,
    label: schema.find(name)?.label ?? name,
    placeholder: t("gpu.placeholder"),
    search: (text) => {
      const typed = text.trim();
      const found = narrow(allRows(), text, 200);
      const asTyped = { value: schema.parse(name, typed), label: t("gpu.asTyped", { text: typed }), text: typed };
      if (typed === "") found.unshift({ value: undefined, label: t("gpu.clear"), text: "" });
      else if (found.length === 0 || /^[\d.,]+\s*g?i?b?$/i.test(typed)) found.push(asTyped);
      return found;
    },
    onchoose: (value) => store.set({ [name]: value }),
    oncommit: (text) => store.set({ [name]: schema.parse(name, text) }),
  });
  const refresh = () => {
    rows = null;
    picker.refresh();
  };
  return { node: picker.node, input: picker.input, refresh, show: (value) => picker.show(schema.print(name, value)) };
}
