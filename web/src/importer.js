// Other people's files become a job. Their format is recognised, never asked for; what fails changes nothing; several files are one job.
import { modelWays } from "./modelSearch.js";
import { t } from "./messages.js";
import { said } from "./said.js";
import { baseName, createOwnFile } from "./ownFile.js";

/** Of a larger file the first bytes: headers say what a model file holds. A recording of the allocator has none, and is read whole. */
const mostBytes = 16 * 2 ** 20;
const mostOfRecording = 256 * 2 ** 20;
const mostFiles = 64;

/** A File as the reader takes it. */
export async function sourceOf(file) {
  const start = new Uint8Array(await file.slice(0, 1).arrayBuffer());
  const most = start[0] === 0x80 ? mostOfRecording : mostBytes;
  const bytes = new Uint8Array(await file.slice(0, most).arrayBuffer());
  return { name: file.name || "file", bytes, size: file.size };
}

/**
 * reader.ask(kind, request) as engine.js has it; questions.trial(values) asks the engine. Returns {take(sources), beside(estimate), formats(),
 * write(format, values, model, assumed), own: as ownFile.js has it}.
 */
export function createImporter({ reader, questions, schema, store }) {
  let last = { sources: [], wanted: [], logs: false };
  const own = createOwnFile({ reader, schema });

  /** Reads them and, if that makes a job, takes it. `found`: what came of it, for the panel; its `problem` says what was wrong. */
  async function take(given, from) {
    const sources = together(last, given.slice(0, mostFiles));
    const before = store.get().values;
    const document_ = await reader.ask("read", { read: sources });
    if (!document_) return null;
    const problem = problemOf(document_);
    if (problem) return { problem, from };
    last = { sources, wanted: wantedOf(document_, sources), logs: document_.files.some(isLog) };
    return takeJob(document_, from, before);
  }

  async function takeJob(document_, from, before) {
    const { values, unknown } = schema.fromRequest(document_.job);
    const found = { document: document_, from, before, wanted: last.wanted, logs: last.logs, values };
    if (Object.keys(values).length === 0) return found;
    const next = settled(values, before, found);
    const answer = await questions.trial(next);
    const { sources, logs } = last;
    const use = () => {
      if (!logs) own.took(sources, next);
      store.replace({ values: next, unknown, pin: store.get().pin }, { source: "import" });
    };
    if (answer && !answer.estimate && !answer.partial) return { ...found, refused: answer.issues, use };
    // The person did something else meanwhile: that counts, and the files wait to be used.
    if (store.get().values !== before) return { ...found, refused: [], use };
    // What says nothing new leaves nothing to take back.
    return { ...found, taken: changes(store, use) };
  }

  /** What the files leave open stays as it was: the card, and all else where they name no model. */
  function settled(values, before, found) {
    const names = modelWays.some((way) => values[way] !== undefined);
    const measured = found.logs && (before.gpu !== undefined || before.gpus !== undefined);
    const { gpu, gpus, ...rest } = values;
    const card = gpu ?? gpus;
    // A message tells a card's size; who chose a card has told its name.
    const cards = card === undefined || (measured && typeof card === "object") ? pick(before) : { gpu, gpus };
    found.keptCard = cards.gpu === before.gpu && cards.gpus === before.gpus;
    found.keptModel = !names;
    return names ? { ...rest, ...cards } : { ...before, ...rest, ...cards };
  }

  return {
    take,
    own,
    /** What the logs that were read last say beside an estimate; null without logs. */
    beside: async (estimate) => (last.logs && estimate ? reader.ask("compare", { compare: estimate }) : null),
    formats: () => reader.ask("read", { formats: true }),
    write: (format, values, model, assumed) =>
      reader.ask("export", { write: format, request: schema.toRequest(values), model, assumed }),
  };
}

/** Files that the last ones named belong to them. */
function together(last, sources) {
  const names = sources.map(({ name }) => baseName(name));
  return last.wanted.some((name) => names.includes(name)) ? [...last.sources, ...sources] : sources;
}

function changes(store, work) {
  const was = store.get();
  work();
  return store.get() !== was;
}

const pick = ({ gpu, gpus }) => ({ gpu, gpus });
const isLog = ({ reading }) => Boolean(reading);

/** Files that are named and were not given. */
function wantedOf({ files }, sources) {
  const names = sources.map(({ name }) => baseName(name));
  const all = files.flatMap(({ companions = [] }) => companions.map(baseName));
  return [...new Set(all)].filter((name) => !names.includes(name));
}

/** Why nothing is taken: the first error, where nothing else could be read. */
function problemOf({ issues = [], files = [], job }) {
  const errors = issues.filter(({ severity }) => severity === "error");
  if (!job) return said(errors[0]?.message) ?? t("import.nothing");
  const fatal = errors.filter(({ code }) => code !== "UNKNOWN_FORMAT");
  if (fatal.length > 0) return said(fatal[0].message);
  if (files.every(({ format }) => !format)) return said(errors[0]?.message) ?? t("import.nothing");
  return "";
}
