import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { compactGpus, compactModels } from "../../web/catalog.mjs";
import { bin, catalogText, loadedEngine, newEngine } from "./engine.mjs";

const engine = await loadedEngine();
const request = { model: "llama-3.2-1b", sequence_length: 512, gpu: "A100-80GB" };

test("an estimate sums up", () => {
  const { estimate, fits } = engine.handle(request);
  const sum = estimate.breakdown.reduce((total, { bytes }) => total + bytes, 0);
  assert.equal(sum, estimate.allocated.expected);
  assert.equal(fits.length, 1);
});

test("the same request gives the same text, however often", () => {
  const first = engine.handleText(request);
  for (let i = 0; i < 3; ++i) assert.equal(engine.handleText(request), first);
});

// The quick path of the map leaves the caching allocator out, whose unsplit remainders are part of an estimate.
test("each cell of a map is nearly the estimate of that batch and sequence", () => {
  const batches = [1, 3];
  const sequences = Uint16Array.of(128, 512, 1000);
  const cells = engine.map(request, batches, sequences);
  assert.ok(cells instanceof Float64Array);
  assert.equal(cells.length, 6);
  let i = 0;
  for (const micro_batch_size of batches) {
    for (const sequence_length of sequences) {
      const { estimate } = engine.handle({ ...request, micro_batch_size, sequence_length });
      const ratio = cells[i++] / estimate.allocated.expected;
      assert.ok(ratio > 0.99 && ratio <= 1, `${ratio}`);
    }
  }
});

test("a map of a bad request is empty of numbers, and the copy survives the next call", () => {
  const good = engine.map(request, [1], [512]);
  const value = good[0];
  assert.ok(engine.map({ model: "nothing like it" }, [1, 2], [512]).every(Number.isNaN));
  assert.ok(engine.map("{", [1], [512]).every(Number.isNaN));
  assert.ok(engine.map(request, [0, -1, NaN, Infinity, 1e12], [512]).every(Number.isNaN));
  assert.equal(engine.map(request, [], [512]).length, 0);
  assert.equal(good[0], value);
});

test("bad input is answered with an error and harms nothing", () => {
  const before = engine.handleText(request);
  const bad = [
    "",
    "{",
    "[1, 2",
    "null",
    "\u0000",
    '"\ud800"',
    "[".repeat(100000),
    `{"model": "${"x".repeat(1 << 20)}"}`,
    `{"model": ${JSON.stringify("<img src=x onerror=alert(1)>")}}`,
    '{"verb": "__proto__"}',
    '{"verb": 7, "model": "nothing"}',
    " ".repeat(17 << 20),
  ];
  for (const text of bad) {
    const { issues, estimate } = engine.handle(text);
    assert.equal(estimate, undefined, text.slice(0, 40));
    assert.ok(issues.some(({ severity }) => severity === "error") || text === "null", text.slice(0, 40));
  }
  for (const value of [undefined, null, 0, [], true]) assert.equal(engine.handle(value).estimate, undefined);
  assert.equal(engine.handleText(request), before);
});

test("a broken catalog is told, and the next one counts", async () => {
  const fresh = await newEngine();
  assert.ok(fresh.loadCatalog("{", "]").some(({ severity }) => severity === "error"));
  assert.deepEqual(fresh.loadCatalog(catalogText("models.json"), catalogText("gpus.json")), []);
  assert.equal(fresh.handleText(request), engine.handleText(request));
});

test("the page's shortened catalog loses nothing that the engine reads", async () => {
  const page = await newEngine();
  assert.deepEqual(
    page.loadCatalog(compactModels(catalogText("models.json")), compactGpus(catalogText("gpus.json"))),
    [],
  );
  for (const question of [{ verb: "catalog" }, { verb: "fit", model: "llama-2-7b" }, request]) {
    assert.equal(page.handleText(question), engine.handleText(question));
  }
  for (const { id } of engine.handle({ verb: "catalog", list: "models" }).models) {
    for (const question of [
      { model: id, micro_batch_size: -1 },
      { model: id, sequence_length: 640, allocator: false },
      { model: id, sequence_length: 640, method: "lora", images_per_sample: 1, allocator: false },
    ]) {
      assert.equal(page.handleText(question), engine.handleText(question));
    }
  }
});

test("a catalog of only the model and the card that are asked for gives the same answer", async () => {
  const page = await newEngine();
  const models = JSON.parse(compactModels(catalogText("models.json")));
  const gpus = JSON.parse(compactGpus(catalogText("gpus.json")));
  for (const [at, entry] of models.models.entries()) {
    if (at % 7 !== 0) continue;
    const gpu = gpus.gpus[at % gpus.gpus.length];
    page.loadCatalog(JSON.stringify({ ...models, models: [entry] }), JSON.stringify({ ...gpus, gpus: [gpu] }));
    const question = { ...request, model: entry.id, gpu: gpu.name };
    assert.equal(page.handleText(question), engine.handleText(question));
  }
});

test("the glue makes no code from text", () => {
  for (const file of ["engine.js", "api.js", "tidemark.js"]) {
    assert.doesNotMatch(readFileSync(join(bin, file), "utf8"), /\b(eval|Function)\(/, file);
  }
});
