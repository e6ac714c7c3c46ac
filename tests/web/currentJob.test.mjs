import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createCurrentJob } from "../../web/src/currentJob.js";

globalThis.document ??= { activeElement: null };

/** As much of an element as a part of the page needs. */
function element() {
  const classes = new Set();
  const classList = { toggle: (name, on) => (on ? classes.add(name) : classes.delete(name)) };
  return {
    inert: false,
    classList,
    contains: () => false,
    getRootNode: () => document,
    isPast: () => classes.has("is-past"),
  };
}

test("what was drawn for a former job dims, and what acts on it is out of reach, until it is drawn anew", async () => {
  const job = createCurrentJob();
  const [node, button] = [element(), element()];
  const draw = job.part(node, [button]);
  const first = job.turnTo({ model: "a" });
  draw(first, () => {});
  assert.deepEqual([node.isPast(), button.inert], [false, false]);
  const second = job.turnTo({ model: "b" });
  assert.deepEqual([node.isPast(), button.inert], [false, true], "a short wait is not worth a flicker");
  await sleep(300);
  assert.deepEqual([node.isPast(), button.inert], [true, true]);
  draw(second, () => {});
  assert.deepEqual([node.isPast(), button.inert], [false, false]);
});

test("an answer about a former job is not drawn", () => {
  const job = createCurrentJob();
  const node = element();
  const draw = job.part(node);
  const first = job.turnTo({ model: "a" });
  job.turnTo({ model: "b" });
  draw(first, () => assert.fail("drawn"));
  assert.equal(node.isPast(), false, "nothing stands there yet");
});

test("values that ask for the same are the same job", () => {
  const job = createCurrentJob();
  const first = job.turnTo({ model: "a", micro_batch_size: 2 });
  assert.equal(job.turnTo({ model: "a", micro_batch_size: 2 }), first);
  assert.ok(job.isPresent(first));
  job.turnTo({ model: "a" });
  assert.ok(!job.isPresent(first));
});
