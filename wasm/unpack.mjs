// The reader of what pack.mjs writes: bytes as printable ASCII that a classic script can carry.

/** 92 characters that mean nothing to HTML or to a JS string in double quotes: no `"`, `\` or `<`. */
export const alphabet = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i))
  .filter((c) => !'"\\<'.includes(c))
  .join("");

/** Bytes of this rank (how common they are) and above take two characters. */
export const singles = 90;

/** Packed text to bytes. The text begins with the byte values, the most common first, two characters each. */
export function unpack(text) {
  const digits = new Uint8Array(128);
  for (let i = 0; i < alphabet.length; ++i) digits[alphabet.charCodeAt(i)] = i;
  const bytes = new Uint8Array(256);
  let at = 0;
  for (let rank = 0; rank < 256; ++rank) {
    bytes[rank] = digits[text.charCodeAt(at++)] * alphabet.length + digits[text.charCodeAt(at++)];
  }
  const out = new Uint8Array(text.length);
  let size = 0;
  while (at < text.length) {
    let rank = digits[text.charCodeAt(at++)];
    if (rank >= singles) rank = singles + (rank - singles) * alphabet.length + digits[text.charCodeAt(at++)];
    out[size++] = bytes[rank];
  }
  return out.subarray(0, size);
}
