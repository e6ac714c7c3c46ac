// The answer to take along: a link, Markdown, JSON, or the command that computes it.
import { categoryName, phaseName } from "./categories.js";
import { commandOf } from "./command.js";
import { differenceInWords } from "./compare.js";
import { h } from "./dom.js";
import { createEmbed } from "./embed.js";
import { createExport } from "./exportPanel.js";
import { exact, gb, gib, percent } from "./format.js";
import { t } from "./messages.js";
import { verdictSentence, verdictWord } from "./verdict.js";

/**
 * The answer as Markdown, with what was asked; `link`: the page's address, or null; `pinned`: the answer that it is compared with.
 * @param {import("../../wasm/tidemark.js").Response} response
 */
export function markdownOf(response, state, schema, link, pinned) {
  const { estimate, fits } = response;
  const { engine, catalog } = schema.describe;
  const { low, expected, high } = estimate.allocated;
  const cell = (text) =>
    String(text)
      .replace(/\|/g, "\\|")
      .replace(/[\r\n]+/g, " ");
  const lines = [
    `### ${t("markdown.title", { model: cell(estimate.model), size: gib(expected) })}`,
    "",
    t("markdown.range", {
      gb: gb(expected),
      bytes: exact(expected),
      low: gib(low),
      high: gib(high),
      phase: phaseName(estimate.peak.phase),
      at: estimate.peak.at,
    }),
    "",
  ];
  for (const fit of fits)
    lines.push(
      `**${verdictWord(fit.verdict)}** ${t("verdict.on", { gpu: cell(fit.gpu) })}: ${verdictSentence(fit)} ${t("verdict.used", { percent: percent(fit.utilization) })}`,
      "",
    );
  lines.push("| | GiB | bytes |", "|---|---:|---:|");
  for (const group of estimate.breakdown)
    if (group.bytes > 0) lines.push(`| ${categoryName(group.category)} | ${gib(group.bytes)} | ${group.bytes} |`);
  lines.push(
    `| **${t("result.allocated")}** | **${gib(expected)}** | ${expected} |`,
    `| ${t("result.reserved")} | ${gib(estimate.reserved.expected)} | ${estimate.reserved.expected} |`,
    `| ${t("result.device")} | ${gib(estimate.device.expected)} | ${estimate.device.expected} |`,
    ...(estimate.host.expected > 0
      ? [`| ${t("result.host")} | ${gib(estimate.host.expected)} | ${estimate.host.expected} |`]
      : []),
    "",
  );
  if (pinned?.estimate) {
    const { model, allocated } = pinned.estimate;
    const change = differenceInWords(allocated.expected, estimate.allocated.expected);
    lines.push(t("markdown.compared", { model: cell(model), change }), "");
  }
  lines.push("```sh", commandOf(state.values, schema), "```", "", t("markdown.versions", { engine, catalog }), "");
  if (link) lines.push(`[${t("calculator.open")}](${link.replace(/[()]/g, encodeURIComponent)})`, "");
  return lines.join("\n");
}

/**
 * texts: kind → function that writes it, or gives null where there is nothing to write; `embed` gives {element, frame}, `job` {values, model}.
 * importer writes files of other tools.
 */
export function createCopy({ tell, texts, importer }) {
  const node = h(
    "section",
    { role: "group", class: "panel copy", "aria-labelledby": "copy-heading", "data-testid": "copy" },
    h("h3", { id: "copy-heading" }, t("copy.label")),
  );
  const fallback = createFallback();
  const status = h("span", { class: "copied", "aria-hidden": "true" });
  const kinds = ["link", "markdown", "json", "command"];

  async function copyOut(text, kind) {
    const copied = await write(text);
    if (copied) {
      const done = t("copy.done", { what: t(`copy.what${kind[0].toUpperCase()}${kind.slice(1)}`) });
      status.textContent = done;
      tell(done, 0);
    }
    fallback.show(copied ? null : text);
  }

  const embed = createEmbed(texts.embed, copyOut);
  const files = createExport({ importer, shown: texts.job, copyOut });
  node.append(
    h(
      "div",
      { class: "row" },
      kinds.map((kind) =>
        h(
          "button",
          {
            type: "button",
            class: "button small",
            "data-testid": `copy-${kind}`,
            onclick: async () => {
              const text = texts[kind]();
              if (text !== null) await copyOut(text, kind);
            },
          },
          t(`copy.${kind}`),
        ),
      ),
      files.button,
      embed.button,
      status,
    ),
    fallback.node,
    files.node,
    embed.node,
  );
  return {
    node,
    refresh() {
      embed.refresh();
      files.refresh();
    },
  };
}

/** Where the browser does not let the page copy: the text itself, selected. */
function createFallback() {
  const area = h("textarea", { class: "field code", rows: "6", readonly: true, "aria-label": t("copy.label") });
  const close = { type: "button", class: "button quiet small", onclick: () => show(null) };
  const words = h("p", { class: "hint" }, t("copy.refused"));
  const node = h("div", { class: "stack", hidden: true }, words, area, h("button", close, t("copy.close")));
  function show(text) {
    node.hidden = text === null;
    if (text === null) return;
    area.value = text;
    area.focus();
    area.select();
  }
  return { node, show };
}

async function write(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Refused, or no secure context: the old way still works from a click.
  }
  const area = h("textarea", { class: "unseen", readonly: true });
  document.body.append(area);
  area.value = text;
  area.select();
  let done = false;
  try {
    done = document.execCommand("copy");
  } catch {
    done = false;
  }
  area.remove();
  return done;
}
