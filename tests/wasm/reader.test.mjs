// The reader of other people's files as WebAssembly says what the command says: the same readings, the same requests, the same exports,
// byte for byte.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";
import { bin, catalogText, loadedEngine, root } from "./engine.mjs";

const { createReaderFrom } = await import(pathToFileURL(join(bin, "reader.js")).href);
const reader = await createReaderFrom(readFileSync(join(bin, "reader.wasm")));
const engine = await loadedEngine();
const command = process.env.TIDEMARK_HANDLE && join(dirname(process.env.TIDEMARK_HANDLE), "tidemark");
const skip = !command && "no native build";
const fixtures = join(root, "tests/exchange/fixtures");
const files = readdirSync(fixtures, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && !/labels\.jsonl|README/.test(entry.name))
  .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
const sourceOf = (name) => ({ name, bytes: readFileSync(name) });
const config = (id) => JSON.parse(catalogText("models.json")).models.find((model) => model.id === id).config;

test(`${files.length} files of all formats are read as the command reads them, and ask for the same job`, {
  skip,
}, () => {
  for (const file of files) {
    const { job, not_counted: left, told, ...document_ } = reader.read([sourceOf(file)]);
    const said = JSON.parse(spawnSync(command, ["import", file, "--json"], { encoding: "utf8" }).stdout);
    // The command looks beside the file for those that it names.
    if (said.files.length > 1) continue;
    delete said.comparisons;
    assert.deepEqual(document_, said, file);
    assert.ok(Array.isArray(left));
    for (const { code, message } of told) assert.ok(code !== "NOT_COUNTED" && message.length > 0, file);
    const { stdout, status } = spawnSync(command, ["export", "request", file], { encoding: "utf8" });
    if (status !== 0) continue;
    assert.equal(reader.exported({ format: "request", request: job }).text, stdout, file);
  }
});

test("a file is changed as the command changes it", { skip }, () => {
  const changes = { "adapter.r": 48, sequence_length: 1024, micro_batch_size: 3 };
  const flags = ["--adapter-r", "48", "--sequence-length", "1024", "--micro-batch-size", "3"];
  let checked = 0;
  for (const file of files) {
    const { stdout, status } = spawnSync(command, ["export", "patch", file, ...flags, "--json"], { encoding: "utf8" });
    if (status !== 0 || reader.read([sourceOf(file)]).files[0].companions?.length > 0) continue;
    const said = JSON.parse(stdout);
    const mine = reader.patched([sourceOf(file)], changes);
    assert.equal(mine.text, said.text, file);
    assert.equal(mine.diff, said.diff, file);
    checked += 1;
  }
  assert.ok(checked >= 10, `${checked} files`);
});

const jobs = [
  { model: "meta-llama/Llama-3.1-8B", method: "qlora", gradient_checkpointing: "full", sequence_length: 4096 },
  {
    model: "Qwen/Qwen2.5-7B",
    method: "lora",
    adapter: { r: 8, use_dora: true },
    packing: true,
    optimizer: "adamw_8bit",
  },
  { model: "openai-community/gpt2", micro_batch_size: 4, precision: "fp32", loss: "liger" },
  { model: "google-bert/bert-base-uncased", packing: true, task: "classification" },
  { model: "meta-llama/Llama-3.1-8B", parallelism: { data: 8, zero_stage: 2 } },
];
/** The length that the engine takes where nobody says one: the reader knows no model's table of positions. */
function assumedOf(job) {
  const notes = JSON.parse(engine.handleText(JSON.stringify({ schema: 1, ...job }))).issues;
  const note = notes.find(({ code, path }) => code === "ASSUMED_DEFAULT" && path === "/sequence_length");
  return note ? { sequence_length: Number(note.suggestion) } : {};
}

for (const job of jobs) {
  test(`${JSON.stringify(job)} is written as the command writes it, in every format`, { skip }, () => {
    const names = [...reader.formats().map(({ name }) => name), "probe"];
    for (const format of names) {
      const run = spawnSync(
        command,
        format === "probe" ? ["probe", "--request", "-"] : ["export", format, "--request", "-"],
        {
          input: JSON.stringify(job),
          encoding: "utf8",
        },
      );
      const asked = { format, request: job, assumed: assumedOf(job), model: job.model, config: config(job.model) };
      const mine = reader.exported(asked);
      // JavaScript has one kind of number: 5e+05 and 500000 are the same.
      assert.equal(
        mine?.text ?? "",
        run.stdout.replace(/\b\d+e\+\d+\b/g, (real) => String(Number(real))),
        format,
      );
    }
  });
}

test("a message about exhausted memory stands beside the estimate in the command's words", { skip }, () => {
  const text =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.21 GiB is free. Including non-PyTorch memory, this process has 22.43 GiB memory in use. Of the allocated memory 20.02 GiB is allocated by PyTorch, and 1.95 GiB is reserved by PyTorch but unallocated.";
  const job = { model: "meta-llama/Llama-3.1-8B", method: "lora", gpu: "4090" };
  const asked = { input: JSON.stringify(job), encoding: "utf8" };
  const answer = JSON.parse(spawnSync(command, ["estimate", "--request", "-", "--json"], asked).stdout);
  const document_ = reader.read([{ name: "-", bytes: text }]);
  assert.equal(document_.files[0].format, "oom");
  const [beside] = reader.compare(answer.estimate);
  assert.equal(beside.verdict, "too_large");
  assert.match(beside.sentences[0], /^The job needs .* short\. Fragmentation is not the reason\.$/);
});

test("what it cannot read it refuses in words, and it reads on", () => {
  for (const bytes of [
    "",
    "hello",
    "{",
    "[".repeat(1e5),
    new Uint8Array([0x80, 4, 0x63, 0x6f, 0x73]),
    new Uint8Array(4096),
  ]) {
    const { issues, request } = reader.read([{ name: "x", bytes }]);
    assert.ok(issues.length > 0, String(bytes).slice(0, 20));
    assert.deepEqual(request, {});
  }
  const shell = reader.read([{ name: "a.sh", bytes: "torchrun train.py --per_device_train_batch_size 3" }]);
  assert.equal(shell.job.micro_batch_size, 3);
});

test("of a safetensors file its first bytes are enough", () => {
  const header = JSON.stringify({
    "lm_head.weight": { dtype: "BF16", shape: [1000, 1000], data_offsets: [0, 2000000] },
  });
  const bytes = new Uint8Array(8 + header.length);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(header.length), true);
  bytes.set(new TextEncoder().encode(header), 8);
  const {
    files: [file],
    issues,
  } = reader.read([{ name: "model.safetensors", bytes, size: bytes.length + 2000000 }]);
  assert.deepEqual(issues, []);
  assert.match(file.what, /safetensors/i);
});

test("a script of a thousand lines takes less than a twentieth of a second", () => {
  const lines = readFileSync(join(fixtures, "python/qlora_trainer.py"), "utf8");
  const more = Array.from({ length: 1000 }, (_, i) => `value_${i} = {"a": ${i}, "b": [1, 2, 3]}["a"] + ${i}\n`).join(
    "",
  );
  const times = Array.from({ length: 5 }, () => {
    const start = process.cpuUsage().user;
    reader.read([{ name: "train.py", bytes: lines + more }]);
    return (process.cpuUsage().user - start) / 1000;
  });
  assert.ok(Math.min(...times) <= 50, `${Math.min(...times)} ms`);
});

test("the engine carries no reader of files, and the reader no model", () => {
  const holds = (name, words) => readFileSync(join(bin, name)).includes(words);
  assert.ok(
    holds("reader.wasm", "LLaMA-Factory configuration") && !holds("tidemark.wasm", "LLaMA-Factory configuration"),
  );
  assert.ok(holds("tidemark.wasm", "modeling_llama.py") && !holds("reader.wasm", "modeling_llama.py"));
});
