// The strata of a GPU's memory, from what lies still at the bottom to what comes and goes on top.
import { tOr } from "./messages.js";

const order = [
  "weights",
  "optimizer_states",
  "gradients",
  "buffers",
  "communication",
  "activations",
  "logits_loss",
  "workspace",
];

/** Those that occur, bottom first; ones that a newer engine brings lie on top. */
export function strata(names) {
  const present = new Set(names);
  return [...order.filter((name) => present.has(name)), ...[...present].filter((name) => !order.includes(name))];
}

export function categoryName(category) {
  return tOr(`category.${category}`, category.replace(/_/g, " "));
}

export function phaseName(phase) {
  return tOr(`phase.${phase}`, phase.replace(/_/g, " "));
}

/** The class that colours it. */
export function categoryClass(category) {
  return order.includes(category) ? `stratum-${category}` : "stratum-other";
}
