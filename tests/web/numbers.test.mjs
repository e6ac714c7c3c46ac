// Numbers and sizes as people write them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readCard, readNumber } from "../../web/src/numbers.js";
import { createSchema } from "../../web/src/schema.js";
import { describe } from "./engines.mjs";

const schema = createSchema(await describe());

test("whole numbers: powers of 1024, and thousands by comma, point, blank or apostrophe", () => {
  const same = {
    "4k": 4096,
    "32K": 32768,
    "4,096": 4096,
    4.096: 4096,
    "4 096": 4096,
    "4\u202f096": 4096,
    "4'096": 4096,
  };
  for (const [text, number] of Object.entries(same)) assert.equal(readNumber(text, true), number, text);
  assert.equal(readNumber("1,048,576", true), 1048576);
  assert.equal(readNumber("1.5k", true), 1536);
  assert.equal(readNumber("1M", true), 1048576);
  for (const text of ["4,5", "four", "", "k", "4kk", "--4", "1,2,3"])
    assert.equal(readNumber(text, true), undefined, text);
});

test("other numbers: a decimal comma, unless it may separate thousands", () => {
  const same = {
    "0,05": 0.05,
    "0,096": 0.096,
    "24,5": 24.5,
    "1e-3": 0.001,
    2.5: 2.5,
    "-1": -1,
    "1,234,567.5": 1234567.5,
  };
  for (const [text, number] of Object.entries(same)) assert.equal(readNumber(text, false), number, text);
  assert.equal(readNumber("4,096", false), undefined);
  assert.equal(readNumber("7e9", false), 7e9);
});

test("what a number is printed as is read as that number", () => {
  for (const option of schema.options.filter(({ type }) => type === "integer" || type === "number")) {
    const numbers = [0, 1, 128, 4096, 131072, 1e8, ...(option.type === "number" ? [0.05, 1e-7, 24.25, 1e21] : [])];
    for (const number of numbers) assert.equal(schema.parse(option.name, schema.print(option.name, number)), number);
  }
});

test("cards by size: what nvidia-smi says, and with a comma; names stay names", () => {
  assert.deepEqual(readCard("24576 MiB"), { memory_gib: 24 });
  assert.deepEqual(readCard("23028MiB"), { memory_gib: 23028 / 1024 });
  assert.deepEqual(readCard("24,5 GiB"), { memory_gib: 24.5 });
  assert.equal(readCard("24,5 GB"), "24.5 GB");
  for (const text of ["24 GB", "24", "4090", "RTX 4090", "A100-80GB", "L4"]) assert.equal(readCard(text), text);
});
