// The npm package `tidemark`: the engine with its catalog.
//   import { openTidemark } from "tidemark";
//   const tidemark = await openTidemark();
//   tidemark.handle({ model: "gpt2", gpu: "4090" }).estimate.allocated.expected;
import { createTidemark, readBeside } from "./tidemark.js";

export { createTidemark };

/** The models and cards that the package brings, as JSON texts. */
export async function readCatalog() {
  const [models, gpus] = await Promise.all([
    readBeside(new URL("./models.json", import.meta.url)),
    readBeside(new URL("./gpus.json", import.meta.url)),
  ]);
  const text = (bytes) => new TextDecoder().decode(bytes);
  return { models: text(models), gpus: text(gpus) };
}

/** The engine, ready to be asked. Options as createTidemark has them. */
export async function openTidemark(options) {
  const [tidemark, { models, gpus }] = await Promise.all([createTidemark(options), readCatalog()]);
  const wrong = tidemark.loadCatalog(models, gpus).find(({ severity }) => severity === "error");
  if (wrong) throw new Error(wrong.message);
  return tidemark;
}
