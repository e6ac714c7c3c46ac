/** A text, cut where it is longer than it should be shown. */
export function shorten(text, limit = 80) {
  return text.length > limit ? `${text.slice(0, limit)}…` : text;
}
