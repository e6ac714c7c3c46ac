// Chromium with shipping defaults, driven by playwright-core. Never give it --allow-file-access-from-files.
import { chromium } from "playwright-core";

export async function launch({ scheme = "light", width = 1280, height = 900 } = {}) {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    // Its own sandbox wants privileges that containers lack; the page's security does not hang on it.
    args: ["--no-sandbox", "--disable-gpu"],
  });
  const page = await browser.newPage({ colorScheme: scheme, viewport: { width, height } });
  const requests = [];
  const messages = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("console", (message) => message.type() === "error" && messages.push(message.text()));
  page.on("pageerror", (error) => messages.push(String(error)));
  let target = page;
  return {
    name: "chromium",
    version: browser.version(),
    requests,
    messages,
    async open(url) {
      requests.length = messages.length = 0;
      target = page;
      await page.goto(url);
    },
    /** From here on, in the only frame of the page. */
    async enterFrame() {
      target = page.frames()[1];
    },
    evaluate: (script) => target.evaluate(script),
    type: (testid, text) => target.locator(`[data-testid="${testid}"]`).fill(text),
    screenshot: (path) => page.screenshot({ path }),
    close: () => browser.close(),
  };
}
