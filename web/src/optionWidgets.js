// The controls of an option, by what it takes. Each has {kind, node, controls, focus(), show(value)}, and may have `legend` (it is a group of
// controls, with a name of its own), help(value), and refresh(), for when the catalog has come.
import { h, hasFocus, uniqueId } from "./dom.js";
import { grouped } from "./format.js";
import { createGpuPicker } from "./gpuPicker.js";
import { t } from "./messages.js";
import { createModelSearch } from "./modelSearch.js";
import { createNumberInput, nearestStop, stopsBetween } from "./numberInput.js";

/** context: {schema, store, change(name, value)}; gpus() and models() → the catalog's, none before it has come. */
export function widgetFor(option, context) {
  return makers[widgetOf(option)](option, context);
}

// A few short words stand side by side; more of them, or longer ones, are chosen from a list.
const mostSegments = 4;
const mostLetters = 26;

// Words that files and links bring and nobody is asked for: `adapter.kind` and the others say the same.
const notAsked = {
  method: ["oft", "qoft", "boft", "ia3", "adalora", "loha", "lokr", "vera", "ln_tuning", "prompt_tuning", "p_tuning"],
};

function knownOf(option) {
  return option.values.filter(({ name, modelled }) => modelled && !notAsked[option.name]?.includes(name));
}

function widgetOf(option) {
  if (option.name === "model") return "model";
  if (option.type === "choice") {
    const known = knownOf(option);
    const letters = known.reduce((sum, choice) => sum + choice.name.length, 0);
    return known.length <= mostSegments && letters <= mostLetters && option.default !== null ? "segments" : "select";
  }
  if (option.type === "integer" || option.type === "number") return option.usual ? "slider" : "number";
  return { gpu: "gpu", boolean: "toggle", choices: "checks" }[option.type] ?? "text";
}

const makers = { model, gpu, segments, select, toggle, checks, slider, number, text };

/** The usual spelling of a choice's value. */
function canonical(option, value) {
  const word = String(value);
  const found = option.values.find(
    (choice) => choice.name.toLowerCase() === word.toLowerCase() || (choice.aliases ?? []).includes(word),
  );
  return found ? found.name : word;
}

function helpOf(option, value) {
  const chosen = option.values.find((choice) => choice.name === canonical(option, value));
  return chosen?.help ? `${chosen.help[0].toUpperCase()}${chosen.help.slice(1)}.` : option.help;
}

function gpu(option, { store, schema, gpus }) {
  const { node, input, show, refresh } = createGpuPicker({ store, schema, gpus, name: option.name });
  return { kind: "gpu", node, controls: [input], focus: () => input.focus(), show, refresh };
}

function model(_, { store, models }) {
  const { node, input, show, refresh } = createModelSearch({ store, models });
  return { kind: "model", node, controls: [input], focus: () => input.focus(), show, refresh };
}

function segments(option, { change }) {
  const name = uniqueId("choice");
  const known = knownOf(option);
  const inputs = known.map(({ name: value }) =>
    h("input", { type: "radio", name, value, onchange: () => change(option.name, value) }),
  );
  const labels = inputs.map((input, at) => h("label", { title: known[at].help }, input, h("span", {}, input.value)));
  return {
    kind: "segments",
    node: h("fieldset", { class: "segments", "aria-labelledby": `label-${option.name}` }, labels),
    legend: true,
    controls: inputs,
    focus: () => (inputs.find((input) => input.checked) ?? inputs[0]).focus(),
    show: (value) => {
      for (const input of inputs) input.checked = input.value === canonical(option, value);
    },
    help: (value) => helpOf(option, value),
  };
}

function select(option, { change }) {
  const choice = ({ name, modelled }) => h("option", { value: name, disabled: !modelled }, name);
  const known = option.values.filter(({ modelled }) => modelled);
  const unknown = option.values.filter(({ modelled }) => !modelled);
  const node = h(
    "select",
    {
      id: `option-${option.name}`,
      class: "field",
      onchange: () => change(option.name, node.value === "" ? undefined : node.value),
    },
    option.default === null && h("option", { value: "" }, t("form.choose")),
    known.map(choice),
    unknown.length > 0 && h("optgroup", { label: t("form.notModelled") }, unknown.map(choice)),
  );
  let stray = null;
  return {
    kind: "select",
    node,
    controls: [node],
    focus: () => node.focus(),
    show(value) {
      const word = value === null || value === undefined ? "" : canonical(option, value);
      stray?.remove();
      stray = null;
      if (![...node.options].some((each) => each.value === word)) {
        // A link's value that no choice has: shown as it is, so that it can be seen and changed.
        stray = h("option", { value: word }, word.slice(0, 60));
        node.append(stray);
      }
      node.value = word;
    },
    help: (value) => helpOf(option, value),
  };
}

function toggle(option, { change }) {
  const node = h("input", {
    id: `option-${option.name}`,
    type: "checkbox",
    class: "toggle",
    role: "switch",
    onchange: () => change(option.name, node.checked),
  });
  const show = (value) => {
    node.checked = value === true;
  };
  return { kind: "toggle", node, controls: [node], focus: () => node.focus(), show };
}

function checks(option, { change, store }) {
  const known = option.values.filter((choice) => choice.modelled).map((choice) => choice.name);
  const inputs = known.map((value) => h("input", { type: "checkbox", value, onchange: take }));

  /** The ticked words, and those of a link that have no box. */
  function take() {
    const others = [store.get().values[option.name] ?? []].flat().filter((word) => !known.includes(word));
    const words = [...inputs.filter((input) => input.checked).map((input) => input.value), ...others];
    change(option.name, words.length === 0 ? undefined : words);
  }
  const labels = inputs.map((input) => h("label", {}, input, h("span", {}, input.value)));
  return {
    kind: "checks",
    node: h("fieldset", { class: "checks", "aria-labelledby": `label-${option.name}` }, labels),
    legend: true,
    controls: inputs,
    focus: () => inputs[0]?.focus(),
    show: (value) => {
      for (const input of inputs) input.checked = [value ?? []].flat().includes(input.value);
    },
  };
}

/** Stops where people usually are; the number beside it goes as far as the engine does. */
function slider(option, { change, schema }) {
  const [low, high] = option.usual;
  const stops = stopsBetween(low, high);
  const { node: field, show: showNumber } = createNumberInput(option, change, schema);
  const node = h("input", {
    type: "range",
    class: "slider",
    min: "0",
    max: String(stops.length - 1),
    step: "1",
    "aria-label": t("form.slider", { name: option.label }),
    oninput: () => change(option.name, stops[Number(node.value)]),
  });
  return {
    kind: "slider",
    node: h("div", { class: "slider-row" }, node, field),
    controls: [field, node],
    focus: () => field.focus(),
    show(value) {
      showNumber(value);
      const nearest = nearestStop(stops, typeof value === "number" ? value : low);
      if (Number(node.value) !== nearest) node.value = String(nearest);
      const words = typeof value === "number" ? grouped(value) : value;
      node.setAttribute("aria-valuetext", `${words} ${option.unit ?? ""}`);
      node.style.setProperty("--filled", `${(nearest / (stops.length - 1)) * 100}%`);
    },
  };
}

function number(option, { change, schema }) {
  const { node, show } = createNumberInput(option, change, schema);
  return { kind: "number", node, controls: [node], focus: () => node.focus(), show };
}

function text(option, { change, schema }) {
  const read = () => (node.value.trim() === "" ? undefined : schema.parse(option.name, node.value));
  const node = h("input", {
    id: `option-${option.name}`,
    type: "text",
    class: "field",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: option.default === null ? t("form.none") : undefined,
    oninput: () => change(option.name, read()),
  });
  return {
    kind: "text",
    node,
    controls: [node],
    focus: () => node.focus(),
    show(value) {
      const same = JSON.stringify(read() ?? option.default) === JSON.stringify(value);
      // Another spelling of the same stays while somebody types.
      if (hasFocus(node) && same) return;
      const shown = schema.print(option.name, value);
      if (node.value !== shown) node.value = shown;
    },
  };
}
