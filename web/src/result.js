// The answer's side of the page: which part shows what of an answer, and in which order they are drawn. All of them are about one job.
import { isHosted, linkFor, permalinkOf } from "./address.js";
import { createAdvice } from "./advice.js";
import { createBar } from "./bar.js";
import { createBreakdown } from "./breakdown.js";
import { createCards } from "./cards.js";
import { commandOf } from "./command.js";
import { createCompare } from "./compare.js";
import { createCopy, markdownOf } from "./copy.js";
import { createCurrentJob } from "./currentJob.js";
import { h, setText } from "./dom.js";
import { createFitMap } from "./fitmap.js";
import { gib } from "./format.js";
import { createHeadline } from "./headline.js";
import { createIssues, errorWords } from "./issues.js";
import { t } from "./messages.js";
import { createDock, createVerdict } from "./verdictPanel.js";
import { createTimeline } from "./timeline.js";
import { verdictSentence, verdictWord } from "./verdict.js";
import { snippetsOf } from "../widget/snippets.js";

/** questions as questions.js has them; gpus() → the catalog's cards; focusOption(name) leads to an option of the form. */
export function createResult({ schema, store, engine, questions, gpus, tell, focusOption, importer }) {
  const job = createCurrentJob();
  const panels = createPanels({ schema, store, engine, questions, gpus, tell, focusOption });
  const { issues, headline, verdict, advice, bar, timeline, breakdown, fitMap, cards, compare } = panels;
  // What the figures are those of: the state and its answer, and whether that was "estimate", "partial" or nothing yet.
  let shown = { state: null, answer: null, pinned: null };
  let standing = "nothing";
  const copy = createCopy({ tell, importer, texts: textsOf(() => shown, store, schema) });
  // On paper, where the form is not: the job, as the command that asks for it.
  const asked = h("p", { class: "asked code", "data-testid": "asked" });
  const pair = h("div", { class: "pair" }, fitMap.node, cards.node);
  // The advice, whose height changes, stands below the charts: they keep their place while one watches them.
  const middle = [headline.node, verdict.node, bar.node, timeline.node, advice.node];
  const figures = h("div", { class: "figures" }, asked, middle, pair, breakdown.node);
  const attributes = { class: "result", id: "result", tabindex: "-1", "aria-label": t("result.label") };
  const node = h("section", attributes, issues.node, figures, compare.node, copy.node);
  const dock = createDock(() => {
    node.scrollIntoView({ block: "start" });
    node.focus({ preventScroll: true });
  });
  const draw = {
    headline: job.part(headline.node),
    verdict: job.part(verdict.node, verdict.reach),
    bar: job.part(bar.node),
    timeline: job.part(timeline.node),
    breakdown: job.part(breakdown.node),
    cards: job.part(cards.node),
    map: job.part(fitMap.node),
    advice: job.part(advice.node, advice.reach),
  };

  function showEstimate(state, { estimate, fits = [] }, number) {
    standing = "estimate";
    draw.headline(number, () => headline.render(estimate));
    draw.verdict(number, () => verdict.render(fits));
    advice.expect(fits[0], fits.length);
    setText(asked, commandOf(state.values, schema));
    tell(t("announce.answer", { size: gib(estimate.allocated.expected), verdict: spoken(fits[0]) }));
  }

  function showNoEstimate({ partial, issues: found = [] }, number) {
    if (partial) {
      standing = "partial";
      draw.headline(number, () => headline.renderPartial(partial));
    } else if (standing === "nothing") {
      headline.renderNothing();
    }
    const errors = found.filter((issue) => issue.severity === "error");
    tell(errorWords(errors));
  }

  function showHead(state, answer, pinned, number) {
    const { estimate, partial, fits = [], issues: found = [] } = answer;
    const failed = !estimate && !partial;
    if (estimate) showEstimate(state, answer, number);
    else showNoEstimate(answer, number);
    shown = { state, answer, pinned };
    copy.refresh();
    issues.render(found, state.notes, failed && standing !== "nothing");
    figures.classList.toggle("is-stale", failed);
    figures.classList.toggle("is-partial", standing === "partial");
    figures.classList.toggle("is-empty", standing === "nothing");
    dock.render(estimate, fits);
    document.title = estimate ? `${gib(estimate.allocated.expected)} \u2013 ${t("page.name")}` : t("page.name");
  }

  return {
    node,
    dock,
    repaint: fitMap.repaint,
    /** The state has changed: what stands here is from now on about a former job. */
    turnTo(values) {
      figures.setAttribute("aria-busy", "true");
      return job.turnTo(values);
    },
    isPresent: job.isPresent,
    /** What stands here now, if it is about the present job. */
    estimate: () => (shown.state?.values === store.get().values ? shown.answer?.estimate : null),
    settle: () => figures.removeAttribute("aria-busy"),
    /** What draws an answer, part by part; `pinned`: the answer of the pinned job, or null. */
    partsOf(state, answer, pinned, number) {
      const { estimate, fits = [] } = answer;
      const charts = [
        () => draw.bar(number, () => bar.render(estimate, fits[0])),
        () => draw.timeline(number, () => timeline.render(estimate, fits[0])),
        () => draw.breakdown(number, () => breakdown.render(estimate)),
      ];
      return [
        () => showHead(state, answer, pinned, number),
        ...(estimate ? charts : []),
        () => compare.render(state, pinned, answer),
      ];
    },
    /** Asks for what may come a moment after the figures: other cards, the map, advice. */
    async askForMore({ values }, { estimate, fits = [] }, number) {
      if (!estimate) {
        fitMap.hide();
        advice.render(null);
        return;
      }
      const [fit] = fits;
      questions
        .cards(values)
        .then((response) => response && draw.cards(number, () => cards.render(response.fits ?? [], fit?.gpu)));
      fitMap.render(mapOf(schema, values, fit, estimate)).then((there) => there && draw.map(number, () => {}));
      const response = fit ? await questions.advice(values) : null;
      if (response === undefined) return;
      draw.advice(number, () => advice.render(response, values));
      draw.verdict(number, () => verdict.renderPlan(advice.plan()));
    },
  };
}

function createPanels({ schema, store, engine, questions, gpus, tell, focusOption }) {
  const compare = createCompare({ schema, store });
  const advice = createAdvice({ schema, store, ask: questions.tables, tell, showComparison: () => compare.show() });
  const showAdvice = () => {
    advice.node.scrollIntoView({ block: "start" });
    advice.node.focus({ preventScroll: true });
  };
  return {
    compare,
    issues: createIssues({ schema, store, focusOption }),
    headline: createHeadline(),
    verdict: createVerdict(showAdvice),
    bar: createBar(),
    timeline: createTimeline(),
    breakdown: createBreakdown(),
    cards: createCards({ store, gpus }),
    fitMap: createFitMap({ engine, store, tell }),
    advice,
  };
}

/** What is copied is about the job whose figures are shown, also while the next one is on its way. The link is that of the address bar. */
function textsOf(shown, store, schema) {
  const linkOf = (state) => permalinkOf(state, schema);
  const { get } = store;
  return {
    link: () => linkFor(get(), schema),
    markdown: () => {
      const { state, answer, pinned } = shown();
      // A file's address would lead others nowhere, and tell them of this machine.
      const link = state && isHosted() ? linkOf(state) : null;
      return answer?.estimate ? markdownOf(answer, state, schema, link, pinned) : null;
    },
    json: () => {
      const { answer } = shown();
      return answer ? JSON.stringify(answer, null, 2) : null;
    },
    command: () => commandOf(get().values, schema),
    job: () => {
      const { state, answer } = shown();
      return answer?.estimate ? { values: state.values, model: answer.estimate.model } : null;
    },
    embed: () => {
      const { state, answer } = shown();
      const home = isHosted() ? new URL(".", location.href).href : null;
      return state && snippetsOf({ state, answer, schema, home });
    },
  };
}

/** The verdict as it is read aloud. */
function spoken(fit) {
  return fit ? `${verdictWord(fit.verdict)} ${t("verdict.on", { gpu: fit.gpu })}. ${verdictSentence(fit)}` : "";
}

/** What the map is about. The card is in the request: its kernels decide what a cell takes. */
function mapOf(schema, values, fit, { allocated }) {
  const number = (name) => (typeof values[name] === "number" ? values[name] : (schema.find(name)?.default ?? 1));
  return {
    request: schema.toRequest(values),
    usable: fit && fit.usable_bytes > 0 ? fit.usable_bytes : null,
    // The ends of the range over what is expected: the same for all sizes of a job.
    low: allocated.low / allocated.expected,
    high: allocated.high / allocated.expected,
    batch: number("micro_batch_size"),
    sequence: number("sequence_length"),
  };
}
