import assert from "node:assert/strict";
import { test } from "node:test";
import { count, difference, exact, gb, gib, grouped, percent } from "../../web/src/format.js";
import { batches, octaves, sequences } from "../../web/src/mapSizes.js";
import { layOut } from "../../web/src/timelineDrawing.js";
import { sortCards } from "../../web/src/cards.js";
import { stopsBetween } from "../../web/src/numberInput.js";
import { readCount } from "../../web/src/numbers.js";
import { t } from "../../web/src/messages.js";

const plain = (text) => text.replace(/[\u202f\u00a0]/g, " ");

test("sizes in both units, and to the byte", () => {
  assert.equal(gib(24745875456), "23.05 GiB");
  assert.equal(gb(24745875456), "24.75 GB");
  assert.equal(plain(exact(24745875456)), "24 745 875 456 bytes");
  assert.equal(gib(0), "0.00 GiB");
  assert.equal(gib(16 * 2 ** 20), "16.0 MiB");
  assert.equal(gib(512), "512 B");
  assert.equal(gib(-(2 ** 31)), "\u22122.00 GiB");
  assert.equal(gib(120 * 2 ** 30), "120.0 GiB");
  assert.equal(plain(gib(9999 * 2 ** 30)), "9 999 GiB");
  assert.equal(gib(20480 * 2 ** 30), "20.00 TiB");
  assert.equal(gib(20480 * 2 ** 50), "20.00 EiB");
});

test("differences carry their sign", () => {
  assert.equal(difference(2 ** 30), "+1.00 GiB");
  assert.equal(difference(-(2 ** 30)), "\u22121.00 GiB");
  assert.equal(difference(0), "\u00b10");
});

test("near the brim a share has one digit more", () => {
  assert.equal(plain(percent(0.8249)), "82 %");
  assert.equal(plain(percent(0.9985)), "99.9 %");
  assert.equal(plain(percent(1.0009)), "100.1 %");
  assert.equal(plain(percent(0)), "0 %");
  assert.equal(plain(percent(9.5)), "950 %");
  assert.equal(plain(percent(12.3)), "12 ×");
});

test("counts of parameters", () => {
  assert.equal(plain(count(8030261248)), "8.03 B");
  assert.equal(plain(count(494032768)), "494 M");
  assert.equal(plain(grouped(1000000)), "1 000 000");
  assert.equal(readCount("7e9"), 7e9);
  assert.equal(readCount("1.5B"), 1.5e9);
  assert.equal(readCount("350m"), 350e6);
  assert.equal(readCount("1,5 B"), 1.5e9);
  assert.equal(readCount("7,000,000,000"), 7e9);
  for (const text of ["gpt2", "llama 8b", "-7B", "B", ""]) assert.equal(readCount(text), undefined, text);
  assert.equal(readCount("a lot"), undefined);
  assert.equal(readCount("7e99"), 7e99);
});

test("both axes of the fit map have 64 sizes, ascending, with every power of two", () => {
  for (const [axis, powers] of [
    [batches, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]],
    [sequences, [128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072]],
  ]) {
    assert.equal(axis.length, 64);
    axis.forEach((value, at) => assert.ok(at === 0 || value > axis[at - 1], `${value}`));
    for (const power of powers) assert.ok(axis.includes(power), `${power}`);
  }
  assert.equal(octaves(8, 9, 1)[8], 16);
});

test("slider stops are powers of two and the halves between", () => {
  assert.deepEqual(stopsBetween(1, 16), [1, 2, 3, 4, 6, 8, 12, 16]);
  assert.deepEqual(stopsBetween(128, 512), [128, 192, 256, 384, 512]);
});

test("the timeline runs from edge to edge, phase after phase", () => {
  const instants = ["forward", "forward", "loss", "backward", "backward", "backward"].map((phase) => ({ phase }));
  const { positions, phases } = layOut(instants);
  assert.equal(positions[0], 0);
  assert.equal(positions.at(-1), 1);
  positions.forEach((position, at) => assert.ok(at === 0 || position > positions[at - 1]));
  assert.deepEqual(
    phases.map((phase) => phase.name),
    ["forward", "loss", "backward"],
  );
  assert.ok(Math.abs(phases.at(-1).to - 1) < 1e-9);
});

test("cards: the smallest that fits comes first, the nearest miss first among those that do not", () => {
  const card = (gpu, verdict, usable_bytes) => ({ gpu, verdict, usable_bytes });
  const sorted = sortCards([
    card("no-small", "does_not_fit", 1),
    card("large", "fits", 9),
    card("tight", "tight", 5),
    card("no-large", "does_not_fit", 4),
    card("small", "fits", 7),
    card("?", "unknown", 0),
  ]);
  assert.deepEqual(
    sorted.map((each) => each.gpu),
    ["small", "large", "tight", "no-large", "no-small", "?"],
  );
});

test("messages fill their places and nothing else", () => {
  assert.equal(t("verdict.on", { gpu: "{headroom} $& <b>" }), "on {headroom} $& <b>");
  assert.equal(t("no.such.key"), "no.such.key");
});
