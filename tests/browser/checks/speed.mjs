// How soon the page answers, and that it never stands still: in Chromium, from file://. Machines that test are slow and busy with other
// things, so one of several loads has to keep the bound: what is slow by itself is slow in every load.
//
// The aim is an answer within 100 ms of opening. Where this was written (two slow cores, on which `loop` takes 100 ms, busy with other builds)
// the best of a few loads took 92 to 146 ms for the example and 330 to 550 for a link, for which a worker has to start, WebAssembly to be
// compiled and its functions to run for the first time. The bounds are that with a margin; where the loop, run just before, takes longer
// than there, so may the answer.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { chromium } from "playwright-core";

const loads = 12;
const link = "#v=1&model=meta-llama/Llama-2-7b-hf&gpu=NVIDIA+GeForce+RTX+4090";

// Milliseconds that plain arithmetic takes.
const loop = `(function () {
  var start = performance.now();
  for (var i = 0, x = 0; i < 2e7; ++i) x = (x * 31 + i) | 0;
  return performance.now() - start + (x & 0);
})()`;
const usualLoop = 100;

/** Milliseconds from opening until the first headline was painted, and how much slower than usual the machine was. */
async function firstAnswer({ launch, until }, url) {
  const browser = await launch();
  try {
    await browser.open("about:blank");
    const slowness = Math.max(1, (await browser.evaluate(loop)) / usualLoop);
    await browser.open(url);
    await until(browser, `performance.getEntriesByName("tidemark-first-answer").length`);
    return {
      time: await browser.evaluate(`performance.getEntriesByName("tidemark-first-answer")[0].startTime`),
      slowness,
    };
  } finally {
    await browser.close();
  }
}

async function best(context, url, bound) {
  const seen = [];
  let kept = false;
  while (!kept && seen.length < loads) {
    const { time, slowness } = await firstAnswer(context, url);
    seen.push(
      `${Math.round(time)} ms${slowness > 1 ? ` (machine ${slowness.toFixed(1)} times slower than usual)` : ""}`,
    );
    kept = time <= bound * slowness;
  }
  assert.ok(kept, `${seen.join(", ")}; at most ${bound} ms`);
  return seen.join(", ");
}

/** The tasks of the page's thread, which is the one that made that mark. */
function tasksOf(traceEvents, mark) {
  const { pid, tid } = traceEvents.find(({ name }) => name === mark);
  return traceEvents.filter(
    (event) =>
      event.pid === pid &&
      event.tid === tid &&
      event.name === "ThreadControllerImpl::RunTask" &&
      event.tdur !== undefined,
  );
}

/**
 * The most work, in milliseconds, that one task of the page's thread did from opening until all panels stood there and two changes were
 * made: its own processor time, so that what other programs do meanwhile does not count.
 */
async function longestTask(browser, url) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  // Plain expressions: Playwright's selectors bring a script that takes longer to read than the page's own.
  const until = async (expression) => {
    while (!(await page.evaluate(expression))) await sleep(50);
  };
  const calm = `!!document.documentElement.dataset.ready && !document.querySelector(".figures").hasAttribute("aria-busy")`;
  const advised = `${calm} && !!document.querySelector('[data-testid="advice-singles"] li') && !document.querySelector("#advice").hasAttribute("aria-busy")`;
  await browser.startTracing(page, { categories: ["toplevel", "blink.user_timing"] });
  await page.goto(url);
  await until(advised);
  await page.evaluate(`(function () {
    var field = document.querySelector('[data-testid="batch"]');
    field.value = "2";
    field.dispatchEvent(new Event("input", { bubbles: true }));
  })()`);
  await until(advised);
  await page.evaluate(`document.querySelector('[data-testid="tab-map"]').click()`);
  await until(`!!document.querySelector('[data-testid="fit-map"]').dataset.milliseconds`);
  await page.evaluate(
    `document.querySelector('[data-testid="advice-apply"], [data-testid="advice-apply-one"]').click()`,
  );
  await until(advised);
  const { traceEvents } = JSON.parse(await browser.stopTracing());
  await page.close();
  const tasks = tasksOf(traceEvents, "tidemark-first-answer");
  assert.ok(tasks.length > 50, "tasks were seen");
  return Math.max(...tasks.map(({ tdur }) => tdur)) / 1000;
}

// A drag: so many stops, one every so many milliseconds.
const [stops, every] = [60, 50];
// Before it a list of 400 lines is laid out again and again: what that takes of the same thread says how slow the machine is just now. The best
// that it took where this was written is this many milliseconds.
const usualList = 9;
const drag = `new Promise(function (done) {
  var slider = document.querySelector('[data-option="sequence_length"] input[type="range"]');
  var stop = 0;
  var lists = 0;
  function layOutList() {
    performance.mark("tidemark-list");
    var list = document.createElement("ol");
    for (var i = 0; i < 400; ++i) {
      var line = document.createElement("li");
      line.textContent = "line " + i;
      list.append(line);
    }
    list.style = "position: absolute; visibility: hidden";
    document.body.append(list);
    list.offsetHeight;
    list.remove();
    lists += 1;
    setTimeout(lists < 15 ? layOutList : beginDrag, ${every});
  }
  function beginDrag() {
    performance.mark("tidemark-drag");
    var timer = setInterval(function () {
      slider.value = String(4 + (stop % 9));
      slider.dispatchEvent(new Event("input", { bubbles: true }));
      stop += 1;
      if (stop < ${stops}) return;
      clearInterval(timer);
      setTimeout(function () {
        performance.mark("tidemark-dragged");
        done();
      }, ${every});
    }, ${every});
  }
  layOutList();
})`;

/** What the tasks of the page's thread took of the processor between some marks, in milliseconds. */
function timesOf(traceEvents) {
  const tasks = tasksOf(traceEvents, "tidemark-dragged");
  const marks = (name) => traceEvents.filter((event) => event.name === name).map(({ ts }) => ts);
  const spent = (some) => some.map(({ tdur }) => tdur / 1000);
  const [from, to] = [marks("tidemark-drag").at(-1), marks("tidemark-dragged").at(-1)];
  const lists = marks("tidemark-list");
  return {
    dragged: spent(tasks.filter(({ ts }) => ts >= from && ts <= to)),
    lists: spent(tasks.filter(({ ts, dur }) => lists.some((at) => at >= ts && at <= ts + dur))),
  };
}

/**
 * What a slider's stop costs the page's thread, in milliseconds of its own processor time: everything that it does while the slider is dragged,
 * style, layout and painting too, by the number of stops. And how much slower than usual the machine was. `drags` times in a row: what
 * other programs do to the processor's caches meanwhile differs.
 */
async function* stopTimes(browser, url, drags) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const until = async (expression) => {
    while (!(await page.evaluate(expression))) await sleep(50);
  };
  await page.goto(url);
  const calm = `!!document.documentElement.dataset.ready && !document.querySelector("[aria-busy]")`;
  await until(calm);
  // Once for the compilers.
  await page.evaluate(drag);
  for (let turn = 0; turn < drags; turn += 1) {
    await until(calm);
    await browser.startTracing(page, { categories: ["toplevel", "blink.user_timing"] });
    await page.evaluate(drag);
    const { dragged, lists } = timesOf(JSON.parse(await browser.stopTracing()).traceEvents);
    assert.ok(lists.length > 10, "lists were laid out");
    const middle = lists.sort((a, b) => a - b)[lists.length >> 1];
    yield { time: dragged.reduce((all, one) => all + one, 0) / stops, slowness: Math.max(1, middle / usualList) };
  }
  await page.close();
}

/** Milliseconds that the fit map's 64 × 64 cells took to compute and paint, after each of several changes of the job. */
async function mapTimes({ launch, until, url }) {
  const browser = await launch();
  try {
    await browser.open(url + link);
    const map = `document.querySelector('[data-testid="fit-map"]')`;
    await until(browser, `!!document.documentElement.dataset.ready`);
    await browser.evaluate(`document.querySelector('[data-testid="tab-map"]').click()`);
    await until(browser, `${map}.dataset.milliseconds`);
    const times = [];
    for (let change = 0; change < 12; change += 1) {
      await browser.evaluate(`(function () {
        delete ${map}.dataset.milliseconds;
        var other = document.querySelectorAll('[data-option="method"] input')[(${change} + 1) % 2];
        other.click();
      })()`);
      await until(browser, `${map}.dataset.milliseconds`);
      times.push(Number(await browser.evaluate(`${map}.dataset.milliseconds`)));
    }
    return times;
  } finally {
    await browser.close();
  }
}

const openChromium = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu"],
  });

const inChromium = (check) => (browser, context) => (browser.name === "chromium" ? check(context) : "in Chromium only");

export default {
  "the example's answer is painted soon": inChromium((context) => best(context, context.url, 200)),
  "a link's answer is painted soon": inChromium((context) => best(context, context.url + link, 800)),
  "all cells of the fit map are computed and painted within 16 ms": inChromium(async (context) => {
    const times = await mapTimes(context);
    const said = `best ${Math.min(...times)} of ${times.join(", ")} ms`;
    assert.ok(Math.min(...times) <= 16, said);
    return said;
  }),
  "a stop of a slider costs the page's thread little": inChromium(async (context) => {
    const browser = await openChromium();
    try {
      const seen = [];
      for await (const { time, slowness } of stopTimes(browser, context.url + link, 4)) {
        seen.push(`${time.toFixed(1)} ms on a machine ${slowness.toFixed(1)} times slower than usual`);
        if (time <= 12 * slowness) return seen.join(", ");
      }
      assert.fail(`${seen.join(", ")}; at most 12`);
    } finally {
      await browser.close();
    }
  }),
  "no task of the page works longer than 50 ms": inChromium(async (context) => {
    const browser = await openChromium();
    try {
      const seen = [];
      for (const state of [link, ""]) {
        let shortest = Number.POSITIVE_INFINITY;
        for (let turn = 0; turn < 3 && shortest > 50; turn += 1)
          shortest = Math.min(shortest, await longestTask(browser, context.url + state));
        seen.push(Math.round(shortest));
      }
      const said = `longest tasks ${seen.join(" and ")} ms`;
      assert.ok(Math.max(...seen) <= 50, said);
      return said;
    } finally {
      await browser.close();
    }
  }),
};
