import assert from "node:assert/strict";
import { test } from "node:test";
import { createEngine } from "../../web/src/engine.js";

/** What the engine runs in, by hand: `asked` holds the messages, `answer` and `fail` speak. */
function createBench({ makeWorker } = {}) {
  const made = [];
  const make = (kind) => {
    const worker = {
      kind,
      asked: [],
      parts: null,
      ended: false,
      onmessage: null,
      onerror: null,
      postMessage: (message) => {
        if (message.parts) worker.parts = message.parts;
        else worker.asked.push(message);
      },
      terminate: () => {
        worker.ended = true;
      },
      say: (data) => worker.onmessage({ data }),
      answer: (text = "{}") => worker.say({ id: worker.asked.at(-1).id, text }),
    };
    made.push(worker);
    return worker;
  };
  const engine = createEngine({
    partsOf: async () => "parts",
    makeWorker: makeWorker ?? (() => make("worker")),
    makeLocal: () => make("page"),
    describeFailure: (reason) => `broken: ${reason}`,
  });
  return {
    engine,
    made,
    get worker() {
      return made.at(-1);
    },
    questions: () => made.flatMap(({ asked }) => asked).map(({ request }) => request),
  };
}

test("a question is answered with what the worker says of it", async () => {
  const bench = createBench();
  const answer = bench.engine.ask("estimate", { model: "a" });
  assert.deepEqual(bench.worker.asked, [{ id: 1, request: { model: "a" } }]);
  bench.worker.say({ ready: true });
  bench.worker.say({ id: 99, text: '{"stray": true}' });
  bench.worker.answer('{"issues": []}');
  assert.deepEqual(await answer, { issues: [] });
  assert.equal(bench.worker.parts, "parts");
});

test("one question is under way; of those that wait, the newest of a kind and the most urgent kind go next", async () => {
  const bench = createBench();
  const said = [];
  const ask = (kind, name) =>
    bench.engine.ask(kind, name).then((answer) => said.push(`${name} ${answer ? "answered" : "dropped"}`));
  const all = [
    ask("fit", "fit"),
    ask("advise", "old advice"),
    ask("estimate", "old"),
    ask("advise", "advice"),
    ask("estimate", "new"),
  ];
  assert.deepEqual(bench.questions(), ["fit"]);
  for (let at = 0; at < 3; at += 1) bench.worker.answer();
  await Promise.all(all);
  assert.deepEqual(bench.questions(), ["fit", "new", "advice"]);
  assert.deepEqual(said.filter((words) => words.endsWith("dropped")).sort(), ["old advice dropped", "old dropped"]);
});

test("each of several askers has places of its own, and the most urgent question of all goes first", async () => {
  const bench = createBench();
  const [one, two] = [bench.engine.another(), bench.engine.another()];
  const ask = (asker, kind, name) => asker.ask(kind, name).then((answer) => (answer ? name : undefined));
  const all = [
    ask(one, "advise", "advice of one"),
    ask(one, "advise", "newer advice of one"),
    ask(two, "advise", "advice of two"),
    ask(two, "estimate", "estimate of two"),
    ask(one, "estimate", "estimate of one"),
    ask(one, "advise", "newest advice of one"),
  ];
  for (let at = 0; at < 5; at += 1) {
    bench.worker.answer();
    await new Promise(setImmediate);
  }
  const asked = ["advice of one", "estimate of two", "estimate of one", "newest advice of one", "advice of two"];
  assert.deepEqual(bench.questions(), asked);
  const dropped = (await Promise.all(all)).filter((answer) => answer === undefined);
  assert.equal(dropped.length, 1);
});

test("a question that breaks the engine is answered with INTERNAL_ERROR; the next one finds a new engine", async () => {
  const bench = createBench();
  const first = bench.engine.ask("estimate", "bad");
  const second = bench.engine.ask("fit", "good");
  const map = bench.engine.map("good", [1, 2], [3]);
  bench.worker.say({ ready: true });
  bench.worker.say({ id: 1, failed: "memory access out of bounds" });
  const {
    issues: [issue],
  } = await first;
  assert.deepEqual(
    [issue.code, issue.severity, issue.message],
    ["INTERNAL_ERROR", "error", "broken: memory access out of bounds"],
  );
  assert.equal(bench.made.length, 2);
  assert.ok(bench.made[0].ended);
  assert.equal(bench.worker.kind, "worker");
  bench.made[0].answer('{"late": true}');
  bench.worker.answer('{"fits": []}');
  assert.deepEqual(await second, { fits: [] });
  bench.worker.say({ ready: true });
  bench.worker.onerror({ message: "gone" });
  assert.deepEqual([...(await map).bytes], [NaN, NaN]);
});

test("where a worker cannot be made, or does not start, the engine runs on the page's thread", async () => {
  const refused = createBench({
    makeWorker: () => {
      throw new Error("no workers here");
    },
  });
  const answer = refused.engine.ask("estimate", "a");
  assert.equal(refused.worker.kind, "page");
  refused.worker.answer();
  assert.deepEqual(await answer, {});

  const silent = createBench();
  const later = silent.engine.ask("estimate", "b");
  silent.worker.onerror({ message: "refused by policy" });
  assert.deepEqual(
    silent.made.map(({ kind }) => kind),
    ["worker", "page"],
  );
  assert.deepEqual(silent.worker.asked, [{ id: 1, request: "b" }]);
  silent.worker.answer();
  assert.deepEqual(await later, {});
});

test("where the engine does not start at all, each question says so", async () => {
  const bench = createBench();
  const answer = bench.engine.ask("estimate", "a");
  bench.worker.say({ failed: "no WebAssembly" });
  bench.worker.say({ failed: "no WebAssembly" });
  assert.equal((await answer).issues[0].code, "INTERNAL_ERROR");
  assert.deepEqual(
    bench.made.map(({ kind }) => kind),
    ["worker", "page"],
  );
});
