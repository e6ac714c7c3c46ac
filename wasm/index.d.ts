// The npm package `tidemark`. Requests and answers are typed in tidemark.d.ts.
import type { Tidemark, createTidemark } from "./tidemark.js";

export * from "./tidemark.js";

/** The engine with the catalog that the package brings, ready to be asked. */
export function openTidemark(options?: Parameters<typeof createTidemark>[0]): Promise<Tidemark>;

/** The models and cards of the catalog, as the JSON texts that `loadCatalog` reads. */
export function readCatalog(): Promise<{ models: string; gpus: string }>;
