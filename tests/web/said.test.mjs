// What the engine says, in Chinese: the English of each pair is the engine's, and what people meet most has its pair.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import pairs from "../../web/src/said.zh.js";
import { said, setSaid } from "../../web/src/said.js";
import { answersTo } from "./engines.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
after(() => setSaid());

/** All string literals of the engine; those that the compiler joins are joined. */
function literalsOf(folder) {
  const texts = readdirSync(folder, { recursive: true })
    .filter((name) => /\.[ch]pp$/.test(name))
    .map((name) => readFileSync(join(folder, name), "utf8"));
  const literal = String.raw`"(?:[^"\\\n]|\\.)*"`;
  const joined = new RegExp(String.raw`${literal}(?:\s+${literal})*`, "g");
  return texts.flatMap((text) =>
    [...text.matchAll(joined)].map(([whole]) => whole.replace(/"\s+"/g, "").slice(1, -1).replaceAll('\\"', '"')),
  );
}

/** What the engine says to some of the requests that are drawn over all options. */
async function heard() {
  const lines = readFileSync(join(root, "tests/frozen/drawn.jsonl"), "utf8").trim().split("\n");
  const some = lines.filter((_, at) => at % 12 === 0);
  const answers = await answersTo(some.map((line) => JSON.parse(line)));
  return answers.flatMap(({ issues }) => issues ?? []).map(({ message }) => message);
}

// Characters that a piece of a sentence has at least: of shorter scraps anything could be put together.
const piece = 5;

/** Whether the text stands in `all` in one piece, or in a few. */
function isMadeOf(all, text) {
  if (all.includes(text)) return true;
  let length = text.length - piece;
  while (length >= piece && !all.includes(text.slice(0, length))) length -= 1;
  for (; length >= piece; length -= 1) if (isMadeOf(all, text.slice(length))) return true;
  return false;
}

test("the English of each pair is in the engine's sources, between its places", () => {
  const all = literalsOf(join(root, "core")).join("\n");
  const words = (text) => text.replace(/^[\s.,:;()]+|[\s.,:;()]+$/g, "");
  for (const [own] of pairs) {
    for (const part of own.split(/\{\d\}/).map(words)) assert.ok(isMadeOf(all, part), `${part} of: ${own}`);
  }
});

test("each pair has the same places in both languages, and no sentence has two", () => {
  const places = (text) => [...text.matchAll(/\{\d\}/g)].map(([place]) => place).toSorted();
  for (const [own, words] of pairs) assert.deepEqual(places(words), places(own), own);
  assert.equal(new Set(pairs.map(([own]) => own)).size, pairs.length);
});

test("a place takes whatever stands there, and that is looked up in turn", () => {
  setSaid([
    ["It has {1}.", "它有{1}。"],
    ["one (or two)", "一两个"],
  ]);
  assert.equal(said("It has one (or two)."), "它有一两个。");
  assert.equal(said("It has $&."), "它有$&。");
  assert.equal(said("one (or two); more"), "一两个; more");
  assert.equal(said("one or two"), "one or two");
  setSaid();
  assert.equal(said("one (or two)"), "one (or two)");
});

test("most of what the engine says to drawn requests has words in Chinese", async () => {
  setSaid(pairs);
  const messages = await heard();
  const inChinese = messages.filter((message) => said(message) !== message);
  assert.ok(inChinese.length > 0.85 * messages.length, `${inChinese.length} of ${messages.length}`);
});

test("advice is said in Chinese, whatever the job", async () => {
  setSaid(pairs);
  const jobs = ["full", "lora", "qlora"].flatMap((method) =>
    [
      {},
      { precision: "fp32", attention: "eager" },
      { micro_batch_size: 16, sequence_length: 8192, gradient_checkpointing: "full" },
      { optimizer: "lion_32bit", sequence_length: 8192 },
    ].map((job) => ({ verb: "advise", model: "meta-llama/Llama-3.1-8B", gpu: "4090", method, ...job })),
  );
  for (const zero_stage of [1, 2, 3])
    jobs.push({
      verb: "advise",
      model: "meta-llama/Llama-3.1-8B",
      gpu: "A100-80GB",
      precision: "deepspeed_bf16",
      sequence_length: 16384,
      parallelism: { data: 4, zero_stage },
    });
  for (const answer of await answersTo(jobs)) {
    const entries = [...answer.suggestions, ...(answer.more_cards ?? []), ...(answer.combination?.steps ?? [])];
    assert.ok(entries.length > 0);
    for (const { title, cost } of entries) {
      for (const words of [title, cost.speed, cost.exactness, cost.quality])
        assert.ok(
          /[\u4e00-\u9fff]/.test(said(words)) ||
            words === "bf16 autocast" ||
            /^(ZeRO|FSDP|FlashAttention|Adafactor|torch )/.test(words),
          words,
        );
    }
  }
});
