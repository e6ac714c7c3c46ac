// What only the page's build knows (web/build.mjs): the engine's glue and the reader's.
declare module "tidemark:api" {
  export function createTidemarkFrom(wasm: Uint8Array): Promise<import("../wasm/tidemark.js").Tidemark>;
}
declare module "tidemark:reader" {
  export function createReaderFrom(wasm: Uint8Array): Promise<any>;
}
declare module "tidemark:styles" {
  export const styles: string;
}
declare module "tidemark:accuracy" {
  /** Amounts of runs and their worst error in per cent. */
  export const accuracy: {
    runs: [number, number];
    types: Record<string, [number, number]>;
    methods: Record<string, [number, number]>;
    own: [number, number];
    measured: [number, number, number, number];
  };
}
