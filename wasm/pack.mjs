// Packs bytes into ASCII, so that a page can carry them: node pack.mjs IN OUT
//
// Base64 of bytes as they are hides their repetitions from gzip, which costs more than a quarter. So they are deflated first: of what then
// looks like chance, gzip gets base64's two spare bits in eight back, and the browser has half as much to read.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { deflateRawSync } from "node:zlib";

/** Bytes to text; `unpack` in unpack.mjs is the way back. */
export const pack = (bytes) => deflateRawSync(bytes, { level: 9, memLevel: 9 }).toString("base64");

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [input, output] = process.argv.slice(2);
  writeFileSync(output, pack(readFileSync(input)));
}
