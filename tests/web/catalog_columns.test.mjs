// The catalog's models come back from their columns as they went in.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { compactModels } from "../../web/catalog.mjs";
import { columnsOf, rowsOf } from "../../web/src/catalogColumns.js";

test("the whole catalog comes back from its columns, to the byte", () => {
  const text = compactModels(readFileSync(new URL("../../catalog/models.json", import.meta.url), "utf8"));
  assert.equal(rowsOf(columnsOf(text)), text);
});

test("a row without aliases, counts or siblings stays without them", () => {
  const text = JSON.stringify({
    schema: 1,
    date: "2026-01-01",
    models: [
      { id: "a/B-1", family: "B", kind: "text", config: { model_type: "b" }, parameters: {} },
      { id: "c", aliases: ["c", "d"], family: "C", kind: "text", config: {}, parameters: { computed: 3 } },
    ],
  });
  assert.equal(rowsOf(columnsOf(text)), text);
});
