// The one script, run twice: as the page, and once more as the page's worker, which is made from this script's own text. It stands before
// what the engine starts from, so that the worker comes to be, and the first picture, while the browser still reads the rest of the page.
import { createHost } from "./engineHost.js";
import { openPage } from "./main.js";
import { openPacked } from "./openPacked.js";
import { createReaderHost } from "./readerHost.js";

function open() {
  const script = document.currentScript.textContent;
  const address = () => URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  const spawn = (name = "engine") => new Worker(address(), { name });
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
  // An engine, or, by name, the reader.
  const makeWorker = (name) => {
    if (name) return spawn(name);
    const worker = early ?? spawn();
    early = null;
    return worker;
  };
  openPage(makeWorker);
}

/** What a worker is to be, the engine or the reader, its name says. */
function serve() {
  const reply = (message, transfer = []) => self.postMessage(message, { transfer });
  const take = self.name === "reader" ? createReaderHost(reply) : createHost(reply, openPacked);
  self.onmessage = ({ data }) => take(data);
}

if (typeof document === "undefined") serve();
else open();
