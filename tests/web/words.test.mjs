import assert from "node:assert/strict";
import { test } from "node:test";
import { verdictOf } from "../../web/src/mapSizes.js";
import { markdownOf } from "../../web/src/copy.js";
import { recipeWords } from "../../web/src/headline.js";
import { createSchema } from "../../web/src/schema.js";
import { verdictSentence } from "../../web/src/verdict.js";
import { answersTo, describe } from "./engines.mjs";

const job = { schema: 1, model: "meta-llama/Llama-3.2-1B", sequence_length: 512, precision: "bf16_amp" };

test("of adapters the recipe tells their own dtype, not that of the frozen weights", async () => {
  const [{ estimate }] = await answersTo([{ ...job, method: "lora" }]);
  assert.equal(estimate.recipe.adapters, "fp32");
  const words = recipeWords(estimate.recipe);
  assert.match(words, /weights bf16, frozen.*they and their gradients are fp32/);
  assert.doesNotMatch(words, /(gradients|states) bf16/);
});

test("of a whole model the recipe tells gradients and states", async () => {
  const [{ estimate }] = await answersTo([job]);
  assert.equal(estimate.recipe.adapters, undefined);
  assert.match(recipeWords(estimate.recipe), /gradients bf16, .*optimizer states bf16/);
});

test("a card within the range is tight in the map and in words, on either side of what is expected", async () => {
  const [{ estimate }] = await answersTo([job]);
  const { low, expected, high } = estimate.allocated;
  const cards = [high, expected + 1, expected - 1, low, low - 1].map((bytes) => ({ memory_gib: bytes / 2 ** 30 }));
  const [{ fits }] = await answersTo([{ ...job, gpus: cards, overrides: { cuda_context_gib: 0 } }]);
  assert.deepEqual(
    fits.map(({ verdict }) => verdict),
    ["fits", "tight", "tight", "tight", "does_not_fit"],
  );
  for (const { verdict, usable_bytes: usable } of fits) {
    const inMap = verdictOf({ usable, low: low / expected, high: high / expected }, expected);
    assert.equal({ fits: "fits", tight: "tight", over: "does_not_fit" }[inMap], verdict);
  }
  assert.match(verdictSentence(fits[1]), /would stay free, less than/);
  assert.match(verdictSentence(fits[2]), /more is expected than .*less than the estimate’s own uncertainty/);
});

test("Markdown names engine and catalog and what it is compared with, and no address that leads others nowhere", async () => {
  const schema = createSchema(await describe());
  const [a, b] = await answersTo([job, { ...job, method: "lora" }]);
  const values = { model: job.model, method: "lora" };
  const alone = markdownOf(b, { values }, schema, null, null);
  assert.doesNotMatch(alone, /Open in Tidemark|Compared/);
  assert.ok(alone.includes(`Tidemark ${schema.describe.engine}, catalog of ${schema.describe.catalog}.`));
  const beside = markdownOf(b, { values }, schema, "https://tidemark.example/#v=1", a);
  assert.match(beside, /Compared with A, meta-llama\/Llama-3\.2-1B: \u2212[\d.]+ GiB \([\d.]+ GiB → [\d.]+ GiB\)\./);
  assert.match(beside, /\[Open in Tidemark\]\(https:/);
});
