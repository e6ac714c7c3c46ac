export default {
  title: "Tidemark in Docusaurus",
  url: "https://docs.example",
  baseUrl: "/",
  scripts: [{ src: "/widget/tidemark-calculator.js", type: "module" }],
  plugins: [["@docusaurus/plugin-content-docs", { routeBasePath: "/" }]],
  themes: ["@docusaurus/theme-classic"],
};
