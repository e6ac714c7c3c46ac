import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { gzipSync } from "node:zlib";
import { pack, splitBehind } from "../../web/pack.mjs";
import { textOf, unpackUpTo } from "../../web/src/unpack.js";
import { bin } from "../wasm/engine.mjs";

const [wasm, reader] = ["tidemark.wasm", "reader.wasm"].map((name) => readFileSync(join(bin, name)));

test("packed bytes come back as they were", async () => {
  const everyByte = Uint8Array.from({ length: 1024 }, (_, i) => (i * 7) % 256);
  for (const parts of [
    { empty: new Uint8Array() },
    { few: Uint8Array.of(255, 0, 255), empty: new Uint8Array(), one: Uint8Array.of(1) },
    { everyByte, wasm },
  ]) {
    const text = pack(parts);
    const names = Object.keys(parts);
    for (const [index, last] of names.entries()) {
      const found = await unpackUpTo(text, last);
      assert.deepEqual(Object.keys(found), names.slice(0, index + 1));
      for (const [name, bytes] of Object.entries(found)) assert.deepEqual(Buffer.from(bytes), Buffer.from(parts[name]));
    }
  }
});

test("the head of a text is enough for its first parts, and no shorter one is", async () => {
  const text = pack({ words: "a few words, then a few", engine: wasm, reader });
  const [head, rest] = await splitBehind(text, "words");
  assert.equal(head + rest, text);
  assert.ok(head.length < text.length / 20, `${head.length} of ${text.length} characters`);
  assert.equal(textOf((await unpackUpTo(head, "words")).words), "a few words, then a few");
  await assert.rejects(unpackUpTo(head.slice(0, -1), "words"));
  await assert.rejects(unpackUpTo(head, "engine"));
});

test("the text is ASCII that neither a script's text in HTML nor the page's template reads anything into", () => {
  assert.match(pack({ wasm, reader }), /^[!-~]*$/);
  assert.doesNotMatch(pack({ wasm, reader }), /[<%]/);
});

test("the text is less than half as long as the bytes, and a tenth smaller than what gzip makes of them", () => {
  const size = (data) => gzipSync(data, { level: 9 }).length;
  const text = pack({ wasm });
  assert.ok(text.length < wasm.length * 0.5, `${text.length} characters for ${wasm.length} bytes`);
  assert.ok(size(text) < size(wasm) * 0.9, `${size(text)} against ${size(wasm)} bytes`);
});

test("beside the engine the reader of files takes a tenth less", () => {
  const [both, engine, alone] = [{ wasm, reader }, { wasm }, { reader }].map((parts) => pack(parts).length);
  assert.ok(both - engine < alone * 0.9, `${both - engine} characters instead of ${alone}`);
});
