// The same request gives the same bytes, native and wasm: the golden requests, those of every oracle record
// and of every published measurement, and drawn ones.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
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

/** The native engine's answers, by way of files: it works on while the other engine keeps this thread busy. */
function nativeAnswers(requests, folder) {
  const paths = ["requests", "answers"].map((name) => join(folder, name));
  writeFileSync(paths[0], `${requests.join("\n")}\n`);
  const [input, output] = [openSync(paths[0], "r"), openSync(paths[1], "w")];
  const child = spawn(native, [join(root, "catalog")], { stdio: [input, output, "inherit"] });
  [input, output].forEach(closeSync);
  return new Promise((done, failed) => {
    child.on("error", failed);
    child.on("close", (status) => {
      if (status === 0) done(readFileSync(paths[1], "utf8").trimEnd().split("\n"));
      else failed(new Error(`the native engine ended with ${status}`));
    });
  });
}

for (const [name, requests] of Object.entries(sets)) {
  test(`the ${requests.length} ${name} get the same bytes, native and wasm`, {
    skip: !native && "no native build",
  }, async (t) => {
    // A string holds half a gigabyte: so many answers at a time, the next of them native while these are compared.
    const together = 2000;
    const folders = [0, 1].map(() => mkdtempSync(join(tmpdir(), "tidemark-golden-")));
    t.after(() => folders.forEach((folder) => rmSync(folder, { recursive: true })));
    const batch = (first) => requests.slice(first, first + together);
    const asked = (first) =>
      first < requests.length ? nativeAnswers(batch(first), folders[(first / together) % 2]) : [];
    let next = asked(0);
    for (let first = 0; first < requests.length; first += together) {
      const answers = await next;
      next = asked(first + together);
      const some = batch(first);
      assert.equal(answers.length, some.length);
      some.forEach((request, i) => assert.equal(engine.handleText(request), answers[i], request.slice(0, 300)));
    }
  });
}
