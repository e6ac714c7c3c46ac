// The page's own checks. In every browser: hostile links do no harm, and a link's state is shown. In Chromium: page.test.mjs.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const depth = join(dirname(fileURLToPath(import.meta.url)), "../page.test.mjs");

export default {
  async "a link's state is shown"(browser, { url, until, textOf }) {
    await browser.open("about:blank");
    await browser.open(`${url}#v=1&model=meta-llama/Llama-3.2-1B&micro_batch_size=3&colour=blue`);
    await until(browser, `document.documentElement.dataset.ready`);
    assert.match(await textOf(browser, "headline"), /Llama-3\.2-1B/);
    assert.equal(await browser.evaluate(`document.querySelector('[data-testid="batch"]').value`), "3");
    assert.match(await textOf(browser, "issues"), /colour/);
  },
  async "a hostile link is only text"(browser, { url, until }) {
    const evil = encodeURIComponent('"><img src=x onerror="window.pwned=1"><script>window.pwned=1</script>');
    await browser.open("about:blank");
    await browser.open(`${url}#v=1&model=${evil}&gpu=${evil}&optimizer=${evil}&${evil}=${evil}`);
    await until(browser, `document.documentElement.dataset.ready`);
    assert.ok(!(await browser.evaluate("window.pwned || 0")));
    assert.equal(await browser.evaluate(`document.querySelectorAll("img").length`), 0);
  },
  async "the page in depth (page.test.mjs)"(browser) {
    if (browser.name !== "chromium") return "in Chromium only";
    const { status, stdout } = spawnSync(process.execPath, ["--test", "--test-reporter=tap", depth], {
      encoding: "utf8",
    });
    // Each failed test with its reason, the block that follows its line.
    const failed = stdout.match(/^not ok [\s\S]*?^ {2}\.\.\.$/gm) ?? [stdout.slice(-4000)];
    if (status !== 0) throw new Error(failed.map((block) => block.slice(0, 2000)).join("\n"));
    return stdout.match(/^# pass \d+/m)?.[0] ?? "";
  },
};
