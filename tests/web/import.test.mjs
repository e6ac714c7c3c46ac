// What the page asks for after it read a file is what the command asks for.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createImporter } from "../../web/src/importer.js";
import { createSchema } from "../../web/src/schema.js";
import { createStore } from "../../web/src/state.js";
import { answersTo, describe } from "./engines.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const bin = join(root, "build/wasm/bin");
const isBuilt = existsSync(join(bin, "reader.js"));
const schema = createSchema(await describe());
const fixtures = join(root, "tests/exchange/fixtures");
const sources = readdirSync(fixtures, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && !/labels\.jsonl|README/.test(entry.name))
  .map((entry) => ({ name: entry.name, bytes: readFileSync(join(entry.parentPath ?? entry.path, entry.name)) }));

/** A page's importer beside a state, its reader and engine asked directly. */
async function bench(values, answer = { estimate: {} }) {
  const { createReaderFrom } = await import(pathToFileURL(join(bin, "reader.js")).href);
  const module = await createReaderFrom(readFileSync(join(bin, "reader.wasm")));
  const reader = {
    ask: async (_kind, request) =>
      request.patch ? module.patched(request.patch, request.changes) : module.read(request.read),
  };
  const store = createStore(schema, { values });
  return { store, importer: createImporter({ reader, questions: { trial: async () => answer }, schema, store }) };
}

test(`the jobs of ${sources.length} files lose nothing on their way through the page's state`, {
  skip: !isBuilt,
}, async () => {
  for (const source of sources) {
    const { store, importer } = await bench({});
    const found = await importer.take([source], source.name);
    if (!found.taken) continue;
    const page = { ...schema.toRequest(store.get().values), model: found.document.job.model };
    const [mine, command] = await answersTo([page, found.document.job]);
    assert.deepEqual(mine.estimate, command.estimate, source.name);
  }
});

test("what the engine refuses, and what changes while it is read, replaces nothing", { skip: !isBuilt }, async () => {
  const source = sources.find(({ name }) => name === "qlora_trainer.py");
  const refusing = await bench({ model: "gpt2" }, { issues: [{ severity: "error", message: "no" }] });
  const refused = await refusing.importer.take([source], "x");
  assert.deepEqual(refusing.store.get().values, { model: "gpt2" });
  assert.equal(refused.refused[0].message, "no");
  refused.use();
  assert.equal(refusing.store.get().values.method, "qlora");

  const { store, importer } = await bench({ model: "gpt2" });
  const reading = importer.take([source], "x");
  store.set({ micro_batch_size: 7 });
  assert.equal((await reading).taken, undefined);
  assert.equal(store.get().values.micro_batch_size, 7);
});

test("a file that another one named belongs to it; a card of a message does not replace a card that was chosen", {
  skip: !isBuilt,
}, async () => {
  const { store, importer } = await bench({ model: "gpt2", gpu: "4090" });
  const launch = {
    name: "run.sh",
    bytes: "deepspeed train.py --model_name_or_path Qwen/Qwen2.5-7B --deepspeed conf/zero2.json",
  };
  const first = await importer.take([launch], "x");
  assert.deepEqual(first.wanted, ["zero2.json", "train.py"]);
  const second = await importer.take([{ name: "zero2.json", bytes: '{"zero_optimization": {"stage": 2}}' }], "y");
  assert.equal(second.document.files.length, 2);
  assert.deepEqual(second.wanted, ["train.py"]);
  const oom =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.00 GiB is free.";
  const { taken } = await importer.take([{ name: "-", bytes: oom }], "z");
  assert.equal(taken, false, "nothing was changed, and nothing can be taken back");
  assert.equal(store.get().values.gpu, "4090");
});

test("the file that was dropped is offered with the lines that are other now, and those alone", {
  skip: !isBuilt,
}, async () => {
  const { store, importer } = await bench({ model: "gpt2" });
  assert.equal(importer.own.name(), null);
  const source = sources.find(({ name }) => name === "examples__llama-3__opentelemetry-qlora.yml");
  await importer.take([source], "x");
  assert.equal(importer.own.name(), source.name);
  const same = await importer.own.patch(store.get().values);
  assert.equal(same.diff, "");
  assert.deepEqual(same.lacks, []);

  store.set({ "adapter.r": 48, sequence_length: 1024, gpu: "4090" });
  const { text, diff, lacks, file } = await importer.own.patch(store.get().values);
  assert.deepEqual([file, lacks], [source.name, []]);
  const before = source.bytes.toString().split("\n");
  const after = text.split("\n");
  assert.equal(after.length, before.length);
  const changed = after.filter((line, at) => line !== before[at]);
  assert.deepEqual(changed, ["sequence_len: 1024", "lora_r: 48"]);
  assert.match(diff, /^-lora_r: 32\n\+lora_r: 48$/m);

  // What came back to its default is written as well; a message of exhausted memory is no file to change.
  const oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.";
  await importer.take([{ name: "-", bytes: oom }], "y");
  assert.equal(importer.own.name(), source.name);
});
