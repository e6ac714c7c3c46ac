// What an address without a state shows: a job that many people run, on a card that many people have. Its answer is computed when the page
// is built, and stands there before the engine does.
export const example = {
  model: "meta-llama/Llama-3.2-3B",
  method: "lora",
  precision: "bf16_amp",
  gpu: "NVIDIA GeForce RTX 4090",
};
