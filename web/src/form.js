// The inputs, made from `describe`: which options there are, their titles, values, limits, defaults and help, and when they matter, is not
// known here.
import { breath, h, setText, uniqueId } from "./dom.js";
import { t } from "./messages.js";
import { modelWays } from "./modelSearch.js";
import { shorten } from "./shorten.js";
import { createOptionField, resetButton } from "./optionField.js";
import { createStrategyField } from "./strategy.js";

/** What decides most: these groups stand first, and open on a phone as well. */
const question = ["gpu", "method", "batch"];

/** Built section by section into `place`, with pauses in which the browser does other things. */
export async function createForm({ schema, store, modelPicker, gpus, place }) {
  const change = (name, value) => store.set({ [name]: value });
  const fields = new Map();
  const fieldFor = (option) => {
    const field = createOptionField(option, { schema, store, gpus, change });
    fields.set(option.name, field);
    return field.node;
  };
  const optionsOf = (group) => {
    const isGuest = (option) => Number(option.group !== group.name);
    const here = schema.options.filter((option) => placeOf(option) === group.name && isShown(option, schema));
    return here.sort((a, b) => isGuest(a) - isGuest(b));
  };
  const groups = inOrder(schema.groups);
  const strategy = createStrategyField(store);
  fields.set("strategy", strategy);
  const model = createModelSection(modelPicker, schema, optionsOf, fieldFor);
  const advanced = createAdvanced();
  const node = createFormNode(model.node);
  place.append(node);

  const sections = [];
  async function build(group, box) {
    await breath();
    const section = createSection({ group, options: optionsOf(group), schema, store, fieldFor });
    sections.push(section);
    if (group.name === "gpu") section.node.querySelector("details").before(strategy.node);
    if (box) box.append(section.node);
    else settings.node.before(section.node);
  }
  const settings = createSettings();
  node.append(settings.node);
  for (const group of groups.filter(({ usual }) => usual))
    await build(group, !question.includes(group.name) && settings.node);
  node.append(advanced.node);
  for (const group of groups.filter(({ usual }) => !usual)) await build(group, advanced.node);

  return {
    /** values: the state's; issues: the answer's. */
    render(values, issues) {
      const problems = problemsOf(issues, schema);
      model.render(values, problems);
      for (const field of fields.values()) field.render(values, problems);
      let unseen = 0;
      for (const section of sections) {
        const changed = section.render(values);
        if (!section.usual) unseen += changed;
      }
      showCount(advanced.count, unseen);
    },
    /** The catalog has come. */
    refresh() {
      for (const field of fields.values()) field.refresh();
    },
    /** Brings an option into view and focuses it. */
    focus(name) {
      leadTo(modelWays.includes(name) ? model : fields.get(name));
    },
  };
}

/** Unfolds what hides a field, and focuses it. */
function leadTo(target) {
  if (!target) return;
  for (let fold = target.node.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  target.focus();
}

/** How many cards there are stands beside which. */
const placeOf = ({ name, group }) => (name === "parallelism.data" ? "gpu" : group);

/** The card is the other half of the question: it stands beside the model, which has a section of its own. */
function inOrder(groups) {
  const others = groups.filter(({ name }) => name !== "model");
  return [...others.filter(({ name }) => name === "gpu"), ...others.filter(({ name }) => name !== "gpu")];
}

/** Options that the model picker, or the word form of another option, already covers are not shown. */
function isShown({ name }, schema) {
  return !modelWays.includes(name) && !schema.isWordOfParent(name);
}

/** The first error or warning of each option. */
function problemsOf(issues, schema) {
  const problems = new Map();
  for (const issue of issues) {
    const name = schema.optionAt(issue.path);
    if (name && issue.severity !== "note" && issue.code !== "UNKNOWN_KEY" && !problems.has(name))
      problems.set(name, issue);
  }
  return problems;
}

function showCount(counter, amount) {
  counter.hidden = amount === 0;
  setText(counter, amount === 0 ? "" : t("form.changedCount", { count: amount }));
}

function createFormNode(...children) {
  const onsubmit = (event) => event.preventDefault();
  const attributes = { class: "form", "aria-label": t("form.label"), autocomplete: "off", novalidate: true, onsubmit };
  return h("form", attributes, h("h2", { class: "unseen" }, t("form.label")), children);
}

/** The further settings: where the form stands beside the result they are open, on a narrow screen a fold between the two. */
function createSettings() {
  const summary = h("summary", {}, h("span", { class: "advanced-title" }, t("form.settings")));
  const node = h("details", { class: "settings-fold", "data-testid": "settings" }, summary);
  const wide = matchMedia("(min-width: 1000px)");
  const follow = () => {
    node.open = wide.matches;
  };
  wide.addEventListener("change", follow);
  follow();
  return { node };
}

function createAdvanced() {
  const count = h("span", { class: "count", hidden: true });
  const title = h("span", { class: "advanced-title" }, t("form.advanced"));
  const summary = h("summary", {}, title, count, h("span", { class: "hint" }, t("form.advancedHint")));
  return { count, node: h("details", { class: "advanced", "data-testid": "advanced" }, summary) };
}

function createModelSection(modelPicker, schema, optionsOf, fieldFor) {
  const group = schema.groups.find(({ name }) => name === "model");
  const options = group ? optionsOf(group) : [];
  const body = h("div", { class: "more-body" }, options.map(fieldFor));
  const more = h("details", { class: "more" }, h("summary", {}, t("form.more")), body);
  const problem = h("p", { class: "problem", hidden: true, id: "problem-model" });
  const heading = uniqueId("heading");
  const { input } = modelPicker;
  const node = h(
    "section",
    { role: "group", class: "group", "aria-labelledby": heading, "data-group": "model" },
    h("div", { class: "group-head" }, h("h3", { id: heading }, t("model.label"))),
    modelPicker.node,
    problem,
    options.length > 0 && more,
  );
  return {
    node,
    focus: () => input.focus(),
    render(values, problems) {
      modelPicker.render(values);
      const trouble = modelWays.map((name) => problems.get(name)).find(Boolean);
      problem.hidden = !trouble;
      // In full it stands above the result.
      setText(problem, trouble ? shorten(trouble.message, 200) : "");
      if (trouble?.severity === "error") input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    },
  };
}

/** A group of options: what many change stands open, the rest is folded. */
function createSection({ group, options, schema, store, fieldFor }) {
  const folded = options.filter(({ advanced }) => advanced);
  const open = options.filter(({ advanced }) => !advanced);
  const counter = h("span", { class: "count", hidden: true });
  const words = t("form.resetGroup", { name: group.title });
  const none = Object.fromEntries(options.map(({ name }) => [name, undefined]));
  const takeBack = () => store.set(none, { name: `reset ${group.name}` });
  const reset = resetButton(takeBack, { class: "reset group-reset", "aria-label": words, title: words });
  const heading = uniqueId("heading");
  const more = () => {
    const summary = h("summary", {}, t("form.more"), " ", counter);
    return h("details", { class: "more" }, summary, h("div", { class: "more-body" }, folded.map(fieldFor)));
  };
  const node = h(
    "section",
    { role: "group", class: "group", "aria-labelledby": heading, "data-group": group.name },
    h("div", { class: "group-head" }, h("h3", { id: heading }, group.title), reset),
    open.map(fieldFor),
    open.length === 0 ? folded.map(fieldFor) : folded.length > 0 && more(),
  );
  return {
    node,
    usual: group.usual,
    /** Returns how many of its options are changed. */
    render(values) {
      const changed = options.filter(({ name }) => values[name] !== undefined).length;
      const useful = options.some((option) => option.modelled && schema.isRelevant(option, values));
      node.hidden = changed === 0 && !(useful && schema.isRelevant(group, values));
      reset.hidden = changed < 2;
      showCount(counter, folded.filter(({ name }) => values[name] !== undefined).length);
      return changed;
    },
  };
}
