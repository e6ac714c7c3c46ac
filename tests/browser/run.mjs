// The page in real browsers: node tests/browser/run.mjs [chromium] [firefox] [webkit]
//
// Each opens dist/index.html from file://, over http under a strict policy, and in a sandboxed iframe, and must show an
// estimate without a request to anything. Screenshots go to build/screenshots. More checks: the functions of checks/*.mjs.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, statSync, utimesSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { serve } from "./server.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "../..");
const file = join(root, "dist/index.html");
const screenshots = join(root, "build/screenshots");
if (!existsSync(file)) {
  console.error("There is no dist/index.html: run web/build.sh first.");
  process.exit(1);
}
mkdirSync(screenshots, { recursive: true });
const changed = (path) => statSync(join(here, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
if (changed("package-lock.json") > changed("node_modules/.package-lock.json")) {
  execFileSync("npm", ["ci", "--prefix", here, "--no-audit", "--no-fund"], { stdio: "inherit" });
  utimesSync(join(here, "node_modules/.package-lock.json"), new Date(), new Date());
}

const names = process.argv.slice(2).filter((word) => !word.startsWith("-"));
const browsers = names.length > 0 ? names : ["chromium", "firefox", "webkit"];

/** Waits until an expression is true in the page. */
async function until(browser, expression, what = expression) {
  const end = Date.now() + 30000;
  for (;;) {
    if (await browser.evaluate(`!!(${expression})`)) return;
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`);
    await sleep(50);
  }
}
const textOf = (browser, testid) =>
  browser.evaluate(`(document.querySelector('[data-testid="${testid}"]') || {}).textContent || ""`);

async function showsAnEstimate(browser) {
  await until(
    browser,
    `/\\d(\\.\\d+)? GiB/.test((document.querySelector('[data-testid="headline"]') || {}).textContent)`,
    "a headline with GiB",
  );
  return textOf(browser, "headline");
}

/** The example's answer is part of the page: the list of cards is what shows that the engine runs, and where. */
async function computesIn(browser, place) {
  await until(browser, `document.querySelectorAll('[data-testid="fits"] tbody tr').length > 3`, "the list of cards");
  assert.equal(await browser.evaluate("document.documentElement.dataset.engine"), place);
}

async function loadedNothing(browser, url, seen) {
  const resources = await browser.evaluate(
    `performance.getEntriesByType("resource").map(function (entry) { return entry.name; }).filter(function (name) { return !/^(data|blob):/.test(name); })`,
  );
  assert.deepEqual(resources, [], "the page loaded resources");
  if (browser.requests) {
    const others = browser.requests.filter((other) => other !== url && !/^(data|blob):/.test(other));
    assert.deepEqual(others, [], "the browser saw requests");
  }
  if (browser.messages) assert.deepEqual(browser.messages, [], "errors on the console");
  if (seen)
    assert.deepEqual(
      seen.filter((path) => path !== "/"),
      [],
      "the server saw requests",
    );
}

const cases = {
  async "from file://"(browser) {
    const url = pathToFileURL(file).href;
    await browser.open(url);
    const headline = await showsAnEstimate(browser);
    await computesIn(browser, "worker");
    await loadedNothing(browser, url);
    await browser.screenshot(join(screenshots, `${browser.name}-file.png`));
    return headline;
  },
  async "over http under a strict policy"(browser, server) {
    server.seen.length = 0;
    await browser.open(`${server.origin}/`);
    const headline = await showsAnEstimate(browser);
    await computesIn(browser, "worker");
    await loadedNothing(browser, `${server.origin}/`, server.seen);
    await browser.screenshot(join(screenshots, `${browser.name}-http.png`));
    return headline;
  },
  async "in a sandboxed iframe"(browser, server) {
    await browser.open(`${server.origin}/framed`);
    await browser.enterFrame();
    const headline = await showsAnEstimate(browser);
    await computesIn(browser, "worker");
    assert.equal(await browser.evaluate("self.origin"), "null");
    await browser.screenshot(join(screenshots, `${browser.name}-framed.png`));
    return headline;
  },
  async "where no worker is allowed"(browser, server) {
    await browser.open(`${server.origin}/workerless#v=1&model=openai-community/gpt2`);
    const headline = await showsAnEstimate(browser);
    await computesIn(browser, "page");
    return headline;
  },
};

const checks = join(here, "checks");
if (existsSync(checks)) {
  for (const name of readdirSync(checks)
    .filter((name) => name.endsWith(".mjs"))
    .sort()) {
    Object.assign(cases, (await import(pathToFileURL(join(checks, name)))).default);
  }
}

let passed = 0;
let failed = 0;

/** All cases in one browser, each line said when it is known, under the browser's name. */
async function visit(name) {
  const server = await serve(file);
  const say = (line) => console.log(`${name.padEnd(9)} ${line}`);
  const context = {
    file,
    url: pathToFileURL(file).href,
    origin: server.origin,
    seen: server.seen,
    screenshots,
    until,
    textOf,
    launch: (await import(`./${name}.mjs`)).launch,
  };
  let browser;
  try {
    browser = await context.launch();
    say(browser.version);
    for (const [title, run] of Object.entries(cases)) {
      const start = Date.now();
      try {
        const said = await run(browser, context);
        ++passed;
        say(`ok    ${title} (${Date.now() - start} ms)${said ? `: ${String(said).trim().slice(0, 80)}` : ""}`);
      } catch (error) {
        ++failed;
        say(`FAIL  ${title}: ${error.message}`);
        await browser.screenshot(join(screenshots, `${name}-failed.png`)).catch(() => {});
      }
    }
  } catch (error) {
    ++failed;
    say(`FAIL  ${error.message}`);
  } finally {
    await browser?.close();
    server.close();
  }
}

// Chromium's cases take times and have the machine to themselves; the others share it.
if (browsers.includes("chromium")) await visit("chromium");
await Promise.all(browsers.filter((name) => name !== "chromium").map(visit));
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
