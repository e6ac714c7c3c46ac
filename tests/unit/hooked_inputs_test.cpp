// modeling_utils.py enable_input_require_grads: checkpoints make a leaf of frozen embeddings, whose gradient is its
// own.
#include "tests/unit/asked.hpp"

namespace tidemark {
namespace {

Bytes activations(const std::string& rest) {
  const std::string config =
      R"("config": {"model_type": "phi", "architectures": ["PhiForCausalLM"], "hidden_size": 2048, "num_hidden_layers": 2,
         "num_attention_heads": 32, "intermediate_size": 8192, "vocab_size": 4096, "hidden_act": "gelu_new"})";
  return held(answered(R"({"schema": 1, "precision": "amp_fp16", "micro_batch_size": 4, "sequence_length": 512,
                           "gradient_checkpointing": "full", "optimizer": "sgd", )" +
                       config + rest + "}"),
              Category::kActivations);
}

// Phi's attention and MLP stand side by side: what comes by the residual goes to the leaf at once.
TEST_CASE("The gradient of embeddings that a hook made a leaf is there to the end of backward") {
  CHECK(activations(R"(, "method": "freeze", "freeze": ["embed_tokens"])") == activations(""));
}

}  // namespace
}  // namespace tidemark
