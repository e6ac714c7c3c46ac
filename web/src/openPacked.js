import { unpack } from "tidemark:unpack";
import { unpackSlowly } from "./unpackSlowly.js";

/** Of the parts that the page carries, all of them packed, what engineHost.js starts from. */
export async function openPacked(parts) {
  const text = async (bytes) => new TextDecoder().decode(await bytes);
  const [wasm, models, gpus] = await Promise.all([
    unpackSlowly(parts.engines),
    text(unpackSlowly(parts.models)),
    text(unpack(parts.gpus)),
  ]);
  return { wasm, models, gpus };
}
