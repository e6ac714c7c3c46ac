// One category, lit wherever it stands: what the pointer or the focus is on in the bar, a chart or a table, the others light as well.

/** Every node of a category tells it by data-category. */
export function linkCategories() {
  let lit;
  const light = ({ target }) => {
    const category =
      target instanceof Element ? target.closest("[data-category]")?.getAttribute("data-category") : undefined;
    if (category === lit) return;
    lit = category;
    for (const node of document.querySelectorAll("[data-category]"))
      node.classList.toggle("is-dim", lit !== undefined && node.getAttribute("data-category") !== lit);
  };
  for (const type of ["pointerover", "focusin"]) document.addEventListener(type, light);
}
