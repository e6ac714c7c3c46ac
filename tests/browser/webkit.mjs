// WebKitGTK's MiniBrowser, driven by WebKitWebDriver: the W3C protocol, spoken here by hand. Without a display it runs
// under Xvfb.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const elementKey = "element-6066-11e4-a52e-4f735466cecf";

function miniBrowser() {
  if (process.env.MINIBROWSER) return process.env.MINIBROWSER;
  for (const lib of ["x86_64-linux-gnu", "aarch64-linux-gnu"]) {
    for (const api of ["4.1", "4.0", "6.0"]) {
      const path = `/usr/lib/${lib}/webkit${api === "6.0" ? "gtk" : "2gtk"}-${api}/MiniBrowser`;
      if (existsSync(path)) return path;
    }
  }
  throw new Error("There is no MiniBrowser: apt install webkit2gtk-driver libwebkit2gtk-4.1-0");
}

/** Starts a program; `stop` ends it. */
function start(command, args, env) {
  const child = spawn(command, args, { stdio: "ignore", env });
  return { stop: () => child.kill("SIGTERM"), child };
}

export async function launch({ scheme = "light", width = 1280, height = 900 } = {}) {
  const binary = miniBrowser();
  const home = mkdtempSync(join(tmpdir(), "tidemark-webkit-"));
  const env = {
    ...process.env,
    HOME: home,
    XDG_RUNTIME_DIR: home,
    GTK_THEME: scheme === "dark" ? "Adwaita:dark" : "Adwaita",
    LIBGL_ALWAYS_SOFTWARE: "1",
  };
  const programs = [];
  if (!env.DISPLAY) {
    const number = 90 + (process.pid % 400);
    programs.push(start("Xvfb", [`:${number}`, "-screen", "0", "1920x1600x24", "-nolisten", "tcp"], env));
    env.DISPLAY = `:${number}`;
    for (let i = 0; i < 100 && !existsSync(`/tmp/.X11-unix/X${number}`); ++i) await sleep(100);
  }
  const port = 20000 + (process.pid % 20000);
  programs.push(start(process.env.WEBKIT_DRIVER ?? "WebKitWebDriver", [`--port=${port}`], env));

  const call = async (method, path, body) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      body: method === "POST" ? JSON.stringify(body ?? {}) : undefined,
    });
    const { value } = await response.json();
    if (!response.ok) throw new Error(`WebKitWebDriver ${path}: ${value.error}: ${value.message}`);
    return value;
  };
  const options = { binary, args: ["--automation"] };
  let session;
  for (let attempt = 0; ; ++attempt) {
    try {
      session = await call("POST", "/session", {
        capabilities: { alwaysMatch: { "webkitgtk:browserOptions": options } },
      });
      break;
    } catch (error) {
      if (attempt === 50) throw error;
      await sleep(200);
    }
  }
  const at = `/session/${session.sessionId}`;
  await call("POST", `${at}/window/rect`, { width, height });
  const evaluate = (script) => call("POST", `${at}/execute/sync`, { script: `return (${script});`, args: [] });
  return {
    name: "webkit",
    version: `${session.capabilities.browserName} ${session.capabilities.browserVersion}`,
    // The protocol tells of neither: the runner asks the page's own list of resources, and the server.
    requests: null,
    messages: null,
    async open(url) {
      await call("POST", `${at}/url`, { url });
    },
    async enterFrame() {
      const frame = await call("POST", `${at}/element`, { using: "css selector", value: "iframe" });
      await call("POST", `${at}/frame`, { id: frame });
    },
    evaluate,
    async type(testid, text) {
      const element = await call("POST", `${at}/element`, {
        using: "css selector",
        value: `[data-testid="${testid}"]`,
      });
      await call("POST", `${at}/element/${element[elementKey]}/clear`);
      await call("POST", `${at}/element/${element[elementKey]}/value`, { text });
    },
    async screenshot(path) {
      writeFileSync(path, Buffer.from(await call("GET", `${at}/screenshot`), "base64"));
    },
    async close() {
      await call("DELETE", at).catch(() => {});
      for (const { stop } of programs.reverse()) stop();
      rmSync(home, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}
