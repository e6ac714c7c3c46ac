import { unpack, unpackUpTo } from "./unpack.js";

/** Of the parts that the page carries, all of them packed, what engineHost.js starts from. */
export async function openPacked(parts) {
  const [wasm, catalogs] = await Promise.all([unpack(parts.engines), unpackUpTo(parts.catalogs, 1)]);
  const [gpus, models] = catalogs.map((bytes) => new TextDecoder().decode(bytes));
  return { wasm, models, gpus };
}
