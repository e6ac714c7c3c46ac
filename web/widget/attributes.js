// Attributes of <tidemark-calculator> and options of the engine: every option has an attribute, its name with dashes (micro-batch-size,
// adapter-r); so have the other names that the command line knows (batch-size, lora-r).

/** Those that say how the widget looks; never an option's. */
export const ownAttributes = ["controls", "theme", "page", "loading"];

const dashed = (name) => name.toLowerCase().replace(/[._]/g, "-");

/** Attribute → option's name. */
export function attributesOf(schema) {
  const names = new Map();
  const add = (attribute, name) => {
    if (attribute.length > 1 && !names.has(attribute) && !ownAttributes.includes(attribute)) names.set(attribute, name);
  };
  for (const { name } of schema.options) add(dashed(name), name);
  for (const { name, flags = [], also = [] } of schema.options)
    for (const other of [...flags.map((flag) => flag.replace(/^-+/, "")), ...also]) add(dashed(other), name);
  return names;
}

/** The values that an element's attributes state; of two for one option the first counts. */
export function readAttributes(element, schema, names) {
  const values = {};
  for (const { name: attribute, value } of element.attributes) {
    const name = names.get(attribute);
    if (name === undefined || name in values) continue;
    // <… packing> is a switch that is on.
    const text = value === "" && schema.find(name).type === "boolean" ? "true" : value;
    const parsed = schema.parse(name, text);
    if (parsed !== undefined) values[name] = parsed;
  }
  return values;
}

export const escaped = (text) => text.replace(/&/g, "&amp;").replace(/"/g, "&quot;").replace(/</g, "&lt;");

/** Values as an HTML tag's attributes. */
export function attributeText(values, schema) {
  return Object.entries(values)
    .map(([name, value]) => `${dashed(name)}="${escaped(schema.print(name, value))}"`)
    .join(" ");
}

/** Writes what differs between two sets of values into the attributes, each under the name that it stands under already. */
export function writeAttributes(element, schema, names, before, after) {
  for (const { name } of schema.options) {
    if (JSON.stringify(before[name]) === JSON.stringify(after[name])) continue;
    const written = [...element.attributes].map((each) => each.name).filter((each) => names.get(each) === name);
    const [attribute = dashed(name), ...others] = written;
    for (const other of others) element.removeAttribute(other);
    if (after[name] === undefined) element.removeAttribute(attribute);
    else element.setAttribute(attribute, schema.print(name, after[name]));
  }
}

const usual = "model,gpu,method,sequence,batch";

/** The options that controls="model,gpu,sequence" names: by an attribute's name, or by how one begins. */
export function controlsOf(text, schema, names) {
  const words = (text ?? usual).split(/[\s,]+/).filter((word) => word !== "" && word !== "none");
  const found = words.map((word) => {
    const known = dashed(word);
    return names.get(known) ?? names.get([...names.keys()].find((name) => name.startsWith(known)));
  });
  return [...new Set(found)].filter((name) => schema.find(name)?.modelled);
}
