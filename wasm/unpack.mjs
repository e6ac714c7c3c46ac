// The reader of what pack.mjs writes: bytes as text that a page can carry.

// New browsers have it built in.
const fromBase64 = (text) => Uint8Array.fromBase64?.(text) ?? Uint8Array.from(atob(text), (char) => char.charCodeAt(0));

/** Packed text to bytes. */
export async function unpack(text) {
  // Not a Blob's stream: WebKit's workers cannot read one on a page from file://.
  const deflated = new ReadableStream({
    start(controller) {
      controller.enqueue(fromBase64(text));
      controller.close();
    },
  });
  return new Uint8Array(await new Response(deflated.pipeThrough(new DecompressionStream("deflate-raw"))).arrayBuffer());
}
