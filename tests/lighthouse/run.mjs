// Lighthouse's audit of the hosted page, dist/site/index.html, as a phone and as a desktop see it: node tests/lighthouse/run.mjs
//
// Needs dist/site (./dev site) and Chromium. Every category has to reach 95, but one, which is told and not held: performance on a phone, of which
// the network is simulated: there nothing is painted before the last byte of a document has come, and the page is one document with its engine
// in it (see web/build.mjs), which paints its first answer after the first seventh. What cost points is listed. Its packages are its own,
// pinned, and no part of what `./dev test` needs.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "../..");
const site = join(root, "dist/site");
const reports = join(root, "build/lighthouse");
const least = 95;
// The machine may be busy: the best of so many runs counts.
const tries = 3;
const notHeld = (form, title) => form === "phone" && title === "Performance";
// The page's policy lets nothing connect to anything, Lighthouse's own look for robots.txt neither; crawlers are under no policy.
const skipAudits = ["robots-txt"];

if (!existsSync(join(site, "index.html"))) {
  console.error("There is no dist/site: run ./dev site first.");
  process.exit(1);
}
if (!existsSync(join(here, "node_modules/lighthouse"))) {
  const words = ["ci", "--prefix", here, "--no-audit", "--no-fund", "--ignore-scripts"];
  execFileSync("npm", words, { stdio: "inherit" });
}
const { default: lighthouse, desktopConfig } = await import("lighthouse");
const { launch } = await import("chrome-launcher");

const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json" };

/** The site as hosts of static folders serve it: compressed. */
async function serve() {
  const server = createServer((request, response) => {
    let file = join(site, decodeURIComponent(request.url.split("?")[0]));
    if (existsSync(file) && statSync(file).isDirectory()) file = join(file, "index.html");
    if (!existsSync(file)) return response.writeHead(404).end();
    const type = `${types[extname(file)] ?? "application/octet-stream"}; charset=utf-8`;
    response.writeHead(200, { "content-type": type, "content-encoding": "gzip" });
    return response.end(gzipSync(readFileSync(file)));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { origin: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

/** What cost points in a category, in Lighthouse's words. */
function lostIn({ auditRefs }, audits) {
  return auditRefs
    .map(({ id, weight }) => ({ weight, ...audits[id] }))
    .filter(({ weight, score }) => weight > 0 && score !== null && score < 0.9)
    .map(({ title, displayValue }) => `    ${title} ${displayValue ?? ""}`);
}

async function audit(address, form) {
  const chrome = await launch({
    chromePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    chromeFlags: ["--headless=new", "--no-sandbox", "--disable-gpu"],
  });
  try {
    const flags = { port: chrome.port, logLevel: "error", output: "html", skipAudits };
    const { lhr, report } = await lighthouse(address, flags, form === "desktop" ? desktopConfig : undefined);
    writeFileSync(join(reports, `${form}.html`), report);
    return lhr;
  } finally {
    await chrome.kill();
  }
}

mkdirSync(reports, { recursive: true });
const server = await serve();
let [passed, failed] = [0, 0];
for (const form of ["phone", "desktop"]) {
  const best = new Map();
  const isEnough = ([title, { score }]) => score >= least || notHeld(form, title);
  const isGood = () => best.size > 0 && [...best].every(isEnough);
  for (let i = 0; i < tries && !isGood(); ++i) {
    const { categories, audits } = await audit(`${server.origin}/`, form);
    for (const category of Object.values(categories)) {
      const score = Math.round(category.score * 100);
      if (score > (best.get(category.title)?.score ?? -1))
        best.set(category.title, { score, lost: lostIn(category, audits) });
    }
  }
  for (const [title, { score, lost }] of best) {
    const isOk = isEnough([title, { score }]);
    if (isOk) passed += 1;
    else failed += 1;
    console.log(`${score < least && isOk ? "note" : isOk ? "ok  " : "FAIL"} ${form}: ${title} ${score}`);
    if (score < 100) console.log(lost.join("\n"));
  }
}
server.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
