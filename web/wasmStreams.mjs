// Sorts the bytes of a WebAssembly module; web/src/wasmStreams.js says why, and is the way back.
import {
  ADDRESS,
  FAR_CALL,
  floats,
  S,
  TWO_BYTES,
  further,
  isAccess,
  numbers,
  CALL,
  CONSTANT,
  together,
} from "./src/wasmStreams.js";

const CODE = 10; // the section

/** A module's bytes, sorted: how long it is, where its code stands, how many functions it has and how long each stream is, then these. */
export function apart(module) {
  const streams = Object.values(S).map(() => []);
  let at = 8; // behind the magic number and the version
  /** A number in LEB128, moved to a stream, or nowhere: what is made anew on the way back. */
  const number = (stream) => {
    let [value, bits, byte] = [0, 0, 128];
    for (; byte > 127; bits += 7) {
      byte = module[at++];
      streams[stream]?.push(byte);
      value |= (byte & 127) << bits;
    }
    return value;
  };
  let end = at;
  for (let section = 0; section !== CODE; ) {
    at = end;
    section = module[at++];
    const size = number();
    end = at + size;
  }
  const count = number();
  const begin = at;
  for (let left = count; left > 0; left--) {
    const stop = number() + at;
    for (let runs = 2 * number(S.locals); runs > 0; runs--) number(S.locals);
    while (at < stop) {
      let code = module[at++];
      if (code === CALL && module[at] > 127) code = FAR_CALL;
      if (code === CONSTANT && module[at] > 127) code = module[at + 1] > 127 ? ADDRESS : TWO_BYTES;
      if (isAccess(code)) at++;
      streams[S.op].push(code);
      const stream = numbers[code];
      if (stream !== 0) for (let more = further(code, module[at], module[at + 1]); more >= 0; more--) number(stream);
      for (let bytes = floats[code]; bytes > 0; bytes--) streams[S.float].push(module[at++]);
    }
  }
  streams[S.rest] = [...module.subarray(0, begin), ...module.subarray(end)];
  const head = [module.length, begin, count, ...streams.map((stream) => stream.length)];
  const sorted = Buffer.concat([Buffer.from(`${head.join()};`), ...streams.map((stream) => Buffer.from(stream))]);
  if (!WebAssembly.validate(together(sorted)))
    throw new Error("web/src/wasmStreams.js does not know an instruction of this module.");
  return sorted;
}
