// "Save this page": the same single file again, as it was before the page drew itself.

let pristine = null;

/** To be called before the first change of the document. */
export function rememberPage() {
  pristine ??= `<!DOCTYPE html>${document.documentElement.outerHTML}`;
}

/** Hands the file over as a download. Throws where a frame forbids it. */
export function savePage(name) {
  const address = URL.createObjectURL(new Blob([pristine], { type: "text/html" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
