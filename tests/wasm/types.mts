// Compiled, never run: what a user of tidemark.d.ts may write. What the types must refuse stands in refused.mts.
import {
  createTidemark,
  type Answer,
  type FitRequest,
  type Gpu,
  type Request,
  type Response,
} from "../../wasm/tidemark.js";

const tidemark = await createTidemark({ wasmBinary: new Uint8Array() });
tidemark.loadCatalog("{}", {}).forEach((issue) => issue.message.length);

const request: Request = {
  model: "llama-2-7b",
  adapter: { r: 8, target_modules: ["q_proj"] },
  precision: { weights: "bf16" },
  gradient_checkpointing: { every: 2 },
  use_gradient_checkpointing: true,
  framework: { version: 5.12 },
  learning_rate: 1e-4,
  gpus: ["A100-80GB", { memory_gib: 24 }, { vram_gb: 24 }],
};
const response: Response = tidemark.handle(request);
const bytes: number | undefined = response.estimate?.allocated.expected;
const loss: number | undefined = response.estimate?.timeline[0]?.bytes.logits_loss;
const fits: boolean = response.fits?.every((fit) => fit.verdict === "fits") ?? false;

const card: Gpu = { vram_gb: 24 };
const question: FitRequest = { verb: "fit", model: "llama-2-7b", gpu: card, all_gpus: true, rule_of_thumb: 0.8 };
const share: boolean | undefined = tidemark.handle(question).fits?.[0]?.within_rule_of_thumb;
const advice = tidemark.handle({ verb: "advise", model: "llama-2-7b", gpu: { vram_gb: 24 }, tiers: false });
const harm: "nothing" | "speed" | "numerics" | "training" | undefined = advice.suggestions?.[0]?.cost.harm;
const peak: number | null | undefined = tidemark.handle({ verb: "map", batches: [1, 2] }).allocated?.[0]?.[0];
const names: string[] = tidemark.handle({ verb: "describe" }).options.map((option) => option.name);
const cards: number | undefined = tidemark.handle({ verb: "catalog", list: "gpus" }).gpus?.length;
const engine: string = tidemark.version().engine;
const any: Answer = tidemark.handle("{}");
const cells: Float64Array = tidemark.map(request, [1, 2], Uint32Array.of(512, 1024));
const text: string = tidemark.handleText("{}");
export { any, bytes, cards, cells, engine, fits, harm, loss, names, peak, share, text };
