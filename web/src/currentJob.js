// What the page is about: one job at a time. Every change of the values makes another job; each part of the page knows for which one it was
// drawn. What was drawn for a former one is past: it dims, what of it acts on figures is out of reach, and an answer about a former job is
// not drawn any more.

// Milliseconds after which what is past dims: shorter waits are not worth a flicker, nor what it takes to draw one.
const patience = 120;

/** The parts of the page, and the job that they should be about. */
export function createCurrentJob() {
  let number = 0;
  let asked = "";
  const parts = [];
  let dimming;

  const isPast = ({ drawnFor }) => drawnFor !== 0 && drawnFor !== number;
  const dim = (part) => part.node.classList.toggle("is-past", isPast(part));

  function mark(part) {
    const { node, reach } = part;
    const past = isPast(part);
    const focused = reach.find((one) => past && one.contains(one.getRootNode().activeElement));
    for (const one of reach) if (one.inert !== past) one.inert = past;
    // What cannot be reached any more cannot keep the focus either.
    if (focused) node.focus({ preventScroll: true });
  }

  return {
    /** The job of these values: the same number for as long as they ask for the same. */
    turnTo(values) {
      const asking = JSON.stringify(values);
      if (asking === asked) return number;
      asked = asking;
      number += 1;
      parts.forEach(mark);
      clearTimeout(dimming);
      dimming = setTimeout(() => parts.forEach(dim), patience);
      return number;
    },
    isPresent: (job) => job === number,
    /** A part of the page; `reach`: what of it must not be used while it is past. Returns draw(job, work), which does nothing for a former job. */
    part(node, reach = []) {
      const part = { node, reach, drawnFor: 0 };
      parts.push(part);
      return (job, work) => {
        if (job !== number) return;
        work();
        part.drawnFor = job;
        mark(part);
        dim(part);
      };
    },
  };
}
