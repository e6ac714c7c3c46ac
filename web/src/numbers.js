// Numbers and sizes of cards as people write them.

const powers = { "": 0, k: 1, m: 2 };

/**
 * "4k", "4,096", "4 096", "0,05" → a number; undefined for what is none, or may be two. Whole numbers count tokens and samples: 4k are 4096,
 * and what looks like a fraction of three digits separates thousands.
 */
export function readNumber(text, isWhole) {
  const match = /^([^a-z]*|.*e[+-]?\d+|0x[\da-f]+)([km]?)$/i.exec(text.replace(/[\s_'\u2019]/g, ""));
  if (!match) return undefined;
  const body = plainNumber(match[1], isWhole);
  const number = body === "" ? Number.NaN : Number(body);
  const value = number * (isWhole ? 1024 : 1000) ** powers[match[2].toLowerCase()];
  return Number.isFinite(value) ? value : undefined;
}

function plainNumber(text, isWhole) {
  if (isWhole && /^\d{1,3}([,.]\d{3})+$/.test(text)) return text.replace(/[,.]/g, "");
  if (/^\d{1,3}(,\d{3}){2,}(\.\d+)?$/.test(text)) return text.replaceAll(",", "");
  // "4,096" may be four thousand or four; "0,096" only one.
  if (/^[+-]?\d+,\d+$/.test(text) && !isWhole && !/^[1-9]\d{0,2},\d{3}$/.test(text)) return text.replace(",", ".");
  return text;
}

/** "7e9", "1.5B", "1,5B", "350M" → an amount of parameters; undefined for what is none. */
export function readCount(text) {
  const [, body, letter] = /^(.*?)([kmbt]?)$/is.exec(text.trim());
  const amount = /\d/.test(body) ? readNumber(body, false) : undefined;
  const value = amount * { "": 1, k: 1e3, m: 1e6, b: 1e9, t: 1e12 }[letter.toLowerCase()];
  return value > 0 ? value : undefined;
}

/** "24576 MiB", "24,5 GB", "24GiB": a card by its size, for the engine; other text as it is. */
export function readCard(text) {
  const match = /^([\d.,]+)\s*([GM]i?B?)?$/i.exec(text);
  if (!match) return text;
  const amount = readNumber(match[1], false);
  const unit = (match[2] ?? "").toLowerCase();
  if (amount === undefined) return text;
  if (unit === "gib") return { memory_gib: amount };
  if (unit === "mib" || unit === "mb" || unit === "m") return { memory_gib: amount / 1024 };
  return match[1].includes(",") ? text.replace(match[1], String(amount)) : text;
}
