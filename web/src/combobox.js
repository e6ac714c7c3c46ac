// A text field with a list that narrows as one types (WAI-ARIA combobox). It does not know what it lists.
import { h, hasFocus, setText, uniqueId } from "./dom.js";
import { t } from "./messages.js";

/**
 * options: {id, label, placeholder, search(text) → [{value, label, detail, note}], onchoose(value), oncommit(text)}
 * Returns {node, input, show(text)}.
 */
export function createCombobox(options) {
  const listId = uniqueId("list");
  const list = h("ul", { id: listId, role: "listbox", class: "choices", "aria-label": options.label, hidden: true });
  const input = h("input", {
    id: options.id,
    type: "text",
    role: "combobox",
    class: "field",
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    "aria-expanded": "false",
    "aria-controls": listId,
    "aria-autocomplete": "list",
    placeholder: options.placeholder,
    "aria-label": options.label,
  });
  // For those who hear: how many the list has now.
  const count = h("span", { class: "unseen", role: "status" });
  const node = h(
    "div",
    { class: "combobox" },
    input,
    h("span", { class: "combobox-mark", "aria-hidden": "true" }),
    list,
    count,
  );
  let rows = [];
  let active = -1;
  let shown = "";
  let typed = false;

  function isOpen() {
    return !list.hidden;
  }
  function close() {
    list.hidden = true;
    setText(count, "");
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    active = -1;
  }
  function mark(index) {
    active = index;
    [...list.children].forEach((child, at) => {
      child.setAttribute("aria-selected", at === index ? "true" : "false");
    });
    const child = list.children[index];
    if (child) {
      input.setAttribute("aria-activedescendant", child.id);
      child.scrollIntoView({ block: "nearest" });
    } else {
      input.removeAttribute("aria-activedescendant");
    }
  }
  function open(text) {
    rows = options.search(text);
    list.replaceChildren(
      ...rows.map((row, index) =>
        h(
          "li",
          {
            id: `${listId}-${index}`,
            role: "option",
            "aria-selected": "false",
            "aria-current": shown !== "" && (row.text ?? row.label) === shown ? "true" : undefined,
            onpointerdown: (event) => event.preventDefault(),
            onclick: () => choose(index),
          },
          h("span", { class: "choice-name" }, row.label),
          row.note && h("span", { class: "tag" }, row.note),
          row.detail && h("span", { class: "choice-detail" }, row.detail),
        ),
      ),
    );
    list.hidden = rows.length === 0;
    setText(count, t(rows.length === 1 ? "search.one" : "search.count", { count: rows.length }));
    input.setAttribute("aria-expanded", String(rows.length > 0));
    mark(-1);
    list.scrollTop = 0;
  }
  function choose(index) {
    const row = rows[index];
    close();
    typed = false;
    shown = row.text ?? row.label;
    input.value = shown;
    options.onchoose(row.value);
  }
  function settle() {
    close();
    if (!typed) return;
    typed = false;
    options.oncommit(input.value);
  }

  input.addEventListener("input", () => {
    typed = true;
    open(input.value);
  });
  input.addEventListener("focus", () => input.select());
  input.addEventListener("click", () => {
    if (!isOpen()) open(typed ? input.value : "");
  });
  input.addEventListener("blur", settle);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!isOpen()) open(typed ? input.value : "");
      const step = event.key === "ArrowDown" ? 1 : -1;
      if (rows.length > 0) mark(active < 0 && step < 0 ? rows.length - 1 : (active + step + rows.length) % rows.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (isOpen() && active >= 0) choose(active);
      else if (isOpen() && typed && rows.length === 1) choose(0);
      else settle();
    } else if (event.key === "Escape") {
      if (isOpen()) event.stopPropagation();
      close();
      typed = false;
      input.value = shown;
    } else if (event.key === "Tab") {
      if (isOpen() && active >= 0) choose(active);
    }
  });

  return {
    node,
    input,
    /** What is listed has changed. */
    refresh() {
      if (isOpen()) open(typed ? input.value : "");
    },
    /** Shows the present value, unless somebody types. */
    show(text) {
      shown = text;
      if (!hasFocus(input) || !typed) {
        if (input.value !== text) input.value = text;
      }
    },
  };
}

/** Rows whose text has every word of the query, those that start with it first. */
export function narrow(rows, query, limit = 60) {
  const words = query
    .toLowerCase()
    .split(/[\s_]+/)
    .filter(Boolean);
  if (words.length === 0) return rows.slice(0, limit);
  const scored = [];
  for (const row of rows) {
    let score = 0;
    for (const word of words) {
      const at = row.key.indexOf(word);
      if (at < 0) {
        score = -1;
        break;
      }
      // "7" means 7b rather than 72b or 1.7b.
      const begins = at === 0 || /[^a-z0-9.]/.test(row.key[at - 1]);
      const goesOn = /\d$/.test(word) && /\d/.test(row.key[at + word.length] ?? "");
      score += (begins ? 0 : 1) + (goesOn ? 1 : 0);
    }
    if (score >= 0) scored.push([score, row]);
  }
  return scored
    .sort((a, b) => a[0] - b[0])
    .slice(0, limit)
    .map(([, row]) => row);
}
