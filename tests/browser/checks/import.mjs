// Other people's files, in every browser: what is pasted becomes the job, with its lines; what fails changes nothing; a job goes out again.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const fixture = (name) => readFileSync(join(root, "tests/exchange/fixtures", name), "utf8");
const at = (id) => `document.querySelector('[data-testid="${id}"]')`;
const textOf = (id) => `(${at(id)} || {}).textContent || ""`;

/** Gives a text to the box that takes anything. */
const give = (browser, text) =>
  browser.evaluate(`(function (text) {
    document.querySelector('[data-testid="model-files"]').open = true;
    var area = document.getElementById("option-config");
    area.value = text;
    area.parentElement.querySelector("button").click();
    return true;
  })(${JSON.stringify(text)})`);

async function open(browser, url, hash) {
  await browser.open("about:blank");
  await browser.open(url + hash);
}
const ready = "document.documentElement.dataset.ready && !document.querySelector('.figures').hasAttribute('aria-busy')";

const script = `from transformers import AutoModelForCausalLM, TrainingArguments, Trainer
from peft import LoraConfig, get_peft_model
model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-3.2-1B")
model = get_peft_model(model, LoraConfig(r=24, target_modules=["q_proj", "v_proj"]))
args = TrainingArguments("out", per_device_train_batch_size=3, bf16=True)
Trainer(model=model, args=args).train()
`;
const oom =
  "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.21 GiB is free. " +
  "Including non-PyTorch memory, this process has 22.43 GiB memory in use. Of the allocated memory 20.02 GiB is allocated by PyTorch, " +
  "and 1.95 GiB is reserved by PyTorch but unallocated.";

export default {
  async "a pasted script becomes the job, each field with its line; undo brings the former one back"(
    browser,
    { url, until },
  ) {
    await open(browser, url, "#v=1&model=openai-community/gpt2&gpu=4090");
    await until(browser, ready);
    await give(browser, script);
    await until(browser, `/r=24/.test(location.hash)`, "the script's job in the link");
    await until(browser, ready);
    assert.match(await browser.evaluate(textOf("headline")), /Llama-3\.2-1B/);
    const fields = await browser.evaluate(textOf("import-fields"));
    assert.match(fields, /adapter\.r24line 4/);
    assert.match(fields, /micro_batch_size3line 5/);
    assert.match(await browser.evaluate("location.hash"), /gpu=4090/);
    // What the reading had to assume is told in words, and nothing of it as something left out of the estimate.
    const panel = await browser.evaluate(textOf("imported"));
    assert.match(panel, /nor which release of transformers loads them/);
    assert.doesNotMatch(panel, /not in the estimate/);
    await browser.evaluate(`${at("import-undo")}.click()`);
    await until(browser, `/gpt2/.test(location.hash)`, "the former job");
  },
  async "what cannot be read changes nothing"(browser, { url, until }) {
    await open(browser, url, "#v=1&model=openai-community/gpt2");
    await until(browser, ready);
    const before = await browser.evaluate("location.hash");
    await give(browser, "hello, this is a letter");
    await until(browser, `/none of the formats/.test(${textOf("model-problem")})`, "the reason");
    assert.equal(await browser.evaluate("location.hash"), before);
    // RL is read and named, and no estimate: the job stays.
    await give(browser, fixture("rl/grpo_verl.sh"));
    await until(browser, `/not used/.test(${textOf("imported")})`, "a refusal");
    assert.equal(await browser.evaluate("location.hash"), before);
  },
  async "a message about exhausted memory stands beside the job, and keeps doing so"(browser, { url, until }) {
    await open(browser, url, "#v=1&model=meta-llama/Llama-3.1-8B&method=lora&gpu=4090");
    await until(browser, ready);
    await give(browser, oom);
    await until(browser, `/Fragmentation is not the reason/.test(${textOf("import-beside")})`, "what it says");
    const before = await browser.evaluate(textOf("import-beside"));
    assert.match(await browser.evaluate("location.hash"), /gpu=4090/);
    await browser.evaluate(`(function () {
      var batch = document.querySelector('[data-testid="batch"]');
      batch.value = "2";
      batch.dispatchEvent(new Event("input", { bubbles: true }));
      batch.dispatchEvent(new Event("change", { bubbles: true }));
      return true;
    })()`);
    await until(browser, `${JSON.stringify(before)} !== (${textOf("import-beside")})`, "another comparison");
  },
  async "a pasted script goes out again with the lines that are other now"(browser, { url, until }) {
    await open(browser, url, "#v=1&model=openai-community/gpt2&gpu=4090");
    await until(browser, ready);
    await give(browser, script);
    await until(browser, `/r=24/.test(location.hash)`, "the script's job in the link");
    await until(browser, ready);
    await browser.evaluate(`${at("export")}.click()`);
    await until(browser, `${at("export-format")}.value === "patch"`, "the file first");
    await until(browser, `/says this job already/.test(${textOf("export-box")})`, "that nothing changed");
    await browser.evaluate(`(function () {
      var batch = document.querySelector('[data-testid="batch"]');
      batch.value = "5";
      batch.dispatchEvent(new Event("input", { bubbles: true }));
      batch.dispatchEvent(new Event("change", { bubbles: true }));
      return true;
    })()`);
    const changed = `/^\\+.*per_device_train_batch_size=5/m.test(${at("export-text")}.value)`;
    await until(browser, changed, "the line that is other");
  },
  async "a job goes out in another tool's words"(browser, { url, until }) {
    await open(browser, url, "#v=1&model=meta-llama/Llama-3.1-8B&method=lora&adapter.r=24");
    await until(browser, ready);
    await browser.evaluate(`${at("export")}.click()`);
    await until(browser, `/r=24|lora_r: 24|24/.test(${at("export-text")}.value)`, "a file");
    await browser.evaluate(`(function () {
      var select = ${at("export-format")};
      select.value = "axolotl";
      select.dispatchEvent(new Event("change"));
      return true;
    })()`);
    await until(browser, `/lora_r: 24/.test(${at("export-text")}.value)`, "Axolotl's words");
  },
};
