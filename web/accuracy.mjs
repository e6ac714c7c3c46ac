// How near the engine comes to recorded runs and published measurements, read from docs/accuracy.md, which `tidemark_truth` writes and
// ctest keeps fresh: no figure of it is typed.

/** The rows under that heading, each a list of cells. */
function cellsUnder(text, heading) {
  const start = text.indexOf(`\n## ${heading}`);
  if (start < 0) throw new Error(`docs/accuracy.md has no "${heading}"`);
  const end = text.indexOf("\n## ", start + 1);
  const lines = text.slice(start, end < 0 ? undefined : end).split("\n");
  const rows = lines.filter((line) => line.startsWith("| ")).slice(1);
  if (rows.length === 0) throw new Error(`docs/accuracy.md has no table under "${heading}"`);
  const trimmed = (cell) => cell.trim();
  return rows.map((row) => row.split("|").slice(1, -1).map(trimmed));
}

/** Those of a table of figures: [name, rows, not modelled, median, p95, worst, …]. */
function tableUnder(text, heading) {
  return cellsUnder(text, heading).map(([name, ...figures]) => [name, ...figures.map(Number)]);
}

/** [amount, per cent of them within 1 %] of the allocated peaks of our own runs. */
function ownRuns(text) {
  const rows = cellsUnder(text, "Measured by ourselves").filter(([, figure]) => figure === "allocated");
  const sum = (weight) => rows.reduce((all, row) => all + Number(row[2]) * weight(row), 0);
  const amount = sum(() => 1);
  return [amount, Math.floor((10 * sum((row) => Number(row[5]))) / amount) / 10];
}

/**
 * {runs, types, methods, measured}: [amount, worst error in per cent] of all recorded runs; of those of a model type; of those of a "method precision";
 * measured [amount, median, worst, left] of published peaks of what torch allocates; `left` have no explanation, and are in no figure;
 * own: [amount, per cent of them within 1 %] of the allocated peaks of our own runs.
 * @param {string} text of docs/accuracy.md
 */
export function accuracyOf(text) {
  const pick = ([, amount, , , , worst]) => [amount, worst];
  const named = (rows) => Object.fromEntries(rows.filter(([, amount]) => amount > 0).map((row) => [row[0], pick(row)]));
  const summary = tableUnder(text, "Summary");
  const records = summary.filter(([name]) => name.includes("records"));
  const measured = summary.find(([name]) => name === "measured, allocated, completeness A");
  const unexplained = new Set([...text.matchAll(/^\* `([^`]+)`:/gm)].map(([, name]) => name));
  const left = tableUnder(text, "Measurements").filter(([name]) => unexplained.has(name)).length;
  return {
    runs: [records.reduce((sum, row) => sum + row[1], 0), Math.max(...records.map((row) => row[5]))],
    types: named(tableUnder(text, "By family")),
    methods: named(tableUnder(text, "By method and precision")),
    own: ownRuns(text),
    measured: [measured[1], measured[3], measured[5], left],
  };
}
