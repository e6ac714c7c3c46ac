#include "core/families/read_config.hpp"

#include <algorithm>
#include <string>

#include "tests/unit/catch.hpp"
#include "tests/unit/value_literals.hpp"

// The sizes are those of the published config.json files; the defaults those of transformers 5.12.1's classes.

namespace {

using namespace tidemark;
using namespace tidemark::literals;

Architecture read(const Value& config) {
  const ConfigResult result = read_config(config);
  for (const Issue& issue : result.issues) {
    INFO(issue.code << " " << issue.path << " " << issue.message);
    CHECK(issue.severity == Severity::kNote);
  }
  return result.architecture;
}

const Issue* find_issue(const Issues& issues, const std::string& code, const std::string& path) {
  for (const Issue& issue : issues) {
    if (issue.code == code && issue.path == path) return &issue;
  }
  return nullptr;
}

/// meta-llama/Llama-3.2-1B
const Value kLlama32 = object({{"architectures", list({"LlamaForCausalLM"})},
                               {"attention_bias", false},
                               {"attention_dropout", 0.0},
                               {"bos_token_id", 128000},
                               {"head_dim", 64},
                               {"hidden_act", "silu"},
                               {"hidden_size", 2048},
                               {"initializer_range", 0.02},
                               {"intermediate_size", 8192},
                               {"max_position_embeddings", 131072},
                               {"mlp_bias", false},
                               {"model_type", "llama"},
                               {"num_attention_heads", 32},
                               {"num_hidden_layers", 16},
                               {"num_key_value_heads", 8},
                               {"rms_norm_eps", 1e-05},
                               {"rope_scaling", object({{"factor", 32.0}, {"rope_type", "llama3"}})},
                               {"tie_word_embeddings", true},
                               {"torch_dtype", "bfloat16"},
                               {"vocab_size", 128256}});

/// A Llama with only what must be there.
const Value kBareLlama = object({{"model_type", "llama"},
                                 {"hidden_size", 4096},
                                 {"intermediate_size", 11008},
                                 {"num_hidden_layers", 32},
                                 {"num_attention_heads", 32},
                                 {"vocab_size", 32000}});

Value bare(const char* model_type) {
  return with(kBareLlama, "model_type", model_type);
}

}  // namespace

TEST_CASE("a published Llama is read without a word", "[model]") {
  const ConfigResult result = read_config(kLlama32);
  CHECK(result.issues.empty());
  const Architecture& a = result.architecture;
  CHECK(a.model_type == "llama");
  CHECK(a.class_name == "LlamaForCausalLM");
  CHECK(a.head == Head::kCausalLm);
  CHECK(a.hidden_size == 2048);
  CHECK(a.intermediate_size == 8192);
  CHECK(a.num_layers == 16);
  CHECK(a.num_heads == 32);
  CHECK(a.num_kv_heads == 8);
  CHECK(a.head_dim == 64);
  CHECK(a.rotary_dim == 64);
  CHECK(a.vocab_size == 128256);
  CHECK(a.tie_word_embeddings);
  CHECK(a.activation == Activation::kSilu);
  CHECK_FALSE(a.attention_bias);
  CHECK(a.sliding_layers.empty());
}

TEST_CASE("absent keys take the defaults of their own class", "[model]") {
  SECTION("llama: as many key/value heads as query heads, head untied") {
    const Architecture a = read(kBareLlama);
    CHECK(a.num_kv_heads == 32);
    CHECK(a.head_dim == 128);
    CHECK_FALSE(a.tie_word_embeddings);
    CHECK(a.class_name == "LlamaForCausalLM");
  }
  SECTION("mistral: eight key/value heads and a window") {
    const Architecture a = read(bare("mistral"));
    CHECK(a.num_kv_heads == 8);
    CHECK(a.sliding_window == 4096);
    CHECK(a.sliding_layers == LayerFlags(32, true));
    CHECK(find_issue(read_config(bare("mistral")).issues, "ASSUMED_DEFAULT", "/config/num_key_value_heads"));
  }
  SECTION("mistral: an explicit null means none, or as many as query heads") {
    const Architecture a = read(with(with(bare("mistral"), "sliding_window", nullptr), "num_key_value_heads", nullptr));
    CHECK(a.num_kv_heads == 32);
    CHECK(a.sliding_window == 0);
    CHECK(a.sliding_layers.empty());
  }
  SECTION("qwen2: biases of q, k, v are in the code") {
    const Architecture a = read(bare("qwen2"));
    CHECK(a.attention_bias);
    CHECK_FALSE(a.attention_out_bias);
    CHECK(a.sliding_window == 0);
  }
  SECTION("qwen3: heads of 128 whatever the width") {
    const Architecture a = read(with(bare("qwen3"), "hidden_size", 2560));
    CHECK(a.model_type == "qwen3");
    CHECK(a.head_dim == 128);
    CHECK(a.qk_norm);
    CHECK_FALSE(a.attention_bias);
  }
  SECTION("seed_oss: biases and dropout are on") {
    const Architecture a = read(bare("seed_oss"));
    CHECK(a.attention_bias);
    CHECK_FALSE(a.attention_out_bias);
    CHECK(a.attention_dropout == 0.1);
    CHECK(a.residual_dropout == 0.1);
  }
  SECTION("gemma: heads of 256, tied") {
    const Architecture a = read(with(bare("gemma"), "num_attention_heads", 16));
    CHECK(a.head_dim == 256);
    CHECK(a.num_kv_heads == 16);
    CHECK(a.tie_word_embeddings);
    CHECK(a.activation == Activation::kGelu);
  }
  SECTION("gemma2: every other layer slides, scores and logits are capped") {
    const Architecture a = read(with(bare("gemma2"), "num_hidden_layers", 4));
    CHECK(a.sliding_layers == LayerFlags{true, false, true, false});
    CHECK(a.sliding_window == 4096);
    CHECK(a.logit_softcap);
    CHECK(a.attention_softcap);
    CHECK_FALSE(read(with(bare("gemma2"), "attn_logit_softcapping", nullptr)).attention_softcap);
  }
  SECTION("gemma3_text: every sixth layer attends to everything") {
    const Architecture a = read(with(bare("gemma3_text"), "num_hidden_layers", 7));
    CHECK(a.sliding_layers == LayerFlags{true, true, true, true, true, false, true});
    CHECK(a.qk_norm);
    CHECK_FALSE(a.logit_softcap);
  }
  SECTION("phi: half of each head rotates, biases everywhere") {
    const Architecture a = read(bare("phi"));
    CHECK(a.rotary_dim == 64);
    CHECK(a.attention_bias);
    CHECK(a.attention_out_bias);
    CHECK(a.mlp_bias);
    CHECK(a.head_bias);
    CHECK(a.activation == Activation::kGeluNew);
    CHECK(a.parallel_residual);
  }
  SECTION("smollm3: every fourth layer does not rotate, tied") {
    const Architecture a = read(with(bare("smollm3"), "num_hidden_layers", 5));
    CHECK(a.no_rope_layers == LayerFlags{false, false, false, true, false});
    CHECK(a.num_kv_heads == 4);
    CHECK(a.tie_word_embeddings);
    CHECK(a.sliding_layers.empty());
  }
  SECTION("stablelm: a quarter of each head rotates, two norms unless parallel") {
    CHECK(read(bare("stablelm")).rotary_dim == 32);
    CHECK(read(bare("stablelm")).num_layer_norms == 2);
    CHECK(read(with(bare("stablelm"), "use_parallel_residual", true)).num_layer_norms == 1);
  }
  SECTION("olmo: norms over q and k from the second generation, sliding layers in the third") {
    CHECK_FALSE(read(bare("olmo")).qk_norm);
    CHECK(read(with(bare("olmo"), "clip_qkv", 8.0)).clip_qkv);
    CHECK(read(bare("olmo2")).qk_norm);
    const Architecture a = read(with(bare("olmo3"), "num_hidden_layers", 5));
    CHECK(a.sliding_layers == LayerFlags{true, true, true, false, true});
  }
  SECTION("cohere2: only sliding layers rotate") {
    const Architecture a = read(with(bare("cohere2"), "num_hidden_layers", 4));
    CHECK(a.sliding_layers == LayerFlags{true, true, true, false});
    CHECK(a.no_rope_layers == LayerFlags{false, false, false, true});
    CHECK(a.tie_word_embeddings);
    CHECK(a.logit_scale);
  }
  SECTION("glm4: q, k, v carry a bias, half rotates") {
    const Architecture a = read(bare("glm4"));
    CHECK(a.attention_bias);
    CHECK_FALSE(a.attention_out_bias);
    CHECK(a.rotary_dim == 64);
    CHECK(a.num_kv_heads == 2);
  }
  SECTION("nemotron, apertus, starcoder2: their own activations") {
    CHECK(read(bare("nemotron")).activation == Activation::kRelu2);
    CHECK(read(bare("apertus")).activation == Activation::kXielu);
    const Architecture a = read(bare("starcoder2"));
    CHECK(a.activation == Activation::kGelu);
    CHECK(a.attention_bias);
    CHECK(a.tie_word_embeddings);
  }
}

TEST_CASE("each spelling of the same dimension is read", "[model]") {
  SECTION("gpt2") {
    const Architecture a = read(object({{"model_type", "gpt2"},
                                        {"architectures", list({"GPT2LMHeadModel"})},
                                        {"activation_function", "gelu_new"},
                                        {"n_ctx", 1024},
                                        {"n_embd", 768},
                                        {"n_head", 12},
                                        {"n_layer", 12},
                                        {"n_positions", 1024},
                                        {"resid_pdrop", 0.1},
                                        {"vocab_size", 50257}}));
    CHECK(a.hidden_size == 768);
    CHECK(a.intermediate_size == 3072);
    CHECK(a.head_dim == 64);
    CHECK(a.max_positions == 1024);
    CHECK(a.tie_word_embeddings);
    CHECK(a.attention_dropout == 0.1);
    CHECK(a.embedding_dropout == 0.1);
    CHECK(a.activation == Activation::kGeluNew);
    const Architecture usual = read(object({{"model_type", "gpt2"},
                                            {"hidden_size", 768},
                                            {"num_attention_heads", 12},
                                            {"num_hidden_layers", 12},
                                            {"vocab_size", 50257}}));
    CHECK(usual.hidden_size == 768);
  }
  SECTION("starcoder has one key/value head") {
    const Architecture a = read(object({{"model_type", "gpt_bigcode"},
                                        {"n_embd", 6144},
                                        {"n_head", 48},
                                        {"n_inner", 24576},
                                        {"n_layer", 40},
                                        {"n_positions", 8192},
                                        {"multi_query", true},
                                        {"vocab_size", 49152}}));
    CHECK(a.num_kv_heads == 1);
    CHECK(a.intermediate_size == 24576);
  }
  SECTION("gpt_neo's layers alternate") {
    const Architecture a = read(object({{"model_type", "gpt_neo"},
                                        {"attention_types", list({list({list({"global", "local"}), 6})})},
                                        {"hidden_size", 768},
                                        {"num_heads", 12},
                                        {"num_layers", 12},
                                        {"vocab_size", 50257}}));
    CHECK(a.local_layers == std::vector<Count>{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1});
    CHECK(a.sliding_window == 256);
    CHECK_FALSE(a.attention_bias);
    CHECK(a.attention_out_bias);
  }
  SECTION("gptj and pythia rotate a part") {
    const Architecture j = read(object({{"model_type", "gptj"},
                                        {"n_embd", 4096},
                                        {"n_head", 16},
                                        {"n_layer", 28},
                                        {"rotary_dim", 64},
                                        {"vocab_size", 50400}}));
    CHECK(j.head_dim == 256);
    CHECK(j.rotary_dim == 64);
    CHECK(j.head_bias);
    CHECK_FALSE(j.tie_word_embeddings);
    const Architecture pythia = read(object({{"model_type", "gpt_neox"},
                                             {"hidden_size", 1024},
                                             {"intermediate_size", 4096},
                                             {"num_attention_heads", 16},
                                             {"num_hidden_layers", 24},
                                             {"rotary_pct", 0.25},
                                             {"use_parallel_residual", true},
                                             {"vocab_size", 50304}}));
    CHECK(pythia.rotary_dim == 16);
    CHECK(pythia.parallel_residual);
  }
  SECTION("opt-350m embeds in 512, norms afterwards, and has two extra positions") {
    const Architecture a = read(object({{"model_type", "opt"},
                                        {"activation_function", "relu"},
                                        {"do_layer_norm_before", false},
                                        {"dropout", 0.1},
                                        {"ffn_dim", 4096},
                                        {"hidden_size", 1024},
                                        {"max_position_embeddings", 2048},
                                        {"num_attention_heads", 16},
                                        {"num_hidden_layers", 24},
                                        {"vocab_size", 50272},
                                        {"word_embed_proj_dim", 512}}));
    CHECK(a.max_positions == 2050);
    CHECK(a.embedding_dim == 512);
    CHECK_FALSE(a.norm_before);
    CHECK_FALSE(a.final_norm);
    CHECK(a.activation == Activation::kRelu);
    CHECK(a.residual_dropout == 0.1);
  }
  SECTION("bloom") {
    const Architecture a = read(object({{"model_type", "bloom"},
                                        {"n_embed", 4096},
                                        {"n_layer", 30},
                                        {"num_attention_heads", 32},
                                        {"vocab_size", 250880}}));
    CHECK(a.hidden_size == 4096);
    CHECK(a.intermediate_size == 16384);
    CHECK(a.alibi);
  }
  SECTION("falcon 7b, 40b and rw") {
    const Value seven = object({{"model_type", "falcon"},
                                {"alibi", false},
                                {"bias", false},
                                {"hidden_size", 4544},
                                {"multi_query", true},
                                {"new_decoder_architecture", false},
                                {"num_attention_heads", 71},
                                {"num_hidden_layers", 32},
                                {"parallel_attn", true},
                                {"vocab_size", 65024}});
    CHECK(read(seven).num_kv_heads == 1);
    CHECK(read(seven).num_layer_norms == 1);
    CHECK(read(seven).head_dim == 64);
    CHECK(read(seven).tie_word_embeddings);
    const Architecture forty = read(object({{"model_type", "falcon"},
                                            {"hidden_size", 8192},
                                            {"new_decoder_architecture", true},
                                            {"num_attention_heads", 128},
                                            {"num_hidden_layers", 60},
                                            {"num_kv_heads", 8},
                                            {"vocab_size", 65024}}));
    CHECK(forty.num_kv_heads == 8);
    CHECK(forty.num_layer_norms == 2);
    const Architecture rw = read(object({{"model_type", "falcon"},
                                         {"alibi", true},
                                         {"bias", true},
                                         {"hidden_size", 2048},
                                         {"multi_query", false},
                                         {"num_attention_heads", 32},
                                         {"num_hidden_layers", 24},
                                         {"parallel_attn", false},
                                         {"vocab_size", 50304}}));
    CHECK(rw.num_kv_heads == 32);
    CHECK(rw.num_layer_norms == 2);
    CHECK(rw.rotary_dim == 0);
    CHECK(rw.mlp_bias);
  }
  SECTION("mpt keeps its attention in an object of its own") {
    const Value config = object({{"model_type", "mpt"},
                                 {"attn_config", object({{"alibi", true}, {"clip_qkv", 6.0}, {"attn_pdrop", 0.0}})},
                                 {"d_model", 4096},
                                 {"n_heads", 32},
                                 {"n_layers", 32},
                                 {"vocab_size", 50432}});
    CHECK(read(config).clip_qkv);
    CHECK(read(config).intermediate_size == 16384);
    CHECK(read(config).tie_word_embeddings);
  }
  SECTION("phi-4-mini rotates three quarters, said in either place") {
    const Value config = with(with(bare("phi3"), "hidden_size", 3072), "num_attention_heads", 24);
    CHECK(read(with(config, "partial_rotary_factor", 0.75)).rotary_dim == 96);
    CHECK(read(with(config, "rope_parameters", object({{"partial_rotary_factor", 0.75}}))).rotary_dim == 96);
    CHECK(read(config).rotary_dim == 128);
  }
  SECTION("t5-3b is wider inside than outside") {
    const Architecture a = read(object({{"model_type", "t5"},
                                        {"architectures", list({"T5WithLMHeadModel"})},
                                        {"d_ff", 16384},
                                        {"d_kv", 128},
                                        {"d_model", 1024},
                                        {"num_heads", 32},
                                        {"num_layers", 24},
                                        {"vocab_size", 32128}}));
    CHECK(a.query_size() == 4096);
    CHECK(a.num_decoder_layers == 24);
    CHECK(a.head == Head::kSeq2SeqLm);
    CHECK(a.attention_dropout == 0.1);
    CHECK_FALSE(a.gated_mlp);
  }
  SECTION("flan-t5's feed-forward is gated") {
    const Architecture a = read(object({{"model_type", "t5"},
                                        {"d_ff", 2048},
                                        {"d_kv", 64},
                                        {"d_model", 768},
                                        {"feed_forward_proj", "gated-gelu"},
                                        {"num_heads", 12},
                                        {"num_layers", 12},
                                        {"tie_word_embeddings", false},
                                        {"vocab_size", 32128}}));
    CHECK(a.gated_mlp);
    CHECK(a.activation == Activation::kGeluNew);
    CHECK(a.tie_word_embeddings);
  }
  SECTION("distilbert and vit") {
    const Architecture d = read(object({{"model_type", "distilbert"},
                                        {"dim", 768},
                                        {"hidden_dim", 3072},
                                        {"n_heads", 12},
                                        {"n_layers", 6},
                                        {"vocab_size", 30522}}));
    CHECK(d.hidden_size == 768);
    CHECK(d.residual_dropout == 0.1);
    CHECK(d.classifier_dropout == 0.2);
    const Architecture v = read(object({{"model_type", "vit"},
                                        {"hidden_size", 768},
                                        {"image_size", 224},
                                        {"intermediate_size", 3072},
                                        {"num_attention_heads", 12},
                                        {"num_hidden_layers", 12},
                                        {"patch_size", 16}}));
    CHECK(v.max_positions == 197);
    CHECK(v.head == Head::kImageClassification);
    CHECK(v.residual_dropout == 0.0);
  }
}

TEST_CASE("heads that do not follow from the width are taken as stated", "[model]") {
  // mistralai/Mistral-Nemo-Base-2407
  const Architecture nemo = read(object({{"model_type", "mistral"},
                                         {"head_dim", 128},
                                         {"hidden_size", 5120},
                                         {"intermediate_size", 14336},
                                         {"num_attention_heads", 32},
                                         {"num_hidden_layers", 40},
                                         {"num_key_value_heads", 8},
                                         {"sliding_window", nullptr},
                                         {"vocab_size", 131072}}));
  CHECK(nemo.query_size() == 4096);
  CHECK(nemo.kv_size() == 1024);
  CHECK(nemo.sliding_window == 0);
}

TEST_CASE("a Qwen window counts only where it is switched on", "[model]") {
  const Value config = with(with(bare("qwen2"), "sliding_window", 32768), "max_window_layers", 28);
  CHECK(read(config).sliding_layers.empty());
  const Architecture a = read(with(config, "use_sliding_window", true));
  REQUIRE(a.sliding_layers.size() == 32);
  CHECK_FALSE(a.sliding_layers[27]);
  CHECK(a.sliding_layers[28]);
  CHECK(a.sliding_window == 32768);
}

TEST_CASE("Baichuan's generations are told apart by their sizes", "[model]") {
  const Value seven = with(bare("baichuan"), "vocab_size", 125696);
  CHECK(read(seven).norm_head);
  CHECK_FALSE(read(seven).alibi);
  CHECK_FALSE(read(with(seven, "vocab_size", 64000)).norm_head);
  CHECK(read(with(with(seven, "hidden_size", 5120), "num_attention_heads", 40)).alibi);
}

TEST_CASE("the class that is trained decides the head", "[model]") {
  const Value bert = object({{"model_type", "bert"},
                             {"architectures", list({"BertForMaskedLM"})},
                             {"hidden_size", 768},
                             {"intermediate_size", 3072},
                             {"num_attention_heads", 12},
                             {"num_hidden_layers", 12},
                             {"vocab_size", 30522}});
  CHECK(read_config(bert).architecture.head == Head::kMaskedLm);
  const ConfigResult classifier = read_config(bert, "BertForSequenceClassification");
  CHECK(classifier.issues.empty());
  CHECK(classifier.architecture.head == Head::kSequenceClassification);
  CHECK(classifier.architecture.num_labels == 2);
  CHECK(classifier.architecture.classifier_dropout == 0.1);
  const Value labelled = with(bert, "id2label", object({{"0", "a"}, {"1", "b"}, {"2", "c"}}));
  CHECK(read_config(labelled, "BertForSequenceClassification").architecture.num_labels == 3);

  const ConfigResult wrong_family = read_config(bert, "GPT2ForSequenceClassification");
  CHECK(find_issue(wrong_family.issues, "INVALID_VALUE", "/architecture") != nullptr);
  const ConfigResult wrong_head = read_config(bert, "BertForImageClassification");
  CHECK(find_issue(wrong_head.issues, "UNSUPPORTED_ARCHITECTURE", "/architecture") != nullptr);
  // Early converters wrote the name so.
  CHECK(read_config(with(kBareLlama, "architectures", list({"LLaMAForCausalLM"}))).issues.empty());
}

TEST_CASE("the model type follows from the class where it is absent", "[model]") {
  const Value config = without(kLlama32, "model_type");
  CHECK(read_config(config).architecture.model_type == "llama");
  CHECK_FALSE(has_error(read_config(config).issues));
  const ConfigResult neox = read_config(object({{"architectures", list({"GPTNeoXForCausalLM"})}}));
  CHECK(neox.architecture.model_type == "gpt_neox");
  const ConfigResult moe = read_config(object({{"architectures", list({"Qwen2MoeForCausalLM"})}}));
  CHECK(moe.architecture.model_type == "qwen2_moe");
  CHECK(find_issue(read_config(object({{"hidden_size", 64}})).issues, "MISSING_FIELD", "/config/model_type"));
}

TEST_CASE("what is not modelled says so and names the nearest", "[model]") {
  const ConfigResult result = read_config(bare("bloom_next"));
  CHECK(result.architecture.program == nullptr);
  const Issue* issue = find_issue(result.issues, "UNSUPPORTED_ARCHITECTURE", "/config/model_type");
  REQUIRE(issue != nullptr);
  CHECK(issue->severity == Severity::kError);
  CHECK(issue->suggestion == "bloom");
  CHECK(issue->message.find("gemma3_text") != std::string::npos);

  const ConfigResult vision =
      read_config(object({{"model_type", "molmo"}, {"text_config", object({{"model_type", "llama"}})}}));
  CHECK(vision.issues.front().message.find("\"text_config\" alone") != std::string::npos);
}

TEST_CASE("a missing dimension is an error, never a guess", "[model]") {
  for (const char* key :
       {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size"}) {
    const ConfigResult result = read_config(without(kLlama32, key));
    const Issue* issue = find_issue(result.issues, "MISSING_FIELD", std::string("/config/") + key);
    REQUIRE(issue != nullptr);
    CHECK(issue->severity == Severity::kError);
  }
}

TEST_CASE("nonsense is an error with its path", "[model]") {
  const auto has = [](const Value& config, const char* code, const char* path) {
    const ConfigResult result = read_config(config);
    const Issue* issue = find_issue(result.issues, code, path);
    return issue != nullptr && issue->severity == Severity::kError;
  };
  CHECK(has(with(kLlama32, "num_hidden_layers", 0), "INVALID_VALUE", "/config/num_hidden_layers"));
  CHECK(has(with(kLlama32, "num_hidden_layers", 1000001), "INVALID_VALUE", "/config/num_hidden_layers"));
  CHECK(has(with(kLlama32, "num_hidden_layers", 1e300), "INVALID_VALUE", "/config/num_hidden_layers"));
  CHECK(has(with(kLlama32, "hidden_size", -1), "INVALID_VALUE", "/config/hidden_size"));
  CHECK(has(with(kLlama32, "vocab_size", std::int64_t{1} << 40), "INVALID_VALUE", "/config/vocab_size"));
  CHECK(has(with(kLlama32, "hidden_size", "2048"), "WRONG_TYPE", "/config/hidden_size"));
  CHECK(has(with(kLlama32, "hidden_size", 2048.5), "WRONG_TYPE", "/config/hidden_size"));
  CHECK(has(with(kLlama32, "tie_word_embeddings", 1), "WRONG_TYPE", "/config/tie_word_embeddings"));
  CHECK(has(with(kLlama32, "attention_dropout", 1.5), "INVALID_VALUE", "/config/attention_dropout"));
  CHECK(has(with(kLlama32, "hidden_act", "mish"), "INVALID_VALUE", "/config/hidden_act"));
  CHECK(has(with(kLlama32, "num_key_value_heads", 5), "INVALID_VALUE", "/config/num_key_value_heads"));
  CHECK(has(with(without(kLlama32, "head_dim"), "hidden_size", 2047), "INVALID_VALUE", "/config/num_attention_heads"));
  CHECK(has(with(kLlama32, "intermediate_size", 2147483647), "INVALID_VALUE", "/config") ==
        false);  // large, but it can be counted
  Value huge = with(with(kLlama32, "intermediate_size", 2147483647), "hidden_size", 2147483647);
  CHECK(has(huge, "INVALID_VALUE", "/config"));
  CHECK(has(list({}), "WRONG_TYPE", "/config"));
  // A whole number that a script wrote as 2048.0 is still one.
  CHECK(read_config(with(kLlama32, "hidden_size", 2048.0)).architecture.hidden_size == 2048);
}

TEST_CASE("keys that nobody reads are reported", "[model]") {
  SECTION("a slip of the pen") {
    const ConfigResult result = read_config(with(without(kLlama32, "num_key_value_heads"), "num_key_values_heads", 8));
    const Issue* issue = find_issue(result.issues, "UNKNOWN_KEY", "/config/num_key_values_heads");
    REQUIRE(issue != nullptr);
    CHECK(issue->severity == Severity::kWarning);
    CHECK(issue->suggestion == "num_key_value_heads");
  }
  SECTION("another family's key") {
    const ConfigResult result = read_config(with(kLlama32, "num_local_experts", 8));
    const Issue* issue = find_issue(result.issues, "UNKNOWN_KEY", "/config/num_local_experts");
    REQUIRE(issue != nullptr);
    CHECK(issue->severity == Severity::kWarning);
    // Said of a Mistral it only repeats what the code does.
    CHECK(read_config(with(with(bare("mistral"), "num_key_value_heads", 8), "attention_bias", false)).issues.empty());
  }
  SECTION("nobody's key") {
    const ConfigResult result = read_config(with(kLlama32, "favourite_colour", "teal"));
    const Issue* issue = find_issue(result.issues, "UNKNOWN_KEY", "/config/favourite_colour");
    REQUIRE(issue != nullptr);
    CHECK(issue->severity == Severity::kNote);
  }
  SECTION("two spellings that differ") {
    const ConfigResult result = read_config(object({{"model_type", "gpt2"},
                                                    {"n_embd", 768},
                                                    {"hidden_size", 1024},
                                                    {"n_head", 12},
                                                    {"n_layer", 12},
                                                    {"vocab_size", 50257}}));
    CHECK(result.architecture.hidden_size == 768);
    CHECK(find_issue(result.issues, "CONFLICTING_KEYS", "/config/hidden_size") != nullptr);
  }
}

TEST_CASE("what makes no sense of the newest families is refused", "[model]") {
  const auto refuses = [](const char* model_type, const char* key, const auto& value) {
    const ConfigResult result = read_config(with(with(bare(model_type), "num_key_value_heads", 32), key, value));
    return find_issue(result.issues, "INVALID_VALUE", "/config/" + std::string{key}) != nullptr;
  };
  for (const double ratio : {-0.5, 1.0, 1.5}) CHECK(refuses("vit_mae", "mask_ratio", ratio));
  CHECK_FALSE(refuses("vit_mae", "mask_ratio", 0.5));
  CHECK(refuses("vit_mae", "decoder_num_attention_heads", 7));
  CHECK(refuses("vit_mae", "decoder_num_hidden_layers", 1'000'000));
  CHECK(refuses("kimi_linear", "layer_types", "full_attention"));
  CHECK(refuses("granite_swa", "layer_rope_theta", "none"));
  CHECK(refuses("hy_v4", "indexer_types", "full"));
  CHECK(refuses("hy_v4", "mlp_layer_types", 3));
  CHECK(refuses("lfm3", "layer_types", "conv"));
  const Value turning = object({{"full_attention", object({{"partial_rotary_factor", 7}})}});
  for (const char* family : {"mimo_v2_flash", "laguna"}) CHECK(refuses(family, "rope_parameters", turning));
}

TEST_CASE("every family says something for its bare minimum and for nothing at all", "[model]") {
  for (const std::string_view model_type : supported_model_types()) {
    INFO(std::string(model_type));
    const ConfigResult result = read_config(object({{"model_type", std::string(model_type).c_str()}}));
    // Models of stages and diffusers' classes need no key; layers of Zamba 2, of LFM2-MoE and those of Gemma 4 that
    // share keys are told one by one; a trace is made by a script.
    constexpr std::string_view kOfStages[] = {"convnext",
                                              "convnextv2",
                                              "resnet",
                                              "segformer",
                                              "swin",
                                              "swinv2",
                                              "Flux2Transformer2DModel",
                                              "FluxTransformer2DModel",
                                              "QwenImageTransformer2DModel",
                                              "SD3Transformer2DModel",
                                              "UNet2DConditionModel"};
    if (std::find(std::begin(kOfStages), std::end(kOfStages), model_type) != std::end(kOfStages)) {
      CHECK_FALSE(has_error(result.issues));
      CHECK(result.architecture.num_layers > 0);
      CHECK_FALSE(result.architecture.class_name.empty());
      continue;
    }
    constexpr std::string_view kOneByOne[] = {"gemma4_text", "gemma4_unified_text", "lfm2_moe", "zamba2",
                                              "model_trace"};
    if (std::find(std::begin(kOneByOne), std::end(kOneByOne), model_type) != std::end(kOneByOne)) {
      CHECK(has_error(result.issues));
      continue;
    }
    CHECK(has_error(result.issues));
    for (const Issue& issue : result.issues) {
      if (issue.severity == Severity::kError) CHECK(issue.code == "MISSING_FIELD");
    }
    Value any = bare(std::string(model_type).c_str());
    for (const char* key : {"n_layers", "n_layer", "num_layers"}) any = with(any, key, 32);
    // Latent: as many as of queries; and where the class cuts queries into as many.
    if (model_type != "kimi_linear" && model_type != "moonshine") any = with(any, "num_key_value_heads", 8);
    if (model_type == "lilt") any = with(any, "hidden_size", 3072);  // of whose sixths boxes have a quarter
    if (model_type == "squeezebert")
      any = with(any, "embedding_size", 4096);  // as wide as its layers, or the class fails
    for (const char* key : {"ffn_dim", "d_ff", "d_inner", "hidden_dim", "dff", "encoder_ffn_dim", "decoder_ffn_dim"}) {
      any = with(any, key, 16384);
    }
    for (const char* key : {"encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads",
                            "encoder_num_hidden_layers", "decoder_num_hidden_layers", "encoder_num_attention_heads",
                            "decoder_num_attention_heads"}) {
      any = with(any, key, 32);
    }
    const ConfigResult full = read_config(any);
    // Models that see have a configuration for each part, and say which one is missing.
    const bool has_parts = std::any_of(full.issues.begin(), full.issues.end(), [](const Issue& issue) {
      return issue.code == "MISSING_FIELD" &&
             (issue.path.find("_config") != std::string::npos || issue.path.find("/encoder") != std::string::npos);
    });
    if (has_parts) continue;
    CHECK_FALSE(has_error(full.issues));
    CHECK(full.architecture.num_layers == 32);
    const bool keeps_states =
        model_type == "rwkv" || model_type == "mamba" || model_type == "mamba2" || model_type == "falcon_mamba";
    CHECK((full.architecture.head_dim > 0 || keeps_states));
    CHECK_FALSE(full.architecture.class_name.empty());
  }
}

// models/gemma4/modeling_gemma4.py, Gemma4TextAttention.__init__: layer_types[:first].index(...) raises a ValueError.
TEST_CASE("layers of Gemma 4 that share keys need one of their type that has some") {
  const auto shares = [](int layers, int sharing) {
    return has_error(
        read_config(with(with(bare("gemma4_text"), "num_hidden_layers", layers), "num_kv_shared_layers", sharing))
            .issues);
  };
  CHECK_FALSE(shares(12, 6));  // five that slide, one that does not, twice
  CHECK(shares(6, 3));         // the sixth alone attends to everything
}

TEST_CASE("the language model of Gemma 4 is its own, whatever its configuration calls it") {
  const auto refused = [](const char* type) {
    const Value language = with(bare(type), "num_hidden_layers", 12);
    const ConfigResult result = read_config(with(bare("gemma4"), "text_config", language));
    return find_issue(result.issues, "INVALID_VALUE", "/config/text_config") != nullptr;
  };
  CHECK_FALSE(refused("gemma4_text"));
  CHECK(refused("llama"));
}

// models/parakeet/modeling_parakeet.py, ParakeetEncoderSubsamplingConv2D.__init__: int(math.log2(subsampling_factor))
// steps.
TEST_CASE("more steps of Parakeet's convolutions than are modelled are refused") {
  const auto refused = [](int factor) {
    const Value encoder = with(bare("parakeet_encoder"), "subsampling_factor", factor);
    const ConfigResult result = read_config(with(bare("parakeet_ctc"), "encoder_config", encoder));
    return find_issue(result.issues, "INVALID_VALUE", "/config/encoder_config/subsampling_factor") != nullptr;
  };
  CHECK_FALSE(refused(8));
  CHECK_FALSE(refused(16));
  CHECK(refused(32));
}
