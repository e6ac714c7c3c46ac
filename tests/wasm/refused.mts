// Compiled, never run: each statement below a comment must be refused, in the words of that comment (types.test.mjs).
import { createTidemark, type EstimateRequest, type FitRequest, type Gpu, type Response } from "../../wasm/tidemark.js";

const tidemark = await createTidemark();
declare const response: Response;

// 'zero_stagee' does not exist
export const key: EstimateRequest = { model: "llama-2-7b", parallelism: { zero_stagee: 3 } };
// 'zero_stagee' does not exist
export const top: EstimateRequest = { model: "llama-2-7b", zero_stagee: 3 };
// 'modle' does not exist
tidemark.handle({ modle: "llama-2-7b" });
// Type 'string' is not assignable to type 'number'
export const size: EstimateRequest = { micro_batch_size: "one" };
// Type '"adamw_torhc"' is not assignable
export const word: EstimateRequest = { optimizer: "adamw_torhc" };
// Type 'object' is not assignable to type 'null | undefined'
export const missing: EstimateRequest = { fsdp: {} as object };
// does not exist in type 'EstimateRequest'
export const other: EstimateRequest = { all_gpus: true };
// Property 'verb' is missing
export const unsaid: FitRequest = { all_gpus: true };
// 'vram_gbs' does not exist
export const card: Gpu = { vram_gbs: 24 };
// 'response.estimate' is possibly 'undefined'
export const peak: number = response.estimate.allocated.expected;
