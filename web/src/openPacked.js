import { unpack } from "./unpack.js";

/** Of the parts that the page carries, all of them packed, what engineHost.js starts from. */
export async function openPacked(parts) {
  const text = async (bytes) => new TextDecoder().decode(await bytes);
  const [wasm, models, gpus] = await Promise.all([
    unpack(parts.engines),
    text(unpack(parts.catalogs, 1)),
    text(unpack(parts.catalogs)),
  ]);
  return { wasm, models, gpus };
}
