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
import { linkCategories } from "./linked.js";
import { t } from "./messages.js";
import { said } from "./said.js";
import { createRanks } from "./ranks.js";
import { createSure } from "./sure.js";
import { createDock, createVerdict } from "./verdictPanel.js";
import { createTimeline } from "./timeline.js";
import { verdictSentence, verdictWord } from "./verdict.js";
import { createViews } from "./views.js";
import { snippetsOf } from "../widget/snippets.js";

/** questions as questions.js has them; gpus() and models() → the catalog's; focusOption(name) leads to an option of the page. */
export function createResult({ schema, store, engine, questions, gpus, models, tell, focusOption, importer }) {
  const job = createCurrentJob();
  const panels = createPanels({ schema, store, engine, questions, gpus, models, tell, focusOption });
  const { issues, headline, verdict, advice, bar, timeline, breakdown, fitMap, cards, compare, sure, ranks, views } =
    panels;
  // What the figures are those of: the state and its answer, and whether that was "estimate", "partial" or nothing yet.
  let shown = { state: null, answer: null, pinned: null };
  let standing = "nothing";
  const copy = createCopy({ tell, importer, texts: textsOf(() => shown, store, schema) });
  // On paper, where the form is not: the job, as the command that asks for it.
  const asked = h("p", { class: "asked code", "data-testid": "asked" });
  const aside = h("div", { class: "row answer-aside" }, sure.button, compare.chip);
  const reading = h("div", { class: "reading-box" }, headline.node, aside);
  const figures = h("div", { class: "figures answer" }, asked, verdict.node, reading, bar.node, sure.node);
  const attributes = { class: "result", id: "result", tabindex: "-1", "aria-label": t("result.label") };
  const node = h("section", attributes, figures, issues.node);
  // Charts of a former job say whose they are.
  const former = h("p", { class: "hint", hidden: true, "data-testid": "former" });
  const below = h("section", { class: "views", "aria-label": t("view.label") }, former, views.node, copy.node);
  linkCategories();
  const dock = createDock(() => {
    node.scrollIntoView({ block: "start" });
    node.focus({ preventScroll: true });
  });
  // Only where the answer itself is out of sight; a busy browser tells several changes at once, of which the last holds.
  new IntersectionObserver((changes) => dock.node.toggleAttribute("data-idle", changes.at(-1).isIntersecting)).observe(
    figures,
  );
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

  function fill(estimate) {
    headline.renderOthers(estimate);
    breakdown.render(estimate);
  }

  function showEstimate(state, { estimate, fits = [] }, number) {
    standing = "estimate";
    draw.headline(number, () => headline.render(estimate));
    draw.verdict(number, () => verdict.render(fits));
    advice.expect(fits[0], fits.length);
    sure.render(estimate, state.values);
    setText(asked, commandOf(state.values, schema));
    tell(t("announce.answer", { size: gib(estimate.allocated.expected), verdict: spoken(fits[0]) }));
  }

  function showNoEstimate({ partial, issues: found = [] }, number) {
    const errors = found.filter((issue) => issue.severity === "error");
    const reason = said(errors[0]?.message ?? "");
    // What a former job is filled by is not drawn any more.
    views.owe("fills");
    if (partial) {
      standing = "partial";
      draw.headline(number, () => headline.renderPartial(partial));
    } else {
      draw.headline(number, () => headline.renderNothing(""));
    }
    draw.verdict(number, () => verdict.renderNone(reason));
    draw.bar(number, bar.clear);
    sure.render(null, {});
    tell(errorWords(errors));
  }

  function showHead(state, answer, pinned, number) {
    const { estimate, partial, fits = [], issues: found = [] } = answer;
    const failed = !estimate && !partial;
    if (estimate) showEstimate(state, answer, number);
    else showNoEstimate(answer, number);
    const model = shown.answer?.estimate?.model ?? shown.answer?.partial?.model ?? former.dataset.model;
    former.dataset.model = (estimate ?? partial)?.model ?? model ?? "";
    former.hidden = !failed || standing !== "estimate";
    setText(former, t("result.stale", { model: former.dataset.model }));
    shown = { state, answer, pinned };
    copy.refresh();
    compare.renderChip(state, pinned, answer);
    issues.render(found, state.notes);
    below.classList.toggle("is-stale", failed);
    below.classList.toggle("is-empty", standing !== "estimate");
    dock.render(estimate, fits);
  }

  return {
    node,
    below,
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
      const ghost = pinned?.estimate?.allocated.expected;
      const bars = [() => draw.bar(number, () => bar.render(estimate, fits[0], ghost))];
      const charts = [
        () => draw.timeline(number, () => views.owe("step", () => timeline.render(estimate, fits[0], ghost))),
        () => draw.breakdown(number, () => views.owe("fills", () => fill(estimate))),
        () => ranks.render(estimate),
      ];
      return {
        head: () => showHead(state, answer, pinned, number),
        figures: estimate ? bars : [],
        charts: [...(estimate ? charts : []), () => views.owe("compare", () => compare.render(state, pinned, answer))],
      };
    },
    /** Asks for what may come a moment after the figures: other cards, the map, advice. */
    async askForMore({ values }, { estimate, fits = [] }, number) {
      document.title = estimate ? `${gib(estimate.allocated.expected)} \u2013 ${t("page.name")}` : t("page.name");
      if (!estimate) {
        fitMap.hide();
        advice.render(null);
        return;
      }
      const [fit] = fits;
      questions
        .cards(values)
        .then((response) => response && draw.cards(number, () => cards.render(response.fits ?? [], fit?.gpu)));
      fitMap.render(mapOf(schema, values, fit, estimate), values).then((there) => there && draw.map(number, () => {}));
      const response = fit ? await questions.advice(values) : null;
      if (response === undefined) return;
      draw.advice(number, () => advice.render(response, values));
      draw.verdict(number, () => verdict.renderPlan(advice.plan()));
    },
  };
}

function createPanels({ schema, store, engine, questions, gpus, models, tell, focusOption }) {
  const present = (key) => () => {
    views.show(key);
    views.node.scrollIntoView({ block: "nearest" });
  };
  const compare = createCompare({ schema, store, present: present("compare") });
  const advice = createAdvice({ schema, store, ask: questions.tables, tell, showComparison: compare.show });
  const showAdvice = () => {
    present("save")();
    advice.node.focus({ preventScroll: true });
  };
  const breakdown = createBreakdown();
  const parts = {
    compare,
    issues: createIssues({ schema, store, focusOption }),
    headline: createHeadline(),
    verdict: createVerdict(showAdvice),
    bar: createBar(),
    timeline: createTimeline((instant) => {
      views.show("fills");
      breakdown.showAt(instant);
    }),
    breakdown,
    cards: createCards({ store, gpus }),
    fitMap: createFitMap({
      engine,
      store,
      tell,
      jobOn: async (values) => {
        const { estimate, fits = [] } = (await questions.onCards(values)) ?? {};
        return estimate ? mapOf(schema, values, fits[0], estimate) : null;
      },
    }),
    sure: createSure({ models }),
    ranks: createRanks(),
    advice,
  };
  const fills = h("div", { class: "stack" }, parts.headline.others, parts.breakdown.node);
  const views = createViews({
    step: parts.timeline.node,
    fills,
    map: parts.fitMap.node,
    cards: parts.cards.node,
    save: advice.node,
    compare: compare.node,
    ranks: parts.ranks.node,
  });
  return { ...parts, views };
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
      return answer?.estimate
        ? { values: state.values, model: answer.estimate.model, assumed: assumedIn(answer.issues) }
        : null;
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
  if (!fit) return "";
  const verdict = `${verdictWord(fit.verdict)} ${t("verdict.on", { gpu: fit.gpu })}`;
  return t("announce.verdict", { verdict, sentence: verdictSentence(fit) });
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

/** What the engine has put in the place of defaults, by the names of options: the reader, which knows no model, is told. */
function assumedIn(issues = []) {
  const assumed = issues.filter(({ code, suggestion }) => code === "ASSUMED_DEFAULT" && Number(suggestion) > 0);
  return Object.fromEntries(assumed.map(({ path, suggestion }) => [path.slice(1), +suggestion]));
}
