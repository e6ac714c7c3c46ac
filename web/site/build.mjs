// The site: node web/site/build.mjs [python with mkdocs]
//
// One static folder, dist/site, ready to be hosted: the page, the widget, and the documentation with live calculators. Needs dist/
// (web/build.mjs). MkDocs comes from requirements.txt into an environment of its own, unless a Python that has it is named.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "../..");
const [dist, work] = [join(root, "dist"), join(root, "build/site")];
const site = join(dist, "site");
const run = (command, ...words) => execFileSync(command, words, { cwd: here, stdio: "inherit" });

if (!existsSync(join(dist, "index.html"))) {
  console.error("There is no dist/index.html: run web/build.sh first.");
  process.exit(1);
}

/** A Python that has MkDocs. */
function python() {
  const [, , named] = process.argv;
  if (named) return named;
  const own = join(work, "python/bin/python");
  if (!existsSync(own)) {
    run("python3", "-m", "venv", join(work, "python"));
    run(own, "-m", "pip", "install", "--quiet", "--requirement", join(here, "requirements.txt"));
  }
  return own;
}

rmSync(site, { recursive: true, force: true });
rmSync(join(work, "docs"), { recursive: true, force: true });
mkdirSync(join(work, "docs"), { recursive: true });
for (const name of readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md")))
  cpSync(join(root, "docs", name), join(work, "docs", name));
cpSync(join(here, "index.md"), join(work, "docs/index.md"));
run(python(), "-m", "mkdocs", "build", "--strict", "--quiet", "--config-file", join(here, "mkdocs.yml"));

// The page, which is told where its documentation lies; its script and its styles are those of the policy's checksums still.
const page = readFileSync(join(dist, "index.html"), "utf8");
const told = page.replace(
  '<meta name="viewport"',
  '<meta name="tidemark-docs" content="docs/">\n<meta name="viewport"',
);
if (told === page) throw new Error("dist/index.html has no place for what tells it of its documentation");
writeFileSync(join(site, "index.html"), told);
cpSync(join(dist, "widget"), join(site, "widget"), { recursive: true });
cpSync(join(dist, "THIRD_PARTY_NOTICES.txt"), join(site, "THIRD_PARTY_NOTICES.txt"));
console.log(`The site is at ${relative(process.cwd(), site)}`);
