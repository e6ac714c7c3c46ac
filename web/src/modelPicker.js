// Which model: search the catalog by typing, give a config.json (paste, open, or drop anywhere on the page), or only a parameter count.
import { h, hasFocus, setText, uniqueId } from "./dom.js";
import { gib } from "./format.js";
import { t } from "./messages.js";
import { shorten } from "./shorten.js";
import { createModelSearch, modelWays, noModel } from "./modelSearch.js";

const wayTexts = { model: "model.byName", config: "model.byConfig", parameters: "model.byCount" };
const largestFile = 2 * 2 ** 20;

/** store, schema; models() → the catalog's models, none before refresh(); tell(text) announces. */
export function createModelPicker({ store, schema, models, tell }) {
  const name = uniqueId("way");
  let way = "model";
  const choose = (patch) => store.set({ ...noModel, ...patch });
  const search = createModelSearch({ store, models });
  search.input.dataset.testid = "model";
  const draft = h("textarea", {
    id: "option-config",
    class: "field code",
    rows: "5",
    spellcheck: "false",
    autocomplete: "off",
    "aria-label": t("model.paste"),
    placeholder: '{ "model_type": "llama", … }',
  });
  const file = h("input", {
    type: "file",
    class: "unseen",
    accept: ".json,application/json",
    tabindex: "-1",
    "aria-hidden": "true",
    onchange: () => {
      const [chosen] = file.files;
      // So that the same file can be chosen again.
      file.value = "";
      if (chosen) readFile(chosen);
    },
  });
  const message = h("p", { class: "problem", role: "alert", hidden: true, "data-testid": "model-problem" });
  const using = h("p", { class: "hint" });
  const byConfig = h(
    "div",
    { class: "stack" },
    h("p", { class: "hint" }, t("model.paste")),
    draft,
    h(
      "div",
      { class: "row" },
      h(
        "button",
        { type: "button", class: "button", onclick: () => accept(draft.value, t("model.pasted")) },
        t("model.use"),
      ),
      h("button", { type: "button", class: "button quiet", onclick: () => file.click() }, t("model.open")),
      file,
    ),
    using,
  );

  const number = h("input", {
    id: "option-parameters",
    class: "field",
    type: "text",
    inputmode: "decimal",
    autocomplete: "off",
    "aria-label": t("model.count"),
    placeholder: "7e9",
  });
  number.addEventListener("change", () => {
    const value = readCount(number.value);
    if (value === undefined) return complain(t("model.countBad", { text: shorten(number.value) }));
    complain("");
    choose({ parameters: value });
  });
  const byCount = h("div", { class: "stack" }, number, h("p", { class: "hint" }, t("model.countHint")));

  const panels = { model: search.node, config: byConfig, parameters: byCount };
  const radios = modelWays.map((key) => h("input", { type: "radio", name, value: key, onchange: () => turnTo(key) }));
  const node = h(
    "div",
    { class: "stack model-picker", "data-testid": "model-picker" },
    h(
      "fieldset",
      { class: "segments" },
      h("legend", { class: "unseen" }, t("model.ways")),
      modelWays.map((key, index) => h("label", {}, radios[index], h("span", {}, t(wayTexts[key])))),
    ),
    panels.model,
    panels.config,
    panels.parameters,
    message,
  );

  function turnTo(next) {
    way = next;
    modelWays.forEach((key, index) => {
      radios[index].checked = key === way;
      panels[key].hidden = key !== way;
    });
  }

  function complain(text) {
    message.hidden = text === "";
    setText(message, text);
    return undefined;
  }

  /** A text that should be a config.json, or a whole request of ours. Anything else changes nothing. */
  function accept(text, from) {
    let document_;
    try {
      document_ = JSON.parse(text);
    } catch (error) {
      turnTo("config");
      return complain(t("model.notJson", { name: from, reason: sentence(error.message) }));
    }
    if (document_ === null || typeof document_ !== "object" || Array.isArray(document_)) {
      return complain(t("model.notObject", { name: from }));
    }
    if (!isRequest(document_) && !isModel(document_)) {
      turnTo("config");
      return complain(t("model.notModel", { name: from, what: t(kindOf(document_)) }));
    }
    complain("");
    if (isRequest(document_)) {
      const { values, unknown } = schema.fromRequest(document_);
      store.replace(
        { values, unknown, notes: unknown.map(([key]) => ({ code: "unknown", key })) },
        { source: "paste" },
      );
      tell(t("model.loadedRequest", { name: from }));
      return undefined;
    }
    choose({ config: document_ });
    tell(t("model.loaded", { name: from }));
    return undefined;
  }

  async function readFile(chosen) {
    const name_ = shorten(chosen.name || "file");
    if (chosen.size > largestFile) {
      turnTo("config");
      return complain(t("model.tooLarge", { name: name_, size: gib(chosen.size) }));
    }
    let text;
    try {
      text = await chosen.text();
    } catch (error) {
      return complain(t("model.unreadable", { name: name_, reason: sentence(error.message) }));
    }
    if (text.includes("\0")) {
      turnTo("config");
      return complain(t("model.notText", { name: name_ }));
    }
    return accept(text, name_);
  }

  function render(values) {
    const stated = modelWays.find((key) => values[key] !== undefined);
    // Another model: what was wrong with a file before is no longer of interest.
    const said = JSON.stringify(modelWays.map((key) => values[key]));
    if (said !== lastSaid) complain("");
    lastSaid = said;
    if (stated && stated !== rendered) turnTo(stated);
    rendered = stated;
    if (!stated) turnTo(way);
    search.show(values.model);
    if (!hasFocus(number)) number.value = values.parameters === undefined ? "" : String(values.parameters);
    if (values.config !== lastConfig) {
      lastConfig = values.config;
      draft.value =
        values.config === undefined
          ? ""
          : typeof values.config === "string"
            ? values.config
            : JSON.stringify(values.config, null, 2);
    }
    const type = values.config && typeof values.config === "object" ? values.config.model_type : undefined;
    setText(
      using,
      values.config === undefined
        ? ""
        : t("model.configUsed", { name: t("model.configOf", { type: shorten(String(type ?? "?")) }) }),
    );
  }
  let rendered;
  let lastSaid;
  let lastConfig;

  /** The catalog has come. */
  function refresh() {
    search.refresh();
  }

  return { node, render, refresh, accept, readFile, input: search.input };
}

/** Files dropped, and JSON pasted outside of fields, anywhere on the page. */
export function acceptAnywhere(picker, veil) {
  let depth = 0;
  const hasFiles = (event) =>
    [...(event.dataTransfer?.types ?? [])].some((type) => type === "Files" || type === "text/plain");
  addEventListener("dragenter", (event) => {
    if (!hasFiles(event)) return;
    depth += 1;
    veil.hidden = false;
  });
  addEventListener("dragleave", () => {
    depth = Math.max(0, depth - 1);
    if (depth === 0) veil.hidden = true;
  });
  addEventListener("dragover", (event) => {
    if (hasFiles(event)) event.preventDefault();
  });
  addEventListener("drop", (event) => {
    depth = 0;
    veil.hidden = true;
    if (!hasFiles(event)) return;
    const dropped = event.dataTransfer.files[0];
    if (dropped) {
      event.preventDefault();
      picker.readFile(dropped);
    } else if (!isField(event.target)) {
      event.preventDefault();
      picker.accept(event.dataTransfer.getData("text/plain"), t("model.pasted"));
    }
  });
  addEventListener("paste", (event) => {
    if (isField(event.target)) return;
    const [pastedFile] = event.clipboardData?.files ?? [];
    if (pastedFile) return void picker.readFile(pastedFile);
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (text.trimStart().startsWith("{")) picker.accept(text, t("model.pasted"));
  });
}

function isField(node) {
  return node instanceof Element && node.closest("input, textarea, select, [contenteditable]") !== null;
}

/** transformers' configurations name their class or type; anything else changes nothing. */
const isModel = (document_) => "model_type" in document_ || "architectures" in document_;

const kinds = {
  "model.isDeepSpeed": ["zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu"],
  "model.isAdapter": ["peft_type", "lora_alpha"],
  "model.isTrainer": ["per_device_train_batch_size", "num_train_epochs", "learning_rate", "output_dir"],
};

function kindOf(document_) {
  const named = Object.entries(kinds).find(([, keys]) => keys.some((key) => key in document_));
  return named ? named[0] : "model.isOther";
}

function isRequest(document_) {
  if ("model_type" in document_ || "architectures" in document_) return false;
  return ["model", "config", "parameters"].some((key) => key in document_);
}

/** 7e9, 1.5B, 350M → a number. */
export function readCount(text) {
  const match = /^\s*([0-9][0-9\s_\u202f]*(?:\.[0-9]+)?(?:e\+?[0-9]{1,2})?)\s*([kmbt]?)\s*$/i.exec(text);
  if (!match) return undefined;
  const factor = { "": 1, k: 1e3, m: 1e6, b: 1e9, t: 1e12 }[match[2].toLowerCase()];
  const value = Number(match[1].replace(/[\s_\u202f]/g, "")) * factor;
  return Number.isFinite(value) ? value : undefined;
}

function sentence(text) {
  const short = shorten(String(text), 160);
  return /[.!?…]$/.test(short) ? short : `${short}.`;
}
