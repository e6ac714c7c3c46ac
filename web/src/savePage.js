// "Save this page": the same single file again, as it was before the page drew itself.

// The module also runs in the worker, which has no document.
const { title, lang } = typeof document === "undefined" ? { title: "", lang: "" } : wordsOf(document);

function wordsOf({ title: words, documentElement }) {
  return { title: words, lang: documentElement.lang };
}

/** The text of the file that this page came from. */
function pristine() {
  const page = /** @type {HTMLElement} */ (document.documentElement.cloneNode(true));
  for (const { name } of [...page.attributes]) page.removeAttribute(name);
  page.lang = lang;
  page.querySelector("title").textContent = title;
  page.querySelector("#tidemark").replaceChildren();
  return `<!DOCTYPE html>${page.outerHTML}`;
}

/** Hands the file over as a download. Throws where a frame forbids it. */
export const savePage = (name) => saveText(name, pristine(), "text/html");

/** A text as a file of that name. */
export function saveText(name, text, type = "text/plain") {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
