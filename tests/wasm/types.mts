// Compiled, never run: what a user of tidemark.d.ts may write, and what the types must refuse.
import { createTidemark, type Request, type Response } from "../../wasm/tidemark.js";

const tidemark = await createTidemark({ wasmBinary: new Uint8Array() });
tidemark.loadCatalog("{}", {}).forEach((issue) => issue.message.length);

const request: Request = {
  model: "llama-2-7b",
  adapter: { r: 8, target_modules: ["q_proj"] },
  precision: { weights: "bf16" },
  gradient_checkpointing: { every: 2 },
  gpus: ["A100-80GB", { memory_gib: 24 }],
};
const response: Response = tidemark.handle(request);
const bytes: number | undefined = response.estimate?.allocated.expected;
const fits: boolean = response.fits?.every((fit) => fit.verdict === "fits") ?? false;
const names: string[] = tidemark.handle({ verb: "describe" }).options.map((option) => option.name);
const cards: number | undefined = tidemark.handle({ verb: "catalog", list: "gpus" }).gpus?.length;
const cells: Float64Array = tidemark.map(request, [1, 2], Uint32Array.of(512, 1024));
const text: string = tidemark.handleText("{}");
export { bytes, cards, cells, fits, names, text };

// @ts-expect-error a misspelt key
tidemark.handle({ modle: "llama-2-7b" });
// @ts-expect-error a batch size in words
tidemark.handle({ micro_batch_size: "one" });
// @ts-expect-error an estimate may be absent
response.estimate.allocated;
