// The reader of what web/pack.mjs writes: bytes as text that a page can carry.
import xz from "xz-decompress";

// New browsers have it built in.
const fromBase64 = (text) => Uint8Array.fromBase64?.(text) ?? Uint8Array.from(atob(text), (char) => char.charCodeAt(0));

/** A stream of the bytes that a text stands for. Not a Blob's: WebKit's workers cannot read one on a page from file://. */
const streamOf = (text) =>
  new ReadableStream({
    start(controller) {
      controller.enqueue(fromBase64(text));
      controller.close();
    },
  });

/** The parts of a packed text up to one of them, as bytes. Nothing behind it is unpacked. */
export async function unpackUpTo(text, last) {
  const head = text.indexOf(";");
  const lengths = text
    .slice(0, head)
    .split(",", last + 1)
    .map(Number);
  const all = new Uint8Array(lengths.reduce((sum, length) => sum + length, 0));
  const stream = new xz.XzReadableStream(streamOf(text.slice(head + 1))).getReader();
  for (let at = 0; at < all.length; ) {
    const { value } = await stream.read();
    all.set(value.subarray(0, all.length - at), at);
    at += value.length;
  }
  await stream.cancel();
  let end = 0;
  return lengths.map((length) => {
    end += length;
    return all.subarray(end - length, end);
  });
}

/** One part of it. */
export const unpack = async (text, part = 0) => (await unpackUpTo(text, part))[part];
