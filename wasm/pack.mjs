// Packs bytes into printable ASCII, so that a page can carry them: node pack.mjs IN OUT
//
// They are deflated first: the browser has half as much to read, and inflates at a few hundred MB/s. Base64 would spend 8 bits on each 6,
// which gzip does not get back whole; here two characters of 91 hold 13 bits, which costs about a hundredth.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { deflateRawSync } from "node:zlib";
import { alphabet } from "./unpack.mjs";

/** Bytes to text; `unpack` in unpack.mjs is the way back. */
export function pack(bytes) {
  const parts = [];
  let bits = 0;
  let held = 0;
  const put = () => parts.push(alphabet[(bits & 8191) % alphabet.length], alphabet[Math.floor((bits & 8191) / alphabet.length)]);
  for (const byte of bytes) {
    bits |= byte << held;
    held += 8;
    if (held < 13) continue;
    put();
    bits >>>= 13;
    held -= 13;
  }
  if (held > 0) put();
  const found = Math.floor((parts.length / 2) * (13 / 8));
  return alphabet[found - bytes.length] + parts.join("");
}

/** Bytes to text, deflated; `inflate` in unpack.mjs is the way back. */
export const deflate = (bytes) => pack(deflateRawSync(bytes, { level: 9 }));

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [input, output] = process.argv.slice(2);
  writeFileSync(output, deflate(readFileSync(input)));
}
