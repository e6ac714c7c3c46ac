/** Trouble found in a request or a document; errors among them mean that there is no estimate. */
export interface Issue {
  /** "UNKNOWN_KEY": stable, for programs. */
  code: string;
  severity: "error" | "warning" | "note";
  /** JSON pointer into the request: "/adapter/rank". */
  path: string;
  /** One or two sentences, for people. */
  message: string;
  /** What was probably meant. */
  suggestion?: string;
}

export interface Tidemark {
  handle(request: object | string): unknown;
}
