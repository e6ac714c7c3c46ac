// The answer to take along: a link, Markdown, JSON, or the command that computes it.
import { categoryName, phaseName } from "./categories.js";
import { commandOf } from "./command.js";
import { h } from "./dom.js";
import { exact, gb, gib, percent } from "./format.js";
import { t } from "./messages.js";
import { verdictSentence, verdictWord } from "./verdict.js";

/**
 * The answer as Markdown, with what was asked.
 * @param {import("../../wasm/tidemark.js").Response} response
 */
export function markdownOf(response, state, schema, link) {
  const { estimate, fits } = response;
  const cell = (text) =>
    String(text)
      .replace(/\|/g, "\\|")
      .replace(/[\r\n]+/g, " ");
  const lines = [
    `### ${cell(estimate.model)}: ${gib(estimate.allocated.expected)} expected`,
    "",
    `${gb(estimate.allocated.expected)}, ${exact(estimate.allocated.expected)}; between ${gib(estimate.allocated.low)} and ${gib(estimate.allocated.high)}. Highest in ${phaseName(estimate.peak.phase)}, at \`${estimate.peak.at}\`.`,
    "",
  ];
  for (const fit of fits)
    lines.push(
      `**${verdictWord(fit.verdict)}** on ${cell(fit.gpu)}: ${verdictSentence(fit)} ${percent(fit.utilization)} used.`,
      "",
    );
  lines.push("| | GiB | bytes |", "|---|---:|---:|");
  for (const group of estimate.breakdown)
    if (group.bytes > 0) lines.push(`| ${categoryName(group.category)} | ${gib(group.bytes)} | ${group.bytes} |`);
  lines.push(
    `| **Allocated** | **${gib(estimate.allocated.expected)}** | ${estimate.allocated.expected} |`,
    `| Reserved | ${gib(estimate.reserved.expected)} | ${estimate.reserved.expected} |`,
    `| Device | ${gib(estimate.device.expected)} | ${estimate.device.expected} |`,
    "",
  );
  lines.push(
    "```sh",
    commandOf(state.values, schema),
    "```",
    "",
    `[Open in Tidemark](${link.replace(/[()]/g, encodeURIComponent)})`,
    "",
  );
  return lines.join("\n");
}

export function createCopy({ tell, texts }) {
  const node = h(
    "section",
    { class: "panel copy", "aria-labelledby": "copy-heading", "data-testid": "copy" },
    h("h3", { id: "copy-heading" }, t("copy.label")),
  );
  const fallback = h("div", { class: "stack", hidden: true });
  const area = h("textarea", { class: "field code", rows: "6", readonly: true, "aria-label": t("copy.label") });
  fallback.append(
    h("p", { class: "hint" }, t("copy.refused")),
    area,
    h(
      "button",
      {
        type: "button",
        class: "button quiet small",
        onclick: () => {
          fallback.hidden = true;
        },
      },
      t("copy.close"),
    ),
  );
  const status = h("span", { class: "copied", "aria-hidden": "true" });
  const kinds = ["link", "markdown", "json", "command"];
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
              if (text === null) return;
              if (await write(text)) {
                const done = t("copy.done", { what: t(`copy.what${kind[0].toUpperCase()}${kind.slice(1)}`) });
                status.textContent = done;
                tell(done, 0);
                fallback.hidden = true;
              } else {
                fallback.hidden = false;
                area.value = text;
                area.focus();
                area.select();
              }
            },
          },
          t(`copy.${kind}`),
        ),
      ),
      status,
    ),
    fallback,
  );
  return { node };
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
