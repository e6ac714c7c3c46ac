// Errors, warnings and notes of the engine and of the link, each with a way to the option that it speaks of.
import { h, memory, setText } from "./dom.js";
import { t } from "./messages.js";
import { said } from "./said.js";

// Issues whose suggestion is a value for the option that they point at.
const takeable = new Set(["INVALID_VALUE", "UNKNOWN_MODEL", "UNKNOWN_GPU", "UNSUPPORTED_OPTION", "ASSUMED_DEFAULT"]);
const takeableTypes = ["choice", "integer", "number", "string", "gpu", "boolean"];
const severities = ["error", "warning", "note"];
const noteWords = { unknown: "issues.unknownKey", newer: "issues.newer", repeated: "issues.repeated" };

const link = (words, onclick) => h("button", { type: "button", class: "link", onclick }, words);

/** How many errors there are, and the first, as it is read aloud. */
export const errorWords = (errors) =>
  t(errors.length === 1 ? "announce.error" : "announce.errors", {
    count: errors.length,
    first: said(errors[0]?.message ?? ""),
  });

/** What of a state an issue about an option without effect means: the option, or all that were changed in its group. */
function withoutEffect({ code, path }, schema, values) {
  if (code !== "IGNORED_OPTION") return [];
  const stem = path.split("/").filter(Boolean).join(".");
  return Object.keys(schema.prune(values)).filter((name) => name === stem || name.startsWith(`${stem}.`));
}

export function createIssues({ schema, store, focusOption }) {
  const { isOther } = memory();
  const list = h("ul", { class: "issues" });
  // Notes change nothing about the answer: a line says how many there are.
  const noteCount = h("summary");
  const noteList = h("ul", { class: "issues" });
  const notesFold = h("details", { class: "issue-notes", "data-testid": "notes" }, noteCount, noteList);
  const attributes = {
    role: "group",
    class: "issues-box",
    "aria-label": t("issues.label"),
    "data-testid": "issues",
    hidden: true,
  };
  const node = h("section", attributes, list, notesFold);

  function rowOf(issue) {
    const { suggestion, code, message } = issue;
    const severity = severities.includes(issue.severity) ? issue.severity : "note";
    const name = schema.optionAt(issue.path);
    const option = name && schema.find(name);
    const usable = suggestion && option && takeable.has(code) && takeableTypes.includes(option.type);
    const take = () => store.set({ [name]: schema.parse(name, suggestion) });
    const idle = withoutEffect(issue, schema, store.get().values);
    const takeBack = () => store.set(Object.fromEntries(idle.map((each) => [each, undefined])), { name: "idle" });
    return item(severity, said(message), [
      usable && link(t("issues.use", { value: suggestion }), take),
      idle.length > 0 && link(t("issues.takeBack"), takeBack),
      option && link(t("issues.goto", { name: option.label }), () => focusOption(name)),
      suggestion && !usable && severity !== "note" && h("span", { class: "issue-suggestion" }, suggestion),
    ]);
  }

  /** What was odd about a link. */
  function rowOfNote({ code, key }) {
    const forget = code === "unknown" && link(t("issues.forget"), () => store.dropUnknown());
    return item("warning", t(noteWords[code], { key: key.slice(0, 60) }), [forget]);
  }

  return {
    node,
    /** @param {import("../../wasm/tidemark.js").Issue[]} issues */
    render(issues, notes) {
      if (!isOther([issues, notes, Object.keys(store.get().values)])) return;
      const isNote = ({ severity }) => severity !== "error" && severity !== "warning";
      const rows = [...issues.filter((issue) => !isNote(issue)).map(rowOf), ...notes.map(rowOfNote)];
      const further = issues.filter(isNote).map(rowOf);
      list.replaceChildren(...rows);
      noteList.replaceChildren(...further);
      setText(noteCount, t(further.length === 1 ? "issues.oneNote" : "issues.notes", { count: further.length }));
      list.hidden = rows.length === 0;
      notesFold.hidden = further.length === 0;
      node.hidden = rows.length + further.length === 0;
    },
  };
}

function item(severity, message, actions) {
  const shown = actions.filter(Boolean).map((action) => [" ", action]);
  const kind = h("span", { class: "issue-kind" }, t(`issues.${severity}`));
  return h("li", { class: `issue is-${severity}` }, kind, h("span", { class: "issue-text" }, message, shown));
}
