// How near the engine comes to recorded runs and published measurements, read from docs/accuracy.md, which `tidemark_truth` writes and
// ctest keeps fresh: no figure of it is typed.

/** The rows of the table under that heading: [name, rows, not modelled, median, p95, worst, …], figures as numbers. */
function tableUnder(text, heading) {
  const start = text.indexOf(`\n## ${heading}`);
  if (start < 0) throw new Error(`docs/accuracy.md has no "${heading}"`);
  const end = text.indexOf("\n## ", start + 1);
  const lines = text.slice(start, end < 0 ? undefined : end).split("\n");
  const rows = lines.filter((line) => line.startsWith("| ")).slice(1);
  if (rows.length === 0) throw new Error(`docs/accuracy.md has no table under "${heading}"`);
  return rows.map((row) => {
    const [name, ...figures] = row
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim());
    return [name, ...figures.map(Number)];
  });
}

/**
 * {runs, types, methods, measured}: [amount, worst error in per cent] of all recorded runs; of those of a model type; of those of a "method precision";
 * measured [amount, median, worst, left] of published peaks of what torch allocates; `left` have no explanation, and are in no figure.
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
    measured: [measured[1], measured[3], measured[5], left],
  };
}
