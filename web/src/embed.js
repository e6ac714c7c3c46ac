// How to put the present job into another page: shown on demand, to be copied.
import { h } from "./dom.js";
import { t } from "./messages.js";

/** texts() → {element, frame, isExample}, or null; copyOut(text, kind) copies. Returns {node, button, refresh()}. */
export function createEmbed(texts, copyOut) {
  const kinds = ["element", "frame"];
  const areas = kinds.map((kind) => {
    const label = t(`copy.${kind}`);
    return h("textarea", { class: "field code", rows: "5", readonly: true, "aria-label": label, "data-testid": kind });
  });
  const copier = (kind, at) => {
    const onclick = () => copyOut(areas[at].value, kind);
    const attributes = { type: "button", class: "button small", "data-testid": `copy-${kind}`, onclick };
    return h(
      "button",
      { ...attributes, "aria-label": `${t("copy.snippet")}: ${t(`copy.${kind}`)}` },
      t("copy.snippet"),
    );
  };
  const rows = kinds.map((kind, at) => [h("p", {}, t(`copy.${kind}`), " ", copier(kind, at)), areas[at]]);
  const host = h("p", { class: "hint" }, t("copy.host"));
  const node = h("div", { class: "stack embed", hidden: true, "data-testid": "embed-box" }, rows, host);

  function refresh() {
    if (node.hidden) return;
    const written = texts();
    areas.forEach((area, at) => {
      area.value = written?.[kinds[at]] ?? "";
    });
    host.hidden = !written?.isExample;
  }
  function onclick() {
    node.hidden = !node.hidden;
    button.setAttribute("aria-expanded", String(!node.hidden));
    refresh();
  }
  const attributes = {
    type: "button",
    class: "button small",
    "aria-expanded": "false",
    "data-testid": "embed",
    onclick,
  };
  const button = h("button", attributes, t("copy.embed"));
  return { node, button, refresh };
}
