// The head of the page: its name, and what is done with the page as a whole.
import { h, s, setText } from "./dom.js";
import { t } from "./messages.js";
import { savePage } from "./savePage.js";

const waterline = [
  ["logo-staff", "M6 3h4v26H6z"],
  ["logo-marks", "M6 7h4v3.2H6zM6 13.4h4v3.2H6zM6 19.8h4V23H6z"],
  ["logo-line", "M12 8h17"],
  ["logo-water", "M12 17c3-3 5.5-3 8.5 0s5.5 3 8.5 0V29H12z"],
];

function logo() {
  return s(
    "svg",
    { class: "logo", viewBox: "0 0 32 32", "aria-hidden": "true" },
    waterline.map(([className, d]) => s("path", { class: className, d })),
  );
}

const button = (testid, onclick, words) =>
  h("button", { type: "button", class: "button quiet small", "data-testid": testid, onclick }, words);

/** notice is where a saved page is told of; the switches stand at the end. Returns {node, update()}. */
export function createMasthead({ store, example, notice, tell, themeSwitch, languageSwitch }) {
  const undo = button("undo", () => store.undo(), t("page.undo"));
  const reset = button("reset", () => store.replace({ values: example }, { source: "reset" }), t("page.reset"));
  const save = button("save", () => tell(saved(notice), 0), t("page.save"));
  const brand = h(
    "div",
    { class: "brand" },
    logo(),
    h("h1", {}, t("page.name")),
    h("p", { class: "tagline" }, t("page.tagline")),
  );
  const node = h(
    "header",
    { class: "masthead" },
    brand,
    h("div", { class: "tools" }, undo, reset, save, languageSwitch, themeSwitch),
  );
  undo.disabled = true;
  return {
    node,
    update() {
      undo.disabled = !store.canUndo();
    },
  };
}

/** Saves the page, and says how that went. */
function saved(notice) {
  const name = "tidemark.html";
  try {
    savePage(name);
    setText(notice, t("page.saved", { name }));
  } catch {
    setText(notice, t("page.saveRefused"));
  }
  return notice.textContent;
}
