// What can be looked at more closely, one at a time: tabs, each with its panel. A panel that has nothing to show for a job hides its tab.
import { h } from "./dom.js";
import { t } from "./messages.js";

const moves = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };

/** parts: {key: node}, in order. Returns {node, show(key), owe(key, work)}: what draws a view is done when that is looked at, the newest alone. */
export function createViews(parts) {
  const keys = Object.keys(parts);
  let wanted = keys[0];
  const tabOf = (key) => {
    const attributes = { role: "tab", id: `tab-${key}`, "aria-controls": `view-${key}`, "data-testid": `tab-${key}` };
    return h("button", { type: "button", class: "tab", ...attributes, onclick: () => show(key) }, t(`view.${key}`));
  };
  const panelOf = (key) =>
    h("div", { class: "view", role: "tabpanel", id: `view-${key}`, "aria-labelledby": `tab-${key}` }, parts[key]);
  const tabs = keys.map(tabOf);
  const panels = keys.map(panelOf);
  const list = h("div", { class: "tabs", role: "tablist", "aria-label": t("view.label"), onkeydown: move }, tabs);
  const node = h("div", { class: "views-box" }, list, panels);

  const owed = new Map();
  function pay(key) {
    const work = owed.get(key);
    owed.delete(key);
    work?.();
  }
  // On paper all of them stand.
  addEventListener("beforeprint", () => keys.forEach(pay));

  /** Shows the view that is wanted, or the first one while that has nothing to show. */
  function draw() {
    const shown = parts[wanted].hidden ? keys[0] : wanted;
    keys.forEach((key, at) => {
      tabs[at].hidden = parts[key].hidden && at > 0;
      tabs[at].setAttribute("aria-selected", String(key === shown));
      tabs[at].tabIndex = key === shown ? 0 : -1;
      panels[at].hidden = key !== shown;
    });
    pay(shown);
  }
  function show(key) {
    wanted = key;
    draw();
  }
  function move(event) {
    if (!(event.key in moves)) return;
    event.preventDefault();
    const there = keys.filter((_, at) => !tabs[at].hidden);
    const now = there.indexOf(wanted);
    const last = there.length - 1;
    const step = moves[event.key];
    const next = Number.isFinite(step) ? (now + step + there.length) % there.length : step > 0 ? last : 0;
    show(there[next]);
    tabs[keys.indexOf(wanted)].focus();
  }
  const observer = new MutationObserver(draw);
  for (const part of Object.values(parts)) observer.observe(part, { attributeFilter: ["hidden"] });
  draw();
  function owe(key, work) {
    owed.set(key, work);
    if (!panels[keys.indexOf(key)].hidden) pay(key);
  }
  return { node, show, owe };
}
