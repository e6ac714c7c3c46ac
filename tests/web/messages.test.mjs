import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import messages from "../../web/src/messages.en.js";

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
    .filter(([name]) => name !== "src/messages.en.js")
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
    /^advice\.(harm|mode)\./,
    /^advice\.(speed|exactness|quality)$/,
  ];
  for (const key of Object.keys(messages))
    assert.ok(all.includes(`"${key}"`) || built.some((pattern) => pattern.test(key)), key);
});

test("no source writes HTML from text, evaluates, stores or fetches behind the visitor's back", () => {
  // The widget's worker reads its own files, and its service fetches that worker where it lies on another origin.
  const reading = ["widget/worker.js", "widget/service.js"];
  for (const [name, text] of files) {
    assert.doesNotMatch(
      reading.includes(name) ? text.replace(/\bfetch\((worker|addresses\[name\]), \{ integrity/g, "") : text,
      /\.(innerHTML|outerHTML\s*=|insertAdjacentHTML)|document\.write|\beval\(|new Function|\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon|setAttribute\("style"|style:\s/,
      name,
    );
  }
});
