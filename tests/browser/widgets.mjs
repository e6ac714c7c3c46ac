// Pages of docs with Tidemark's widget, as a careful host would serve them: strict policies, and a list of what was asked for.
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const dist = join(dirname(fileURLToPath(import.meta.url)), "../../dist");
const types = { js: "text/javascript", json: "application/json", wasm: "application/wasm" };

/**
 * What docs/widget.md tells hosts to allow: `source` is where the widget's files lie.
 */
const policyOf = ({ source = "'self'", worker = source }) =>
  [
    "default-src 'none'",
    `script-src ${source} 'wasm-unsafe-eval'`,
    `worker-src ${worker}`,
    `connect-src ${source}`,
    "frame-src 'self'",
    "img-src data:",
  ].join("; ");

/**
 * Serves pages, path → {body, policy}, and dist/widget under /widget/, to other origins too. `seen` lists the paths that were asked for.
 * `missing`: files that answer 404;
 * `altered`: files that come with a byte more.
 */
export async function serveDocs(pages, { missing = [], altered = [] } = {}) {
  const seen = [];
  const server = createServer((request, response) => {
    const path = request.url.split("?")[0];
    seen.push(path);
    const page = pages[path];
    if (page) {
      const headers = {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": policyOf(page.policy ?? {}),
      };
      response.writeHead(200, headers);
      const head = `<meta charset="utf-8"><title>docs</title><link rel="icon" href="data:,">`;
      response.end(`<!doctype html><html lang="en">${head}${page.body}`);
      return;
    }
    const file = join(dist, path === "/page.html" ? "index.html" : path);
    const isOurs = path.startsWith("/widget/") || path === "/page.html";
    if (!isOurs || missing.includes(path) || !existsSync(file)) {
      response.writeHead(404).end();
      return;
    }
    const type = types[file.split(".").pop()] ?? "text/html";
    const bytes = readFileSync(file);
    response.writeHead(200, { "content-type": type, "access-control-allow-origin": "*" });
    response.end(altered.includes(path) ? Buffer.concat([bytes, Buffer.from("\n")]) : bytes);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { origin: `http://127.0.0.1:${server.address().port}`, seen, close: () => server.close() };
}

/** What docs/widget.md tells authors to pin a script by. */
export const integrityOf = (name) =>
  `sha384-${createHash("sha384")
    .update(readFileSync(join(dist, "widget", name)))
    .digest("base64")}`;

let engine = null;
/** The engine's own answer to a request, from dist/. */
export async function answerTo(request) {
  if (!engine) {
    const { createTidemark } = await import(pathToFileURL(join(dist, "tidemark.js")).href);
    const text = (name) => readFileSync(join(dist, "widget", name), "utf8");
    engine = await createTidemark();
    engine.loadCatalog(text("models.json"), text("gpus.json"));
  }
  return engine.handle(request);
}
