// What `describe` says, from whichever engine is built: the command line, or the WebAssembly under build/.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");

export async function describe() {
  const command = join(root, "build/bin/tidemark");
  if (existsSync(command)) return JSON.parse(execFileSync(command, ["describe", "--json"], { encoding: "utf8" }));
  const api = join(root, "build/wasm/bin/api.js");
  if (!existsSync(api)) throw new Error("No engine is built: ./dev build native, or ./dev build page.");
  const { readFileSync } = await import("node:fs");
  const { createTidemarkFrom } = await import(pathToFileURL(api).href);
  const engine = await createTidemarkFrom(readFileSync(join(root, "build/wasm/bin/tidemark.wasm")));
  return engine.handle({ verb: "describe" });
}
