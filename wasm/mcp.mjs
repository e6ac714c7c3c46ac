// Tidemark for coding agents: a server of the Model Context Protocol on standard input and output (JSON-RPC 2.0, a message a line), so that they
// ask before they launch. Specification: modelcontextprotocol.io, 2025-06-18.
import { createInterface } from "node:readline";

const protocols = ["2025-06-18", "2025-03-26", "2024-11-05"];

/** The options that most jobs state, as a JSON schema; the others are taken, too. */
function jobSchema({ options }) {
  const types = { boolean: "boolean", integer: "integer", number: "number", object: "object" };
  const usual = options.filter(({ name, modelled, advanced }) => modelled && !advanced && !name.includes("."));
  const property = ({ type, values, help, unit }) => ({
    ...(values ? { enum: values.filter(({ modelled }) => modelled).map(({ name }) => name) } : {}),
    ...(types[type] ? { type: types[type] } : {}),
    description: unit ? `${help} Unit: ${unit}.` : help,
  });
  return {
    type: "object",
    properties: Object.fromEntries(usual.map((option) => [option.name, property(option)])),
    additionalProperties: true,
  };
}

/** What of an estimate an agent needs: not every tensor of it. */
function brief({ estimate, partial, fits, issues }) {
  if (!estimate) return { partial, issues };
  const { model, parameters, allocated, reserved, device, peak, recipe, breakdown } = estimate;
  const categories = breakdown.map(({ category, bytes }) => ({ category, bytes }));
  return { model, parameters, allocated, reserved, device, peak, recipe, categories, fits, issues };
}

function toolsOf(tidemark) {
  const inputSchema = jobSchema(tidemark.handle({ verb: "describe" }));
  const ask = (verb, keys) => (job) => tidemark.handle({ ...job, ...keys, verb });
  const search = { frontiers: false, tiers: false, modes: false };
  return {
    estimate: {
      description:
        "Peak GPU memory of a training job in bytes (expected, with a range), where it is reached, what it consists of, and whether it fits the given gpu. Ask before launching a job.",
      inputSchema,
      run: (job) => brief(tidemark.handle({ ...job, verb: "estimate" })),
    },
    advise: {
      description: "The changes of least harm that make a training job fit its gpu, each as a merge patch of the job.",
      inputSchema,
      run: ask("advise", search),
    },
    fit: {
      description: "Which graphics cards of the catalog hold a training job, and how much stays free on each.",
      inputSchema,
      run: ask("fit"),
    },
    catalog: {
      description: "Models and graphics cards that are known by name.",
      inputSchema: {
        type: "object",
        properties: {
          list: { enum: ["models", "gpus"] },
          pattern: { type: "string", description: "Part of a name." },
        },
      },
      run: ask("catalog"),
    },
  };
}

/** message → answer, or undefined for what asks for none. */
export function createServer(tidemark) {
  const tools = toolsOf(tidemark);
  const { engine } = tidemark.version();
  const list = Object.entries(tools).map(([name, { description, inputSchema }]) => ({
    name,
    description,
    inputSchema,
  }));
  const methods = {
    initialize: ({ protocolVersion }) => ({
      protocolVersion: protocols.includes(protocolVersion) ? protocolVersion : protocols[0],
      capabilities: { tools: {} },
      serverInfo: { name: "tidemark", version: engine },
    }),
    ping: () => ({}),
    "tools/list": () => ({ tools: list }),
    "tools/call": ({ name, arguments: given = {} }) => {
      const answer = tools[name].run(given);
      const failed = (answer.issues ?? []).some(({ severity }) => severity === "error");
      return { content: [{ type: "text", text: JSON.stringify(answer) }], isError: failed };
    },
  };
  return ({ id, method, params = {} }) => {
    if (id === undefined) return undefined;
    const answer = (part) => ({ jsonrpc: "2.0", id, ...part });
    if (!Object.hasOwn(methods, method)) return answer({ error: { code: -32601, message: `No method ${method}.` } });
    if (method === "tools/call" && !Object.hasOwn(tools, params.name ?? ""))
      return answer({ error: { code: -32602, message: `No tool ${params.name}.` } });
    return answer({ result: methods[method](params) });
  };
}

/** Serves until the input ends. */
export async function serve(tidemark, input = process.stdin, output = process.stdout) {
  const server = createServer(tidemark);
  const write = (message) => output.write(`${JSON.stringify(message)}\n`);
  for await (const line of createInterface({ input })) {
    if (line.trim() === "") continue;
    try {
      const answer = server(JSON.parse(line));
      if (answer) write(answer);
    } catch (error) {
      write({ jsonrpc: "2.0", id: null, error: { code: -32700, message: String(error.message) } });
    }
  }
}
