// A set of values as the command line that asks for the same.

/** A word that a POSIX shell hands on unchanged. */
export function quote(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`;
}

/** The command line of those values. A config.json becomes a file that the reader has. */
export function commandOf(values, schema) {
  // By way of the request, which leaves out a word whose parts are stated, or states it even where it is the default.
  const stated = schema.fromRequest(schema.toRequest(values)).values;
  const words = schema.options
    .filter(({ name }) => stated[name] !== undefined)
    .flatMap((option) => (isCard(option) ? [] : wordsOf(option, stated[option.name], schema)));
  const cards = schema.options.filter(isCard).flatMap(({ name }) => stated[name] ?? []);
  return ["tidemark", "estimate", ...words, ...cardsWords(cards)].join(" ");
}

const isCard = ({ type }) => type === "gpu" || type === "gpus";

/** The flag of one option with its value, each word as a shell takes it. */
function wordsOf(option, value, schema) {
  const flag = option.flags?.[0];
  if (!flag) return [];
  if (option.type === "object") return [flag, `${option.name}.json`];
  if (option.type === "boolean" && value === true) return [flag];
  if (option.type === "boolean" && value === false) return [`--no-${flag.slice(2)}`];
  const text = ["strings", "choices"].includes(option.type) ? listText(value) : schema.print(option.name, value);
  // A switch takes no word of its own, and a value that looks like a flag would be read as one.
  return option.type === "boolean" || text.startsWith("-") ? [`${flag}=${quote(text)}`] : [flag, quote(text)];
}

/** Items by commas where the command line reads them so; what has commas, blanks or brackets is written as JSON. */
function listText(value) {
  const plain = (item) => typeof item === "string" && /^[^\s,"'[\]{}]+$/.test(item);
  if (Array.isArray(value) && value.length > 0 && value.every(plain)) return value.join(",");
  return typeof value === "string" && /^[\w.-]+$/.test(value) ? value : JSON.stringify(value);
}

/** The command line puts --vram-gb behind all --gpu: a size that is not last is written as a card, so that their order stays. */
function cardsWords(cards) {
  const isSize = (card) => card !== null && typeof card === "object" && "vram_gb" in card;
  const sizesLast = cards.every((card, i) => !isSize(card) || cards.slice(i).every(isSize));
  return cards.flatMap((card) =>
    isSize(card) && !sizesLast ? ["--gpu", quote(JSON.stringify(card))] : cardWords(card),
  );
}

/** A card of which only the size on its box is known has a flag of its own. */
function cardWords(card) {
  if (card === null || typeof card !== "object") return ["--gpu", quote(cardName(String(card)))];
  const [key, ...others] = Object.keys(card);
  if (others.length === 0 && key === "vram_gb") return ["--vram-gb", quote(String(card.vram_gb))];
  if (others.length === 0 && key === "memory_gib") return ["--gpu", quote(`${card.memory_gib}GiB`)];
  return ["--gpu", quote(JSON.stringify(card))];
}

/** A name as it is; one that the command line would take apart is written as JSON. */
function cardName(name) {
  return /^[[{"]|,/.test(name) ? JSON.stringify(name) : name;
}
