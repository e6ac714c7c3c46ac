// Light, dark, or as the system says; remembered where the browser lets us.
import { h } from "./dom.js";
import { t } from "./messages.js";

const key = "tidemark-theme";
const names = ["auto", "light", "dark"];

function remembered() {
  try {
    return localStorage.getItem(key) ?? "auto";
  } catch {
    return "auto";
  }
}

function apply(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
}

/** The switch; `onchange` is called after the colours changed. */
export function createThemeSwitch(onchange) {
  let current = names.includes(remembered()) ? remembered() : "auto";
  apply(current);
  const choose = (name) => {
    current = name;
    apply(name);
    try {
      if (name === "auto") localStorage.removeItem(key);
      else localStorage.setItem(key, name);
    } catch {
      // Not remembered, then.
    }
    onchange();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", onchange);
  return h(
    "fieldset",
    { class: "segments small theme", "data-testid": "theme" },
    h("legend", { class: "unseen" }, t("theme.label")),
    names.map((name) =>
      h(
        "label",
        {},
        h("input", {
          type: "radio",
          name: "theme",
          value: name,
          checked: name === current,
          onchange: () => choose(name),
        }),
        h("span", {}, t(`theme.${name}`)),
      ),
    ),
  );
}
