// The policy holds: a page that were told to send something, or to run text as code, could not.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

export default {
  async "can send nothing anywhere, and run no text as code"(browser, { origin, seen, until }) {
    await browser.open(`${origin}/`);
    await until(browser, `document.querySelector('[data-testid="headline"]')`);
    seen.length = 0;
    await browser.evaluate(`(function (leak) {
      try { fetch(leak + "fetch").catch(function () {}); } catch (error) {}
      try { navigator.sendBeacon(leak + "beacon"); } catch (error) {}
      try { new WebSocket(leak.replace("http", "ws") + "socket"); } catch (error) {}
      new Image().src = leak + "image";
      ["script", "iframe"].forEach(function (name) {
        var element = document.createElement(name);
        element.src = leak + name;
        document.body.append(element);
      });
      var inline = document.createElement("script");
      inline.textContent = "window.ran = true";
      document.body.append(inline);
      var handler = document.createElement("button");
      handler.setAttribute("onclick", "window.ran = true");
      document.body.append(handler);
      handler.click();
      return true;
    })("${origin}/leak/")`);
    await sleep(500);
    assert.deepEqual(seen, []);
    assert.equal(await browser.evaluate("!!window.ran"), false);
  },
};
