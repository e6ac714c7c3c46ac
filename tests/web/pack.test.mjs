import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { gzipSync } from "node:zlib";
import { pack } from "../../web/pack.mjs";
import { unpack } from "../../web/src/unpack.js";
import { bin } from "../wasm/engine.mjs";

const [wasm, reader] = ["tidemark.wasm", "reader.wasm"].map((name) => readFileSync(join(bin, name)));

test("packed bytes come back as they were, with what new browsers have and without", async () => {
  const everyByte = Uint8Array.from({ length: 1024 }, (_, i) => (i * 7) % 256);
  const { fromBase64 } = Uint8Array;
  for (const own of [fromBase64, undefined, (text) => new Uint8Array(Buffer.from(text, "base64"))]) {
    Uint8Array.fromBase64 = own;
    for (const parts of [
      [new Uint8Array()],
      [Uint8Array.of(255, 0, 255), new Uint8Array(), Uint8Array.of(1)],
      [everyByte, wasm],
    ]) {
      const text = pack(...parts);
      for (const [index, part] of parts.entries()) {
        assert.deepEqual(Buffer.from(await unpack(text, index)), Buffer.from(part));
      }
    }
  }
  Uint8Array.fromBase64 = fromBase64;
});

test("the text is ASCII that HTML reads nothing into", () => {
  assert.match(pack(wasm), /^[\w+/=;]*$/);
});

test("the text is less than half as long as the bytes, and a tenth smaller than what gzip makes of them", () => {
  const size = (data) => gzipSync(data, { level: 9 }).length;
  const text = pack(wasm);
  assert.ok(text.length < wasm.length * 0.5, `${text.length} characters for ${wasm.length} bytes`);
  assert.ok(size(text) < size(wasm) * 0.9, `${size(text)} against ${size(wasm)} bytes`);
});

test("beside the engine the reader of files takes a tenth less", () => {
  const [both, engine, alone] = [[wasm, reader], [wasm], [reader]].map((parts) => pack(...parts).length);
  assert.ok(both - engine < alone * 0.9, `${both - engine} characters instead of ${alone}`);
});
