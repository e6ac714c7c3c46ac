// Heads: which classes a family has, what each puts on its body, and what old releases did to the logits.
#include <algorithm>
#include <string>

#include "core/step/estimate.hpp"
#include "core/step/simulation.hpp"
#include "core/wire/json.hpp"
#include "tests/unit/catalog_engine.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

constexpr Count kB = 2, kS = 48, kV = 5000, kH = 128;

Answer ask(const std::string& config, const std::string& options) {
  Issues issues;
  const std::string request =
      "{\"config\": {" + config + "}, \"micro_batch_size\": 2, \"sequence_length\": 48" + options + "}";
  CAPTURE(request);
  return engine().answer(parse_json(request, "", issues));
}

const std::string kSizes =
    R"("hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 5000)";
const std::string kLlama = kSizes + R"(, "model_type": "llama", "intermediate_size": 256)";
const std::string kBert = kSizes + R"(, "model_type": "bert", "intermediate_size": 256)";

Count parameters_of(const std::string& config, const std::string& class_name) {
  const Answer a = ask(config, ", \"architecture\": \"" + class_name + "\"");
  REQUIRE(a.estimate);
  return a.estimate->parameters.total;
}

const Issue* error_of(const Answer& answer) {
  for (const Issue& issue : answer.issues) {
    if (issue.severity == Severity::kError) return &issue;
  }
  return nullptr;
}

/// Tensors of one step's forward that are as large as the logits, all of them or all but each row's last.
struct LogitsMade {
  int wide = 0;    ///< fp32
  int narrow = 0;  ///< 16 bits
};

LogitsMade logits_made(const std::string& config, const std::string& version) {
  const Answer a = ask(
      config, R"(, "precision": "pure_bf16", "framework": {"name": "transformers", "version": ")" + version + "\"}");
  REQUIRE(error_of(a) == nullptr);
  const Simulation s = simulate(a.architecture, a.job);
  LogitsMade made;
  for (const Storage& storage : s.tape->storages()) {
    const Site& site = s.tape->sites()[static_cast<std::size_t>(storage.site)];
    const Count n = site.shape.numel();
    if (site.backward || (n != kB * kS * kV && n != kB * (kS - 1) * kV)) continue;
    ++(site.dtype == Dtype::kFp32 ? made.wide : made.narrow);
  }
  return made;
}

}  // namespace

TEST_CASE("each class of a decoder has the parameters that transformers gives it") {
  const Count body = parameters_of(kLlama, "LlamaModel");
  CHECK(parameters_of(kLlama, "LlamaForCausalLM") == body + kV * kH);
  CHECK(parameters_of(kLlama, "LlamaForSequenceClassification") == body + 2 * kH);
  CHECK(parameters_of(kLlama, "LlamaForTokenClassification") == body + 2 * kH + 2);
  CHECK(parameters_of(kLlama, "LlamaForQuestionAnswering") == body + 2 * kH + 2);
  const std::string gpt2 = kSizes + R"(, "model_type": "gpt2")";
  const Count gpt2_body = parameters_of(gpt2, "GPT2Model");
  CHECK(parameters_of(gpt2, "GPT2LMHeadModel") == gpt2_body);
  CHECK(parameters_of(gpt2, "GPT2DoubleHeadsModel") == gpt2_body + kH + 1);
}

TEST_CASE("each class of BERT has the parameters that transformers gives it") {
  const Count pooler = kH * kH + kH;
  const Count body = parameters_of(kBert, "BertModel") - pooler;
  const Count transform = kH * kH + kH + 2 * kH;
  CHECK(parameters_of(kBert, "BertForMaskedLM") == body + transform + kV);
  CHECK(parameters_of(kBert, "BertForPreTraining") == body + pooler + transform + kV + 2 * kH + 2);
  CHECK(parameters_of(kBert, "BertForNextSentencePrediction") == body + pooler + 2 * kH + 2);
  CHECK(parameters_of(kBert, "BertForSequenceClassification") == body + pooler + 2 * kH + 2);
  CHECK(parameters_of(kBert, "BertForMultipleChoice") == body + pooler + kH + 1);
  CHECK(parameters_of(kBert, "BertForTokenClassification") == body + 2 * kH + 2);
  CHECK(parameters_of(kBert, "BertForQuestionAnswering") == body + 2 * kH + 2);
  // Untied: the decoder's weight, its bias, and the bias that nothing reads.
  CHECK(parameters_of(kBert + R"(, "tie_word_embeddings": false)", "BertForMaskedLM") ==
        body + transform + kV * kH + 2 * kV);
}

TEST_CASE("masked image modelling adds a mask token and the pixels' decoder") {
  const std::string vit = R"("model_type": "vit", "hidden_size": 128, "intermediate_size": 256,
      "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 64, "patch_size": 16)";
  const Count body = parameters_of(vit, "ViTModel") - (kH * kH + kH);
  CHECK(parameters_of(vit, "ViTForImageClassification") == body + 2 * kH + 2);
  CHECK(parameters_of(vit, "ViTForMaskedImageModeling") == body + kH + 16 * 16 * 3 * (kH + 1));
}

TEST_CASE("a class that transformers does not have is refused with the list of those it has") {
  const Answer a = ask(kSizes + R"(, "model_type": "granite", "intermediate_size": 256)",
                       R"(, "architecture": "GraniteForSequenceClassification")");
  const Issue* issue = error_of(a);
  REQUIRE(issue != nullptr);
  CHECK(issue->path == "/architecture");
  CHECK(issue->message.find("GraniteForCausalLM, GraniteModel") != std::string::npos);
}

TEST_CASE("a classifier of a decoder keeps no logits of the vocabulary") {
  const Answer a = ask(kLlama, R"(, "architecture": "LlamaForSequenceClassification", "precision": "pure_bf16")");
  REQUIRE(a.estimate);
  const Simulation s = simulate(a.architecture, a.job);
  for (const Site& site : s.tape->sites()) CHECK(site.shape.numel() != kB * kS * kV);
}

TEST_CASE("every class of every model type is computed") {
  for (const char* type : {"llama", "gpt2", "gptj", "gpt_neox", "opt", "bloom", "falcon", "mpt", "bert", "roberta"}) {
    std::string config = kSizes + R"(, "model_type": ")" + type + "\"";
    for (const char* needed : {"llama", "gpt_neox", "bert", "roberta"}) {
      if (std::string(type) == needed) config += R"(, "intermediate_size": 256)";
    }
    if (std::string(type) == "opt") config += R"(, "ffn_dim": 256)";
    const Answer refused = ask(config, R"(, "architecture": "NoSuchClass")");
    const Issue* issue = error_of(refused);
    REQUIRE(issue != nullptr);
    // "... of this model type these are: A, B, C. Give one ..."
    const std::string& text = issue->message;
    const std::string intro = "these are: ";
    std::string list = text.substr(text.find(intro) + intro.size());
    list = list.substr(0, list.find(". Give")) + ", ";
    for (std::size_t at = 0; at < list.size();) {
      const std::size_t comma = list.find(", ", at);
      const std::string name = list.substr(at, comma - at);
      CAPTURE(name);
      const Answer a = ask(config, ", \"architecture\": \"" + name + "\"");
      CHECK((a.estimate && a.estimate->parameters.total > 0));
      at = comma + 2;
    }
  }
}

TEST_CASE("fused losses and packing change nothing where the head is no causal language model") {
  const std::string classifier = R"(, "architecture": "BertForSequenceClassification")";
  const Answer plain = ask(kBert, classifier);
  const Answer fused = ask(kBert, classifier + R"(, "loss": "liger")");
  REQUIRE(fused.estimate);
  CHECK(fused.estimate->allocated.expected == plain.estimate->allocated.expected);
  bool told = false;
  for (const Issue& issue : fused.issues) told = told || (issue.code == "IGNORED_OPTION" && issue.path == "/loss");
  CHECK(told);
  const Answer packed = ask(kLlama, R"(, "architecture": "LlamaForSequenceClassification", "packing": true)");
  const Answer rows = ask(kLlama, R"(, "architecture": "LlamaForSequenceClassification")");
  REQUIRE(packed.estimate);
  CHECK(packed.estimate->allocated.expected == rows.estimate->allocated.expected);
}

TEST_CASE("packed rows bring their own positions, of which cosines and sines are as many as tokens") {
  // transformers 5.12 models/llama/modeling_llama.py: LlamaRotaryEmbedding.forward, of position_ids [B, S] or [1, S]
  const auto tables = [](const std::string& rest) {
    const Answer a = ask(kLlama, R"(, "precision": "pure_bf16", "attention": "flash_attention_2")" + rest);
    REQUIRE(a.estimate);
    const Simulation s = simulate(a.architecture, a.job);
    Count most = 0;
    for (const Site& site : s.tape->sites()) {
      const std::string module = s.tape->scopes()[static_cast<std::size_t>(site.scope)].module;
      if (module == "rotary_emb" && site.dtype == Dtype::kBf16) most = std::max(most, site.shape.numel());
    }
    return most;
  };
  CHECK(tables("") == kS * (kH / 4));
  CHECK(tables(R"(, "packing": true)") == kB * kS * (kH / 4));
}

TEST_CASE("what no loss depends on has no optimizer states") {
  // BertModel's pooler under a loss of last_hidden_state: weight and bias in fp32, no gradient, no moments.
  const std::string options = R"(, "precision": "fp32", "optimizer": "adamw_torch", "max_grad_norm": 0)";
  const Answer a = ask(kBert, options + R"(, "architecture": "BertModel")");
  REQUIRE(a.estimate);
  const Simulation s = simulate(a.architecture, a.job);
  Count reached = 0, unreached = 0;
  for (const Parameter& p : s.tape->parameters()) (p.reached ? reached : unreached) += p.shape.numel();
  CHECK(unreached == kH * kH + kH);
  CHECK(reached + unreached == a.estimate->parameters.total);
}

// transformers 4.44.2, 4.46.3, 4.48.1, 4.49.0, 4.57.1, 5.0.0: the forward of each family's class for causal language
// models. linear makes the first tensor; float(), the shifted copy and log_softmax make the others.
TEST_CASE("old releases copy the logits as the family's own file did") {
  const auto check = [](const std::string& config, const std::string& version, int wide, int narrow) {
    CAPTURE(config, version);
    const LogitsMade made = logits_made(config, version);
    CHECK(made.wide == wide);
    CHECK(made.narrow == narrow);
  };
  const std::string untied = R"(, "tie_word_embeddings": false)";
  for (const char* version : {"4.44", "4.45", "4.46", "4.48"}) check(kLlama, version, 3, 1);
  check(kLlama, "4.49", 2, 1);
  const std::string neox = kSizes + R"(, "model_type": "gpt_neox", "intermediate_size": 256)";
  const std::string opt = kSizes + R"(, "model_type": "opt", "ffn_dim": 256)";
  const std::string mpt = R"("model_type": "mpt", "d_model": 128, "n_layers": 2, "n_heads": 4, "vocab_size": 5000)";
  const std::string stablelm = kSizes + R"(, "model_type": "stablelm", "intermediate_size": 256,
      "num_key_value_heads": 4)";
  for (const std::string& config : {neox, opt, mpt, stablelm, kSizes + R"(, "model_type": "gpt2")"}) {
    check(config, "4.44", 0, 3);
    check(config, "4.48", 0, 3);
    check(config, "4.49", 2, 1);
  }
  const std::string gptj = kSizes + R"(, "model_type": "gptj", "rotary_dim": 32)";
  check(gptj, "4.48", 3, 1);
  check(gptj, "4.57", 2, 1);
  check(gptj, "5.0", 2, 1);
  const std::string neo = kSizes + R"(, "model_type": "gpt_neo")";
  check(neo, "4.48", 3, 2);
  check(neo, "4.57", 2, 2);
  check(neo, "5.0", 2, 1);
}

// modeling_falcon.py FalconAttention.forward: the scores, in 16 bits, in fp32 and with the slopes, are names of the
// function that projects the outputs as well.
TEST_CASE("Falcon's scores with slopes are there while its attention's outputs are projected") {
  Issues issues;
  const Answer a = engine().answer(parse_json(
      R"({"config": {"model_type": "falcon", "hidden_size": 2048, "num_hidden_layers": 2, "num_attention_heads": 32,
                     "vocab_size": 4096, "bias": true, "alibi": true, "parallel_attn": false, "multi_query": false,
                     "new_decoder_architecture": false, "tie_word_embeddings": true, "pad_token_id": 1},
          "architecture": "FalconForSequenceClassification", "method": "lora", "precision": "amp_bf16",
          "micro_batch_size": 3, "sequence_length": 485, "attention": "eager", "optimizer": "paged_adamw_32bit",
          "adapter": {"r": 8, "lora_dropout": 0.1, "target_modules": ["query_key_value", "dense"],
                      "task_type": "SEQ_CLS"}, "gpu": "A100-80GB"})",
      "", issues));
  REQUIRE(a.estimate);
  // The recorder's figure, and cuBLAS's workspaces.
  CHECK(a.estimate->allocated.expected == Approx(1403697152.0).epsilon(0.002));
}

// sentence-transformers' CrossEncoder, ms-swift's reranker: ForSequenceClassification with num_labels 1.
TEST_CASE("a reranker is a head with one label, and each document a row of the batch") {
  const Answer ranked = ask(kLlama, R"(, "task": "reranker")");
  const Answer scored = ask(kLlama + R"(, "num_labels": 1)", R"(, "architecture": "LlamaForSequenceClassification")");
  REQUIRE(ranked.estimate);
  REQUIRE(scored.estimate);
  CHECK(ask(kLlama, R"(, "task": "reranker", "texts_per_sample": 4)").job.micro_batch_size == 8);
  CHECK(ranked.estimate->parameters.total == scored.estimate->parameters.total);
  CHECK(ranked.estimate->allocated.expected == scored.estimate->allocated.expected);
}

}  // namespace tidemark
