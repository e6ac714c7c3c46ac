import assert from "node:assert/strict";
import { test } from "node:test";
import { addressIn, languageOf } from "../../web/src/language.js";
import { setMessages } from "../../web/src/messages.js";
import chinese from "../../web/src/messages.zh.js";
import english from "../../web/src/messages.en.js";
import { inWords } from "../../web/src/titles.js";
import { describe } from "./engines.mjs";

const nothing = { hash: "", search: "", remembered: null, preferred: [] };

test("the address decides on the language, then what was chosen before, then the browser's first wish", () => {
  const asked = (some) => languageOf({ ...nothing, ...some });
  assert.equal(asked({}), "en");
  assert.equal(asked({ preferred: ["zh-Hans-CN", "en"] }), "zh");
  assert.equal(asked({ preferred: ["de-DE", "zh-CN"] }), "en");
  assert.equal(asked({ preferred: ["zh-CN"], remembered: "en" }), "en");
  assert.equal(asked({ remembered: "en", search: "?lang=zh" }), "zh");
  assert.equal(asked({ search: "?lang=en", hash: "#v=1&model=gpt2&lang=zh" }), "zh");
  assert.equal(asked({ search: "?lang=tlh", preferred: ["zh"] }), "zh");
});

test("the address in another language keeps the job", () => {
  const page = "file:///somewhere/index.html";
  assert.equal(addressIn("zh", `${page}#v=1&model=gpt2`), `${page}?lang=zh#v=1&model=gpt2`);
  assert.equal(addressIn("en", `${page}?lang=zh#v=1&lang=zh&model=gpt2`), `${page}?lang=en#v=1&model=gpt2`);
  assert.equal(addressIn("zh", page), `${page}?lang=zh`);
});

test("the options' titles are the language's where it has some, else the engine's", async (t) => {
  t.after(() => setMessages(english));
  const own = await describe();
  setMessages(chinese);
  const told = inWords(own);
  const find = ({ options }, wanted) => options.find(({ name }) => name === wanted);
  assert.equal(find(told, "optimizer").label, chinese["option.optimizer"]);
  assert.equal(find(told, "sequence_length").unit, chinese["unit.tokens"]);
  const { "option.deterministic": _, ...others } = chinese;
  setMessages(others);
  assert.equal(find(inWords(own), "deterministic").label, find(own, "deterministic").label);
  setMessages(chinese);
  // Help that only repeats a title is none, in whatever language the title stands.
  assert.equal(find(own, "adapter.r").help, `${find(own, "adapter.r").label}.`);
  assert.equal(find(inWords(own), "adapter.r").help, "");
});

test("each option, group and unit has its Chinese title", async () => {
  const { options, groups } = await describe();
  const wanted = [
    ...options.map(({ name }) => `option.${name}`),
    ...groups.map(({ name }) => `group.${name}`),
    ...options.flatMap(({ unit }) => (unit ? [`unit.${unit}`] : [])),
  ];
  assert.deepEqual(
    wanted.filter((key) => !chinese[key]),
    [],
  );
});
