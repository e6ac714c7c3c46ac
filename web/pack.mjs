// Packs bytes into ASCII, so that a page can carry them.
//
// Base64 of bytes as they are hides their repetitions from gzip, which costs more than a quarter. So they are packed first: LZMA, whose
// decoder the page brings along, takes a seventh less than the deflate that every browser has, for some 30 ms more to unpack the engine.
// What then looks like chance is written in characters of six bits and of seven, of which gzip's codes are as long; of base64's 64 two
// would take seven bits, and three that stand together come again by chance so often that gzip's copies of them cost more than they save.
import { spawnSync } from "node:child_process";
import { CHARACTERS, SIX_BITS, unpackUpTo } from "./src/unpack.js";

/** Bytes in the characters of which web/src/unpack.js knows the bits. */
function inCharacters(bytes) {
  let [text, bits, count] = ["", 0, 0];
  const write = (least) => {
    while (count >= least) {
      const six = (bits >> (count - 6)) & 63;
      count -= six < SIX_BITS ? 6 : 7;
      text += CHARACTERS[six < SIX_BITS ? six : ((bits >> count) & 127) - SIX_BITS];
    }
    bits &= (1 << count) - 1;
  };
  for (const byte of bytes) {
    bits = (bits << 8) | byte;
    count += 8;
    write(7);
  }
  bits <<= 7;
  count += 7;
  write(8);
  return text;
}

/**
 * Bytes by their names to text, in the container of .xz; web/src/unpack.js is the way back. Nothing in them is aligned, hence pb.
 * All are one stream, behind their names and lengths: what a later part has in common with those before it, it finds there (the engine
 * half of what the form says and most of the sentences that Chinese translates, the reader a sixth of itself in the engine).
 */
export function pack(parts) {
  const options = ["--stdout", "--format=xz", "--check=crc32", "--lzma2=preset=9e,lc=2,pb=0"];
  const bytes = Object.values(parts).map((part) => Buffer.from(part));
  const run = spawnSync("xz", options, { input: Buffer.concat(bytes), maxBuffer: 1 << 28 });
  if (run.status !== 0) throw new Error(`xz is needed to pack the page (Debian: xz-utils): ${run.error ?? run.stderr}`);
  const names = Object.keys(parts).map((name, index) => `${name}:${bytes[index].length}`);
  return `${names.join()};${inCharacters(run.stdout)}`;
}

/** A packed text in two: the least of it from which the parts up to that name can be unpacked, and the rest. */
export async function splitBehind(text, name) {
  const isEnough = (length) =>
    unpackUpTo(text.slice(0, length), name).then(
      () => true,
      () => false,
    );
  let [at, high] = [text.indexOf(";") + 1, text.length];
  while (at < high) {
    const middle = (at + high) >> 1;
    if (await isEnough(middle)) high = middle;
    else at = middle + 1;
  }
  return [text.slice(0, at), text.slice(at)];
}
