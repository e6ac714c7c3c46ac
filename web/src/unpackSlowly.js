// The reader of what pack.mjs's packSlowly writes: smaller than what every browser unpacks by itself, and slower.
import { packedStream } from "tidemark:unpack";
import { XzReadableStream } from "xz-decompress";

/** One part of a packed text as bytes. Nothing behind it is unpacked. */
export async function unpackSlowly(text, part = 0) {
  const head = text.indexOf(";");
  const lengths = text.slice(0, head).split(",").map(Number);
  const begin = lengths.slice(0, part).reduce((sum, length) => sum + length, 0);
  const bytes = new Uint8Array(lengths[part]);
  const stream = new XzReadableStream(packedStream(text.slice(head + 1))).getReader();
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
