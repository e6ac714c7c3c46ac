// The reader of what pack.mjs writes: bytes as text that a page can carry.

// New browsers have it built in.
const fromBase64 = (text) => Uint8Array.fromBase64?.(text) ?? Uint8Array.from(atob(text), (char) => char.charCodeAt(0));

/** A stream of the bytes that a text packs. Not a Blob's: WebKit's workers cannot read one on a page from file://. */
export function packedStream(text) {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(fromBase64(text));
      controller.close();
    },
  });
}

/** All that a stream brings. */
export const bytesOf = async (stream) => new Uint8Array(await new Response(stream).arrayBuffer());

/** Packed text to bytes. */
export const unpack = (text) => bytesOf(packedStream(text).pipeThrough(new DecompressionStream("deflate-raw")));
