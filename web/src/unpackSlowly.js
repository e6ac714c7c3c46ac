// The reader of what pack.mjs's packSlowly writes: smaller than what every browser unpacks by itself, and slower.
import { bytesOf, packedStream } from "tidemark:unpack";
import { XzReadableStream } from "xz-decompress";

/** Packed text to bytes. */
export const unpackSlowly = (text) => bytesOf(new XzReadableStream(packedStream(text)));
