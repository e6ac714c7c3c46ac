// Packs bytes into ASCII, so that a page can carry them: node pack.mjs IN OUT
//
// Base64 of bytes as they are hides their repetitions from gzip, which costs more than a quarter. So they are deflated first: of what then
// looks like chance, gzip gets base64's two spare bits in eight back, and the browser has half as much to read. Zopfli finds the same
// format's shorter spelling, five hundredths less; where it is not installed zlib does. What is large, the engine, the reader of files and
// the catalog of models, is packed by LZMA, whose decoder the page brings along: another seventh less, for some 30 ms more to unpack.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { deflateRawSync } from "node:zlib";

function zopfli(bytes) {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-"));
  try {
    const file = join(folder, "bytes");
    writeFileSync(file, bytes);
    const run = spawnSync("zopfli", ["--deflate", "--i5", "-c", file], { maxBuffer: 1 << 28 });
    return run.status === 0 ? run.stdout : undefined;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Bytes to text; `unpack` in unpack.mjs is the way back. */
export const pack = (bytes) => (zopfli(bytes) ?? deflateRawSync(bytes, { level: 9, memLevel: 9 })).toString("base64");

/**
 * The same by LZMA in the container of .xz; web/src/unpackSlowly.js is the way back. WebAssembly is not aligned, hence lc and pb.
 * Several parts are one stream, behind their lengths: what the reader of files has in common with the engine, it finds there
 * (a sixth of the reader).
 */
export function packSlowly(...parts) {
  const options = ["--stdout", "--format=xz", "--check=crc32", "--lzma2=preset=9e,lc=4,pb=0"];
  const run = spawnSync("xz", options, { input: Buffer.concat(parts), maxBuffer: 1 << 28 });
  if (run.status !== 0) throw new Error(`xz is needed to pack the page (Debian: xz-utils): ${run.error ?? run.stderr}`);
  return `${parts.map((part) => part.length)};${run.stdout.toString("base64")}`;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [input, output] = process.argv.slice(2);
  writeFileSync(output, pack(readFileSync(input)));
}
