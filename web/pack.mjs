// Packs bytes into ASCII, so that a page can carry them.
//
// Base64 of bytes as they are hides their repetitions from gzip, which costs more than a quarter. So they are packed first: of what then
// looks like chance, gzip gets base64's two spare bits in eight back, and the browser has half as much to read. LZMA, whose decoder the
// page brings along, takes a seventh less than the deflate that every browser has, for some 30 ms more to unpack the engine.
import { spawnSync } from "node:child_process";
import { unpackUpTo } from "./src/unpack.js";

/**
 * Bytes by their names to text, in the container of .xz; web/src/unpack.js is the way back. WebAssembly is not aligned, hence lc and pb.
 * All are one stream, behind their names and lengths: what a later part has in common with those before it, it finds there (the engine
 * half of what the form says and most of the sentences that Chinese translates, the reader a sixth of itself in the engine).
 */
export function pack(parts) {
  const options = ["--stdout", "--format=xz", "--check=crc32", "--lzma2=preset=9e,lc=4,pb=0"];
  const bytes = Object.values(parts).map((part) => Buffer.from(part));
  const run = spawnSync("xz", options, { input: Buffer.concat(bytes), maxBuffer: 1 << 28 });
  if (run.status !== 0) throw new Error(`xz is needed to pack the page (Debian: xz-utils): ${run.error ?? run.stderr}`);
  const names = Object.keys(parts).map((name, index) => `${name}:${bytes[index].length}`);
  return `${names.join()};${run.stdout.toString("base64")}`;
}

/** A packed text in two: the least of it from which the parts up to that name can be unpacked, and the rest. */
export async function splitBehind(text, name) {
  const isEnough = (length) =>
    unpackUpTo(text.slice(0, length), name).then(
      () => true,
      () => false,
    );
  // Base64 is read by fours.
  const head = text.indexOf(";") + 1;
  let [low, high] = [0, Math.ceil((text.length - head) / 4)];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (await isEnough(head + middle * 4)) high = middle;
    else low = middle + 1;
  }
  const at = head + low * 4;
  return [text.slice(0, at), text.slice(at)];
}
