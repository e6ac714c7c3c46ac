import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import messages from "../../web/src/messages.en.js";
import { describe } from "./engines.mjs";
import chinese from "../../web/src/messages.zh.js";

const web = join(dirname(fileURLToPath(import.meta.url)), "../../web");
const files = ["src", "widget"].flatMap((room) =>
  readdirSync(join(web, room))
    .filter((name) => name.endsWith(".js"))
    .map((name) => [`${room}/${name}`, readFileSync(join(web, room, name), "utf8")]),
);

test("every message that is asked for exists", () => {
  for (const [name, text] of files) {
    for (const [, key] of text.matchAll(/\bt\(\s*"([\w.]+)"/g))
      assert.ok(Object.hasOwn(messages, key), `${name}: ${key}`);
  }
});

test("every message is asked for somewhere", () => {
  const all = files
    .filter(([name]) => !name.startsWith("src/messages."))
    .map(([, text]) => text)
    .join("\n");
  const built = [
    /^theme\./,
    /^category\./,
    /^phase\./,
    /^verdict\./,
    /^result\.(allocated|reserved|device|first|host|load)(Help)?$/,
    /^map\.(fits|tight|over|current)$/,
    /^breakdown\.(exact|measured|modelled)$/,
    /^copy\./,
    /^issues\./,
    /^(option|help|ask)\./,
    /^advice\.harm\./,
    /^view\./,
    /^sure\./,
    /^advice\.(speed|exactness|quality)$/,
  ];
  for (const key of Object.keys(messages))
    assert.ok(all.includes(`"${key}"`) || built.some((pattern) => pattern.test(key)), key);
});

// The titles and the help that come from the engine, which a language may have words for.
const isTitle = (key) => /^(option|group|unit)\./.test(key) || (key.startsWith("help.") && !(key in messages));

test("Chinese has every sentence that English has, no other, and the same places in each", () => {
  const keys = (map) =>
    Object.keys(map)
      .filter((key) => !isTitle(key))
      .toSorted();
  assert.deepEqual(keys(chinese), keys(messages));
  const places = (text) => [...text.matchAll(/\{\w+\}/g)].map(([place]) => place).toSorted();
  for (const key of keys(chinese)) assert.deepEqual(places(chinese[key]), places(messages[key]), key);
});

test("Chinese has a title for each group, for each option that stands in the settings unasked, and for their units", async () => {
  const { groups, options } = await describe();
  const usual = groups.filter((group) => group.usual).map(({ name }) => name);
  const standing = options.filter((option) => option.modelled && !option.advanced && usual.includes(option.group));
  const units = standing.flatMap(({ unit }) => (unit && !/^(GPUs|[MG]iB)$/.test(unit) ? [`unit.${unit}`] : []));
  const wanted = [
    ...groups.map(({ name }) => `group.${name}`),
    ...standing.map(({ name }) => `option.${name}`),
    ...units,
  ];
  for (const key of wanted) assert.ok(Object.hasOwn(chinese, key), key);
  const there = new Set([...options.map(({ name }) => `option.${name}`), ...groups.map(({ name }) => `group.${name}`)]);
  for (const key of Object.keys(chinese)) if (/^(option|group)\./.test(key)) assert.ok(there.has(key), key);
});

test("no source writes HTML from text, evaluates, stores or fetches behind the visitor's back", () => {
  // The widget's worker reads its own files, and its service fetches that worker where it lies on another origin.
  const reading = ["widget/worker.js", "widget/service.js"];
  for (const [name, text] of files) {
    assert.doesNotMatch(
      reading.includes(name) ? text.replace(/\bfetch\((worker|address|addresses\[name\]), \{ integrity/g, "") : text,
      /\.(innerHTML|outerHTML\s*=|insertAdjacentHTML)|document\.write|\beval\(|new Function|\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon|setAttribute\("style"|style:\s/,
      name,
    );
  }
});
