// The file that the job came from, as it says the job that is shown: what was changed since stands on its own lines.
export const baseName = (name) => name.replace(/^.*[\\/]/, "");

/** reader as importer.js has it. Returns {took(sources, values), name(), patch(values)}. */
export function createOwnFile({ reader, schema }) {
  let origin = null;

  /** What differs from the job of the files: {"adapter.r": 8}; the card is in no file. */
  function changesOf(values) {
    const now = schema.prune(values);
    const value = ({ name, default: standard }, from) => from[name] ?? standard;
    const isOther = (option) => JSON.stringify(value(option, origin.values)) !== JSON.stringify(value(option, now));
    const changed = schema.options.filter((option) => !["gpu", "gpus"].includes(option.name) && isOther(option));
    return Object.fromEntries(changed.map((option) => [option.name, value(option, now)]));
  }

  return {
    /** A job came from these files, as these values. */
    took(sources, values) {
      origin = { sources, values: schema.prune(values) };
    },
    /** The file's name, or null before. */
    name: () => origin && baseName(origin.sources[0].name),
    /** The file with the job's present values: {file, text, diff, lacks}. */
    patch: (values) => reader.ask("export", { patch: origin.sources, changes: changesOf(values) }),
  };
}
