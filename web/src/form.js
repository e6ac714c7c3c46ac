// The settings, made from `describe`: which options there are, their titles, values, limits, defaults and help, and when they matter, is not
// known here. Shown are those that matter for what is asked and those that were changed; all of them on demand, or those that are searched for.
import { askedFor } from "./question.js";
import { breath, h, setText, uniqueId } from "./dom.js";
import { t } from "./messages.js";
import { modelWays } from "./modelSearch.js";
import { createOptionField, resetButton } from "./optionField.js";

/** Built section by section into `place`, with pauses in which the browser does other things. */
export async function createForm({ schema, store, gpus, place }) {
  const change = (name, value) => store.set({ [name]: value });
  let last = [{}, new Map()];
  const finder = createFinder(() => draw(...last));
  const fields = new Map();
  const context = { schema, store, gpus, change, isShown: shownBy(finder, schema) };
  const fold = createFold();
  const none = h("p", { class: "hint group", hidden: true, "data-testid": "found-none" }, t("form.foundNone"));
  fold.node.append(h("div", { class: "settings-head" }, finder.node), none);
  place.append(createFormNode(fold.node));
  const sections = [];
  for (const group of [...schema.groups].sort((a, b) => Number(b.usual ?? false) - Number(a.usual ?? false))) {
    const options = schema.options.filter((option) => option.group === group.name && isOption(option, schema));
    if (options.length === 0) continue;
    await breath();
    const own = options.map((option) => createOptionField(option, context));
    options.forEach((option, at) => {
      fields.set(option.name, own[at]);
    });
    sections.push(createSection({ group, options, fields: own, store }));
    none.before(sections.at(-1).node);
  }

  function draw(values, problems) {
    last = [values, problems];
    for (const field of fields.values()) field.render(values, problems);
    const changed = sections.reduce((sum, section) => sum + section.render(values), 0);
    none.hidden = sections.some((section) => !section.node.hidden);
    fold.count.hidden = changed === 0;
    setText(fold.count, changed === 0 ? "" : t("form.changedCount", { count: changed }));
  }
  return {
    /** values: the state's; problems: option's name → issue. */
    render: draw,
    /** The catalog has come. */
    refresh() {
      for (const field of fields.values()) field.refresh();
    },
    /** Brings an option into view and focuses it. */
    focus(name) {
      const field = fields.get(name);
      if (!field) return;
      fold.node.open = true;
      if (field.node.hidden) finder.showAll();
      field.focus();
    },
  };
}

/** Whether an option stands there now: what matters and many change, what was changed, what is searched for, or all. */
function shownBy(finder, schema) {
  const groups = new Map(schema.groups.map((group) => [group.name, group]));
  return (option, values, changed) => {
    const words = finder.words();
    if (words !== "") return (option.modelled || changed) && words.split(/\s+/).every(textOf(option));
    if (changed || finder.all()) return changed || option.modelled;
    const group = groups.get(option.group);
    const isUsual = option.modelled && group?.usual && !option.advanced;
    return isUsual && schema.isRelevant(group, values) && schema.isRelevant(option, values);
  };
}

/** What an option is found by. */
function textOf({ name, label, help }) {
  const text = `${name} ${label} ${help}`.toLowerCase();
  return (word) => text.includes(word);
}

/** Options that the question asks for, or the word form of another one covers, do not stand here. */
function isOption({ name }, schema) {
  return !modelWays.includes(name) && !askedFor.includes(name) && !schema.isWordOfParent(name);
}

/** The first error or warning of each option. */
export function problemsOf(issues, schema) {
  const problems = new Map();
  for (const issue of issues) {
    const name = schema.optionAt(issue.path);
    if (name && issue.severity !== "note" && issue.code !== "UNKNOWN_KEY" && !problems.has(name))
      problems.set(name, issue);
  }
  return problems;
}

/** Finds options by words, or shows all of them; onchange() is called when it is used. */
function createFinder(onchange) {
  const named = { type: "search", class: "field small", placeholder: t("form.find"), "aria-label": t("form.find") };
  const search = h("input", { ...named, autocomplete: "off", spellcheck: "false", "data-testid": "find-option" });
  let words = "";
  search.addEventListener("input", () => {
    words = search.value.trim().toLowerCase();
    onchange();
  });
  const toggle = h("input", { type: "checkbox", "data-testid": "show-all", onchange });
  return {
    node: [search, h("label", { class: "checks" }, toggle, h("span", {}, t("form.showAll")))],
    words: () => words,
    all: () => toggle.checked,
    showAll() {
      search.value = words = "";
      toggle.checked = true;
      onchange();
    },
  };
}

function createFormNode(...children) {
  const onsubmit = (event) => event.preventDefault();
  const attributes = { class: "form", "aria-label": t("form.label"), autocomplete: "off", novalidate: true, onsubmit };
  return h("form", attributes, h("h2", { class: "unseen" }, t("form.label")), children);
}

/** Where the settings stand beside the answer they are open, on a narrow screen a fold below it. */
function createFold() {
  const count = h("span", { class: "count", hidden: true });
  const summary = h("summary", {}, h("span", { class: "settings-title" }, t("form.settings")), count);
  const node = h("details", { class: "settings-fold", "data-testid": "settings" }, summary);
  const wide = matchMedia("(min-width: 62.5rem)");
  const follow = () => {
    node.open = wide.matches;
  };
  wide.addEventListener("change", follow);
  follow();
  return { node, count };
}

function createSection({ group, options, fields, store }) {
  const words = t("form.resetGroup", { name: group.title });
  const none = Object.fromEntries(options.map(({ name }) => [name, undefined]));
  const takeBack = () => store.set(none, { name: `reset ${group.name}` });
  const reset = resetButton(takeBack, { class: "reset group-reset", "aria-label": words, title: words });
  const heading = uniqueId("heading");
  const node = h(
    "section",
    // Until it is known which of its options matter it takes no room: what stands there would jump.
    { role: "group", class: "group", "aria-labelledby": heading, "data-group": group.name, hidden: true },
    h("div", { class: "group-head" }, h("h3", { id: heading }, group.title), reset),
    fields.map((field) => field.node),
  );
  return {
    node,
    /** Returns how many of its options are changed. */
    render(values) {
      const changed = options.filter(({ name }) => values[name] !== undefined).length;
      node.hidden = fields.every((field) => field.node.hidden);
      reset.hidden = changed < 2;
      return changed;
    },
  };
}
