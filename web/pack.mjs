// Packs bytes into ASCII, so that a page can carry them.
//
// Base64 of bytes as they are hides their repetitions from gzip, which costs more than a quarter. So they are packed first: of what then
// looks like chance, gzip gets base64's two spare bits in eight back, and the browser has half as much to read. LZMA, whose decoder the
// page brings along, takes a seventh less than the deflate that every browser has, for some 30 ms more to unpack the engine.
import { spawnSync } from "node:child_process";

/**
 * Bytes to text, in the container of .xz; web/src/unpack.js is the way back. WebAssembly is not aligned, hence lc and pb.
 * Several parts are one stream, behind their lengths: what the reader of files has in common with the engine, it finds there
 * (a sixth of the reader).
 */
export function pack(...parts) {
  const options = ["--stdout", "--format=xz", "--check=crc32", "--lzma2=preset=9e,lc=4,pb=0"];
  const run = spawnSync("xz", options, { input: Buffer.concat(parts), maxBuffer: 1 << 28 });
  if (run.status !== 0) throw new Error(`xz is needed to pack the page (Debian: xz-utils): ${run.error ?? run.stderr}`);
  return `${parts.map((part) => part.length)};${run.stdout.toString("base64")}`;
}
