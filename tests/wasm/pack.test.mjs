import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { gzipSync } from "node:zlib";
import { deflate, pack } from "../../wasm/pack.mjs";
import { inflate, unpack } from "../../wasm/unpack.mjs";
import { bin } from "./engine.mjs";

const wasm = readFileSync(join(bin, "tidemark.wasm"));

const everyByte = Uint8Array.from({ length: 1024 }, (_, i) => (i * 7) % 256);
const samples = [new Uint8Array(), Uint8Array.of(0), Uint8Array.of(255, 0, 255), ...Array.from({ length: 14 }, (_, length) => everyByte.subarray(0, length)), everyByte, wasm];

test("packed bytes come back as they were", () => {
  for (const bytes of samples) assert.deepEqual(Buffer.from(unpack(pack(bytes))), Buffer.from(bytes));
});

test("deflated bytes come back as they were, and nothing more", async () => {
  for (const bytes of samples) assert.deepEqual(Buffer.from(await inflate(deflate(bytes))), Buffer.from(bytes));
});

test("the text is printable ASCII that neither HTML nor a JS string reads anything into", () => {
  assert.match(deflate(wasm), /^[ !#-%'-;=-[\]-~]*$/);
});

test("the text is half as long as the bytes, and costs gzip at most 2 percent", () => {
  const size = (data) => gzipSync(data, { level: 9 }).length;
  const text = deflate(wasm);
  assert.ok(text.length < wasm.length * 0.6, `${text.length} characters for ${wasm.length} bytes`);
  assert.ok(size(text) < size(wasm) * 1.02, `${size(text)} against ${size(wasm)} bytes`);
});

test("unpacking takes a few milliseconds", () => {
  const text = deflate(wasm);
  unpack(text);
  const times = [1, 2, 3, 4, 5].map(() => {
    const start = process.cpuUsage();
    unpack(text);
    return process.cpuUsage(start).user / 1000;
  });
  assert.ok(Math.min(...times) < 20, `${Math.min(...times)} ms`);
});
