import theme from "vitepress/theme";

export default {
  ...theme,
  // An element is a browser's: not while pages are written.
  enhanceApp: () => import.meta.env.SSR || import("tidemark/widget"),
};
