// The reader of what pack.mjs writes: bytes as printable ASCII that a page can carry.

/** 91 characters that mean nothing to HTML or to a JS string in double quotes: no `"`, `&`, `\` or `<`. */
export const alphabet = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i))
  .filter((c) => !'"&\\<'.includes(c))
  .join("");

/**
 * Packed text to bytes. Each pair of characters is a number of 13 bits, the lower digit first; the lower bits come first. The character
 * before them all says how many of the bytes so found only fill the last pair: none, or one.
 */
export function unpack(text) {
  const digits = new Uint8Array(128);
  for (let i = 0; i < alphabet.length; ++i) digits[alphabet.charCodeAt(i)] = i;
  const bytes = new Uint8Array(Math.floor((text.length / 2) * (13 / 8)));
  let size = 0;
  let bits = 0;
  let held = 0;
  for (let at = 1; at < text.length; at += 2) {
    bits |= (digits[text.charCodeAt(at)] + digits[text.charCodeAt(at + 1)] * alphabet.length) << held;
    for (held += 13; held >= 8; held -= 8) {
      bytes[size++] = bits & 255;
      bits >>>= 8;
    }
  }
  return bytes.subarray(0, size - digits[text.charCodeAt(0)]);
}

/** Packed text whose bytes are deflated, to the bytes that they were. */
export async function inflate(text) {
  // Not a Blob's stream: WebKit's workers cannot read one on a page from file://.
  const packed = new ReadableStream({
    start(controller) {
      controller.enqueue(unpack(text));
      controller.close();
    },
  });
  const stream = packed.pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
