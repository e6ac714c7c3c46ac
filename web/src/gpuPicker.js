// Which card: a name of the catalog, or just an amount of memory.
import { createCombobox, narrow } from "./combobox.js";
import { gib } from "./format.js";
import { t } from "./messages.js";

export function createGpuPicker({ store, schema, gpus, name = "gpu" }) {
  let rows = null;
  const allRows = () => {
    rows ??= gpus().map((gpu) => ({
      value: gpu.name, label: gpu.name, key: [gpu.name, ...(gpu.aliases ?? []), gpu.architecture ?? ""].join(" ").toLowerCase(),
      detail: gpu.visible_bytes ? gib(gpu.visible_bytes) : "",
    }));
    return rows;
  };
  const picker = createCombobox({
    id: `option-${name}`, label: schema.find(name)?.help ?? name, placeholder: t("gpu.placeholder"),
    search: (text) => {
      const size = /^\s*([0-9]*\.?[0-9]+)\s*(g|gb|gib)?\s*$/i.exec(text);
      const found = narrow(allRows(), text, 200);
      if (size && Number(size[1]) > 0) {
        found.push({ value: { memory_gib: Number(size[1]) }, label: t("gpu.custom", { size: `${Number(size[1])} GiB` }), text: `${Number(size[1])}GiB` });
      }
      if (text.trim() === "") found.unshift({ value: undefined, label: t("gpu.clear"), text: "" });
      return found;
    },
    emptyText: (text) => t("gpu.none", { text }),
    onchoose: (value) => store.set({ [name]: value }),
    oncommit: (text) => store.set({ [name]: schema.parse(name, text) }),
    literal: (text) => /GiB\s*$/i.test(text),
  });
  const refresh = () => {
    rows = null;
    picker.refresh();
  };
  return { node: picker.node, input: picker.input, refresh, show: (value) => picker.show(schema.print(name, value)) };
}
