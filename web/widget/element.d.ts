// <tidemark-calculator>: what a page's script sees of it. docs/widget.md tells of its attributes, parts and custom properties.
import type { EstimateResponse, Job } from "tidemark";

export declare class TidemarkCalculator extends HTMLElement {
  /** The job; null before the element came into view. Setting it writes the attributes. */
  get request(): Job | null;
  set request(request: Job);
  /** The engine's last answer; null before the first. */
  readonly answer: EstimateResponse | null;
}

export interface TidemarkCalculatorEventMap {
  /** The visitor changed the job. */
  change: CustomEvent<Job>;
  /** An answer stands there. */
  estimate: CustomEvent<EstimateResponse>;
}

declare global {
  interface HTMLElementTagNameMap {
    "tidemark-calculator": TidemarkCalculator;
  }
}
