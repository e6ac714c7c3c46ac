import assert from "node:assert/strict";
import { test } from "node:test";
import { verdictOf } from "../../web/src/mapSizes.js";
import { recipeWords } from "../../web/src/headline.js";
import { verdictSentence } from "../../web/src/verdict.js";
import { answersTo } from "./engines.mjs";

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
