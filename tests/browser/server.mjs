// The page as a careful host would serve it: under a Content-Security-Policy header as strict as its own.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

/** `seen` lists the path of every request; /framed holds the page in a sandboxed iframe, /workerless allows no worker. */
export async function serve(file) {
  const html = readFileSync(file);
  const policy = html.toString().match(/http-equiv="Content-Security-Policy" content="([^"]+)"/)[1];
  const seen = [];
  const server = createServer((request, response) => {
    seen.push(request.url);
    const framed = request.url === "/framed";
    const workerless = request.url === "/workerless";
    if (request.url !== "/" && !framed && !workerless) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, {
      "content-type": "text/html; charset=utf-8",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "content-security-policy": framed
        ? "default-src 'none'; frame-src 'self'; img-src data:"
        : `${workerless ? policy.replace(/worker-src [^;]+/, "worker-src 'none'") : policy}; frame-ancestors 'self'`,
    });
    response.end(
      framed
        ? '<!doctype html><title>framed</title><link rel="icon" href="data:,">' +
            '<iframe src="/" sandbox="allow-scripts" width="1200" height="800"></iframe>'
        : html,
    );
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { origin: `http://127.0.0.1:${server.address().port}`, seen, close: () => server.close() };
}
