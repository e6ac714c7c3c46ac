export default {
  title: "Tidemark in VitePress",
  vue: { template: { compilerOptions: { isCustomElement: (tag) => tag.startsWith("tidemark-") } } },
  // In `vitepress dev`, the package's files keep their places.
  vite: { optimizeDeps: { exclude: ["tidemark"] } },
};
