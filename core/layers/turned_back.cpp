#include "core/layers/turned_back.hpp"

namespace tidemark {

// axolotl 067b021 loaders/model.py: _convert_embedding_modules_dtype; loaders/utils.py: get_linear_embedding_layers.
bool stays_wide(const Net& net, std::string_view module) {
  if (net.job.quantization.prepare_kbit != PrepareKbit::kNormsBack || !net.uses_bitsandbytes()) return false;
  const auto says = [module](std::string_view word) { return module.find(word) != std::string_view::npos; };
  if (net.arch.model_type == "gpt_neox") return !says("norm") && !says("embed_in") && !says("embed_out");
  const char* const table = net.arch.model_type == "falcon" ? "word_embeddings" : "embed_tokens";
  if (module == "shared" || module == "model.shared") return false;  // the embed_tokens of encoder and decoder
  return !says("norm") && !says("lm_head") && !says(table);
}

}  // namespace tidemark
