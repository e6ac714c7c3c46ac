import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { gzipSync } from "node:zlib";
import { pack, packSlowly } from "../../wasm/pack.mjs";
import { bytesOf, packedStream, unpack } from "../../wasm/unpack.mjs";
import xz from "../../web/node_modules/xz-decompress/dist/package/xz-decompress.js";
import { bin } from "./engine.mjs";

const wasm = readFileSync(join(bin, "tidemark.wasm"));

test("packed bytes come back as they were, with what new browsers have and without", async () => {
  const everyByte = Uint8Array.from({ length: 1024 }, (_, i) => (i * 7) % 256);
  const { fromBase64 } = Uint8Array;
  for (const own of [fromBase64, undefined, (text) => new Uint8Array(Buffer.from(text, "base64"))]) {
    Uint8Array.fromBase64 = own;
    for (const bytes of [new Uint8Array(), Uint8Array.of(0), Uint8Array.of(255, 0, 255), everyByte, wasm]) {
      assert.deepEqual(Buffer.from(await unpack(pack(bytes))), Buffer.from(bytes));
    }
  }
  Uint8Array.fromBase64 = fromBase64;
});

test("the text is ASCII that HTML reads nothing into", () => {
  assert.match(pack(wasm), /^[\w+/=]*$/);
});

test("the text is little more than half as long as the bytes, and costs gzip at most 2 percent", () => {
  const size = (data) => gzipSync(data, { level: 9 }).length;
  const text = pack(wasm);
  assert.ok(text.length < wasm.length * 0.6, `${text.length} characters for ${wasm.length} bytes`);
  assert.ok(size(text) < size(wasm) * 1.02, `${size(text)} against ${size(wasm)} bytes`);
});

test("what nobody waits for comes back as it was, too, from a text a tenth shorter", async () => {
  const reader = readFileSync(join(bin, "reader.wasm"));
  for (const parts of [
    [new Uint8Array()],
    [Uint8Array.of(255, 0, 255), new Uint8Array(), Uint8Array.of(1)],
    [reader],
  ]) {
    const [lengths, text] = packSlowly(...parts).split(";");
    assert.equal(lengths, parts.map((part) => part.length).join());
    const back = await bytesOf(new xz.XzReadableStream(packedStream(text)));
    assert.deepEqual(Buffer.from(back), Buffer.concat(parts));
  }
  assert.ok(packSlowly(reader).length < pack(reader).length * 0.9);
});

test("beside the engine the reader of files takes a tenth less", () => {
  const reader = readFileSync(join(bin, "reader.wasm"));
  const [both, engine, alone] = [[wasm, reader], [wasm], [reader]].map((parts) => packSlowly(...parts).length);
  assert.ok(both - engine < alone * 0.9, `${both - engine} characters instead of ${alone}`);
});
