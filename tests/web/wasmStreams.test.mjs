import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { pack } from "../../web/pack.mjs";
import { together } from "../../web/src/wasmStreams.js";
import { apart } from "../../web/wasmStreams.mjs";
import { bin } from "../wasm/engine.mjs";

const modules = ["tidemark.wasm", "reader.wasm"].map((name) => readFileSync(join(bin, name)));

/** A section: its id, its length in LEB128, its bytes. */
const section = (id, bytes) => [id, (bytes.length & 127) | 128, bytes.length >> 7, ...bytes];
/** A module of functions () -> () with a memory; each is given as its locals and instructions. */
const moduleOf = (...functions) =>
  Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 0, 0]),
    ...section(3, [functions.length, ...functions.map(() => 0)]),
    ...section(4, [1, 0x70, 0, 1]),
    ...section(5, [1, 0, 1]),
    ...section(10, [functions.length, ...functions.flatMap((code) => [code.length, ...code])]),
    ...section(0, [1, 0x78, 1, 2, 3]),
  ]);

test("every kind of instruction comes back as it was", () => {
  const drop = 0x1a;
  const all = moduleOf(
    [0, 0x0b],
    // locals: three of i32, 200 of f64; constants of one, two, three and five bytes; the same of 64 bits; floats
    [2, 3, 0x7f, 0xc8, 1, 0x7c, 0x41, 1, drop, 0x41, 0xff, 0, drop, 0x41, 0x80, 0x80, 4, drop, 0x0b],
    [0, 0x41, 0x80, 0x80, 0x80, 0x80, 0x78, drop, 0x42, 0x80, 0x80, 4, drop, 0x43, 11, 11, 11, 11, drop, 0x0b],
    [0, 0x44, 11, 4, 2, 3, 16, 65, 66, 14, drop, 0x0b],
    // a table of branches in two blocks; an if with its else; a loop; calls, one through the table
    [0, 0x02, 0x40, 0x02, 0x40, 0x41, 0, 0x0e, 3, 0, 1, 1, 0, 0x0b, 0x0b, 0x10, 0, 0x0b],
    [0, 0x41, 0, 0x04, 0x40, 0x01, 0x05, 0x03, 0x40, 0x41, 0, 0x0d, 0, 0x0b, 0x0b, 0x41, 0, 0x11, 0, 0, 0x0b],
    // local.set, tee, get; memory: a load and a store with an offset of two bytes, its size, its growth, copied and filled
    [1, 1, 0x7f, 0x41, 0, 0x21, 0, 0x20, 0, 0x22, 0, 0x28, 0, 0x80, 1, drop, 0x41, 0, 0x41, 0, 0x36, 0, 4, 0x0b],
    [
      0,
      0x3f,
      0,
      0x40,
      0,
      drop,
      0x41,
      0,
      0x41,
      0,
      0x41,
      0,
      0xfc,
      10,
      0,
      0,
      0x41,
      0,
      0x41,
      0,
      0x41,
      0,
      0xfc,
      11,
      0,
      0x0b,
    ],
    // a float turned to an integer that is cut off at its ends
    [0, 0x43, 0, 0, 0, 0, 0xfc, 0, drop, 0x0b],
  );
  assert.ok(WebAssembly.validate(all));
  assert.deepEqual(Buffer.from(together(apart(all))), Buffer.from(all));
});

test("a table of more than 127 branches comes back as it was", () => {
  const branches = Array.from({ length: 201 }, () => 0);
  const code = [0, 0x02, 0x40, 0x41, 0, 0x0e, 0xc8, 1, ...branches, 0x0b, 0x0b];
  const body = [1, (code.length & 127) | 128, code.length >> 7, ...code];
  const all = Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 0, 0]),
    ...section(3, [1, 0]),
    ...section(10, body),
  ]);
  assert.ok(WebAssembly.validate(all));
  assert.deepEqual(Buffer.from(together(apart(all))), Buffer.from(all));
});

test("the engine and the reader come back, but for how memory accesses are aligned", () => {
  for (const module of modules) {
    const found = together(apart(module));
    assert.equal(found.length, module.length);
    const others = Array.from(module.keys()).filter((at) => module[at] !== found[at]);
    for (const at of others) assert.ok(found[at] === 0 && module[at] <= 3, `${module[at]} became ${found[at]}`);
  }
});

test("an instruction that is not known is refused, and never packed wrong", () => {
  const vector = [0, 0xfd, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x1a, 0x0b];
  assert.ok(WebAssembly.validate(moduleOf(vector)));
  assert.throws(() => apart(moduleOf(vector)), /does not know an instruction/);
});

test("sorted, they are packed a twentieth smaller", () => {
  const [engine, reader] = modules;
  const sorted = pack({ engine: apart(engine), reader: apart(reader) }).length;
  const unsorted = pack({ engine, reader }).length;
  assert.ok(sorted < unsorted * 0.95, `${sorted} characters, ${unsorted} unsorted`);
});
