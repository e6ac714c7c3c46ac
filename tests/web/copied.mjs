// A command that the page hands out, run as a shell would run it, beside the answer that the page shows.
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { commands } from "./engines.mjs";

const oneLine = (text) => text.replace(/\s+/g, " ").trim();

/** What standard error says: with --json the issues as JSON, and words where the command itself could not be read. */
function toldOn(stderr) {
  if (!stderr.startsWith("{")) return stderr;
  return JSON.parse(stderr)
    .issues.map((issue) => issue.message)
    .join("\n");
}

/** Runs a command in a folder with the files that it names, config.json and calibration.json: a promise of { status, stdout, stderr }. */
function runAsCopied(command, values, schema, folder) {
  for (const { name, type } of schema.options) {
    if (type === "object" && values[name]) writeFileSync(join(folder, `${name}.json`), JSON.stringify(values[name]));
  }
  const env = { ...process.env, PATH: `${commands}:${process.env.PATH}`, NO_COLOR: "1", COLUMNS: "100000" };
  return new Promise((done) => {
    execFile("sh", ["-c", `${command} --json`], { cwd: folder, env, maxBuffer: 2 ** 26 }, (error, stdout, stderr) =>
      done({ status: error ? error.code : 0, stdout, stderr }),
    );
  });
}

/** The first line in which two texts differ, of both; empty when they are the same. */
function firstDifference(printed, shown) {
  if (printed === shown) return "";
  const [a, b] = [printed.split("\n"), shown.split("\n")];
  const at = a.findIndex((line, index) => line !== b[index]);
  return `line ${at + 1}: the command prints ${a[at]}, the page has ${b[at]}`;
}

/**
 * What is wrong with a copied command: it has to print the answer of the page, `shown` as JSON, byte for byte, or to be refused for the same reason.
 * A promise of a sentence, empty where nothing is wrong.
 */
export async function wrongWith(command, { values, schema, shown, folder }) {
  const { status, stdout, stderr } = await runAsCopied(command, values, schema, folder);
  const answer = JSON.parse(shown);
  if (answer.estimate) {
    if (status !== 0 && status !== 1) return `exit ${status}: ${stderr}`;
    return firstDifference(stdout, `${shown}\n`);
  }
  if (status !== 2 || stdout !== "") return `exit ${status}, and should have been refused`;
  const [first] = answer.issues.filter((issue) => issue.severity === "error");
  return oneLine(toldOn(stderr)).includes(oneLine(first.message))
    ? ""
    : `refused by ${stderr}, not by ${first.message}`;
}
