// The same request gives the same bytes, native and wasm: the golden requests, those of every oracle record
// and of every published measurement, and drawn ones.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { loadedEngine, root } from "./engine.mjs";

const linesOf = (name) =>
  readFileSync(join(root, "tests", name), "utf8")
    .trimEnd()
    .split("\n");
const records = readdirSync(join(root, "tests/oracle")).filter((name) => /^records.*[.]jsonl$/.test(name));
const oracle = [...records.map((name) => `oracle/${name}`), "measured/requests.jsonl"].flatMap((name) =>
  linesOf(name).map((line) => JSON.stringify(JSON.parse(line).request)),
);

const native = process.env.TIDEMARK_HANDLE;
const engine = await loadedEngine();
const drawn = execFileSync("python3", [join(root, "tests/determinism/draw.py"), "800", "2"], {
  input: engine.handleText({ verb: "describe" }),
  encoding: "utf8",
});
const sets = {
  "golden requests": linesOf("golden/requests.jsonl"),
  "oracle's and measured requests": oracle,
  "drawn requests": drawn.trimEnd().split("\n"),
};

for (const [name, requests] of Object.entries(sets)) {
  test(`the ${requests.length} ${name} get the same bytes, native and wasm`, {
    skip: !native && "no native build",
  }, () => {
    // A string holds half a gigabyte: so many answers at a time.
    const together = 2000;
    for (let first = 0; first < requests.length; first += together) {
      const some = requests.slice(first, first + together);
      const answers = execFileSync(native, [join(root, "catalog")], {
        input: `${some.join("\n")}\n`,
        encoding: "utf8",
        maxBuffer: 1 << 30,
      })
        .trimEnd()
        .split("\n");
      assert.equal(answers.length, some.length);
      some.forEach((request, i) => assert.equal(engine.handleText(request), answers[i], request.slice(0, 300)));
    }
  });
}
