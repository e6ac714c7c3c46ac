// One message map per language; t() looks a sentence up and fills its {places}.
import english from "./messages.en.js";

let messages = english;

/** Replaces the message map; sentences that it lacks stay English. */
export function setMessages(map) {
  messages = { ...english, ...map };
}

/** The sentence of that key. */
export function t(key, places = {}) {
  const text = Object.hasOwn(messages, key) ? messages[key] : key;
  return text.replace(/\{(\w+)\}/g, (whole, place) => (Object.hasOwn(places, place) ? String(places[place]) : whole));
}

/** The sentence of that key if there is one, or the fallback: for words that the engine may add. */
export function tOr(key, fallback) {
  return Object.hasOwn(messages, key) ? messages[key] : fallback;
}
