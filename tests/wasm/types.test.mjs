// The types let pass what the engine understands (types.mts) and refuse what it does not (refused.mts).
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const tsc = join(here, "../../web/node_modules/.bin/tsc");

const compile = (project) => {
  const { stdout, status } = spawnSync(tsc, ["--project", project, "--pretty", "false"], {
    cwd: here,
    encoding: "utf8",
  });
  return { status, errors: [...stdout.matchAll(/^(\S+)\((\d+),\d+\): error TS\d+: (.*(?:\n {2}.*)*)/gm)] };
};

test("what the engine understands compiles", () => {
  const { status, errors } = compile("tsconfig.json");
  assert.deepEqual(
    errors.map(([whole]) => whole),
    [],
  );
  assert.equal(status, 0);
});

test("what it does not understand is refused, each for its own reason and nothing else", () => {
  const lines = readFileSync(join(here, "refused.mts"), "utf8").split("\n");
  const wanted = lines.flatMap((line, at) => (at > 0 && line.startsWith("// ") ? [[at + 2, line.slice(3)]] : []));
  const { errors } = compile("tsconfig.refused.json");
  assert.deepEqual(
    errors.map(([, file, line]) => [file, Number(line)]),
    wanted.map(([line]) => ["refused.mts", line]),
  );
  for (const [at, [, words]] of wanted.entries()) assert.ok(errors[at][3].includes(words), errors[at][0]);
});
