// The widget's attributes are the engine's options, there and back; many askers share one engine; its worker may come late.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { readPermalink, writePermalink } from "../../web/src/permalink.js";
import { createSchema } from "../../web/src/schema.js";
import {
  attributesOf,
  controlsOf,
  ownAttributes,
  readAttributes,
  writeAttributes,
} from "../../web/widget/attributes.js";
import { manifestOf } from "../../web/widget/manifest.mjs";
import { lateWorker } from "../../web/widget/service.js";
import { snippetsOf } from "../../web/widget/snippets.js";
import { randomFrom, stateWith } from "./draw.mjs";
import { describe } from "./engines.mjs";

const schema = createSchema(await describe());
const names = attributesOf(schema);

/** As much of an element as has attributes. */
function elementWith(attributes = {}) {
  const held = new Map(Object.entries(attributes));
  return {
    held,
    get attributes() {
      return [...held].map(([name, value]) => ({ name, value }));
    },
    setAttribute: (name, value) => held.set(name, String(value)),
    removeAttribute: (name) => held.delete(name),
  };
}

test("every option has an attribute, which no attribute of HTML or of the element itself has taken", () => {
  const taken = ["id", "class", "style", "slot", "part", "title", "lang", "dir", "hidden", "tabindex", "role", "name"];
  for (const option of schema.options) assert.ok([...names.values()].includes(option.name), option.name);
  for (const [attribute] of names) {
    assert.match(attribute, /^[a-z][a-z0-9-]*$/);
    assert.ok(![...taken, ...ownAttributes].includes(attribute), attribute);
  }
});

test("what is written into attributes is read from them, for states drawn over all options", () => {
  const random = randomFrom(20261122);
  for (const { name } of [...schema.options, ...schema.options]) {
    const values = stateWith(name, schema, random);
    const element = elementWith();
    writeAttributes(element, schema, names, {}, values);
    const read = schema.prune(readAttributes(element, schema, names));
    assert.deepEqual(read, values);
    writeAttributes(element, schema, names, read, {});
    assert.equal(element.held.size, 0);
  }
});

test("an option keeps the name under which it was written, and a switch needs no value", () => {
  const element = elementWith({ "batch-size": "4", packing: "", unknown: "x" });
  const values = readAttributes(element, schema, names);
  assert.deepEqual(values, { micro_batch_size: 4, packing: true });
  writeAttributes(element, schema, names, values, { ...values, micro_batch_size: 8 });
  assert.deepEqual([...element.held.keys()], ["batch-size", "packing", "unknown"]);
  assert.equal(element.held.get("batch-size"), "8");
});

const unescaped = (text) =>
  text
    .replace(/&lt;/g, "<")
    .replace(/&quot;/g, '"')
    .replace(/&amp;/g, "&");

test("what is copied to embed a job asks for that job, for states drawn over all options", () => {
  const random = randomFrom(12);
  for (const { name } of schema.options) {
    const values = stateWith(name, schema, random);
    const { element, frame } = snippetsOf({
      state: { values },
      answer: null,
      schema,
      home: "https://docs.example/a&b/",
    });
    const [, tag] = /<tidemark-calculator ((?:[a-z0-9-]+="[^"]*" ?)*)>/.exec(element);
    const pairs = [...tag.matchAll(/([a-z0-9-]+)="([^"]*)"/g)].map(([, attribute, text]) => [
      attribute,
      unescaped(text),
    ]);
    assert.deepEqual(schema.prune(readAttributes(elementWith(Object.fromEntries(pairs)), schema, names)), values);
    const [, source] = / src="([^"]*)"/.exec(frame);
    const { values: read, look } = readPermalink(new URL(unescaped(source)).hash, schema);
    assert.deepEqual([read, look], [values, { view: "widget" }]);
    assert.ok(unescaped(source).startsWith("https://docs.example/a&b/index.html#"));
  }
});

test("how a frame is to look is no part of the job, and in no link that is written", () => {
  const state = readPermalink("v=1&model=gpt2&view=widget&theme=dark&controls=model,gpu", schema);
  assert.deepEqual(state.look, { view: "widget", theme: "dark", controls: "model,gpu" });
  assert.deepEqual([state.unknown, state.notes], [[], []]);
  assert.equal(writePermalink(state, schema), "v=1&model=gpt2");
});

test("controls are named as attributes are, or by how one begins", () => {
  assert.deepEqual(controlsOf("model, gpu sequence", schema, names), ["model", "gpu", "sequence_length"]);
  assert.deepEqual(controlsOf("adapter-r,batch,nonsense", schema, names), ["adapter.r", "micro_batch_size"]);
  assert.deepEqual(controlsOf("none", schema, names), []);
  assert.equal(controlsOf(null, schema, names).length, 5);
});

test("the manifest names every modelled option, and the parts that the sources have", () => {
  const [{ declarations }] = manifestOf(schema).modules;
  const [{ attributes, cssParts, cssProperties }] = declarations;
  assert.equal(attributes.length, ownAttributes.length + schema.options.filter(({ modelled }) => modelled).length);
  const source = (name) => readFileSync(new URL(`../../web/widget/${name}`, import.meta.url), "utf8");
  const used = `${source("calculator.js")}${source("answerBox.js")}`.matchAll(/\bpart: "(\w+)"/g);
  assert.deepEqual(
    cssParts.map(({ name }) => name).toSorted(),
    [...new Set([...used].map(([, name]) => name))].toSorted(),
  );
  const styles = `${source("element.css")}${readFileSync(new URL("../../web/src/tokens.css", import.meta.url), "utf8")}`;
  for (const { name } of cssProperties)
    assert.ok(styles.includes(name) || styles.includes(`--${name.slice("--tidemark-".length)}:`), name);
});

test("what is said to a worker before it is there reaches it, and its failure is an error", async () => {
  const heard = [];
  const real = { postMessage: (message) => heard.push(message), terminate: () => heard.push("ended") };
  const late = lateWorker(async () => real);
  late.onmessage = ({ data }) => heard.push(data);
  late.postMessage("first");
  await new Promise(setImmediate);
  real.onmessage({ data: "answer" });
  late.terminate();
  real.onmessage({ data: "too late" });
  await new Promise(setImmediate);
  assert.deepEqual(heard, ["first", "answer", "ended"]);
  const message = await new Promise((resolve) => {
    const failing = lateWorker(async () => {
      throw new Error("no workers here");
    });
    failing.onerror = (event) => resolve(event.message);
  });
  assert.equal(message, "no workers here");
});
