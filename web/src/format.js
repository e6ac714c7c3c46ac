// Numbers as people read them, with the exact figure beside.
import { t } from "./messages.js";

export const gibibyte = 2 ** 30;
export const narrowSpace = "\u202f";
const minus = "\u2212";

function digitsFor(value) {
  const size = Math.abs(value);
  if (size >= 1000) return 0;
  if (size >= 100) return 1;
  if (size >= 0.1 || size === 0) return 2;
  return 3;
}

function decimal(value, digits) {
  const text = Math.abs(value).toFixed(digits);
  const [whole, fraction] = text.split(".");
  const sign = value < 0 && Number(text) !== 0 ? minus : "";
  return sign + grouped(whole) + (fraction ? `.${fraction}` : "");
}

/** "6 738 417 664", with narrow no-break spaces. */
export function grouped(integer) {
  const text = typeof integer === "number" ? Math.round(integer).toFixed(0) : String(integer);
  return text.replace("-", minus).replace(/\B(?=(\d{3})+(?!\d))/g, narrowSpace);
}

/** What stands large: ["23.05", "GiB"]; from 10 000 GiB on in TiB, then PiB. */
export function scaled(bytes) {
  const units = ["GiB", "TiB", "PiB", "EiB"];
  let value = bytes / gibibyte;
  let at = 0;
  for (; Math.abs(value) >= 10000 && at < units.length - 1; at += 1) value /= 1024;
  return [decimal(value, digitsFor(value)), units[at]];
}

/** "23.05 GiB"; small amounts in MiB, KiB or B. */
export function gib(bytes) {
  const size = Math.abs(bytes);
  if (size >= 2 ** 30 * 0.1 || size === 0) return scaled(bytes).join(" ");
  if (size >= 2 ** 20) return `${decimal(bytes / 2 ** 20, 1)} MiB`;
  if (size >= 2 ** 10) return `${decimal(bytes / 2 ** 10, 1)} KiB`;
  return `${grouped(bytes)} B`;
}

/** "24.75 GB", the decimal unit. */
export function gb(bytes) {
  const value = bytes / 1e9;
  return `${decimal(value, digitsFor(value))} GB`;
}

/** "24 745 875 456 bytes". */
export function exact(bytes) {
  return t("figure.bytes", { count: grouped(bytes) });
}

/** "+1.20 GiB", "−3.4 MiB", "±0". */
export function difference(bytes) {
  if (bytes === 0) return "\u00b10";
  return (bytes > 0 ? "+" : "") + gib(bytes);
}

/** "82 %", from ten times on "12 ×"; near the brim one more digit, so that 99.6 % is not shown as 100 %. */
export function percent(ratio) {
  if (ratio >= 10) return `${decimal(ratio, 0)}\u00a0\u00d7`;
  const value = ratio * 100;
  const near = value > 95 && value < 105;
  const small = value > 0 && value < 1;
  return `${decimal(value, near || small ? 1 : 0)}${narrowSpace}%`;
}

/** "8.03 B" parameters, "494 M". */
export function count(number) {
  for (const [letter, size] of Object.entries({ T: 1e12, B: 1e9, M: 1e6, k: 1e3 })) {
    if (Math.abs(number) < size) continue;
    const value = number / size;
    const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
    return `${value.toFixed(digits)}${narrowSpace}${letter}`;
  }
  return String(number);
}

/** A scale's steps: 1, 2 or 5 times a power of ten or, for bytes, a power of two GiB. */
export function niceStep(span, wanted) {
  const raw = span / Math.max(1, wanted);
  let step = 2 ** -10;
  while (step < raw) step *= 2;
  return step;
}
