// What the rows of the families say of their classes, against what transformers 5.12.1 says of them, and 5.24.0 of
// their attention (tests/counts/class_facts.py).
#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/families/family.hpp"
#include "core/wire/json.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

/// A line of class_facts.jsonl.
struct Said {
  Value row;
  std::string_view text(std::string_view key) const { return row.find(key)->string; }
  bool flag(std::string_view key) const { return row.find(key)->boolean; }
  const std::vector<Value>& list(std::string_view key) const { return row.find(key)->items; }
  const ClassFacts& facts() const { return type_named(text("model_type"))->facts; }
};

std::vector<Said> said(const char* file = "class_facts.jsonl") {
  std::ifstream lines(std::string{TIDEMARK_TEST_DATA} + "/../../counts/" + file);
  std::vector<Said> rows;
  Issues issues;
  for (std::string line; std::getline(lines, line);) rows.push_back({parse_json(line, "", issues)});
  REQUIRE(issues.empty());
  REQUIRE(rows.size() > 170);
  return rows;
}

/// Layers that accelerate makes no units of: what lists of more than one hold, but for pieces of a layer.
bool leaves_layers(const Said& class_) {
  for (const Value& name : class_.list("unnamed")) {
    const std::string_view text = name.string;
    const bool piece = text.ends_with("ConvLayer") || text.ends_with("LayerNorm");
    if (!piece && (text.ends_with("Layer") || text.ends_with("Block"))) return true;
  }
  return false;
}

bool is_among(std::string_view type, std::initializer_list<std::string_view> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

bool has_no_attention(std::string_view type) {
  return is_among(type, {"convnext", "convnextv2", "resnet", "mamba", "mamba2", "falcon_mamba", "rwkv"});
}

}  // namespace

TEST_CASE("a class that cannot be made with flex_attention says so in its row") {
  for (const Said& class_ : said()) {
    CAPTURE(class_.text("model_type"));
    CHECK(class_.facts().flex_attention == class_.flag("flex_attention"));
  }
}

// Its models with squashed scores run eagerly as of 5.21 (core/job/default_attention.cpp).
bool is_squashed(std::string_view type) {
  return is_among(type, {"gemma2", "vaultgemma", "t5gemma"});
}

void check_support(const Said& class_, int minor) {
  const std::string_view type = class_.text("model_type");
  const Program* program = type_named(type)->program;
  if (program == nullptr) return;
  CAPTURE(type, minor);
  Framework framework;
  framework.major = 5;
  framework.minor = minor;
  const AttentionSupport has = attention_of(*program, framework);
  // Where one part of a model has none it is eager there, and models without attention are asked for none.
  const bool told = !is_among(type, {"blip-2", "got_ocr2", "granite_speech"}) && !has_no_attention(type);
  if (told && (minor < 21 || !is_squashed(type))) CHECK(has.sdpa == class_.flag("sdpa"));
  // GPT-OSS and Granite's sinks take flash kernels of the hub alone, MiMo-V2-Flash those of version 4. LFM2-VL's
  // tower has none, which a warning says. Of CTRL and RecurrentGemma they are not modelled.
  if (!is_among(type,
                {"gpt_oss", "granite_swa", "granitemoe_swa", "mimo_v2_flash", "lfm2_vl", "ctrl", "recurrent_gemma"})) {
    CHECK(has.flash_attention_2 == class_.flag("flash_attention"));
  }
  CHECK(program->checkpoints == class_.flag("checkpoints"));
}

TEST_CASE("a program says which attention its class can be made with, and whether it can be checkpointed") {
  for (const Said& class_ : said()) check_support(class_, 12);
  for (const Said& class_ : said("class_facts_5_24.jsonl")) check_support(class_, 24);
}

TEST_CASE("a class whose main input is no text says so in its row") {
  for (const Said& class_ : said()) {
    CAPTURE(class_.text("model_type"));
    CHECK(class_.facts().text_input == (class_.text("main_input_name") == "input_ids"));
  }
}

TEST_CASE("a class that does not find its input embeddings says so in its row") {
  for (const Said& class_ : said()) {
    // Of Qwen2.5-Omni the thinker is trained, which has a row of its own.
    if (class_.text("model_type") == "qwen2_5_omni") continue;
    CAPTURE(class_.text("model_type"));
    CHECK(class_.facts().input_embeddings == class_.flag("input_embeddings"));
  }
}

namespace {

// What `_no_split_modules` names as of a release: the row's, or what it says of later ones.
NoSplit named_as_of(const ClassFacts& facts, int minor) {
  return facts.named_anew_since > 0 && minor >= facts.named_anew_since ? facts.named_anew : facts.no_split;
}

void check_named(const Said& class_, int minor) {
  const std::string_view type = class_.text("model_type");
  // The first has no towers by its configuration's defaults, and its reader looks at them; of the second the thinker
  // is trained, which has a row of its own.
  // And ViT-MAE names both its embeddings and all of its decoder.
  // A vision-encoder-decoder has the names of the two models that its configuration tells.
  if (is_among(type, {"gemma4", "qwen2_5_omni", "vit_mae", "vision-encoder-decoder"})) return;
  CAPTURE(type, minor);
  const NoSplit named = named_as_of(class_.facts(), minor);
  const bool none = class_.list("named").empty() && class_.list("absent").empty();
  CHECK((named == NoSplit::kNone || named == NoSplit::kNoneButSaid) == none);
  CHECK((named == NoSplit::kAbsentToo) == !class_.list("absent").empty());
  if (none || named == NoSplit::kAbsentToo) return;
  CHECK((named == NoSplit::kEmbeddings) == !class_.text("holder").empty());
  if (type == "blip") return;  // the embeddings are named, and the text's layers are not
  if (leaves_layers(class_)) {
    CHECK((named == NoSplit::kNotTower || named == NoSplit::kOtherParts));
  } else {
    CHECK((named == NoSplit::kOtherParts) == !(class_.list("stages").empty() && class_.list("pieces").empty()));
  }
}

}  // namespace

TEST_CASE("what _no_split_modules names of a class stands in its row") {
  for (const Said& class_ : said()) check_named(class_, 12);
  for (const Said& class_ : said("class_facts_5_24.jsonl")) check_named(class_, 24);
}

}  // namespace tidemark
