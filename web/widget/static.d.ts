// The calculator as static HTML, for generators of pages.
import type { EstimateResponse, Job, Tidemark } from "tidemark";

/** `<tidemark-calculator …>` with the answer of now between its tags, as a figure without script. `more`: attributes like controls or page. */
export function staticCalculator(tidemark: Tidemark, request: Job, more?: Record<string, string>): string;

/** The figure alone: a bar as SVG, and its words. */
export function figureOf(answer: EstimateResponse): string;
