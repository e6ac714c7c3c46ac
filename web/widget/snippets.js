// What to write into another page so that this job stands there: as the element, or as a frame of the page.
import { gib } from "../src/format.js";
import { t } from "../src/messages.js";
import { writePermalink } from "../src/permalink.js";
import { verdictWord } from "../src/verdict.js";
import { attributeText, escaped } from "./attributes.js";

const example = "https://example.org/tidemark/";

/** home: the address of the folder that holds the page and widget/, or null where others cannot open it. */
export function snippetsOf({ state, answer, schema, home }) {
  const folder = escaped(home ?? example);
  const attributes = attributeText(schema.prune(state.values), schema);
  const words = escaped(sentence(answer));
  const script = `<script type="module" src="${folder}widget/tidemark-calculator.js"></script>`;
  const element = `<tidemark-calculator ${attributes}>${words}</tidemark-calculator>`;
  const hash = writePermalink({ values: state.values }, schema);
  const source = `${folder}index.html#${escaped(hash === "" ? "view=widget" : `${hash}&view=widget`)}`;
  const sandbox = 'sandbox="allow-scripts allow-popups"';
  const frame = `<iframe class="tidemark" title="${words}" src="${source}" ${sandbox} width="100%" height="480" frameborder="0" loading="lazy"></iframe>`;
  const host = `<script type="module" src="${folder}widget/tidemark-frame.js"></script>`;
  return { element: `${script}\n${element}`, frame: `${frame}\n${host}`, isExample: home === null };
}

/** What is shown without script, and the frame's name. */
function sentence(answer) {
  if (!answer?.estimate) return t("calculator.label");
  const { model, allocated } = answer.estimate;
  const [fit] = answer.fits ?? [];
  const words = t("embed.sentence", { model, size: gib(allocated.expected) });
  if (!fit || fit.verdict === "unknown") return `${words}.`;
  const verdict = `${verdictWord(fit.verdict)} ${t("verdict.on", { gpu: fit.gpu })}`;
  return `${t("embed.verdict", { sentence: words, verdict })}.`;
}
