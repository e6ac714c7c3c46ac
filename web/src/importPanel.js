// What came of other people's files: which fields were read and where they stand, what was assumed, what had no effect, and questions that a
// click answers.
import { h } from "./dom.js";
import { gib } from "./format.js";
import { t } from "./messages.js";
import { modelWays } from "./modelSearch.js";
import { said } from "./said.js";
import { shorten } from "./shorten.js";

const commonCards = ["NVIDIA GeForce RTX 4090", "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3"];
const commonNumbers = {
  sequence_length: [512, 1024, 2048, 4096, 8192],
  micro_batch_size: [1, 2, 4, 8],
  gradient_accumulation_steps: [1, 4, 8, 16],
  "adapter.r": [8, 16, 32, 64],
  "parallelism.data": [1, 2, 4, 8],
};

/** focusOption(name) leads to an option of the form. Returns {node, show(found), beside(comparisons), update(values)}. */
export function createImportPanel({ schema, store, tell, focusOption, gpus }) {
  const body = h("div", { class: "stack" });
  const questions = h("div", { class: "stack", "data-testid": "import-questions" });
  const measured = h("div", { class: "stack", "data-testid": "import-beside" });
  const node = h("section", {
    class: "panel imported",
    "aria-labelledby": "import-heading",
    tabindex: "-1",
    hidden: true,
    "data-testid": "imported",
  });
  let open = [];

  function close() {
    node.hidden = true;
    open = [];
  }
  function takeBack() {
    store.undo();
    close();
  }
  const context = { schema, store, tell, focusOption, gpus };

  return {
    node,
    /** found: as importer.js gives it. */
    show(found) {
      const words = headingOf(found);
      const undo = found.taken && button(t("page.undo"), takeBack, "import-undo");
      const head = h("h2", { id: "import-heading" }, words);
      const tools = h("div", { class: "row" }, undo, button(t("copy.close"), close, "import-close"));
      body.replaceChildren(...linesOf(found, context));
      open = questionsOf(found, schema);
      measured.replaceChildren();
      node.replaceChildren(head, measured, questions, body, tools);
      node.hidden = false;
      this.update(store.get().values);
      node.focus({ preventScroll: true });
      node.scrollIntoView({ block: "nearest" });
      tell(words, 0);
    },
    /** The logs beside the estimate that is shown. */
    beside(list) {
      measured.replaceChildren(...(list ?? []).map(comparison));
    },
    /** What the state answers is asked no more. */
    update(values) {
      if (node.hidden) return;
      questions.replaceChildren(
        ...open.filter(({ name }) => !isAnswered(name, values)).map((one) => question(one, context)),
      );
    },
  };
}

const button = (words, onclick, testid) =>
  h("button", { type: "button", class: "button quiet small", "data-testid": testid, onclick }, words);

function isAnswered(name, values) {
  if (name === "gpu") return values.gpu !== undefined || values.gpus !== undefined;
  if (modelWays.includes(name)) return modelWays.some((way) => values[way] !== undefined);
  return values[name] !== undefined;
}

function headingOf({ document: { files, job }, refused, taken }) {
  const names = files.map(({ file, what }) => t("import.file", { name: nameOf(file), what: what ?? "?" })).join(", ");
  // A log stands beside whatever job is shown: what the engine says of that job is not about the log.
  const logs = files.every(({ reading }) => reading);
  if (refused && !logs) return t("import.refused", { files: names });
  const count = Object.keys(job).length;
  return t(taken && !logs ? "import.taken" : "import.read", { files: names, count });
}

const nameOf = (file) => (file === "-" ? t("import.pasted") : shorten(file, 60));

// Questions -------------------------------------------------------------------------------------------------------------

/** "gpu", "micro_batch_size: auto" and "parallelism.data (launcher)" ask for an option; the rest is words. */
function asked(unknown, schema) {
  const [, name, why = ""] = /^([a-z_][\w.]*)(?:: (.*)| \((.*)\))?$/.exec(unknown) ?? [];
  return schema.find(name) || modelWays.includes(name) ? { name, why } : null;
}

/** What no file told and an option could: the card first. */
function questionsOf({ document: { unknowns, files }, values }, schema) {
  const isOfLog = (word) => files.some(({ reading }) => reading && word in reading);
  const all = unknowns.filter((word) => !isOfLog(word)).map((word) => asked(word, schema));
  const open = all.filter((one) => one && values[one.name] === undefined);
  return open.sort((a, b) => Number(b.name === "gpu") - Number(a.name === "gpu"));
}

/** What no file told and no option could either. */
const otherUnknowns = ({ unknowns, files }, schema) =>
  unknowns.filter((word) => !asked(word, schema) && !files.some(({ reading }) => reading && word in reading));

/** Values that a click gives. */
function offersOf(option, gpus) {
  if (option.type === "gpu") return commonCards.filter((name) => gpus().some((gpu) => gpu.name === name));
  if (option.type === "choice")
    return option.values
      .filter(({ modelled }) => modelled)
      .map(({ name }) => name)
      .slice(0, 6);
  if (option.type === "boolean") return [true, false];
  return commonNumbers[option.name] ?? [];
}

function question({ name, why }, { schema, store, focusOption, gpus }) {
  const option = schema.find(name);
  const isModel = modelWays.includes(name);
  const offers = isModel ? [] : offersOf(option, gpus);
  const answer = (value) => () => store.set({ [name]: value }, { name: `question ${name}` });
  const label = isModel ? t("model.label") : option.label;
  return h(
    "p",
    { class: "row question", "data-question": name },
    h("strong", {}, t("import.question", { name: label })),
    why && h("span", { class: "hint" }, why),
    offers.map((value) => button(String(value), answer(value))),
    button(offers.length > 0 ? t("import.other") : t("issues.goto", { name: label }), () => focusOption(name)),
  );
}

// What was read ---------------------------------------------------------------------------------------------------------

function linesOf(found, { schema }) {
  const { document: document_, wanted, keptModel, keptCard, before, refused, use } = found;
  const { issues, told = [], notes, not_counted: left = [], files } = document_;
  const untold = otherUnknowns(document_, schema);
  const unread = files.flatMap(({ unread: keys }) => keys);
  const kept = keptModel && before.model && Object.keys(found.values).length > 0;
  return [
    refused && refusal(refused, use),
    wanted.length > 0 && h("p", {}, t("import.wanted", { files: wanted.join(", ") })),
    kept && h("p", { class: "hint" }, t("import.keptModel", { model: String(before.model) })),
    !kept &&
      keptCard &&
      before.gpu !== undefined &&
      h("p", { class: "hint" }, t("import.keptCard", { gpu: schema.print("gpu", before.gpu) })),
    [...[...issues, ...told].map(({ message }) => said(message)), ...notes].map((text) =>
      h("p", { class: "hint" }, text),
    ),
    fieldsOf(document_, schema),
    untold.length > 0 && h("p", { class: "hint" }, t("import.untold", { what: untold.join("; ") })),
    left.length > 0 && h("p", {}, t("import.notCounted", { names: left.join(", ") })),
    keysOf(
      unread.filter(({ harmless }) => !harmless),
      "import.unread",
    ),
    keysOf(
      unread.filter(({ harmless }) => harmless),
      "import.harmless",
    ),
  ]
    .flat()
    .filter(Boolean);
}

function refusal(issues, use) {
  const errors = issues.filter(({ severity }) => severity === "error").map(({ message }) => h("p", {}, message));
  return h("div", { class: "problem", role: "alert" }, errors, button(t("import.use"), use, "import-use"));
}

/** "train.py:4–6", or, of what was pasted, "line 4–6". */
function placeOf({ file, cell, lines: [first, last] }) {
  const lines = last > first ? `${first}–${last}` : `${first}`;
  if (file === "-") return first > 0 ? t("import.line", { lines }) : nameOf(file);
  return nameOf(file) + (cell === undefined ? "" : ` ${t("import.cell", { cell })}`) + (first > 0 ? `:${lines}` : "");
}

/** One row a field: its name, its value, where it stands or why it is assumed. */
function fieldsOf({ request, provenance, assumed }, schema) {
  const flat = flatten(request);
  const rows = Object.entries(flat).map(([path, value]) => {
    const places = (provenance[path] ?? []).map(placeOf).join(", ");
    const why = assumed[path] && t(places ? "import.rule" : "import.assumed", { why: assumed[path] });
    const text = typeof value === "string" ? value : JSON.stringify(value);
    const cells = [path, shorten(text, 80), h("span", {}, places && h("code", {}, places), places && why && " ", why)];
    const title = schema.find(path)?.label;
    return h("tr", {}, h("th", { scope: "row", title }, cells[0]), h("td", {}, cells[1]), h("td", {}, cells[2]));
  });
  if (rows.length === 0) return null;
  const head = [t("import.field"), t("import.value"), t("import.place")].map((words_) =>
    h("th", { scope: "col" }, words_),
  );
  const table = h("table", { class: "fields" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows));
  const count = Object.keys(assumed).length;
  const words = t(count > 0 ? "import.fieldsAssumed" : "import.fields", { count: rows.length, assumed: count });
  return fold(
    words,
    h("div", { class: "scroll", role: "group", tabindex: "0", "aria-label": words }, table),
    "import-fields",
  );
}

function keysOf(list, key) {
  if (list.length === 0) return null;
  const items = list.map((one) => h("li", {}, h("code", {}, shorten(one.key, 80)), " ", placeOf(one)));
  return fold(t(key, { count: list.length }), h("ul", {}, items));
}

const fold = (words, content, testid) =>
  h(
    "details",
    { class: "more", "data-testid": testid },
    h("summary", {}, words),
    h("div", { class: "more-body" }, content),
  );

/** {adapter: {r: 8}} → {"adapter.r": 8}; a config.json is one value. */
function flatten(object, prefix = "", out = {}) {
  for (const [key, value] of Object.entries(object)) {
    const isDeeper =
      value !== null && typeof value === "object" && !Array.isArray(value) && key !== "config" && key !== "gpu";
    if (isDeeper) flatten(value, `${prefix}${key}.`, out);
    else out[prefix + key] = value;
  }
  return out;
}

// Beside the job --------------------------------------------------------------------------------------------------------

/** The command's own words about a log, with its figures. */
function comparison({ file, rows, sentences }) {
  const lines = rows.map(({ what, estimated_bytes: estimated, measured_bytes: taken }) =>
    h("li", {}, t("import.row", { what, estimated: gib(estimated), measured: gib(taken) })),
  );
  return h(
    "div",
    { class: "stack beside" },
    h("h3", {}, t("import.beside", { name: nameOf(file) })),
    sentences.map((text, at) => h("p", {}, at === 0 ? h("strong", {}, text) : text)),
    lines.length > 0 && h("ul", {}, lines),
  );
}
