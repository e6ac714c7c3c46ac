// The inputs, made from `describe`: which options there are, their values, limits, defaults and help is not known here. Only the order in
// which people think, and which groups matter for which method, is.
import { breath, h, setText, uniqueId } from "./dom.js";
import { grouped } from "./format.js";
import { createGpuPicker } from "./gpuPicker.js";
import { t } from "./messages.js";

// Groups that stand open, in this order; the rest is folded under "Advanced", whatever describe adds.
const openGroups = ["method", "adapter", "quantization", "precision", "batch", "memory", "optimizer", "loss", "gpu"];
// A group, or an option, that only some answers to another option make relevant. Changed ones are always shown.
const relevant = {
  adapter: (values) => ["lora", "qlora"].includes(values.method),
  quantization: (values) => values.method === "qlora",
  freeze: (values) => values.method === "freeze",
};
// Options promoted from "More", and where sliders stop; the number beside them goes as far as the engine does.
const promoted = new Set(["freeze"]);
const testIds = { micro_batch_size: "batch", sequence_length: "sequence", gpu: "gpu" };
const sliders = { micro_batch_size: [1, 256], sequence_length: [128, 131072], "adapter.r": [1, 512] };

/** Built section by section into `place`, with pauses in which the browser does other things. */
export async function createForm({ schema, store, modelPicker, gpus, place }) {
  const fields = new Map();
  const sections = [];
  // Options that the model picker, or the object form of another option, already covers.
  const hidden = new Set(["model", "config", "parameters"]);
  for (const option of schema.options) if (option.name.endsWith(".recipe")) hidden.add(option.name);

  const change = (name, value) => store.set({ [name]: value });

  function fieldFor(option) {
    const make = option.type === "gpu" ? gpuField : makers[widgetOf(option)];
    const field = make(option, { schema, store, change, gpus });
    const mark = h("button", { type: "button", class: "reset", hidden: true, onclick: () => {
      change(option.name, undefined);
      field.focus();
    } }, h("span", { "aria-hidden": "true" }, "↺"));
    const help = h("p", { class: "hint", id: `help-${option.name}` });
    const helpText = `${labelOf(option, schema)}.` === option.help ? option.name : option.help;
    const problem = h("p", { class: "problem", id: `problem-${option.name}`, hidden: true });
    const label = field.legend
      ? h("span", { class: "label", id: `label-${option.name}` }, labelOf(option, schema))
      : h("label", { class: "label", id: `label-${option.name}`, for: `option-${option.name}` }, labelOf(option, schema));
    const tip = option.unit ? h("span", { class: "unit" }, option.unit) : null;
    // Under a heading of the same words a label would only repeat it.
    const title = schema.groups.find((group) => group.name === option.group)?.title ?? "";
    const titled = title.toLowerCase() === labelOf(option, schema).toLowerCase();
    if (titled) label.classList.add("unseen");
    const node = h("div", { class: `option option-${field.kind}${titled ? " titled" : ""}`, "data-option": option.name },
      h("div", { class: "option-head" }, label, tip, mark), field.node, help, problem);
    const render = (values, problems) => {
      const value = values[option.name];
      const changed = value !== undefined && !schema.isDefault(option.name, value);
      node.classList.toggle("changed", changed);
      mark.hidden = !changed;
      if (changed) {
        const text = t("form.reset", { name: labelOf(option, schema), value: option.default === null ? t("form.none") : schema.print(option.name, option.default) || t("form.none") });
        mark.setAttribute("aria-label", text);
        mark.title = text;
      }
      field.show(value === undefined ? option.default : value, values);
      setText(help, option.modelled ? field.help?.(value === undefined ? option.default : value) ?? helpText : option.missing ?? t("form.notModelled"));
      const issue = problems.get(option.name);
      problem.hidden = !issue;
      setText(problem, issue ? issue.message : "");
      const bad = Boolean(issue) && issue.severity === "error";
      for (const control of field.controls) {
        if (bad) control.setAttribute("aria-invalid", "true");
        else control.removeAttribute("aria-invalid");
        control.setAttribute("aria-describedby", `help-${option.name}${issue ? ` problem-${option.name}` : ""}`);
        // What is not modelled accepts only its default: nothing to enter, except to take back what a link brought.
        control.disabled = !option.modelled && !changed;
      }
      const rule = relevant[option.name];
      node.hidden = Boolean(rule) && !rule(values) && !changed;
    };
    field.controls[0]?.setAttribute("data-testid", testIds[option.name] ?? option.name);
    fields.set(option.name, { node, focus: field.focus, render, refresh: field.refresh, option });
    return node;
  }

  function sectionFor(group, options) {
    const always = options.filter((option) => !option.advanced || promoted.has(option.name));
    const more = options.filter((option) => option.advanced && !promoted.has(option.name));
    const counter = h("span", { class: "count", hidden: true });
    const folded = more.length > 0 && always.length > 0
      ? h("details", { class: "more" }, h("summary", {}, t("form.more"), " ", counter), h("div", { class: "more-body" }, more.map(fieldFor)))
      : null;
    const reset = h("button", { type: "button", class: "reset group-reset", hidden: true, "aria-label": t("form.resetGroup", { name: group.title }), title: t("form.resetGroup", { name: group.title }),
      onclick: () => store.set(Object.fromEntries(options.map((option) => [option.name, undefined])), { name: `reset ${group.name}` }) }, h("span", { "aria-hidden": "true" }, "↺"));
    const headingId = uniqueId("heading");
    const node = h("section", { class: "group", "aria-labelledby": headingId, "data-group": group.name },
      h("div", { class: "group-head" }, h("h3", { id: headingId }, group.title), reset),
      always.map(fieldFor), always.length === 0 ? more.map(fieldFor) : folded);
    sections.push({ group, options, node, counter, folded, more, reset });
    return node;
  }

  const optionsOf = (group) => schema.options.filter((option) => option.group === group.name && !hidden.has(option.name));
  const byName = new Map(schema.groups.map((group) => [group.name, group]));
  const open = openGroups.filter((name) => byName.has(name)).map((name) => byName.get(name));
  const rest = schema.groups.filter((group) => group.name !== "model" && !openGroups.includes(group.name));
  const modelOptions = byName.has("model") ? optionsOf(byName.get("model")) : [];
  const modelMore = h("details", { class: "more" }, h("summary", {}, t("form.more")), h("div", { class: "more-body" }, modelOptions.map(fieldFor)));
  const modelProblem = h("p", { class: "problem", hidden: true, id: "problem-model" });
  const modelHeading = uniqueId("heading");
  const modelSection = h("section", { class: "group", "aria-labelledby": modelHeading, "data-group": "model" },
    h("div", { class: "group-head" }, h("h3", { id: modelHeading }, t("model.label"))), modelPicker.node, modelProblem, modelOptions.length > 0 && modelMore);

  const advancedCount = h("span", { class: "count", hidden: true });
  const advanced = h("details", { class: "advanced", "data-testid": "advanced" },
    h("summary", {}, h("span", { class: "advanced-title" }, t("form.advanced")), advancedCount, h("span", { class: "hint" }, t("form.advancedHint"))));
  const node = h("form", { class: "form", "aria-label": t("form.label"), autocomplete: "off", novalidate: true, onsubmit: (event) => event.preventDefault() },
    h("h2", { class: "unseen" }, t("form.label")), modelSection);
  place.append(node);
  for (const group of open) {
    await breath();
    node.append(sectionFor(group, optionsOf(group)));
  }
  node.append(advanced);
  for (const group of rest) {
    await breath();
    advanced.append(sectionFor(group, optionsOf(group)));
  }

  function showCount(counter, amount) {
    counter.hidden = amount === 0;
    setText(counter, amount === 0 ? "" : t("form.changedCount", { count: amount }));
  }

  return {
    /** values: the state's; issues: the answer's. */
    render(values, issues) {
      const problems = new Map();
      for (const issue of issues) {
        const name = schema.optionAt(issue.path);
        if (name && issue.severity !== "note" && issue.code !== "UNKNOWN_KEY" && !problems.has(name)) problems.set(name, issue);
      }
      modelPicker.render(values);
      const trouble = ["model", "config", "parameters"].map((name) => problems.get(name)).find(Boolean);
      modelProblem.hidden = !trouble;
      setText(modelProblem, trouble ? trouble.message : "");
      modelPicker.input.toggleAttribute("aria-invalid", false);
      if (trouble && trouble.severity === "error") modelPicker.input.setAttribute("aria-invalid", "true");
      for (const field of fields.values()) field.render(values, problems);
      let foldedChanges = 0;
      for (const { group, options, node: section, counter, more, reset } of sections) {
        const changed = options.filter((option) => values[option.name] !== undefined);
        const rule = relevant[group.name];
        section.hidden = Boolean(rule) && !rule(values) && changed.length === 0;
        reset.hidden = changed.length < 2;
        showCount(counter, more.filter((option) => values[option.name] !== undefined).length);
        if (!openGroups.includes(group.name)) foldedChanges += changed.length;
      }
      showCount(advancedCount, foldedChanges);
    },
    /** The catalog has come. */
    refresh() {
      for (const field of fields.values()) field.refresh?.();
    },
    /** Brings an option into view and focuses it. */
    focus(name) {
      const target = ["model", "config", "parameters"].includes(name) ? { node: modelPicker.node, focus: () => modelPicker.input.focus() } : fields.get(name);
      if (!target) return;
      for (let details = target.node.closest("details"); details; details = details.parentElement.closest("details")) details.open = true;
      target.focus();
    },
  };
}

const spelling = { lora: "LoRA", dora: "DoRA", gpu: "GPU", gpus: "GPUs", cuda: "CUDA", gib: "(GiB)", fsdp: "FSDP", fp32: "fp32", kbit: "k-bit", zero: "ZeRO", liger: "Liger" };

/** "Micro batch size" for micro_batch_size: the option's own name, made readable; a letter is named by its help ("Rank"). */
export function labelOf(option, schema) {
  const parts = option.name.split(".");
  const last = parts[parts.length - 1];
  if (last.length <= 2 && /^[\w ]{1,24}\.$/.test(option.help)) return option.help.slice(0, -1);
  const parentIsOption = parts.length > 1 && schema.find(parts.slice(0, -1).join("."));
  const words = (parentIsOption ? `${parts[0]}_${last}` : last).split("_").map((word) => spelling[word] ?? word);
  const text = words.join(" ");
  return text[0].toUpperCase() + text.slice(1);
}

function widgetOf(option) {
  if (option.type === "choice") {
    const known = option.values.filter((choice) => choice.modelled);
    const letters = known.reduce((sum, choice) => sum + choice.name.length, 0);
    return known.length <= 4 && letters <= 26 && option.default !== null ? "segments" : "select";
  }
  if (option.type === "boolean") return "toggle";
  if (option.type === "choices") return "checks";
  if (sliders[option.name]) return "slider";
  return "text";
}

const makers = {
  segments(option, { change, schema }) {
    const name = uniqueId("choice");
    const node = h("fieldset", { class: "segments", "aria-labelledby": `label-${option.name}` });
    const build = (choices) => choices.map((choice) => {
      const input = h("input", { type: "radio", name, value: choice.name, onchange: () => change(option.name, choice.name) });
      return h("label", { title: choice.help }, input, h("span", {}, choice.name));
    });
    const known = option.values.filter((choice) => choice.modelled);
    node.append(...build(known));
    const inputs = [...node.querySelectorAll("input")];
    return {
      kind: "segments", node, legend: true, controls: inputs,
      focus: () => (inputs.find((input) => input.checked) ?? inputs[0]).focus(),
      show: (value) => inputs.forEach((input) => { input.checked = input.value === canonical(option, value); }),
      help: (value) => helpOf(option, value, schema),
    };
  },
  select(option, { change, schema }) {
    const input = h("select", { id: `option-${option.name}`, class: "field", onchange: () => change(option.name, input.value === "" ? undefined : input.value) },
      option.default === null && h("option", { value: "" }, t("form.choose")),
      option.values.filter((choice) => choice.modelled).map((choice) => h("option", { value: choice.name }, choice.name)),
      option.values.some((choice) => !choice.modelled) && h("optgroup", { label: t("form.notModelled") },
        option.values.filter((choice) => !choice.modelled).map((choice) => h("option", { value: choice.name, disabled: true }, choice.name))));
    let stray = null;
    return {
      kind: "select", node: input, controls: [input], focus: () => input.focus(),
      show(value) {
        const text = value === null || value === undefined ? "" : canonical(option, value);
        stray?.remove();
        stray = null;
        if (![...input.options].some((choice) => choice.value === text)) {
          // A link's value that no choice has: shown as it is, so that it can be seen and changed.
          stray = h("option", { value: text }, text.slice(0, 60));
          input.append(stray);
        }
        input.value = text;
      },
      help: (value) => helpOf(option, value, schema),
    };
  },
  toggle(option, { change }) {
    const input = h("input", { id: `option-${option.name}`, type: "checkbox", class: "toggle", role: "switch", onchange: () => change(option.name, input.checked) });
    return { kind: "toggle", node: input, controls: [input], focus: () => input.focus(), show: (value) => { input.checked = value === true; } };
  },
  checks(option, { change, store }) {
    const node = h("fieldset", { class: "checks", "aria-labelledby": `label-${option.name}` });
    const inputs = option.values.filter((choice) => choice.modelled).map((choice) =>
      h("input", { type: "checkbox", value: choice.name, onchange: () => {
        const others = [].concat(store.get().values[option.name] ?? []).filter((word) => !inputs.some((input) => input.value === word));
        const words = [...inputs.filter((input) => input.checked).map((input) => input.value), ...others];
        change(option.name, words.length === 0 ? undefined : words);
      } }));
    node.append(...inputs.map((input) => h("label", {}, input, h("span", {}, input.value))));
    return { kind: "checks", node, legend: true, controls: inputs, focus: () => inputs[0]?.focus(),
      show: (value) => inputs.forEach((input) => { input.checked = [].concat(value ?? []).includes(input.value); }) };
  },
  slider(option, { change, schema }) {
    const [low, high] = sliders[option.name];
    const stops = stopsBetween(low, high);
    const text = numberInput(option, change, schema);
    const input = h("input", { type: "range", class: "slider", min: "0", max: String(stops.length - 1), step: "1", "aria-label": t("form.slider", { name: labelOf(option, schema) }),
      oninput: () => change(option.name, stops[Number(input.value)]) });
    return {
      kind: "slider", node: h("div", { class: "slider-row" }, input, text), controls: [text, input], focus: () => text.focus(),
      show(value) {
        showNumber(text, value);
        const number = typeof value === "number" ? value : low;
        let nearest = 0;
        stops.forEach((stop, index) => {
          if (Math.abs(Math.log(stop / number)) < Math.abs(Math.log(stops[nearest] / number))) nearest = index;
        });
        if (Number(input.value) !== nearest) input.value = String(nearest);
        input.setAttribute("aria-valuetext", `${typeof value === "number" ? grouped(value) : value} ${option.unit ?? ""}`);
        input.style.setProperty("--filled", `${(nearest / (stops.length - 1)) * 100}%`);
      },
    };
  },
  text(option, { change, schema }) {
    const isNumber = option.type === "integer" || option.type === "number";
    const input = isNumber ? numberInput(option, change, schema) : h("input", {
      id: `option-${option.name}`, type: "text", class: "field", autocomplete: "off", spellcheck: "false",
      placeholder: option.default === null ? t("form.none") : undefined,
      oninput: () => change(option.name, input.value.trim() === "" ? undefined : schema.parse(option.name, input.value)) });
    return {
      kind: isNumber ? "number" : "text", node: input, controls: [input], focus: () => input.focus(),
      show: (value) => {
        if (document.activeElement === input && JSON.stringify(schema.parse(option.name, input.value) ?? option.default) === JSON.stringify(value)) return;
        const shown = schema.print(option.name, value);
        if (input.value !== shown) input.value = shown;
      },
    };
  },
};

function gpuField(option, { store, schema, gpus }) {
  const picker = createGpuPicker({ store, schema, gpus, name: option.name });
  return { kind: "gpu", node: picker.node, controls: [picker.input], focus: () => picker.input.focus(), show: picker.show, refresh: picker.refresh };
}

function numberInput(option, change, schema) {
  const input = h("input", {
    id: `option-${option.name}`, type: "text", inputmode: option.type === "integer" ? "numeric" : "decimal", class: "field number", autocomplete: "off",
    placeholder: option.default === null ? t("form.none") : undefined,
    title: option.minimum !== undefined && option.maximum !== undefined ? t("form.range", { minimum: grouped(option.minimum), maximum: grouped(option.maximum) }) : undefined,
    oninput: () => change(option.name, schema.parse(option.name, input.value)),
    onblur: () => {
      if (input.value.trim() === "") showNumber(input, option.default);
    },
    onkeydown: (event) => {
      if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
      const value = schema.parse(option.name, input.value);
      if (typeof value !== "number" || option.type !== "integer") return;
      event.preventDefault();
      const factor = event.shiftKey ? 10 : 1;
      const next = Math.min(option.maximum ?? Infinity, Math.max(option.minimum ?? -Infinity, value + (event.key === "ArrowUp" ? factor : -factor)));
      change(option.name, next);
    },
  });
  input.schemaParse = (text) => schema.parse(option.name, text);
  return input;
}

function showNumber(input, value) {
  const text = value === null || value === undefined ? "" : String(value);
  // While somebody types "1e" or "16." over the same value, their text stays.
  if (document.activeElement === input && (input.value.trim() === "" || input.schemaParse(input.value) === value)) return;
  if (input.value !== text) input.value = text;
}

function canonical(option, value) {
  const word = String(value);
  const found = option.values.find((choice) => choice.name.toLowerCase() === word.toLowerCase() || (choice.aliases ?? []).includes(word));
  return found ? found.name : word;
}

function helpOf(option, value) {
  const chosen = option.values.find((choice) => choice.name === canonical(option, value));
  return chosen?.help ? `${chosen.help[0].toUpperCase()}${chosen.help.slice(1)}.` : option.help;
}

/** Powers of two and the halves between: 1, 2, 3, 4, 6, 8, 12 … */
export function stopsBetween(low, high) {
  const stops = [];
  for (let power = 1; power <= high; power *= 2) {
    if (power >= low) stops.push(power);
    const half = power * 1.5;
    if (power > 1 && half >= low && half < high) stops.push(half);
  }
  return stops;
}
