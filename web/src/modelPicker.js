// Which model: search the catalog by typing, give a config.json (paste, open, or drop anywhere on the page), or only a parameter count.
import { h, hasFocus, setText } from "./dom.js";
import { count } from "./format.js";
import { sourceOf } from "./importer.js";
import { t } from "./messages.js";
import { readCount } from "./numbers.js";
import { readPermalink } from "./permalink.js";
import { shorten } from "./shorten.js";
import { createModelSearch, modelWays, noModel } from "./modelSearch.js";

/** Of JSON that this page reads itself: configurations have kilobytes. */
const largestConfig = 2 * 2 ** 20;

/**
 * store, schema; models() → the catalog's models, none before refresh(); tell(text) announces; take(sources, from) reads anything else, and
 * showFound(found) shows what came of it.
 */
export function createModelPicker({ store, schema, models, tell, take, showFound }) {
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
    multiple: true,
    tabindex: "-1",
    "aria-hidden": "true",
    onchange: () => {
      const chosen = [...file.files];
      // So that the same file can be chosen again.
      file.value = "";
      if (chosen.length > 0) readFiles(chosen);
    },
  });
  const message = h("p", { class: "problem", role: "alert", hidden: true, "data-testid": "model-problem" });
  const using = h("p", { class: "hint" });
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
  const use = { type: "button", class: "button", onclick: () => accept(draft.value, t("model.pasted")) };
  const open = { type: "button", class: "button quiet", onclick: () => file.click() };
  const more = h(
    "details",
    { class: "model-more", "data-testid": "model-files" },
    h("summary", {}, t("model.other")),
    h(
      "div",
      { class: "stack popover" },
      h("p", { class: "hint" }, t("model.paste")),
      draft,
      h("div", { class: "row" }, h("button", use, t("model.use")), h("button", open, t("model.open")), file),
      using,
      h("p", { class: "hint" }, t("model.countHint")),
      number,
    ),
  );
  const node = h("div", { class: "model-picker", "data-testid": "model-picker" }, search.node, more);
  // What was chosen there is named in the field above.
  store.subscribe(() => {
    more.open = false;
  });
  more.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !more.open) return;
    more.open = false;
    more.querySelector("summary").focus();
  });

  function complain(text) {
    message.hidden = text === "";
    setText(message, text);
    return undefined;
  }

  /** A text: a config.json or a request of ours is understood at once, a name is looked up, all else goes to the reader. */
  async function accept(text, from, name_ = "-") {
    const document_ = documentOf(text);
    if (document_ && isRequest(document_)) {
      complain("");
      const { values, unknown } = schema.fromRequest(document_);
      const notes = unknown.map(([key]) => ({ code: "unknown", key }));
      store.replace({ values, unknown, notes }, { source: "paste" });
      tell(t("model.loadedRequest", { name: from }));
    } else if (document_ && isModel(document_)) {
      complain("");
      choose({ config: document_ });
      tell(t("model.loaded", { name: from }));
    } else if (hashOf(text)) {
      complain("");
      store.replace(readPermalink(hashOf(text), schema), { source: "paste" });
      tell(t("model.loadedRequest", { name: from }));
    } else if (isName(text)) {
      complain("");
      choose({ model: text.trim() });
    } else {
      await read([{ name: name_, bytes: text }], from);
    }
  }

  /** Anything: what the reader makes of it. */
  async function read(sources, from) {
    const found = await take(sources, from);
    if (!found) return;
    if (!found.problem) {
      complain("");
      showFound(found);
      return;
    }
    const [only] = sources;
    const reason = sources.length === 1 && typeof only.bytes === "string" && reasonNotJson(only.bytes);
    complain(reason ? t("model.notJson", { name: from, reason }) : `${found.problem} ${t("import.unchanged")}`);
  }

  async function readFiles(files) {
    const from = shorten(files[0].name || "file");
    try {
      const [first] = files;
      if (files.length === 1 && first.size <= largestConfig && /\.json$/i.test(first.name)) {
        await accept(await first.text(), from, first.name);
      } else {
        await read(await Promise.all(files.map(sourceOf)), from);
      }
    } catch (error) {
      complain(t("model.unreadable", { name: from, reason: sentence(error.message) }));
    }
  }

  function render(values) {
    // Another model: what was wrong with a file before is no longer of interest.
    const said = JSON.stringify(modelWays.map((key) => values[key]));
    if (said !== lastSaid) complain("");
    lastSaid = said;
    search.show(values.model ?? nameOf(values));
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
    setText(using, values.config === undefined ? "" : t("model.configUsed", { name: nameOf(values) }));
  }
  let lastSaid;
  let lastConfig;

  /** The catalog has come. */
  function refresh() {
    search.refresh();
  }

  return { node, message, render, refresh, accept, readFiles, input: search.input };
}

/** What stands in place of a model's name: the configuration's kind, or a count; empty without either. */
function nameOf({ config, parameters }) {
  if (config !== undefined) return t("model.configOf", { type: shorten(String(config?.model_type ?? "?")) });
  return parameters === undefined ? "" : t("model.countOf", { count: count(Number(parameters)) });
}

/** Files dropped, and text pasted outside of fields, anywhere on the page; in the field of the model, text that is more than a name. */
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
    const dropped = [...event.dataTransfer.files];
    if (dropped.length > 0) {
      event.preventDefault();
      picker.readFiles(dropped);
    } else if (!isField(event.target)) {
      event.preventDefault();
      picker.accept(event.dataTransfer.getData("text/plain"), t("model.pasted"));
    }
  });
  addEventListener("paste", (event) => {
    const pasted = [...(event.clipboardData?.files ?? [])];
    const text = event.clipboardData?.getData("text/plain") ?? "";
    const isHere = event.target === picker.input && /[\n{]/.test(text.trim());
    if (isField(event.target) && !isHere && pasted.length === 0) return;
    if (pasted.length === 0 && text.trim() === "") return;
    event.preventDefault();
    if (pasted.length > 0) picker.readFiles(pasted);
    else picker.accept(text, t("model.pasted"));
  });
}

function isField(node) {
  return node instanceof Element && node.closest("input, textarea, select, [contenteditable]") !== null;
}

/** transformers' configurations name their class or type; anything else changes nothing. */
const isModel = (document_) => "model_type" in document_ || "architectures" in document_;

/** A JSON object, or null. */
function documentOf(text) {
  if (text.length > largestConfig || !text.trimStart().startsWith("{")) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Why a text that begins like JSON is none; empty where it does not. */
function reasonNotJson(text) {
  if (!/^\s*[{[]/.test(text)) return "";
  try {
    JSON.parse(text);
    return "";
  } catch (error) {
    return sentence(error.message);
  }
}

/** What stands behind the # of a link of this page's; empty where the text is none. */
const hashOf = (text) => /^\s*\S*#(v=\d+&\S+)\s*$/.exec(text)?.[1] ?? "";

/** An id or an address of Hugging Face's. */
const isName = (text) =>
  /^\s*(https:\/\/huggingface\.co\/)?[\w.-]+\/[\w.-]+\/?\s*$/.test(text) && !/\.\w{2,4}\s*$/.test(text);

function isRequest(document_) {
  if ("model_type" in document_ || "architectures" in document_) return false;
  return ["model", "config", "parameters"].some((key) => key in document_);
}

function sentence(text) {
  const short = shorten(String(text), 160);
  return /[.!?…]$/.test(short) ? short : `${short}.`;
}
