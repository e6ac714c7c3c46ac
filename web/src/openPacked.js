import { rowsOf } from "./catalogColumns.js";
import { textOf, unpackUpTo } from "./unpack.js";
import { together } from "./wasmStreams.js";

/** Of the parts that the page carries, packed, what engineHost.js starts from. */
export async function openPacked({ packed }) {
  const { engine, models, gpus } = await unpackUpTo(packed, "engine");
  return { wasm: together(engine), models: rowsOf(textOf(models)), gpus: textOf(gpus) };
}
