// What the page hands out means what the page shows: for states drawn over all options, the copied command, run as it was copied, prints
// the page's own answer, and a link leads back to the same state.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { commandOf } from "../../web/src/command.js";
import { readPermalink, writePermalink } from "../../web/src/permalink.js";
import { createSchema } from "../../web/src/schema.js";
import { wrongWith } from "./copied.mjs";
import { randomFrom, stateWith } from "./draw.mjs";
import { answersTo, describe } from "./engines.mjs";

const schema = createSchema(await describe());
const random = randomFrom(20261121);
// Each option is drawn on purpose in three states, and by chance in others.
const states = schema.options.flatMap(({ name }) => Array.from({ length: 3 }, () => stateWith(name, schema, random)));

test("a copied command prints the page's answer, byte for byte, or is refused for the same reason", async (t) => {
  assert.ok(states.length >= 300, `${states.length} states`);
  const answers = await answersTo(states.map((values) => schema.toRequest(values)));
  let answered = 0;
  const left = states.entries();
  // Two commands at a time, each in a folder of its own.
  const runAll = async () => {
    const folder = mkdtempSync(join(tmpdir(), "tidemark-commands-"));
    t.after(() => rmSync(folder, { recursive: true }));
    for (const [at, values] of left) {
      const command = commandOf(values, schema);
      const answer = answers[at];
      if (answer.estimate) answered += 1;
      const shown = JSON.stringify(answer, null, 2);
      assert.equal(await wrongWith(command, { values, schema, shown, folder }), "", command);
    }
  };
  await Promise.all([runAll(), runAll()]);
  assert.ok(answered >= 150, `only ${answered} of ${states.length} states had an answer to compare`);
});

test("a link leads back to the state that it was made of", () => {
  for (const values of states) {
    const link = writePermalink({ values, pin: null, unknown: [] }, schema);
    const again = readPermalink(link, schema).values;
    assert.deepEqual(schema.toRequest(again), schema.toRequest(values), link);
  }
});
