import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { readPermalink, writePermalink } from "../../web/src/permalink.js";
import { createSchema } from "../../web/src/schema.js";
import { describe } from "./engines.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const schema = createSchema(await describe());
const corpusFile = join(here, "permalinks.txt");
const linesOf = (text) => text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
const corpus = [];
const lines = linesOf(readFileSync(corpusFile, "utf8"));
for (let at = 0; at < lines.length; at += 2) corpus.push([lines[at], lines[at + 1]]);

test("every link ever given out still means the same request", () => {
  for (const [link, meaning] of corpus) {
    const state = readPermalink(link, schema);
    const [request, pinned] = meaning.split(" | ").map((text) => JSON.parse(text));
    assert.deepEqual(schema.toRequest(state.values), request, link);
    assert.deepEqual(state.pin ? schema.toRequest(state.pin) : undefined, pinned, link);
  }
});

test("a link that is read and written again stays the same link", () => {
  for (const [link] of corpus) {
    const state = readPermalink(link, schema);
    const written = writePermalink(state, schema);
    assert.deepEqual(readPermalink(`#${written}`, schema).values, state.values, link);
    assert.equal(writePermalink(readPermalink(written, schema), schema), written, link);
  }
});

test("the corpus of links only grows", (t) => {
  let commits;
  const git = (...words) =>
    execFileSync("git", words, { cwd: here, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  try {
    commits = git("log", "--format=%H", "--", "permalinks.txt").split("\n").filter(Boolean);
  } catch {
    t.skip("no git history here");
    return;
  }
  for (const commit of commits) {
    const before = linesOf(git("show", `${commit}:./permalinks.txt`));
    const now = corpus.map((pair) => pair.join("\n"));
    for (let at = 0; at < before.length; at += 2)
      assert.ok(
        now.includes(`${before[at]}\n${before[at + 1]}`),
        `gone or changed since ${commit.slice(0, 8)}: ${before[at]}`,
      );
  }
});

test("only what differs from the defaults is written", () => {
  const values = Object.fromEntries(
    schema.options.filter((option) => option.default !== null).map((option) => [option.name, option.default]),
  );
  assert.equal(
    writePermalink({ values: { ...values, model: "gpt2" }, pin: null, unknown: [] }, schema),
    "v=1&model=gpt2",
  );
  assert.equal(writePermalink({ values: {}, pin: null, unknown: [] }, schema), "");
});

test("unknown keys are kept, in order, and noted", () => {
  const state = readPermalink("v=1&model=gpt2&colour=blue&__proto__=1&a.flavour=x%26y", schema);
  assert.deepEqual(state.unknown, [
    ["colour", "blue"],
    ["__proto__", "1"],
    ["a.flavour", "x&y"],
  ]);
  assert.deepEqual(
    state.notes.map((note) => note.code),
    ["unknown", "unknown", "unknown"],
  );
  assert.equal(writePermalink(state, schema), "v=1&model=gpt2&colour=blue&__proto__=1&a.flavour=x%26y");
  assert.equal({}.polluted, undefined);
});

test("a link of a newer version is read as far as possible, and keeps its number", () => {
  const state = readPermalink("v=7&model=gpt2&hologram=on", schema);
  assert.deepEqual(
    state.notes.map((note) => note.code),
    ["newer", "unknown"],
  );
  assert.equal(writePermalink(state, schema), "v=7&model=gpt2&hologram=on");
});

test("a key given twice counts once, and is noted", () => {
  const state = readPermalink("v=1&model=gpt2&model=evil", schema);
  assert.equal(state.values.model, "gpt2");
  assert.deepEqual(state.notes, [{ code: "repeated", key: "model" }]);
});

test("any text survives the way through a link", () => {
  const nasty = [
    "</script><script>alert(1)</script>",
    "a&b=c#d",
    "100%",
    "%41",
    "ü 漢字 🌊",
    "'; DROP TABLE",
    "\u0000\u202e",
    "a+b c",
    "=".repeat(20),
    "javascript:alert(1)",
  ];
  for (const option of schema.options.filter((each) => each.type === "string")) {
    for (const text of nasty) {
      const link = writePermalink({ values: { [option.name]: text }, pin: null, unknown: [] }, schema);
      assert.equal(readPermalink(`#${link}`, schema).values[option.name], text, `${option.name}: ${text}`);
      assert.doesNotMatch(link, /[<>"\s]/);
    }
  }
  for (const text of nasty) {
    const link = writePermalink({ values: {}, pin: null, unknown: [[text.replace(/=/g, "") || "k", text]] }, schema);
    if (!link.startsWith("v=1")) continue;
    assert.equal(readPermalink(link, schema).unknown[0]?.[1] ?? text, text);
  }
});

test("lists whose items hold commas survive", () => {
  const values = { freeze: ["a,b", "100%", "c"] };
  assert.deepEqual(readPermalink(writePermalink({ values, pin: null, unknown: [] }, schema), schema).values, values);
});

test("whatever the hash says, reading it never fails", () => {
  const junk = [
    "%",
    "%E0%A4%A",
    "&&&",
    "=",
    "v=",
    "v=abc&model=gpt2",
    "v=-1",
    "v=99999999999&x",
    "a.=",
    "a.model",
    "#".repeat(9),
    "micro_batch_size=NaN",
    "parameters=1e999",
    "config={",
    "x".repeat(100000),
    "constructor=1&toString=2&hasOwnProperty=3",
  ];
  for (const hash of junk) {
    const state = readPermalink(hash, schema);
    assert.ok(state.values && Array.isArray(state.unknown), hash.slice(0, 40));
    schema.toRequest(state.values);
    writePermalink(state, schema);
  }
});
