import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import messages from "../../web/src/messages.en.js";
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
    /^result\.(allocated|reserved|device|first)(Help)?$/,
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

test("a language has the places that English has, and all that the widget says", () => {
  const places = (text) => [...text.matchAll(/\{\w+\}/g)].map(([place]) => place).toSorted();
  for (const [key, text] of Object.entries(chinese)) {
    if (/^(option|unit)\./.test(key)) continue;
    assert.ok(Object.hasOwn(messages, key), key);
    assert.deepEqual(places(text), places(messages[key]), key);
  }
  const said = files.filter(([name]) => name.startsWith("widget/") && !/snippets|frame|static/.test(name));
  for (const [name, text] of said)
    for (const [, key] of text.matchAll(/\bt\(\s*"([\w.]+)"/g))
      assert.ok(Object.hasOwn(chinese, key), `${name}: ${key}`);
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
