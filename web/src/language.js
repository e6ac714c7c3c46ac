// The page's language: what its address says (lang=zh, behind the ? or the #), else what was chosen here before, else the browser's first.
import { h } from "./dom.js";
import { setMessages, t } from "./messages.js";
import { setSaid } from "./said.js";

const key = "tidemark-language";
// Each by its own name.
const names = { en: "English", zh: "中文" };

/** "zh" of "zh-Hans-CN", or undefined where the page does not speak that. */
function known(tag) {
  const name = String(tag ?? "")
    .toLowerCase()
    .split(/[-_]/)[0];
  return Object.hasOwn(names, name) ? name : undefined;
}

/** hash and search as in `location`; remembered: what was chosen before; preferred: the browser's languages, the first wish first. */
export function languageOf({ hash, search, remembered, preferred }) {
  const stated = [hash.replace(/^#/, ""), search].map((pairs) => new URLSearchParams(pairs).get("lang"));
  // Of several wishes the first alone counts.
  return [...stated, remembered, preferred[0]].map(known).find(Boolean) ?? "en";
}

function remembered() {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** words: language → function that promises its messages. */
export async function speak(words) {
  const { hash, search } = location;
  const name = languageOf({ hash, search, remembered: remembered(), preferred: navigator.languages ?? [] });
  if (!words[name]) return;
  const { said, ...messages } = await words[name]();
  setMessages(messages);
  setSaid(said);
  document.documentElement.lang = t("lang");
}

/** The address of the same job in that language. */
export function addressIn(name, href) {
  const [before, hash = ""] = href.split("#");
  const url = new URL(before);
  url.searchParams.set("lang", name);
  const rest = hash.split("&").filter((pair) => !pair.startsWith("lang="));
  return url + (rest.join("") === "" ? "" : `#${rest.join("&")}`);
}

/** The switch. The page is built in one language, so it is opened anew, with the job that its address has. */
export function createLanguageSwitch() {
  const choose = (name) => {
    try {
      localStorage.setItem(key, name);
    } catch {
      // The address says it.
    }
    const [now, next] = [location.href, addressIn(name, location.href)];
    location.assign(next);
    // Where only what stands behind the # differs, that opens nothing.
    if (now.split("#")[0] === next.split("#")[0]) location.reload();
  };
  const select = h(
    "select",
    { class: "field small language", "aria-label": t("language.label"), "data-testid": "language" },
    Object.entries(names).map(([value, text]) =>
      h("option", { value, lang: value, selected: value === t("lang") }, text),
    ),
  );
  select.addEventListener("change", () => choose(select.value));
  // A page that has no address of its own (about:srcdoc) cannot be opened anew.
  select.hidden = location.protocol === "about:";
  return select;
}
