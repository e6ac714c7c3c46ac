// WebAssembly with the bytes of its code sorted by what they are: instructions, locals, constants, calls, ...
//
// A packer guesses a byte from those before it, and behind an instruction it guesses better from other instructions, behind a local from
// other locals. Sorted so, the engine takes a sixteenth less, packed. https://webassembly.github.io/spec/core/binary/instructions.html
// says what follows which instruction; how a memory access is aligned is a hint that means nothing to a program, and is left out.

const NAMES =
  "rest op locals block branch table call farCall indirect get set tee global offset number twoBytes address long float";
export const S = Object.fromEntries(NAMES.split(" ").map((name, at) => [name, at]));

// Instructions that are none, for a call and a constant whose number takes more than a byte: addresses are unlike small constants.
export const FAR_CALL = 0xfd;
export const TWO_BYTES = 0xfe;
export const ADDRESS = 0xff;

export const [CALL, CONSTANT] = [0x10, 0x41];
const [IF, END, TABLE, INDIRECT, BULK] = [0x04, 0x0b, 0x0e, 0x11, 0xfc];
/** How many bytes of a float follow an instruction. */
export const floats = new Uint8Array(256);
[floats[0x43], floats[0x44]] = [4, 8];
export const isAccess = (code) => code >= 0x28 && code <= 0x3e;

/** The stream of the number in LEB128 behind an instruction; 0 where there is none. */
export const numbers = new Uint8Array(256);
const have = (stream, ...codes) => {
  for (const code of codes) numbers[code] = stream;
};
numbers.fill(S.offset, 0x28, 0x3f);
have(S.block, 0x02, 0x03, 0x04);
have(S.branch, 0x0c, 0x0d);
have(S.table, 0x0e);
have(S.call, 0x10);
have(S.indirect, 0x11);
have(S.get, 0x20);
have(S.set, 0x21);
have(S.tee, 0x22);
have(S.global, 0x23, 0x24);
have(S.op, 0x3f, 0x40, 0xfc);
have(S.number, 0x41);
have(S.long, 0x42);
have(S.farCall, FAR_CALL);
have(S.twoBytes, TWO_BYTES);
have(S.address, ADDRESS);

/** How many more numbers of its stream follow the first, of which these are two bytes. */
export function further(code, byte, then) {
  if (code === TABLE) return 1 + (byte < 128 ? byte : (byte & 127) | (then << 7));
  if (code === BULK) return byte === 8 || byte === 10 ? 2 : byte > 8 ? 1 : 0;
  return code === INDIRECT ? 1 : 0;
}

/** Writes one function's code to the module, from `at` on, of streams of which each is read from its place in `next` on. Returns its end. */
function write(module, at, streams, next) {
  let place = next[S.locals];
  const runs = streams[place];
  // Of each run of locals how many there are, and behind that their type; before them the number of runs, which takes one byte.
  for (let left = 2 * runs; left >= 0; left--) {
    do module[at++] = streams[place];
    while (streams[place++] > 127);
  }

  next[S.locals] = place;
  for (let depth = 1; depth > 0; ) {
    const code = streams[next[S.op]++];
    module[at++] = code < FAR_CALL ? code : code === FAR_CALL ? CALL : CONSTANT;
    if (isAccess(code)) module[at++] = 0;
    const stream = numbers[code];
    if (stream !== 0) {
      place = next[stream];
      let left = further(code, streams[place], streams[place + 1]);
      for (; left >= 0; left--) {
        do module[at++] = streams[place];
        while (streams[place++] > 127);
      }

      next[stream] = place;
      if (code <= IF) depth++;
    } else if (code === END) depth--;
    else for (let left = floats[code]; left > 0; left--) module[at++] = streams[next[S.float]++];
  }
  return at;
}

/** The module whose bytes web/wasmStreams.mjs has sorted; of its memory accesses none says how it is aligned. */
export function together(sorted) {
  const headEnds = sorted.indexOf(0x3b);
  const head = String.fromCharCode(...sorted.subarray(0, headEnds));
  const [length, begin, count, ...lengths] = head.split(",").map(Number);
  let from = headEnds + 1;
  const next = Int32Array.from(lengths, (own) => {
    from += own;
    return from - own;
  });
  const rest = sorted.subarray(next[S.rest], next[S.op]);
  const module = new Uint8Array(length + 5); // before the last function's length is known, its code stands that far behind
  module.set(rest.subarray(0, begin));
  let at = begin;
  for (let left = count; left > 0; left--) {
    // The length stands before a function's code, and is known behind it.
    const start = at + 5;
    const stop = write(module, start, sorted, next);
    for (let size = stop - start; size > 0; size >>= 7) module[at++] = size > 127 ? (size & 127) | 128 : size;
    module.copyWithin(at, start, stop);
    at += stop - start;
  }
  module.set(rest.subarray(begin), at);
  return module.subarray(0, length);
}
