// What the page hands out reproduces what it shows, for states drawn over all options, in real browsers:
//   node tests/browser/states.mjs [chromium] [firefox] [webkit] [how many]
//
// Each state is come to from the one before, in the page. Its copied link, opened anew, shows the same words and figures and hands out the same
// texts; its copied command, run by the command line, prints the copied JSON byte for byte, or is refused for the same reason; its snippet is an
// element whose answer is that JSON. checks/states.mjs does the same with a few of them.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { readPermalink, writePermalink } from "../../web/src/permalink.js";
import { createSchema } from "../../web/src/schema.js";
import { wrongWith } from "../web/copied.mjs";
import { randomFrom, stateWith } from "../web/draw.mjs";
import { describe } from "../web/engines.mjs";
import { serveDocs } from "./widgets.mjs";

/** Waits for something that the page leaves in a variable of the window, and takes it. */
async function taken(browser, name) {
  const end = Date.now() + 60000;
  for (;;) {
    const text = await browser.evaluate(`window.${name} || ""`);
    if (text) {
      await browser.evaluate(`(window.${name} = "")`);
      return JSON.parse(text);
    }
    if (Date.now() > end) throw new Error(`the page left no ${name}`);
    await sleep(15);
  }
}

// In the page: goes to a state by its link and takes what is shown and handed out, once all of that is about it.
const visitor = `(function () {
  var copied = "";
  Object.defineProperty(navigator, "clipboard", {
    configurable: true,
    value: { writeText: function (text) { copied = text; return Promise.resolve(); } },
  });
  function at(id) { return document.querySelector('[data-testid="' + id + '"]'); }
  function copy(kind) { copied = ""; at("copy-" + kind).click(); return copied; }
  function words(id) { return at(id).textContent; }
  function take() {
    if (at("embed-box").hidden) at("embed").click();
    window.visited = JSON.stringify({
      link: copy("link"), json: copy("json"), command: copy("command"), markdown: copy("markdown"),
      element: at("element").value, frame: at("frame").value,
      headline: words("headline"), verdict: at("verdict").querySelector(".verdict-text").textContent, bar: words("bar"),
    });
  }
  function whenSettled() {
    var isBusy = !document.documentElement.dataset.ready || document.querySelector(".figures").hasAttribute("aria-busy");
    setTimeout(isBusy ? whenSettled : take, 5);
  }
  window.visit = function (hash) {
    if (hash === null || location.hash === hash) return whenSettled();
    // The page has listened before: when this is called, it knows of the state.
    addEventListener("hashchange", whenSettled, { once: true });
    location.hash = hash;
  };
  return true;
})()`;

async function visited(browser, hash) {
  await browser.evaluate(`(visit(${JSON.stringify(hash)}), true)`);
  return taken(browser, "visited");
}

async function opened(browser, address) {
  await browser.open("about:blank");
  await browser.open(address);
  await browser.evaluate(visitor);
  return visited(browser, null);
}

/** The answers of elements that are put into a page of docs, one after the other. */
async function answersOf(browser, snippets) {
  const body = `<main></main><script type="module" src="/widget/tidemark-calculator.js"></script>`;
  const docs = await serveDocs({ "/": { body } });
  try {
    await browser.open(`${docs.origin}/`);
    const answers = [];
    for (const snippet of snippets) {
      // Behind the line that loads the script; values may have lines of their own.
      const element = snippet.slice(snippet.indexOf("\n") + 1);
      await browser.evaluate(`(function (place) {
        place.innerHTML = ${JSON.stringify(element)};
        place.firstChild.addEventListener("estimate", function (event) {
          window.answered = JSON.stringify({ json: JSON.stringify(event.detail, null, 2) });
        });
        return true;
      })(document.querySelector("main"))`);
      answers.push((await taken(browser, "answered")).json);
    }
    return answers;
  } finally {
    docs.close();
  }
}

const differing = (a, b) => Object.keys(a).filter((key) => a[key] !== b[key]);

/** The page in `browser` through `count` states. Returns what is wrong, which is told at once, and how many of them have an estimate. */
export async function goThroughStates(browser, url, count, tell = () => {}) {
  const schema = createSchema(await describe());
  const random = randomFrom(20261124);
  const { options } = schema;
  const first = Math.floor(random() * options.length);
  const states = Array.from({ length: count }, (_, at) =>
    stateWith(options[(first + at * 7) % options.length].name, schema, random),
  );
  const links = states.map((values) => `#${writePermalink({ values, unknown: [] }, schema)}`);
  const wrong = [];
  const note = (what) => {
    wrong.push(what);
    tell(what);
  };
  const folder = mkdtempSync(join(tmpdir(), "tidemark-states-"));
  try {
    await browser.open(url);
    await browser.evaluate(visitor);
    const shown = [];
    for (const link of links) shown.push(await visited(browser, link));
    for (const [at, one] of shown.entries()) {
      const say = (what) => note(`${links[at]}: ${what}`);
      const { values } = readPermalink(links[at], schema);
      if (one.link !== links[at]) say(`its link is ${one.link}`);
      const [sought] = differing(one, await opened(browser, url + one.link));
      if (sought) say(`opened anew, another ${sought}`);
      const command = await wrongWith(one.command, { values, schema, shown: one.json, folder });
      if (command) say(`${one.command}: ${command}`);
      if (!one.frame.includes(`index.html${one.link}&view=widget`.replaceAll("&", "&amp;"))) say(`frame ${one.frame}`);
    }
    const answers = await answersOf(
      browser,
      shown.map(({ element }) => element),
    );
    for (const [at, answer] of answers.entries())
      if (answer !== shown[at].json) note(`${links[at]}: ${shown[at].element} has another answer`);
    return { wrong, estimates: shown.filter(({ json }) => JSON.parse(json).estimate).length };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function main(words) {
  const count = Number(words.find((word) => /^\d+$/.test(word)) ?? 510);
  const names = words.filter((word) => !/^\d+$/.test(word));
  const page = join(dirname(fileURLToPath(import.meta.url)), "../../dist/index.html");
  let failed = 0;
  for (const name of names.length > 0 ? names : ["chromium", "firefox", "webkit"]) {
    const { launch } = await import(`./${name}.mjs`);
    const browser = await launch();
    try {
      const { wrong, estimates } = await goThroughStates(browser, pathToFileURL(page).href, count, console.log);
      failed += wrong.length;
      console.log(`${name}: ${count} states, ${estimates} with an estimate, ${wrong.length} wrong`);
    } finally {
      await browser.close();
    }
  }
  console.log(failed === 0 ? "1 passed, 0 failed" : "0 passed, 1 failed");
  process.exit(failed === 0 ? 0 : 1);
}
if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));
