import assert from "node:assert/strict";
import { test } from "node:test";
import { createSchema } from "../../web/src/schema.js";
import { createStore } from "../../web/src/state.js";
import { changedOptions } from "../../web/src/compare.js";
import { commandOf, quote } from "../../web/src/command.js";
import { describe } from "./engines.mjs";

const schema = createSchema(await describe());

test("the store keeps only what differs from the defaults", () => {
  const store = createStore(schema, {
    values: { model: "gpt2", micro_batch_size: schema.find("micro_batch_size").default },
  });
  assert.deepEqual(store.get().values, { model: "gpt2" });
  store.set({ sequence_length: 512 });
  store.set({ sequence_length: undefined });
  assert.deepEqual(store.get().values, { model: "gpt2" });
});

test("listeners hear changes, and nothing where nothing changed", () => {
  const store = createStore(schema, { values: { model: "gpt2" } });
  const heard = [];
  store.subscribe((_state, change) => heard.push(change.name));
  store.set({ model: "gpt2" });
  store.set({ micro_batch_size: 4 });
  assert.deepEqual(heard, ["micro_batch_size"]);
});

test("what one gesture changed is one step back; a pause, another option or a click begins the next", () => {
  let time = 0;
  const store = createStore(schema, { values: { model: "gpt2" } }, () => time);
  const change = (patch, after) => {
    time += after;
    store.set(patch);
  };
  for (const length of [4, 40, 409, 4096]) change({ sequence_length: length }, 100);
  change({ micro_batch_size: 2 }, 100);
  change({ micro_batch_size: 3 }, 2000);
  const steps = [];
  while (store.undo()) steps.push(store.get().values);
  assert.deepEqual(steps, [
    { model: "gpt2", sequence_length: 4096, micro_batch_size: 2 },
    { model: "gpt2", sequence_length: 4096 },
    { model: "gpt2" },
  ]);
});

test("undo goes back step by step, pinned result and unknown keys included", () => {
  const store = createStore(schema, { values: { model: "gpt2" }, unknown: [["colour", "blue"]] });
  store.set({ micro_batch_size: 4 });
  store.pin({ ...store.get().values });
  store.replace({ values: { model: "opt" } });
  assert.equal(store.undo(), true);
  assert.deepEqual(store.get().pin, { model: "gpt2", micro_batch_size: 4 });
  assert.deepEqual(store.get().unknown, [["colour", "blue"]]);
  store.undo();
  store.undo();
  assert.deepEqual(store.get().values, { model: "gpt2" });
  assert.equal(store.undo(), false);
});

test("a state cannot be changed from outside", () => {
  const store = createStore(schema, { values: { model: "gpt2" } });
  assert.throws(() => {
    store.get().values.model = "other";
  });
});

test("a pasted request becomes values, and back the same request", () => {
  const request = {
    schema: 1,
    model: "gpt2",
    method: "lora",
    adapter: { r: 8, target_modules: ["c_attn"] },
    precision: { recipe: "pure_bf16", gradients: "fp32" },
    gpu: { memory_gib: 24 },
  };
  const { values, unknown } = schema.fromRequest(request);
  assert.deepEqual(unknown, []);
  assert.deepEqual(schema.toRequest(schema.prune(values)), request);
});

test("keys of a pasted request that no option has are reported, not dropped", () => {
  const { unknown } = schema.fromRequest({ model: "gpt2", adapter: { rank: 8 }, zebra: [1] });
  assert.deepEqual(unknown, [
    ["adapter.rank", "8"],
    ["zebra", "[1]"],
  ]);
});

test("an issue's pointer finds its option", () => {
  assert.equal(schema.optionAt("/adapter/r"), "adapter.r");
  assert.equal(schema.optionAt("/config/hidden_size"), "config");
  assert.equal(schema.optionAt("/nothing"), undefined);
  assert.equal(schema.optionAt(undefined), undefined);
});

test("numbers are read as people write them, and what is none stays text", () => {
  assert.equal(schema.parse("sequence_length", " 4 096 "), 4096);
  assert.equal(schema.parse("parameters", "7e9"), 7e9);
  assert.equal(schema.parse("micro_batch_size", "four"), "four");
  assert.equal(schema.parse("micro_batch_size", ""), undefined);
  assert.deepEqual(schema.parse("gpu", "24 GiB"), { memory_gib: 24 });
});

test("the changed options of two states are named with both values", () => {
  const changes = changedOptions(schema, { model: "gpt2" }, { model: "gpt2", micro_batch_size: 4 });
  assert.deepEqual(
    changes.map(({ name, before, after }) => [name, before, after]),
    [["micro_batch_size", "1", "4"]],
  );
});

test("the command line says the same, and a shell takes hostile words as words", () => {
  assert.equal(
    commandOf({ model: "gpt2", micro_batch_size: 4, "adapter.target_modules": ["q_proj", "v_proj"] }, schema),
    "tidemark estimate --model gpt2 --adapter-target-modules q_proj,v_proj --micro-batch-size 4",
  );
  assert.equal(quote("NVIDIA L4"), "'NVIDIA L4'");
  assert.equal(quote("$(rm -rf ~)`x`'"), "'$(rm -rf ~)`x`'\\'''");
});

test("a merge patch changes, refines and replaces, as RFC 7396 says", () => {
  const now = { model: "gpt2", gradient_checkpointing: "full", "precision.gradients": "fp32" };
  assert.deepEqual(schema.patched(now, { gradient_checkpointing: { every: 2 }, precision: "pure_bf16" }), {
    model: "gpt2",
    precision: "pure_bf16",
    "gradient_checkpointing.every": 2,
  });
  assert.deepEqual(
    schema.patched(
      { model: "gpt2", "gradient_checkpointing.every": 2, "adapter.r": 8 },
      { gradient_checkpointing: "full", adapter: { r: null, dtype: "bf16" } },
    ),
    { model: "gpt2", "adapter.dtype": "bf16", gradient_checkpointing: "full" },
  );
});

test("a card stated by its size survives the link and stands in the command", () => {
  for (const [name, value] of [
    ["gpu", { vram_gb: 24 }],
    ["gpu", { memory_gib: 24 }],
    ["gpu", { vram_gb: 24, compute_capability: "8.6" }],
    ["gpus", [{ vram_gb: 24 }, "4090", { memory_gib: 80 }]],
  ]) {
    assert.deepEqual(schema.parse(name, schema.print(name, value)), value);
  }
  assert.equal(
    commandOf({ model: "gpt2", gpu: { vram_gb: 24 } }, schema),
    "tidemark estimate --model gpt2 --vram-gb 24",
  );
  assert.equal(
    commandOf({ model: "gpt2", gpus: [{ vram_gb: 24 }, "NVIDIA L4", { memory_gib: 80 }] }, schema),
    `tidemark estimate --model gpt2 --gpu '{"vram_gb":24}' --gpu 'NVIDIA L4' --gpu 80GiB`,
  );
  assert.equal(schema.parse("gpu", "{broken"), "{broken");
});
