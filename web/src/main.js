import { startEngine } from "./engine.js";

startEngine().then((engine) => {
  const { estimate } = engine.estimate({ model: "llama-2-7b", gpu: "A100-80GB" });
  const headline = document.createElement("p");
  headline.dataset.testid = "headline";
  headline.textContent = `${(estimate.allocated.expected / 2 ** 30).toFixed(2)} GiB`;
  document.body.append(headline);
});
