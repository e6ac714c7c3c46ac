import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { gzipSync } from "node:zlib";
import { pack } from "../../wasm/pack.mjs";
import { unpack } from "../../wasm/unpack.mjs";
import { bin } from "./engine.mjs";

const wasm = readFileSync(join(bin, "tidemark.wasm"));

test("packed bytes come back as they were", () => {
  const everyByte = Uint8Array.from({ length: 1024 }, (_, i) => (i * 7) % 256);
  for (const bytes of [new Uint8Array(), Uint8Array.of(0), Uint8Array.of(255, 0, 255), everyByte, wasm]) {
    assert.deepEqual(Buffer.from(unpack(pack(bytes))), Buffer.from(bytes));
  }
});

test("the text is printable ASCII that neither HTML nor a JS string reads anything into", () => {
  assert.match(pack(wasm), /^[ !#-;=-[\]-~]*$/);
});

test("packing costs gzip at most 2 percent", () => {
  const size = (data) => gzipSync(data, { level: 9 }).length;
  const raw = size(wasm);
  const packed = size(pack(wasm));
  assert.ok(packed < raw * 1.02, `${packed} against ${raw} bytes`);
});

test("unpacking takes a few milliseconds", () => {
  const text = pack(wasm);
  unpack(text);
  const times = [1, 2, 3, 4, 5].map(() => {
    const start = process.cpuUsage();
    unpack(text);
    return process.cpuUsage(start).user / 1000;
  });
  assert.ok(Math.min(...times) < 20, `${Math.min(...times)} ms`);
});
