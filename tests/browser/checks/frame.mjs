// index.html#…&view=widget in frames, as the page's own Share → Embed writes them.
import assert from "node:assert/strict";
import { answerTo, serveDocs } from "../widgets.mjs";

const job = "v=1&model=openai-community/gpt2&micro_batch_size=4&sequence_length=512";
const request = { schema: 1, model: "openai-community/gpt2", micro_batch_size: 4, sequence_length: 512 };
const expected = async () => `${((await answerTo(request)).estimate.allocated.expected / 2 ** 30).toFixed(2)} GiB`;
const total = `((document.querySelector('[part~="total"]') || {}).textContent || "")`;

export default {
  async "as a widget from file://, the page is the calculator alone, and leaves the address as it is"(
    browser,
    { url, until },
  ) {
    await browser.open(`${url}#${job}&view=widget&theme=dark&controls=sequence`);
    await until(browser, `${total}.startsWith("${await expected()}")`);
    const look = (expression) => browser.evaluate(expression);
    assert.equal(await look("document.documentElement.dataset.theme"), "dark");
    assert.equal(await look(`document.querySelectorAll(".calc-controls .option").length`), 1);
    assert.equal(await look(`document.querySelectorAll(".masthead, .form").length`), 0);
    const address = await look("location.href");
    await look(`(function (field) {
      field.value = "1024";
      field.dispatchEvent(new Event("input", { bubbles: true }));
    })(document.querySelector("#option-sequence_length"))`);
    await until(browser, `!${total}.startsWith("${await expected()}")`);
    assert.equal(await look("location.href"), address);
    const link = await look(`document.querySelector('[part~="link"]').href`);
    assert.match(link, /#v=1&model=openai-community\/gpt2&micro_batch_size=4&sequence_length=1024$/);
  },

  async "a sandboxed frame gets the height that it asks for, and the light or dark of its place"(browser, { until }) {
    const frame = `<iframe class="tidemark" title="t" src="/page.html#${`${job}&view=widget&controls=none`.replaceAll("&", "&amp;")}"
      sandbox="allow-scripts" width="700" height="90" data-theme="dark"></iframe>`;
    const body = `${frame}<script type="module" src="/widget/tidemark-frame.js"></script>`;
    const docs = await serveDocs({ "/": { body } });
    try {
      await browser.open(`${docs.origin}/`);
      await until(browser, `document.querySelector("iframe").clientHeight > 200`);
      const height = await browser.evaluate(`document.querySelector("iframe").clientHeight`);
      await browser.enterFrame();
      await until(browser, `${total}.startsWith("${await expected()}")`);
      await until(browser, `document.documentElement.dataset.theme === "dark"`);
      await until(browser, `document.documentElement.scrollHeight <= innerHeight`, "no scrollbar");
      assert.equal(await browser.evaluate("self.origin"), "null");
      assert.deepEqual(docs.seen.toSorted(), ["/", "/page.html", "/widget/tidemark-frame.js"]);
      return `${height} px`;
    } finally {
      docs.close();
    }
  },

  async "Share → Embed gives an element and a frame with the job that is shown"(browser, { url, until }) {
    await browser.open(`${url}#${job}`);
    await until(browser, "document.documentElement.dataset.ready");
    await browser.evaluate(`document.querySelector('[data-testid="embed"]').click()`);
    const written = (kind) => browser.evaluate(`document.querySelector('textarea[data-testid="${kind}"]').value`);
    const element = await written("element");
    assert.match(
      element,
      /<tidemark-calculator model="openai-community\/gpt2" micro-batch-size="4" sequence-length="512">/,
    );
    assert.ok(element.includes(`takes ${await expected()} of GPU memory.</tidemark-calculator>`));
    assert.ok(!element.includes("file:"));
    const docs = await serveDocs({ "/": { body: element.replace("https://example.org/tidemark/", "/") } });
    try {
      await browser.open(`${docs.origin}/`);
      const answer = `((document.querySelector("tidemark-calculator").answer || {}).estimate || {})`;
      const bytes = (await answerTo(request)).estimate.allocated.expected;
      await until(browser, `(${answer}.allocated || {}).expected === ${bytes}`);
    } finally {
      docs.close();
    }
  },
};
