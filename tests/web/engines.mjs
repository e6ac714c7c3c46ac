// The built engine: the command line under build/, and what the page runs, as WebAssembly or, where that is not built, natively.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const wasm = join(root, "build/wasm/bin");
/** Where the command `tidemark` lies. */
export const commands = join(root, "build/bin");

/** Requests in, answers out, as the page's engine gives them. */
export async function answersTo(requests) {
  if (existsSync(join(wasm, "api.js"))) {
    const { createTidemarkFrom } = await import(pathToFileURL(join(wasm, "api.js")).href);
    const engine = await createTidemarkFrom(readFileSync(join(wasm, "tidemark.wasm")));
    const catalog = (name) => readFileSync(join(root, "catalog", name), "utf8");
    engine.loadCatalog(catalog("models.json"), catalog("gpus.json"));
    return requests.map((request) => engine.handle(request));
  }
  const native = join(commands, "tidemark_handle");
  if (!existsSync(native)) throw new Error("No engine is built: ./dev build native, or ./dev build page.");
  const input = requests.map((request) => `${JSON.stringify(request)}\n`).join("");
  const output = execFileSync(native, [join(root, "catalog")], { input, encoding: "utf8", maxBuffer: 2 ** 30 });
  return output
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** What `describe` says. */
export async function describe() {
  const [answer] = await answersTo([{ verb: "describe" }]);
  return answer;
}
