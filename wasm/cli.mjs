#!/usr/bin/env node
// npx tidemark …: what the package does from a shell. The whole command line is the native one's.
import { openTidemark } from "./index.js";

const usage = `tidemark embed KEY=VALUE…   <tidemark-calculator> with its answer as static HTML: model=gpt2 gpu="RTX 4090" controls=gpu
tidemark mcp                a server of the Model Context Protocol on standard input and output, for coding agents
`;

async function embed(words) {
  const { attributesOf, createSchema, ownAttributes, requestOf, staticCalculator } = await import(
    "./tidemark-static.js"
  );
  const tidemark = await openTidemark();
  const schema = createSchema(tidemark.handle({ verb: "describe" }));
  const isOwn = (word) => ownAttributes.includes(word.split("=")[0]);
  const more = Object.fromEntries(
    words.filter(isOwn).map((word) => [word.split("=")[0], word.slice(word.indexOf("=") + 1)]),
  );
  const request = requestOf(
    words.filter((word) => !isOwn(word)),
    schema,
    attributesOf(schema),
  );
  process.stdout.write(`${staticCalculator(tidemark, request, more)}\n`);
}

const [command, ...words] = process.argv.slice(2);
if (command === "embed") {
  try {
    await embed(words);
  } catch (error) {
    process.stderr.write(`tidemark: ${error.message}\n`);
    process.exitCode = 2;
  }
} else if (command === "mcp") {
  const { serve } = await import("./mcp.mjs");
  await serve(await openTidemark());
} else {
  process.stderr.write(usage);
  process.exitCode = command === undefined || command === "--help" ? 0 : 2;
}
