// What the page hands out means what the page shows: for states drawn over all options, the copied command, run as it was copied, prints
// the page's own answer, and a link leads back to the same state.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { commandOf } from "../../web/src/command.js";
import { readPermalink, writePermalink } from "../../web/src/permalink.js";
import { createSchema } from "../../web/src/schema.js";
import { randomFrom, stateWith } from "./draw.mjs";
import { answersTo, commands, describe } from "./engines.mjs";

const schema = createSchema(await describe());
const random = randomFrom(20261121);
// Each option is drawn on purpose in five states, and by chance in others.
const states = schema.options.flatMap(({ name }) => Array.from({ length: 5 }, () => stateWith(name, schema, random)));

/** Runs a command as a shell would, in a folder with the files that it names: config.json, calibration.json. */
function runAsCopied(command, values, folder) {
  for (const { name, type } of schema.options) {
    if (type === "object" && values[name]) writeFileSync(join(folder, `${name}.json`), JSON.stringify(values[name]));
  }
  const env = { ...process.env, PATH: `${commands}:${process.env.PATH}`, NO_COLOR: "1", COLUMNS: "100000" };
  return spawnSync("sh", ["-c", `${command} --json`], { cwd: folder, env, encoding: "utf8", maxBuffer: 2 ** 26 });
}

/** The first line in which two texts differ, of both; empty when they are the same. */
function firstDifference(printed, shown) {
  if (printed === shown) return "";
  const [a, b] = [printed.split("\n"), shown.split("\n")];
  const at = a.findIndex((line, index) => line !== b[index]);
  return `line ${at + 1}: the command prints ${a[at]}, the page has ${b[at]}`;
}

const oneLine = (text) => text.replace(/\s+/g, " ").trim();

/** What standard error says: with --json the issues as JSON, and words where the command itself could not be read. */
function toldOn(stderr) {
  if (!stderr.startsWith("{")) return stderr;
  return JSON.parse(stderr)
    .issues.map((issue) => issue.message)
    .join("\n");
}

test("a copied command prints the page's answer, byte for byte, or is refused for the same reason", async (t) => {
  assert.ok(states.length >= 300, `${states.length} states`);
  const folder = mkdtempSync(join(tmpdir(), "tidemark-commands-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const answers = await answersTo(states.map((values) => schema.toRequest(values)));
  let answered = 0;
  for (const [at, values] of states.entries()) {
    const command = commandOf(values, schema);
    const { status, stdout, stderr } = runAsCopied(command, values, folder);
    const answer = answers[at];
    if (answer.estimate) {
      answered += 1;
      assert.equal(firstDifference(stdout, `${JSON.stringify(answer, null, 2)}\n`), "", command);
      assert.ok(status === 0 || status === 1, `${command}: ${status}`);
    } else {
      assert.equal(status, 2, command);
      assert.equal(stdout, "", command);
      const [first] = answer.issues.filter((issue) => issue.severity === "error");
      assert.ok(oneLine(toldOn(stderr)).includes(oneLine(first.message)), `${command}\n${first.message}\n${stderr}`);
    }
  }
  assert.ok(answered >= 150, `only ${answered} of ${states.length} states had an answer to compare`);
});

test("a link leads back to the state that it was made of", () => {
  for (const values of states) {
    const link = writePermalink({ values, pin: null, unknown: [] }, schema);
    const again = readPermalink(link, schema).values;
    assert.deepEqual(schema.toRequest(again), schema.toRequest(values), link);
  }
});
