// One option of the form: its label, its control, its help, what is wrong with it, and the way back to its default.
import { h, memory, setText } from "./dom.js";
import { t, tOr } from "./messages.js";
import { said } from "./said.js";
import { shorten } from "./shorten.js";
import { widgetFor } from "./optionWidgets.js";

const testIds = { micro_batch_size: "batch", sequence_length: "sequence" };

/** A button that takes something back. */
export function resetButton(onclick, attributes = {}) {
  const sign = h("span", { "aria-hidden": "true" }, "↺");
  return h("button", { type: "button", class: "reset", hidden: true, onclick, ...attributes }, sign);
}

/**
 * context as widgetFor has it; `asked`: its title is short; `ungrouped`: it stands under no heading; isShown(option, values, changed): whether it stands there, unless it is
 * enough that it matters. Returns {node, focus(), refresh(), render(values, problems)}; problems: option's name → issue.
 */
export function createOptionField(option, context) {
  const { schema, change, isShown } = context;
  const { name } = option;
  const widget = widgetFor(option, context);
  const reset = resetButton(() => {
    change(name, undefined);
    widget.focus();
  });
  const { node, help, problem, why } = createNodes(option, widget, reset, context);

  function showChanged(changed) {
    node.classList.toggle("changed", changed);
    reset.hidden = !changed;
    if (!changed) return;
    const standard = (option.default !== null && schema.print(name, option.default)) || t("form.none");
    const text = t("form.reset", { name: option.label, value: standard });
    reset.setAttribute("aria-label", text);
    reset.title = text;
  }

  function showProblem(issue, changed) {
    problem.hidden = !issue;
    // In full it stands above the result.
    setText(problem, issue ? shorten(said(issue.message), 200) : "");
    for (const control of widget.controls) {
      markInvalid(control, issue?.severity === "error");
      control.setAttribute("aria-describedby", `help-${name}${issue ? ` problem-${name}` : ""}`);
      // What is not modelled accepts only its default: nothing to enter, except to take back what a link brought.
      control.disabled = !option.modelled && !changed;
    }
  }

  // What somebody typed since may be the same value in other words.
  const { isOther, forget } = memory();
  node.addEventListener("input", forget);

  return {
    node,
    focus: widget.focus,
    refresh: () => widget.refresh?.(),
    render(values, problems) {
      const changed = values[name] !== undefined && !schema.isDefault(name, values[name]);
      // What is not modelled can only be taken back.
      const matters = () => changed || (option.modelled && schema.isRelevant(option, values));
      const hidden = !(isShown?.(option, values, changed) ?? matters());
      if (node.hidden !== hidden) node.hidden = hidden;
      const issue = problems.get(name);
      if (!isOther([values[name], issue?.severity, issue?.message])) return;
      const value = values[name] ?? option.default;
      showChanged(changed);
      widget.show(value);
      const words = option.modelled ? (widget.help?.(value) ?? option.help) : (option.missing ?? t("form.notModelled"));
      setText(help, words);
      why.hidden = words === "";
      showProblem(issue, changed);
    },
  };
}

function markInvalid(control, isInvalid) {
  if (isInvalid) control.setAttribute("aria-invalid", "true");
  else control.removeAttribute("aria-invalid");
}

function createNodes({ name, label: title, unit, group }, widget, reset, { schema, ungrouped, asked }) {
  const label = asked ? tOr(`ask.${name}`, title) : title;
  // One line an option: what it means stands behind the question mark.
  const help = h("p", { class: "hint", id: `help-${name}`, hidden: !ungrouped });
  const why = whyButton(label, help);
  const problem = h("p", { class: "problem", id: `problem-${name}`, hidden: true });
  // Under a heading of the same words a label would only repeat it.
  const titled = !ungrouped && schema.titleOf(group).toLowerCase() === title.toLowerCase();
  const attributes = { class: titled ? "label unseen" : "label", id: `label-${name}` };
  const labelled = widget.legend
    ? h("span", attributes, label)
    : h("label", { ...attributes, for: `option-${name}` }, label);
  const node = h(
    "div",
    { class: `option option-${widget.kind}${titled ? " titled" : ""}`, "data-option": name },
    h("div", { class: "option-head" }, labelled, unit && h("span", { class: "unit" }, unit), !ungrouped && why, reset),
    widget.node,
    help,
    problem,
  );
  widget.controls[0]?.setAttribute("data-testid", testIds[name] ?? name);
  return { node, help, problem, why };
}

/** Shows an option's help and hides it again. */
function whyButton(name, help) {
  const words = t("form.help", { name });
  const onclick = () => {
    help.hidden = !help.hidden;
    node.setAttribute("aria-expanded", String(!help.hidden));
  };
  const attributes = { type: "button", class: "why", "aria-expanded": "false", "aria-controls": help.id, title: words };
  const node = h("button", { ...attributes, "aria-label": words, onclick }, "?");
  return node;
}
