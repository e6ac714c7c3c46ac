// <tidemark-calculator> on pages of docs: its answers are the engine's, its files are asked for once and only when needed.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { answerTo, integrityOf, serveDocs } from "../widgets.mjs";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const script = '<script type="module" src="/widget/tidemark-calculator.js"></script>';
const files = ["tidemark-worker.js", "tidemark.wasm", "models.json", "gpus.json"].map((name) => `/widget/${name}`);
const calculator = (attributes, inside = "") => `<tidemark-calculator ${attributes}>${inside}</tidemark-calculator>`;
const lora = { model: "meta-llama/Llama-3.1-8B", gpu: "NVIDIA GeForce RTX 4090", method: "lora" };
const small = { model: "openai-community/gpt2", micro_batch_size: 4, sequence_length: 512 };
const loraTag = calculator(
  'model="meta-llama/Llama-3.1-8B" gpu="NVIDIA GeForce RTX 4090" method="lora"',
  "<p>Fallback.</p>",
);

const pages = {
  "/several": {
    body: `${script}${loraTag}${calculator('model="openai-community/gpt2" batch-size="4" seq-len="512" controls="sequence"')}
      ${calculator('model="there-is-no-such-model" gpu="4090" controls=""')}`,
  },
  "/below": { body: `${script}<pre>${"line\n".repeat(600)}</pre>${loraTag}` },
  "/zh": { body: `${script}<div lang="zh-CN">${loraTag}</div>` },
  "/one": { body: `${script}${loraTag}` },
  "/unscripted": { body: loraTag },
  "/workerless": { body: `${script}${loraTag}`, policy: { worker: "'none'" } },
};

/** The nth widget of the page, as an expression. */
const nth = (index) => `document.querySelectorAll("tidemark-calculator")[${index}]`;
const textOf = (part, index = 0) =>
  `((${nth(index)}.shadowRoot.querySelector('[part~="${part}"]') || {}).textContent || "")`;

async function withDocs(browser, context, path, work, options) {
  const docs = await serveDocs(pages, options);
  try {
    await browser.open(docs.origin + path);
    return await work({ ...context, docs, look: (expression) => browser.evaluate(expression) });
  } finally {
    docs.close();
  }
}

/** The widget shows what the engine answers to that request. */
async function shows(browser, { until }, request, index = 0) {
  const { estimate, fits } = await answerTo({ schema: 1, ...request });
  const { expected } = estimate.allocated;
  await until(
    browser,
    `${nth(index)}.answer && ${nth(index)}.answer.estimate && ${nth(index)}.answer.estimate.allocated.expected === ${expected}`,
    `${expected} bytes in widget ${index}`,
  );
  const figure = (expected / 2 ** 30).toFixed(2);
  assert.ok((await browser.evaluate(textOf("total", index))).startsWith(`${figure} GiB`));
  const verdict = { fits: "Fits", tight: "Tight", does_not_fit: "Does not fit" }[fits[0]?.verdict] ?? "";
  assert.ok((await browser.evaluate(textOf("verdict", index))).startsWith(verdict));
  return `${figure} GiB`;
}

export default {
  "widgets of one page share one worker and one engine, and say what it answers": (browser, context) =>
    withDocs(browser, context, "/several", async ({ docs, until, look }) => {
      const said = await shows(browser, context, lora);
      await shows(browser, context, small, 1);
      await until(browser, `${textOf("issues", 2)}.length > 20`);
      assert.match(await look(textOf("issues", 2)), /no model of the name "there-is-no-such-model"/);
      assert.equal(await look(textOf("total", 2)), "");
      assert.deepEqual(
        docs.seen.toSorted(),
        ["/several", "/widget/tidemark-calculator.js", ...files].toSorted(),
        "each file is asked for once, and nothing else",
      );
      return said;
    }),

  "a widget's attributes are its job: changed from without, by its controls, and by its plan": (browser, context) =>
    withDocs(browser, context, "/one", async ({ until, look }) => {
      await shows(browser, context, lora);
      await look(`(function (heard) {
        window.heard = heard;
        ["change", "estimate"].forEach(function (name) {
          document.addEventListener(name, function (event) { heard.push([name, event.detail]); });
        });
        ${nth(0)}.setAttribute("method", "qlora");
      })([])`);
      await shows(browser, context, { ...lora, method: "qlora" });
      assert.deepEqual(await look("heard.map(function (one) { return one[0]; })"), ["estimate"]);
      // By hand: the slider's number field.
      await look(`(function (field) {
        field.value = "8192";
        field.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
      })(${nth(0)}.shadowRoot.querySelector("#option-sequence_length"))`);
      const long = { ...lora, method: "qlora", sequence_length: 8192 };
      await shows(browser, context, long);
      assert.equal(await look(`${nth(0)}.getAttribute("sequence-length")`), "8192");
      assert.deepEqual(await look("heard.find(function (one) { return one[0] === 'change'; })[1]"), {
        schema: 1,
        ...long,
      });
      // By the plan.
      await until(browser, `${nth(0)}.shadowRoot.querySelector('[part="advice"] button')`, "a plan");
      const plan = await answerTo({ schema: 1, ...long, verb: "advise" });
      await look(`${nth(0)}.shadowRoot.querySelector('[part="advice"] button').click()`);
      const promised = plan.combination.allocated.expected;
      await until(browser, `${nth(0)}.answer.estimate.allocated.expected === ${promised}`, "what the plan promised");
      assert.match(await look(textOf("advice")), /^Applied: /);
      // As a request.
      await look(`void (${nth(0)}.request = ${JSON.stringify(small)})`);
      await shows(browser, context, small);
      assert.equal(await look(`${nth(0)}.hasAttribute("gpu")`), false);
      assert.equal(await look(`${nth(0)}.getAttribute("micro-batch-size")`), "4");
    }),

  "axe finds nothing in widgets, by day and by night": (browser, context) =>
    withDocs(browser, context, "/several", async ({ until, look }) => {
      await shows(browser, context, small, 1);
      await look(`(function () { ${axeSource} })()`);
      for (const theme of ["light", "dark"]) {
        await look(`document.querySelectorAll("tidemark-calculator").forEach(function (widget) {
          widget.setAttribute("theme", "${theme}");
        })`);
        // Colours fade.
        await sleep(400);
        await look(`(function (rules) {
          window.found = null;
          axe.run("tidemark-calculator", { runOnly: rules, rules: { region: { enabled: false } } })
            .then(function (result) { window.found = result.violations; });
        })(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"])`);
        await until(browser, "window.found", "axe");
        const found = await look(`JSON.stringify(window.found.map(function (rule) {
          return [rule.id, rule.nodes.map(function (node) { return String(node.target); })];
        }))`);
        assert.deepEqual(JSON.parse(found), [], theme);
      }
    }),

  "a widget below the fold asks for nothing until it comes into view": (browser, context) =>
    withDocs(browser, context, "/below", async ({ docs, until, look }) => {
      await until(browser, 'customElements.get("tidemark-calculator")');
      await sleep(300);
      assert.equal(await look(`${nth(0)}.answer`), null);
      assert.deepEqual(docs.seen, ["/below", "/widget/tidemark-calculator.js"]);
      await look(`${nth(0)}.scrollIntoView()`);
      await shows(browser, context, lora);
    }),

  "a widget in Chinese text speaks Chinese, and fetches its words": (browser, context) =>
    withDocs(browser, context, "/zh", async ({ docs, until, look }) => {
      await until(browser, `${textOf("verdict")} !== ""`);
      assert.match(await look(textOf("verdict")), /^放不下/);
      assert.match(await look(textOf("controls")), /序列长度/);
      assert.equal(await look(`${nth(0)}.shadowRoot.querySelector('[part~="box"]').lang`), "zh");
      assert.ok(docs.seen.includes("/widget/tidemark-zh.json"));
    }),

  "what stands between a widget's tags is seen without script, and where the engine is missing": async (
    browser,
    context,
  ) => {
    const isSeen = "document.querySelector('tidemark-calculator p').getBoundingClientRect().height > 5";
    await withDocs(browser, context, "/unscripted", async ({ look }) => assert.ok(await look(isSeen)));
    const missing = ["/widget/tidemark.wasm"];
    await withDocs(
      browser,
      context,
      "/one",
      async ({ until, look }) => {
        await until(browser, `${textOf("issues")} !== ""`);
        assert.match(await look(textOf("issues")), /could not start/);
        assert.ok(await look(isSeen));
      },
      { missing },
    );
  },

  "a widget works without workers, and from another origin, whose files it checks": async (browser, context) => {
    await withDocs(browser, context, "/workerless", () => shows(browser, context, lora));
    const pinned = `integrity="${integrityOf("tidemark-calculator.js")}" crossorigin`;
    for (const altered of [[], ["/widget/tidemark-worker.js"], ["/widget/models.json"]]) {
      const elsewhere = await serveDocs({}, { altered });
      const body = `<script type="module" src="${elsewhere.origin}/widget/tidemark-calculator.js" ${pinned}></script>${loraTag}`;
      const docs = await serveDocs({ "/": { body, policy: { source: elsewhere.origin, worker: "blob:" } } });
      try {
        await browser.open(`${docs.origin}/`);
        if (altered.length === 0) {
          await shows(browser, context, lora);
          assert.deepEqual(docs.seen, ["/"]);
          assert.deepEqual(elsewhere.seen.toSorted(), ["/widget/tidemark-calculator.js", ...files].toSorted());
        } else {
          await context.until(browser, `/could not start/.test(${textOf("issues")})`, `${altered[0]} is refused`);
        }
      } finally {
        docs.close();
        elsewhere.close();
      }
    }
  },
};
