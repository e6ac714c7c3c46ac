// The one script, run twice: as the page, and once more as the page's worker, which is made from this script's own text. It stands before
// what the engine starts from, so that the worker comes to be, and the first picture, while the browser still reads the rest of the page.
import { serve } from "./engineHost.js";
import { openPage } from "./main.js";

function open() {
  const script = document.currentScript.textContent;
  const spawn = () => new Worker(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
  let early = null;
  // The example's answer is at hand: then the first picture goes first.
  if (location.hash.length > 1) {
    try {
      early = spawn();
      // A policy may refuse it only afterwards.
      early.onerror = () => {
        early = null;
      };
    } catch {
      // The next attempt throws again, where that is awaited.
    }
  }
  const makeWorker = () => {
    const worker = early ?? spawn();
    early = null;
    return worker;
  };
  openPage(makeWorker);
}

if (typeof document === "undefined") serve(self);
else open();
