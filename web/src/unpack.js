// The reader of what web/pack.mjs writes: bytes as text that a page can carry.
import xz from "xz-decompress";

// New browsers have it built in.
const fromBase64 = (text) => Uint8Array.fromBase64?.(text) ?? Uint8Array.from(atob(text), (char) => char.charCodeAt(0));

// Characters of base64 that are turned into bytes at once: those of the first parts are, and nothing is done for the rest.
const PIECE = 1 << 16;

/** A stream of the bytes that a text stands for from a place on. Not a Blob's: WebKit's workers cannot read one on a page from file://. */
const streamOf = (text, from) =>
  new ReadableStream({
    pull(controller) {
      if (from >= text.length) return controller.close();
      controller.enqueue(fromBase64(text.slice(from, from + PIECE)));
      from += PIECE;
    },
  });

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
