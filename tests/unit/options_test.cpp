#include "core/options/options.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "core/job/framework.hpp"
#include "core/job/recipe.hpp"
#include "core/wire/json.hpp"
#include "core/wire/read_request.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

Request request_from(std::string_view text, Issues& issues) {
  const Value value = parse_json(text, "", issues);
  return read_request(value, issues);
}

Request request_from(std::string_view text) {
  Issues issues;
  Request request = request_from(text, issues);
  for (const Issue& issue : issues) UNSCOPED_INFO(issue.code << " " << issue.path << " " << issue.message);
  CHECK(!has_error(issues));
  return request;
}

/// The only issue of a request that has one.
Issue issue_of(std::string_view text) {
  Issues issues;
  request_from(text, issues);
  for (const Issue& issue : issues) UNSCOPED_INFO(issue.code << " " << issue.path << " " << issue.message);
  REQUIRE(issues.size() == 1);
  return issues[0];
}

std::string with(std::string_view members) {
  return "{\"model\":\"m\"," + std::string{members} + "}";
}

TEST_CASE("every option is declared once and fully") {
  std::set<std::string_view> names;
  std::set<std::string> flags;
  std::set<std::string_view> groups;
  for (const OptionGroup& group : option_groups()) groups.insert(group.name);
  for (const Option& option : options()) {
    CAPTURE(std::string{option.name});
    CHECK(names.insert(option.name).second);
    CHECK(groups.count(option.group) == 1);
    CHECK(!option.label.empty());
    CHECK(!option.help.empty());
    CHECK(option.help.back() == '.');
    for (const std::string& flag : flags_of(option)) CHECK(flags.insert(flag).second);
    const bool chooses = option.type == OptionType::kChoice || option.type == OptionType::kChoiceList;
    CHECK(chooses == !option.choices.empty());
    Issues issues;
    const Value standard = parse_json(option.standard, "", issues);
    CHECK(issues.empty());
    if (chooses && standard.is_string()) CHECK(find_choice(option, standard.string) != nullptr);
    if (standard.is_number() && option.minimum != option.maximum) {
      CHECK(standard.real >= option.minimum);
      CHECK(standard.real <= option.maximum);
    }
  }
}

TEST_CASE("a rule of relevance names words of an option that is read before") {
  const auto check = [](const Relevance& relevant) {
    if (relevant.option.empty()) return;
    const Option* other = find_option(relevant.option);
    REQUIRE(other != nullptr);
    std::string_view rest = relevant.words;
    while (!rest.empty()) {
      const std::string_view word = rest.substr(0, rest.find(','));
      CAPTURE(std::string{word});
      CHECK(find_choice(*other, word) != nullptr);
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    }
  };
  for (const OptionGroup& group : option_groups()) check(group.relevant);
  for (const Option& option : options()) check(option.relevant);
}

TEST_CASE("every modelled precision has a recipe") {
  for (const Choice& choice : find_option("precision.recipe")->choices) {
    CHECK(named_recipe(choice.name).has_value() == choice.modelled);
  }
}

TEST_CASE("the declared defaults are the job's defaults") {
  // A request that states every default must read like one that states nothing.
  Value all = empty_object();
  set(all, "model", "m");
  const auto put = [](Value& object, std::string_view name, const Value& value) {
    Value* at = &object;
    while (true) {
      const std::size_t dot = name.find('.');
      if (dot == std::string_view::npos) break;
      Value* next = nullptr;
      for (Value::Member& member : at->members) {
        if (member.key == name.substr(0, dot)) next = &member.value;
      }
      if (next == nullptr) {
        at->members.push_back({std::string{name.substr(0, dot)}, empty_object()});
        next = &at->members.back().value;
      }
      at = next;
      name = name.substr(dot + 1);
    }
    at->members.push_back({std::string{name}, value});
  };
  for (const Option& option : options()) {
    Issues issues;
    const Value standard = parse_json(option.standard, "", issues);
    if (!standard.is_null()) put(all, option.name, standard);
  }
  Issues issues;
  const Request stated = read_request(all, issues);
  CHECK(!has_error(issues));
  CHECK(stated.job == TrainingJob{});
}

TEST_CASE("a request is read in Hugging Face's words") {
  const Request r = request_from(R"({
    "schema": 1, "model": "llama-2-7b", "method": "qlora",
    "adapter": {"r": 64, "target_modules": ["q_proj", "v_proj"], "dtype": "bf16", "use_dora": true},
    "quantization": {"quant_type": "fp4", "double_quant": false, "prepare_kbit": true},
    "precision": "bf16_amp", "micro_batch_size": 4, "sequence_length": 1024, "padding": true,
    "attention": "EAGER", "gradient_checkpointing": {"every": 2}, "optimizer": "adamw_bnb_8bit", "loss": "liger",
    "liger": ["rms_norm", "rope"], "framework": {"name": "transformers", "version": "4.46"},
    "allocator": {"expandable_segments": true}, "overrides": {"misc_overhead_gib": 0.5},
    "gpu": {"memory_gib": 24}})");
  CHECK(r.model == "llama-2-7b");
  CHECK(r.job.method == Method::kQlora);
  CHECK(r.job.adapter.r == 64);
  CHECK(r.job.adapter.target_modules.kind == ModuleChoice::Kind::kNames);
  CHECK(r.job.adapter.target_modules.names == std::vector<std::string>{"q_proj", "v_proj"});
  CHECK(r.job.adapter.dtype == Dtype::kBf16);
  CHECK(r.job.adapter.use_dora);
  CHECK(r.job.quantization.quant_type == QuantType::kFp4);
  CHECK(!r.job.quantization.double_quant);
  CHECK(r.job.quantization.prepare_kbit == PrepareKbit::kAll);
  CHECK(r.job.recipe.name == "bf16_amp");
  CHECK(r.job.recipe.weights == Dtype::kBf16);
  CHECK(r.job.recipe.autocast == Dtype::kBf16);
  CHECK(r.job.attention == AttentionKernel::kEager);
  CHECK(r.job.checkpointing == Checkpointing::kEvery);
  CHECK(r.job.checkpoint_every == 2);
  CHECK(r.job.optimizer == "adamw_8bit");
  CHECK(r.job.loss == Loss::kLiger);
  CHECK(r.job.liger_rms_norm);
  CHECK(!r.job.liger_swiglu);
  CHECK(r.job.liger_rope);
  CHECK(r.job.framework.major == 4);
  CHECK(r.job.framework.minor == 46);
  CHECK(r.job.expandable_segments);
  CHECK(r.job.misc_overhead == kGiB / 2);
  REQUIRE(r.gpus.size() == 1);
  CHECK(r.gpus[0].memory_gib == 24.0);
}

TEST_CASE("a recipe can be an object, from scratch or from a name") {
  const Recipe scratch =
      request_from(
          with(R"("precision":{"weights":"bf16","autocast":"none","gradients":"fp32","master_weights":"fp32"})"))
          .job.recipe;
  CHECK(scratch.name == "custom");
  CHECK(scratch.weights == Dtype::kBf16);
  CHECK(!scratch.autocast);
  CHECK(scratch.gradients == Dtype::kFp32);
  CHECK(scratch.master_weights == Dtype::kFp32);
  CHECK(scratch.optimizer_states == Dtype::kFp32);
  const Recipe named = request_from(with(R"("precision":{"recipe":"pure_bf16","optimizer_states":"fp32"})")).job.recipe;
  CHECK(named.gradients == Dtype::kBf16);
  CHECK(named.optimizer_states == Dtype::kFp32);
}

TEST_CASE("8 bits and int8 mean the same") {
  CHECK(request_from(with(R"("method":"qlora","quantization":{"bits":8})")).job.quantization.quant_type ==
        QuantType::kInt8);
  CHECK(request_from(with(R"("method":"qlora","quantization":{"quant_type":"int8"})")).job.quantization.bits == 8);
  CHECK(issue_of(with(R"("method":"qlora","quantization":{"bits":8,"quant_type":"nf4"})")).code == "INVALID_VALUE");
}

TEST_CASE("an unknown key warns with the nearest one") {
  const Issue top = issue_of(with(R"("sequence_lenght":1024)"));
  CHECK(top.code == "UNKNOWN_KEY");
  CHECK(top.severity == Severity::kWarning);
  CHECK(top.path == "/sequence_lenght");
  CHECK(top.suggestion == "sequence_length");
  const Issue misplaced = issue_of(with(R"("method":"lora","adapter":{"micro_batch_size":2})"));
  CHECK(misplaced.path == "/adapter/micro_batch_size");
  CHECK(misplaced.suggestion == "micro_batch_size");
  CHECK(issue_of(with(R"("method":"lora","adapter":{"rank":8})")).path == "/adapter/rank");
}

TEST_CASE("a bad value is an error with the values that are good") {
  const Issue optimizer = issue_of(with(R"("optimizer":"adamw_fused")"));
  CHECK(optimizer.code == "INVALID_VALUE");
  CHECK(optimizer.severity == Severity::kError);
  CHECK(optimizer.path == "/optimizer");
  CHECK(optimizer.suggestion == "adamw_torch_fused");
  CHECK(optimizer.message.find("paged_adamw_8bit") != std::string::npos);
  for (const char* bad :
       {R"("micro_batch_size":0)", R"("micro_batch_size":1000001)", R"("micro_batch_size":1.5)",
        R"("micro_batch_size":"4")", R"("micro_batch_size":true)", R"("micro_batch_size":[1])",
        R"("micro_batch_size":1e300)", R"("sequence_length":-1)", R"("adapter":7)", R"("padding":1)",
        R"("precision":"bf17")", R"("freeze":[1])", R"("gpu":7)", R"("gpu":{"memory_gib":-1})",
        R"("framework":{"version":"new"})", R"("framework":{"version":true})", R"("liger":["rmsnorm_"])"}) {
    CAPTURE(bad);
    CHECK(issue_of(with(bad)).code == "INVALID_VALUE");
  }
}

TEST_CASE("an object under another tool's key is refused, not taken for nothing") {
  CHECK(issue_of(with(R"("use_gradient_checkpointing":{"every":2})")).code == "INVALID_VALUE");
  CHECK(issue_of(with(R"("use_gradient_checkpointing":{"every":2})")).suggestion == "gradient_checkpointing");
}

TEST_CASE("what is not modelled is refused, its defaults are not") {
  for (const char* option : {R"("parallelism":{"pipeline_schedule":"dualpipev"})", R"("boxes_per_image":8)",
                             R"("offload":{"gradients":"nvme"})", R"("moe":{"capacity_factor":1.25})",
                             R"("precision":"fp8")", R"("framework":{"name":"lightning"})",
                             R"("optimizer":"adamw_apex_fused")", R"("gradient_checkpointing":{"selective":["op"]})"}) {
    CAPTURE(option);
    const Issue issue = issue_of(with(option));
    CHECK(issue.code == "UNSUPPORTED_OPTION");
    CHECK(issue.severity == Severity::kError);
  }
  CHECK(issue_of(with(R"("calibration":{})")).code == "INVALID_VALUE");
  CHECK(issue_of(with(R"("calibration":{"factors":{"activations":11},"measurements":[]})")).code == "INVALID_VALUE");
  CHECK(issue_of(with(R"("image_size":[224,"wide"])")).code == "INVALID_VALUE");
  CHECK(issue_of(with(R"("image_size":[1,2,3])")).code == "INVALID_VALUE");
  request_from(
      with(R"("parallelism":{"data":1,"tensor":1,"zero_stage":0,"fsdp":"none","gpus_per_node":4},"compile":"none",
                       "offload":{"optimizer":"none"},"moe":{"load_imbalance":1},"images_per_sample":0,
                       "image_size":[336, 336],"calibration":null)"));
}

TEST_CASE("a picture's size is a side, a list of height and width, or a text of both") {
  const auto sides = [](const char* size) {
    const TrainingJob job = request_from(with(std::string{R"("image_size":)"} + size)).job;
    return std::pair{job.image_height, job.image_width};
  };
  using Sides = std::pair<Count, Count>;
  CHECK(sides("448") == Sides{448, 448});
  CHECK(sides("[896, 1344]") == Sides{896, 1344});
  for (const char* text : {R"("896x1344")", R"("896 x 1344")", R"("896X1344")",
                           "\"896\xC3\x97"
                           "1344\"",
                           R"("896\u00d71344")"}) {
    CAPTURE(text);
    CHECK(sides(text) == Sides{896, 1344});
  }
  for (const char* text :
       {R"("896x")", R"("x896")", R"("0x5")", R"("896x1344x3")", R"("896x32769")", R"("896")", R"("896 by 5")",
        R"("99999999999999999999x5")", R"("")", R"("x")", "0", "32769", "9223372036854775807"}) {
    CAPTURE(text);
    CHECK(issue_of(with(std::string{R"("image_size":)"} + text)).path == "/image_size");
  }
}

TEST_CASE("a request names exactly one model") {
  CHECK(issue_of("{}").code == "MISSING_MODEL");
  CHECK(issue_of(R"({"model":"m","parameters":7e9})").code == "INVALID_VALUE");
  CHECK(issue_of("[]").code == "INVALID_VALUE");
  CHECK(issue_of(R"({"model":"m","schema":2})").code == "UNSUPPORTED_SCHEMA");
}

TEST_CASE("settings that do nothing are told") {
  CHECK(issue_of(with(R"("adapter":{"r":8})")).code == "IGNORED_OPTION");
  CHECK(issue_of(with(R"("quantization":{"bits":4})")).code == "IGNORED_OPTION");
  CHECK(issue_of(with(R"("method":"freeze")")).code == "IGNORED_OPTION");
}

TEST_CASE("batches beyond 64 bits are refused") {
  CHECK(issue_of(with(R"("micro_batch_size":1000000,"sequence_length":100000000)")).code == "TOO_LARGE");
  CHECK(issue_of(with(R"("sequence_length":100000000)")).code == "TOO_LARGE");
}

TEST_CASE("a thousand unknown keys do not make a thousand issues") {
  std::string text = "{\"model\":\"m\",\"optimizer\":\"nope\"";
  for (int i = 0; i < 1000; ++i) text += ",\"key" + std::to_string(i) + "\":1";
  Issues issues;
  request_from(text + "}", issues);
  CHECK(issues.size() <= 51);
  CHECK(has_error(issues));
}

TEST_CASE("versions are read from how people write them") {
  const auto version = [](std::string_view text) {
    Framework framework;
    REQUIRE(read_version(text, framework));
    return std::to_string(framework.major) + "." + std::to_string(framework.minor);
  };
  CHECK(version("5.12") == "5.12");
  CHECK(version("5.12.1") == "5.12");
  CHECK(version("v4.46.0.dev0") == "4.46");
  CHECK(version("4.36 (ms-swift 2.x, 2024-01)") == "4.36");
  CHECK(version("5") == "5.0");
  CHECK(version("2026-06") == "5.12");
  CHECK(version("2026-07") == "5.14");
  CHECK(version("2026 (5.x)") == "5.24");
  CHECK(version("2026-04 (not recorded)") == "5.12");
  CHECK(version("2023-12 (commit 8641822)") == "4.44");
  CHECK(version("2025-03") == "4.57");
  Framework framework;
  CHECK(!read_version("main", framework));
  CHECK(!read_version("", framework));
  CHECK(!read_version("99999999999999999999", framework));
}

}  // namespace
}  // namespace tidemark
