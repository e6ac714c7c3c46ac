// Packs a binary file into printable ASCII, so that a page can carry it in a classic script: node pack.mjs IN OUT
//
// Base64 hides the bytes' repetitions from gzip, which costs more than a quarter. Here each byte stays whole: the 90
// most common ones become one character each, the others two, so that gzip finds the same repetitions as before.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { alphabet, singles } from "./unpack.mjs";

/** Bytes to text; `unpack` in unpack.mjs is the way back. */
export function pack(bytes) {
  const counts = new Array(256).fill(0);
  for (const byte of bytes) ++counts[byte];
  const ranked = counts.map((_, byte) => byte).sort((a, b) => counts[b] - counts[a] || a - b);
  const codes = [];
  let text = "";
  ranked.forEach((byte, rank) => {
    text += alphabet[Math.floor(byte / alphabet.length)] + alphabet[byte % alphabet.length];
    const over = rank - singles;
    codes[byte] =
      over < 0
        ? alphabet[rank]
        : alphabet[singles + Math.floor(over / alphabet.length)] + alphabet[over % alphabet.length];
  });
  const parts = [text];
  for (const byte of bytes) parts.push(codes[byte]);
  return parts.join("");
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [input, output] = process.argv.slice(2);
  writeFileSync(output, pack(readFileSync(input)));
}
