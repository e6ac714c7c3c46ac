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

/** One part of a packed text as bytes. Nothing behind it is unpacked. */
export async function unpack(text, part = 0) {
  const head = text.indexOf(";");
  const lengths = text.slice(0, head).split(",").map(Number);
  const begin = lengths.slice(0, part).reduce((sum, length) => sum + length, 0);
  const bytes = new Uint8Array(lengths[part]);
  const stream = new xz.XzReadableStream(streamOf(text.slice(head + 1))).getReader();
  for (let at = 0; at < begin + bytes.length; ) {
    const { value } = await stream.read();
    const from = Math.max(begin - at, 0);
    const to = Math.min(begin + bytes.length - at, value.length);
    if (from < to) bytes.set(value.subarray(from, to), at + from - begin);
    at += value.length;
  }
  await stream.cancel();
  return bytes;
}
