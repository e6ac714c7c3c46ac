// The reader of what web/pack.mjs writes: bytes as text that a page can carry.
import xz from "xz-decompress";

/** What packed bytes are written in: of ASCII what neither a script's text in HTML nor our own template (%PART%) reads anything into. */
export const CHARACTERS = Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i))
  .filter((character) => !"<%".includes(character))
  .join("");
/** The first of them stand for six bits, the others for seven of which the first six are no less than this. */
export const SIX_BITS = 128 - CHARACTERS.length;

const places = new Uint8Array(128);
for (let i = 0; i < CHARACTERS.length; i++) places[CHARACTERS.charCodeAt(i)] = i;

// Characters that are turned into bytes at once: those of the first parts are, and nothing is done for the rest.
const PIECE = 1 << 16;

/** A stream of the bytes that a text stands for from a place on. Not a Blob's: WebKit's workers cannot read one on a page from file://. */
function streamOf(text, from) {
  let [bits, count] = [0, 0];
  return new ReadableStream({
    pull(controller) {
      if (from >= text.length) return controller.close();
      const to = Math.min(from + PIECE, text.length);
      const bytes = new Uint8Array(to - from);
      let length = 0;
      for (; from < to; from++) {
        const place = places[text.charCodeAt(from)];
        const isSix = place < SIX_BITS;
        bits = isSix ? (bits << 6) | place : (bits << 7) | (place + SIX_BITS);
        count += isSix ? 6 : 7;
        if (count < 8) continue;
        count -= 8;
        bytes[length++] = bits >> count;
        bits &= (1 << count) - 1;
      }
      controller.enqueue(bytes.subarray(0, length));
    },
  });
}

/** The parts of a packed text up to the one of that name, as bytes by their names. Nothing behind it is unpacked. */
export async function unpackUpTo(text, last) {
  const head = text.indexOf(";");
  const names = text
    .slice(0, head)
    .split(",")
    .map((part) => part.split(":"));
  const parts = names.slice(0, names.findIndex(([name]) => name === last) + 1);
  const all = new Uint8Array(parts.reduce((sum, [, length]) => sum + Number(length), 0));
  const stream = new xz.XzReadableStream(streamOf(text, head + 1)).getReader();
  for (let at = 0; at < all.length; ) {
    const { value } = await stream.read();
    all.set(value.subarray(0, all.length - at), at);
    at += value.length;
  }
  await stream.cancel();
  let end = 0;
  return Object.fromEntries(
    parts.map(([name, length]) => {
      end += Number(length);
      return [name, all.subarray(end - Number(length), end)];
    }),
  );
}

/** The text that a part is. */
export const textOf = (part) => new TextDecoder().decode(part);
