// The fit map's axes: 64 batch sizes and 64 sequence lengths, where each lies, and what a cell between them says.

export const cells = 64;

/** Sizes in even steps of the logarithm, eight to an octave, so that every power of two is among them; multiples of `unit`, none twice. */
export function octaves(low, amount, unit) {
  const values = [];
  for (let index = 0; index < amount; index += 1) values.push(Math.round((low * 2 ** (index / 8)) / unit) * unit);
  return values;
}

/** The 64 batch sizes: each up to 32, then in eighths of an octave up to 512. */
export const batches = [...Array.from({ length: 32 }, (_, index) => index + 1), ...octaves(32, 33, 1).slice(1)];
/** The 64 sequence lengths, multiples of 128 (kernels pad to that): each up to 2048, then in eighths of an octave up to 131 072. */
export const sequences = [
  ...Array.from({ length: 16 }, (_, index) => 128 * (index + 1)),
  ...octaves(2048, 49, 128).slice(1),
];

/** Where each size's band begins, 0 … 1 on a logarithmic scale; halfway between neighbours. */
function edges(values) {
  const logs = values.map(Math.log);
  const between = logs.slice(1).map((log, index) => (log + logs[index]) / 2);
  const last = logs.length - 1;
  const all = [logs[0] - (logs[1] - logs[0]) / 2, ...between, logs[last] + (logs[last] - logs[last - 1]) / 2];
  const span = all[all.length - 1] - all[0];
  return all.map((log) => (log - all[0]) / span);
}
export const rowEdges = edges(batches);
export const columnEdges = edges(sequences);

/** The band in which a place 0 … 1 lies, or -1. */
export function bandAt(bounds, place) {
  if (place < 0 || place > 1) return -1;
  let index = 0;
  while (index < bounds.length - 2 && bounds[index + 1] < place) index += 1;
  return index;
}

export function nearestIndex(values, wanted) {
  let best = 0;
  values.forEach((value, index) => {
    if (Math.abs(Math.log(value / wanted)) < Math.abs(Math.log(values[best] / wanted))) best = index;
  });
  return best;
}

/** The cell in which the job itself lies. */
export const cellOf = ({ batch, sequence }) => ({
  row: nearestIndex(batches, batch),
  column: nearestIndex(sequences, sequence),
});

/** A cell's verdict, by the engine's own rule (core/fit/fit.cpp): tight is where the card lies within the range. */
export function verdictOf({ usable, low, high }, bytes) {
  if (Number.isNaN(bytes)) return "none";
  if (bytes * high <= usable) return "fits";
  return bytes * low <= usable ? "tight" : "over";
}
