// Firefox ESR, driven by puppeteer-core over WebDriver BiDi.
import puppeteer from "puppeteer-core";

export async function launch({ scheme = "light", width = 1280, height = 900 } = {}) {
  const browser = await puppeteer.launch({
    browser: "firefox",
    executablePath: process.env.FIREFOX ?? "/usr/bin/firefox-esr",
    headless: true,
    args: [`--width=${width}`, `--height=${height}`],
    extraPrefsFirefox: {
      // WebDriver presets this to false, which would let a page that reads its neighbours' files pass.
      "security.fileuri.strict_origin_policy": true,
      "layout.css.prefers-color-scheme.content-override": scheme === "dark" ? 0 : 1,
    },
  });
  const page = await browser.newPage();
  page.setDefaultNavigationTimeout(120000); // a busy machine is no fault of the page
  await page.setViewport({ width, height });
  const requests = [];
  const messages = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("console", (message) => message.type() === "error" && messages.push(message.text()));
  page.on("pageerror", (error) => messages.push(String(error)));
  let target = page;
  return {
    name: "firefox",
    version: await browser.version(),
    requests,
    messages,
    async open(url) {
      requests.length = messages.length = 0;
      target = page;
      await page.goto(url);
    },
    async enterFrame() {
      target = page.frames()[1];
    },
    evaluate: (script) => target.evaluate(script),
    async type(testid, text) {
      const field = await target.$(`[data-testid="${testid}"]`);
      await field.click({ count: 3 });
      await field.type(text);
    },
    screenshot: (path) => page.screenshot({ path }),
    close: () => browser.close(),
  };
}
