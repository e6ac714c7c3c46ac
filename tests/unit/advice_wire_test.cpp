#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "core/report/advice.hpp"
#include "core/report/layout.hpp"
#include "core/wire/ask.hpp"
#include "core/wire/engine.hpp"
#include "core/wire/json.hpp"
#include "core/wire/map_cells.hpp"
#include "tests/unit/catalog_engine.hpp"
#include "tests/unit/catch.hpp"
#include "tests/unit/member_at.hpp"

namespace tidemark {
namespace {

Value parsed(std::string_view text) {
  Issues issues;
  Value value = parse_json(text, "", issues);
  REQUIRE(issues.empty());
  return value;
}

Value ask(const Value& request) {
  return parsed(engine().handle(request));
}
Value ask(std::string_view request) {
  return ask(parsed(request));
}

std::string keys_of(const Value& value) {
  std::string keys;
  for (const Value::Member& member : value.members) keys += (keys.empty() ? "" : " ") + member.key;
  return keys;
}

bool has_issue(const Value& reply, std::string_view code) {
  for (const Value& issue : at(reply, "issues").items) {
    if (at(issue, "code").string == code) return true;
  }
  return false;
}

/// RFC 7396.
Value patched(Value target, const Value& patch) {
  if (!patch.is_object()) return patch;
  if (!target.is_object()) target = empty_object();
  for (const Value::Member& change : patch.members) {
    bool found = false;
    if (change.value.is_null()) {
      const auto removed = [&](const Value::Member& member) { return member.key == change.key; };
      target.members.erase(std::remove_if(target.members.begin(), target.members.end(), removed), target.members.end());
      continue;
    }
    for (Value::Member& member : target.members) {
      if (member.key != change.key) continue;
      member.value = patched(member.value, change.value);
      found = true;
    }
    if (!found) target.members.push_back({change.key, patched(Value{}, change.value)});
  }
  return target;
}

Value without_verb(const Value& request) {
  Value job = empty_object();
  for (const Value::Member& member : request.members) {
    if (member.key != "verb") job.members.push_back(member);
  }
  return job;
}

/// What an estimate of the request with the patch and without the verb says.
std::int64_t estimated(const Value& request, const Value& patch) {
  const Value reply = ask(patched(without_verb(request), patch));
  return at(reply, "estimate.allocated.expected").integer;
}

TEST_CASE("a patched request, estimated afresh, needs what advice promised") {
  for (
      const char* text :
      {R"({"verb":"advise","model":"llama-2-7b","gpu":"4090","frontiers":false,"tiers":false})",
       R"({"verb":"advise","model":"smollm2-135m","gpu":{"vram_gb":8},"micro_batch_size":32,"attention":"eager",)"
       R"("gradient_checkpointing":{"every":4},"precision":{"weights":"fp32","autocast":"bf16"},"optimizer":"adamw_torch"})",
       // The mode "conservative" writes {"every": 2}, which must not stand beside "selective".
       R"({"verb":"advise","model":"llama-3.2-1b","gpu":{"memory_gib":12},"attention":"flash_attention_2",)"
       R"("gradient_checkpointing":{"selective":["core_attn"]},"precision":"bf16_amp"})",
       R"({"verb":"advise","model":"llama-3.2-1b","gpu":{"memory_gib":6},"method":"lora","micro_batch_size":8,)"
       R"("adapter":{"r":64,"target_modules":["q_proj","v_proj"]}})"}) {
    CAPTURE(text);
    const Value request = parsed(text);
    const Value reply = ask(request);
    const std::int64_t now = at(reply, "now.allocated.expected").integer;
    CHECK(now == estimated(request, empty_object()));
    REQUIRE_FALSE(at(reply, "suggestions").items.empty());
    for (const Value& suggestion : at(reply, "suggestions").items) {
      CAPTURE(at(suggestion, "title").string);
      const std::int64_t promised = at(suggestion, "allocated.expected").integer;
      CHECK(promised == estimated(request, at(suggestion, "patch")));
      CHECK(at(suggestion, "saved_bytes").integer == now - promised);
    }
    REQUIRE(at(reply, "combination").is_object());
    REQUIRE(at(reply, "combination.found").boolean);
    CHECK(at(reply, "combination.allocated.expected").integer == estimated(request, at(reply, "combination.patch")));
    CHECK(at(reply, "combination.fit.verdict").string == "fits");
    for (const Value& mode : at(reply, "modes.modes").items) {
      CAPTURE(at(mode, "mode").string);
      CHECK(at(mode, "allocated.expected").integer == estimated(request, at(mode, "patch")));
    }
  }
}

TEST_CASE("advice offers what the request takes, for what it then needs") {
  struct Row {
    const char* request;
    const char* refused;  // a change that the request does not take
  };
  for (const Row& row : {
           // peft 0.18: a classifier's head is saved as a module, and a packed one is not trained.
           Row{R"({"verb":"advise","model":"bert-base-uncased","architecture":"BertForSequenceClassification",)"
               R"("method":"lora","micro_batch_size":64,"sequence_length":512,"gpu":{"memory_gib":6}})",
               "Frozen weights in 4 bits (QLoRA)"},
           // The Trainer's label smoothing takes all logits.
           Row{R"({"verb":"advise","model":"llama-3.2-1b","label_smoothing_factor":0.1,"gpu":{"memory_gib":8}})",
               "Fused linear cross-entropy (Liger)"},
           // TRL's PPO runs a wrapper that has no checkpoints.
           Row{R"({"verb":"advise","model":"llama-3.2-1b","task":"ppo","gpu":{"memory_gib":8}})",
               "Checkpoint every layer"},
           // peft 0.18 tuners/adalora: init_r is its rank.
           Row{R"({"verb":"advise","model":"llama-3.2-1b","method":"lora","adapter":{"kind":"adalora"},)"
               R"("gpu":{"memory_gib":8}})",
               "Adapters of rank 8"},
       }) {
    CAPTURE(row.request);
    const Value request = parsed(row.request);
    const Value reply = ask(request);
    REQUIRE_FALSE(at(reply, "suggestions").items.empty());
    for (const Value& suggestion : at(reply, "suggestions").items) {
      CAPTURE(at(suggestion, "title").string);
      CHECK(at(suggestion, "title").string != row.refused);
      CHECK(at(suggestion, "allocated.expected").integer == estimated(request, at(suggestion, "patch")));
    }
    const Value& combination = at(reply, "combination");
    CHECK(at(combination, "allocated.expected").integer == estimated(request, at(combination, "patch")));
    for (const Value& step : at(combination, "steps").items) {
      if (at(combination, "found").boolean) CHECK(at(step, "title").string != row.refused);
    }
    const bool ranked = std::string{row.refused} != "Adapters of rank 8";
    for (const Value& frontier : at(reply, "frontiers").items) {
      if (!ranked) CHECK(at(frontier, "option").string != "adapter.r");
    }
  }
}

TEST_CASE("a change takes the place of what another tool's key states") {
  const Value request =
      parsed(R"({"verb":"advise","model":"llama-3.2-1b","max_length":4096,"per_device_train_batch_size":4,)"
             R"("gpu":{"memory_gib":8}})");
  const Value reply = ask(request);
  std::vector<std::string> replaced;
  for (const Value& suggestion : at(reply, "suggestions").items) {
    const Value& patch = at(suggestion, "patch");
    CAPTURE(at(suggestion, "title").string);
    CHECK(at(suggestion, "allocated.expected").integer == estimated(request, patch));
    for (const char* key : {"max_length", "per_device_train_batch_size"}) {
      const Value* own = patch.find(key);
      if (own == nullptr) continue;
      CHECK(own->is_null());
      replaced.emplace_back(key);
    }
  }
  CHECK(replaced.size() == 2);
}

TEST_CASE("a sequence holds its pictures, and goes as far as the card does") {
  const std::string job =
      R"("model":"Qwen/Qwen2-VL-2B-Instruct","images_per_sample":1,"method":"lora","sequence_length":2048)";
  const auto along = [&](const char* gib) {
    const Value reply = ask(R"({"verb":"advise",)" + job + R"(,"gpu":{"memory_gib":)" + gib + "}}");
    for (const Value& frontier : at(reply, "frontiers").items) {
      if (at(frontier, "option").string == "sequence_length") return frontier;
    }
    return Value{};
  };
  const Value wide = along("24");
  CHECK(at(wide, "largest").integer > 2048);
  // On a card that not even the shortest one fits, that one is told, which has room for the picture.
  const Value narrow = along("1");
  CHECK(at(narrow, "largest").integer == 0);
  CHECK(at(narrow, "next_allocated.expected").integer > at(wide, "allocated.low").integer / 100);
}

TEST_CASE("what a card has beside a job counts for the job that is offered, too") {
  // NCCL's buffers of the cards that divide it.
  const Value request = parsed(R"({"verb":"advise","model":"llama-3.1-8b","gpu":"4090"})");
  const Value reply = ask(request);
  REQUIRE_FALSE(at(reply, "more_cards").items.empty());
  for (const Value& row : at(reply, "more_cards").items) {
    CAPTURE(at(row, "title").string);
    const Value job = ask(patched(without_verb(request), at(row, "patch")));
    CHECK(at(row, "fit.verdict").string == at(job, "fits.0.verdict").string);
    CHECK(at(row, "fit.usable_bytes").integer == at(job, "fits.0.usable_bytes").integer);
  }
  // vLLM's share of the whole card, whatever its context takes.
  const std::string generates =
      R"("model":"qwen2.5-1.5b","task":"grpo","max_completion_length":512,"num_generations":4,"sequence_length":1024,)"
      R"("micro_batch_size":4,"gpu":"A100-80GB","rollout":{"engine":"vllm","mode":"colocate"})";
  const Value fit = ask(R"({"verb":"fit",)" + generates + "}");
  const std::int64_t needed = at(ask("{" + generates + "}"), "estimate.allocated.expected").integer;
  CHECK(at(fit, "fits.0.allocated.expected").integer == needed);
  CHECK(at(fit, "fits.0.fewest.allocated_bytes").integer == needed);
}

TEST_CASE("a frontier goes by the multiples that GPUs demand") {
  // Sequence parallelism over two GPUs takes even lengths alone.
  const std::string job = R"("model":"llama-3.1-8b","gpu":"H200","framework":{"name":"megatron"},"method":"lora",)"
                          R"("parallelism":{"tensor":2})";
  const Value reply = ask(R"({"verb":"advise",)" + job + "}");
  for (const Value& frontier : at(reply, "frontiers").items) {
    if (at(frontier, "option").string != "sequence_length") continue;
    const std::int64_t largest = at(frontier, "largest").integer;
    CHECK(largest > 2048);
    CHECK(largest % 2 == 0);
    const auto verdict = [&](std::int64_t length) {
      return at(ask("{" + job + R"(,"sequence_length":)" + std::to_string(length) + "}"), "fits.0.verdict").string;
    };
    CHECK(verdict(largest) == "fits");
    CHECK(verdict(largest + 2) != "fits");
  }
}

TEST_CASE("a cell of a map is of the batch that the request would say") {
  struct Row {
    std::string job;
    double batch, sequence;
    bool answered;
  };
  const std::string joined =
      R"("model":"llama-3.2-1b","padding_free":true,"attention":"flash_attention_2","gradient_checkpointing":"full",)"
      R"("micro_batch_size":2,"sequence_length":512)";
  const std::string generates =
      R"("model":"llama-3.2-1b","task":"grpo","micro_batch_size":4,"sequence_length":1024,"max_completion_length":512)";
  for (const Row& row : {Row{joined, 4, 1024, true}, Row{generates, 4, 2048, true}, Row{generates, 4, 512, false}}) {
    CAPTURE(row.job, row.batch, row.sequence);
    const double cell = map_cells(engine(), "{" + row.job + "}", {row.batch}, {row.sequence}).front();
    if (!row.answered) {
      CHECK(std::isnan(cell));
      continue;
    }
    const std::string sizes = R"({"micro_batch_size":)" + std::to_string(static_cast<int>(row.batch)) +
                              R"(,"sequence_length":)" + std::to_string(static_cast<int>(row.sequence)) + "}";
    const auto whole = static_cast<double>(estimated(parsed("{" + row.job + "}"), parsed(sizes)));
    // Quick cells leave out what the allocator does not split off.
    CHECK(cell <= whole);
    CHECK(cell >= 0.98 * whole);
  }
}

TEST_CASE("advice has the same keys in the same order every time") {
  const Value reply = ask(
      R"({"verb":"advise","model":"smollm2-135m","gpu":{"memory_gib":4},"micro_batch_size":32,"precision":"amp_bf16"})");
  CHECK(keys_of(reply) ==
        "schema engine catalog model gpu now combination suggestions without_effect expandable_segments smallest_card "
        "smallest_card_changed more_cards ways subject frontiers tiers modes issues");
  CHECK(keys_of(at(reply, "combination")) ==
        "found proven weight steps changes patch allocated reserved host_bytes peak_phase saved_bytes fit tried "
        "verified");
  CHECK(keys_of(at(reply, "suggestions.0")) ==
        "title changes patch cost allocated reserved host_bytes peak_phase saved_bytes fit");
  CHECK(keys_of(at(reply, "suggestions.0.cost")) == "weight harm speed exactness quality source");
  CHECK(keys_of(at(reply, "frontiers.0")) == "option current largest open ends_with_model allocated next_allocated");
  CHECK(keys_of(at(reply, "tiers.0")) == "vram_gb usable_bytes micro_batch_size allocated preset");
  CHECK(at(reply, "issues").items.empty());
  // Byte for byte.
  const char* request = R"({"verb":"advise","model":"llama-3.2-1b","gpu":"3060","method":"lora"})";
  CHECK(engine().handle(request) == engine().handle(request));
}

TEST_CASE("advice counts the cards that a job takes where one is too small") {
  for (const std::string method : {"full", "lora", "qlora"}) {
    const std::string request = R"({"verb":"advise","model":"llama-3.1-70b","gpu":"A100-80GB","method":")" + method +
                                R"(","micro_batch_size":4,"sequence_length":4096})";
    const Value reply = ask(request);
    REQUIRE(at(reply, "now.fit.verdict").string == "does_not_fit");
    const std::vector<Value>& rows = at(reply, "more_cards").items;
    REQUIRE_FALSE(rows.empty());
    for (const Value& row : rows) {
      CAPTURE(at(row, "title").string);
      CHECK(at(row, "fit.verdict").string == "fits");
      CHECK(at(row, "allocated.expected").integer == estimated(parsed(request), at(row, "patch")));
      CHECK(at(row, "patch.parallelism.data").integer == at(row, "cards").integer);
    }
  }
  CHECK(at(ask(R"({"verb":"advise","model":"smollm2-135m","gpu":"H100"})"), "more_cards").items.empty());
}

TEST_CASE("what several GPUs may divide further is offered with what an estimate of it says") {
  struct Asked {
    const char* job;
    std::vector<std::string> titles;
  };
  const std::string head = R"({"verb":"advise","gpu":"A100-80GB","frontiers":false,"tiers":false,"modes":false,)";
  const Asked all[] = {
      {R"("model":"llama-3.1-8b","method":"full","precision":"deepspeed_bf16","sequence_length":4096,"micro_batch_size":4,)"
       R"("parallelism":{"data":8}})",
       {"ZeRO-1", "ZeRO-2", "ZeRO-3", "FSDP 2"}},
      {R"("model":"llama-3.1-70b","method":"full","parallelism":{"data":16,"zero_stage":1}})", {"ZeRO-2", "ZeRO-3"}},
      {R"("model":"llama-3.1-70b","method":"full","parallelism":{"data":16,"fsdp":"full_shard"}})",
       {"Weights, gradients and states in host memory (CPUOffload)"}},
      {R"("model":"llama-3.1-70b","method":"full","parallelism":{"data":16,"zero_stage":3}})",
       {"Optimizer states in host memory (ZeRO-Offload)",
        "Weights and optimizer states in host memory (ZeRO-Infinity)"}},
      {R"("model":"llama-3.1-70b","method":"full","parallelism":{"data":16,"zero_stage":2}})",
       {"ZeRO-3", "Optimizer states in host memory (ZeRO-Offload)"}},
      {R"("model":"llama-3.1-70b","method":"full","precision":"pure_bf16","sequence_length":16384,)"
       R"("optimizer":"adamw_torch","parallelism":{"data":16,"fsdp":"fsdp2","reshard_after_forward":false}})",
       {"Weights let go after forward (FSDP 2)", "Tensor parallelism over 8 GPUs of a host", "A pipeline of 8 GPUs",
        "Weights, gradients and states in host memory (CPUOffloadPolicy)"}},
      {R"("model":"llama-3.1-70b","method":"full","precision":"pure_bf16","parallelism":{"data":16}})",
       {"Tensor parallelism over 8 GPUs of a host, FSDP 2 among hosts"}},
      {R"("model":"llama-3.1-70b","method":"full","parallelism":{"data":16,"zero_stage":1}})",
       {"Tensor parallelism over 8 GPUs of a host, FSDP 2 among hosts"}},
      {R"("model":"llama-3.1-8b","method":"full","framework":{"name":"megatron"},"sequence_length":16384,)"
       R"("parallelism":{"data":8}})",
       {"Megatron-Core's distributed optimizer", "Tensor parallelism over 2 GPUs of a host",
        "Context parallelism over 8 GPUs of a host", "A pipeline of 8 GPUs"}},
      {R"("model":"llama-2-7b","method":"lora","sequence_length":16384,)"
       R"("parallelism":{"data":8,"fsdp":"fsdp2","fsdp_options":{"replicate":2}}})",
       {"Parts divided among all GPUs, not in each group"}},
  };
  for (const Asked& asked : all) {
    CAPTURE(asked.job);
    const Value request = parsed(head + asked.job);
    const Value reply = ask(request);
    std::string titles;
    for (const Value& suggestion : at(reply, "suggestions").items) {
      CAPTURE(at(suggestion, "title").string);
      titles += at(suggestion, "title").string + ";";
      CHECK(at(suggestion, "allocated.expected").integer == estimated(request, at(suggestion, "patch")));
      std::set<std::string> paths;
      for (const Value& change : at(suggestion, "changes").items) {
        CAPTURE(at(change, "path").string);
        CHECK(paths.insert(at(change, "path").string).second);  // each option is stated once
      }
    }
    for (const std::string& title : asked.titles) {
      CAPTURE(title, titles);
      CHECK(titles.find(title + ";") != std::string::npos);
    }
    if (at(reply, "combination").is_object()) {
      CHECK(at(reply, "combination.allocated.expected").integer == estimated(request, at(reply, "combination.patch")));
    }
    for (const Value& way : at(reply, "ways").items) {
      CHECK(at(way, "allocated_bytes").integer == estimated(request, at(way, "patch")));
    }
  }
}

TEST_CASE("all of an 8B model fits on two cards of 24 GB with ZeRO-3 and the host's memory") {
  const std::string request =
      R"({"verb":"advise","model":"llama-3.1-8b","method":"full","gpu":"4090","frontiers":false,"tiers":false,)"
      R"("modes":false,"parallelism":{"data":2,"zero_stage":3)";
  const Value reply = ask(request + "}}");
  CHECK(at(reply, "now.fit.verdict").string == "does_not_fit");
  CHECK(at(reply, "combination.fit.verdict").string == "fits");
  CHECK(at(reply, "combination.patch.offload.optimizer").string == "cpu");
  CHECK(at(reply, "combination.patch.offload.parameters").string == "cpu");
  // States alone are on the host already: the weights may follow.
  const Value half = ask(request + R"(},"offload":{"optimizer":"cpu"}})");
  bool follow = false;
  for (const Value& suggestion : at(half, "suggestions").items) {
    follow = follow || at(suggestion, "title").string.starts_with("Weights and optimizer states in host memory");
  }
  CHECK(follow);
}

TEST_CASE("a job on one GPU is offered nothing that several would divide") {
  const Value reply = ask(R"({"verb":"advise","model":"llama-3.1-8b","gpu":"4090","method":"full"})");
  for (const Value& suggestion : at(reply, "suggestions").items) {
    CHECK(at(suggestion, "patch").find("parallelism") == nullptr);
    CHECK(at(suggestion, "patch").find("offload") == nullptr);
  }
}

TEST_CASE("the smallest ways to run a job are the fewest cards, its changes, and a larger card") {
  const Value reply = ask(
      R"({"verb":"advise","model":"llama-3.1-8b","method":"full","gpu":"A100-40GB","frontiers":false,"tiers":false})");
  const std::vector<Value>& ways = at(reply, "ways").items;
  REQUIRE(ways.size() == 3);
  // 16 bytes for each of 8 030 261 248 parameters, as accelerate makes them fp32: 30 GiB on each of four, and
  // activations.
  CHECK(at(ways[0], "cards").integer == 8);
  CHECK(at(ways[0], "how").string == "FSDP 2");
  CHECK(at(ways[1], "cards").integer == 1);
  CHECK(at(ways[1], "allocated_bytes").integer == at(reply, "combination.allocated.expected").integer);
  CHECK(at(ways[2], "gpu").string == at(reply, "smallest_card.gpu").string);
  // Of eight that hold it easily, fewer would do.
  const Value roomy = ask(
      R"({"verb":"advise","model":"llama-3.1-8b","method":"full","gpu":"A100-80GB","frontiers":false,"tiers":false,)"
      R"("parallelism":{"data":8,"fsdp":"fsdp2"}})");
  REQUIRE(at(roomy, "ways").items.size() == 1);
  CHECK(at(roomy, "ways.0.cards").integer == 2);
}

TEST_CASE("fit counts the cards that a job takes") {
  const std::string job = R"("model":"llama-3.1-8b","method":"full")";
  const Value reply = ask("{\"verb\":\"fit\",\"gpus\":[\"A100-40GB\",\"H100\",\"4090\"]," + job + "}");
  for (const Value& row : at(reply, "fits").items) {
    CAPTURE(at(row, "gpu").string);
    const Value* fewest = row.find("fewest");
    REQUIRE((fewest != nullptr && fewest->is_object()));
    CHECK((at(*fewest, "cards").integer == 1) == (at(row, "verdict").string == "fits"));
    Value request = parsed("{" + job + "}");
    set(request, "gpu", at(row, "gpu").string);
    CHECK(at(*fewest, "allocated_bytes").integer == estimated(request, at(*fewest, "patch")));
  }
  const Value without = ask("{\"verb\":\"fit\",\"fewest\":false,\"gpu\":\"H100\"," + job + "}");
  CHECK(at(without, "fits.0.fewest").is_null());
}

TEST_CASE("a job whose layers are laid on cards takes as many as hold them") {
  const std::string job = R"("model":"llama-3.1-8b","method":"lora","parallelism":{"device_map":8})";
  const Value reply = ask("{\"verb\":\"fit\",\"gpus\":[\"4090\",\"H100\"]," + job + "}");
  for (const Value& row : at(reply, "fits").items) {
    CAPTURE(at(row, "gpu").string);
    const bool roomy = at(row, "gpu").string.find("H100") != std::string::npos;
    CHECK(at(row, "fewest.cards").integer == (roomy ? 1 : 2));
    Value request = parsed("{" + job + "}");
    set(request, "gpu", at(row, "gpu").string);
    CHECK(at(row, "fewest.allocated_bytes").integer == estimated(request, at(row, "fewest.patch")));
    CHECK(at(row, "fewest.patch.parallelism.device_map").integer == at(row, "fewest.cards").integer);
  }
}

TEST_CASE("a map's rows may be numbers of cards") {
  const std::string job = R"("model":"llama-3.1-8b","method":"full","gpu":"A100-40GB")";
  const Value reply = ask(R"({"verb":"map","cards":[8,1,2],"sequences":[2048,1024],)" + job + "}");
  REQUIRE(at(reply, "cards").items.size() == 3);
  CHECK(at(reply, "cards.2").integer == 8);
  CHECK(at(reply, "allocated.0.1").integer == estimated(parsed("{" + job + "}"), empty_object()));
  CHECK(at(reply, "allocated.2.1").integer ==
        estimated(parsed("{" + job + R"(,"parallelism":{"data":8,"fsdp":"fsdp2"}})"), empty_object()));
  for (int column = 0; column < 2; ++column) {
    const std::string at_column = "." + std::to_string(column);
    // One card trains in bf16; what several divide is fp32 (accelerate 1.14 utils/fsdp_utils.py).
    CHECK(at(reply, "allocated.1" + at_column).integer > at(reply, "allocated.2" + at_column).integer);
  }
  const Value both = ask(R"({"verb":"map","cards":[1],"batches":[1],)" + job + "}");
  CHECK(has_issue(both, "INVALID_VALUE"));
}

TEST_CASE("a job that fits needs no combination") {
  const Value reply = ask(R"({"verb":"advise","model":"smollm2-135m","gpu":"H100"})");
  CHECK(at(reply, "now.fit.verdict").string == "fits");
  CHECK(at(reply, "combination").is_null());
  CHECK(at(reply, "subject").string == "request");
  CHECK(at(reply, "frontiers.0.largest").integer >= 1);
}

TEST_CASE("what nothing makes fit is told, with the card that would do") {
  const Value reply = ask(R"({"verb":"advise","model":"llama-2-70b","gpu":{"vram_gb":12}})");
  CHECK_FALSE(at(reply, "combination.found").boolean);
  CHECK(at(reply, "smallest_card").is_null());
  CHECK(at(reply, "smallest_card_changed.verdict").string == "fits");
  CHECK(at(reply, "combination.steps").items.size() > 2);
}

TEST_CASE("a sequence longer than the model's table of positions is warned of, and no frontier goes beyond it") {
  const Value reply = ask(R"({"verb":"advise","model":"gpt2","gpu":"4090","sequence_length":2048})");
  CHECK(has_issue(reply, "SEQUENCE_TOO_LONG"));
  CHECK(at(reply, "frontiers.1.option").string == "sequence_length");
  CHECK(at(reply, "frontiers.1.largest").integer == 1024);  // GPT2Config.n_positions
  CHECK(at(reply, "frontiers.1.ends_with_model").boolean);
  CHECK_FALSE(has_issue(ask(R"({"model":"facebook/opt-125m","sequence_length":2048})"), "SEQUENCE_TOO_LONG"));
  CHECK(has_issue(ask(R"({"model":"facebook/opt-125m","sequence_length":2049})"), "SEQUENCE_TOO_LONG"));
}

TEST_CASE("a card that is too small for its own CUDA context fits nothing, whoever asks") {
  for (const char* verb : {"fit", "advise"}) {
    const Value reply = ask("{\"verb\":\"" + std::string{verb} + "\",\"model\":\"gpt2\",\"gpu\":{\"vram_gb\":0.5}}");
    const Value& fit = std::string{verb} == "fit" ? at(reply, "fits.0") : at(reply, "now.fit");
    CHECK(at(fit, "verdict").string == "does_not_fit");
  }
}

TEST_CASE("advice needs a card and a job") {
  CHECK(has_issue(ask(R"({"verb":"advise","model":"llama-2-7b"})"), "MISSING_GPU"));
  CHECK(has_issue(ask(R"({"verb":"advise","gpu":"4090"})"), "MISSING_MODEL"));
  CHECK(has_issue(ask(R"({"verb":"advise","model":"llama-2-7b","gpu":"4090","modes":3})"), "INVALID_VALUE"));
  CHECK(has_issue(ask(R"({"verb":"advise","model":"smollm2-135m","gpus":["4090","3060"]})"), "ONE_CARD"));
}

TEST_CASE("cards come smallest that fits first") {
  const Value reply = ask(R"({"verb":"fit","model":"llama-3.2-1b","method":"lora","rule_of_thumb":0.8})");
  CHECK(keys_of(reply) == "schema engine catalog model allocated rule_of_thumb fits issues");
  const std::vector<Value>& fits = at(reply, "fits").items;
  CHECK(fits.size() == engine().catalog().gpus().size());
  std::int64_t before = 0;
  for (const Value& row : fits) {
    if (at(row, "verdict").string != "fits") break;
    CHECK(at(row, "usable_bytes").integer >= before);
    before = at(row, "usable_bytes").integer;
    CHECK(at(row, "within_rule_of_thumb").is_bool());
  }
  CHECK(before > 0);
  const Value named = ask(
      R"({"verb":"fit","model":"llama-2-7b","gpus":["4090","H200",{"vram_gb":24},{"memory_gib":20}],"all_gpus":false,
          "precision":"amp_bf16"})");
  REQUIRE(at(named, "fits").items.size() == 4);
  CHECK(at(named, "fits.0.verdict").string == "fits");
  CHECK(at(named, "issues").items.empty());
  const Value all = ask(R"({"verb":"fit","model":"llama-2-7b","gpus":["4090",{"vram_gb":24}],"all_gpus":true})");
  CHECK(at(all, "fits").items.size() == engine().catalog().gpus().size() + 1);
  CHECK(has_issue(ask(R"({"verb":"fit","model":"llama-2-7b","rule_of_thumb":80})"), "INVALID_VALUE"));
}

TEST_CASE("a card's verdict is the same from fit and from estimate") {
  const Value fit = ask(R"({"verb":"fit","model":"llama-3.2-1b","gpus":["3090"],"overrides":{"misc_overhead_gib":2}})");
  const Value estimate = ask(R"({"model":"llama-3.2-1b","gpus":["3090"],"overrides":{"misc_overhead_gib":2}})");
  for (const char* key : {"usable_bytes", "headroom_bytes"}) {
    CHECK(at(fit, std::string{"fits.0."} + key).integer == at(estimate, std::string{"fits.0."} + key).integer);
  }
  const Value all = ask(R"({"verb":"fit","model":"llama-3.2-1b","overrides":{"misc_overhead_gib":2}})");
  for (const Value& row : at(all, "fits").items) {
    if (at(row, "gpu").string != at(estimate, "fits.0.gpu").string) continue;
    CHECK(at(row, "headroom_bytes").integer == at(estimate, "fits.0.headroom_bytes").integer);
  }
}

TEST_CASE("the box's size is less than torch sees of it") {
  const Value boxed = ask(R"({"model":"smollm2-135m","gpu":{"vram_gb":24}})");
  const Value visible = ask(R"({"model":"smollm2-135m","gpu":{"memory_gib":24}})");
  CHECK(at(boxed, "fits.0.usable_bytes").integer < at(visible, "fits.0.usable_bytes").integer);
  CHECK(at(boxed, "fits.0.gpu").string == "24 GB card");
}

TEST_CASE("a map has rows of batches and columns of sequences") {
  const Value reply =
      ask(R"({"verb":"map","model":"smollm2-135m","gpu":"3060","batches":[1,8],"sequences":[512,1024,2048]})");
  CHECK(keys_of(reply) ==
        "schema engine catalog model gpu usable_bytes exact batches sequences allocated verdicts issues");
  REQUIRE(at(reply, "allocated").items.size() == 2);
  REQUIRE(at(reply, "allocated.0").items.size() == 3);
  CHECK(at(reply, "allocated.1.2").integer ==
        at(ask(R"({"model":"smollm2-135m","gpu":"3060","micro_batch_size":8,"sequence_length":2048})"),
           "estimate.allocated.expected")
            .integer);
  const Value quick = ask(
      R"({"verb":"map","model":"smollm2-135m","gpu":"3060","batches":[1,8],"sequences":[512,1024,2048],"exact":false})");
  CHECK(at(quick, "allocated.1.2").integer <= at(reply, "allocated.1.2").integer);
  CHECK(has_issue(ask(R"({"verb":"map","model":"smollm2-135m","batches":[0]})"), "INVALID_VALUE"));
  CHECK(at(ask(R"({"verb":"map","model":"smollm2-135m","batches":[1],"sequences":[128]})"), "verdicts.0.0").string ==
        "unknown");
}

TEST_CASE("describe tells the keys of each verb") {
  const Value reply = ask(R"({"verb":"describe"})");
  bool found = false;
  for (const Value& verb : at(reply, "verbs").items) {
    if (at(verb, "name").string != "fit") continue;
    found = true;
    CHECK(at(verb, "keys.1.name").string == "rule_of_thumb");
  }
  CHECK(found);
}

TEST_CASE("reports read as text and as Markdown") {
  const Value request = parsed(R"({"model":"llama-2-7b","gpu":"4090"})");
  const AdviceReport advice = ask_advice(engine(), request);
  const std::string text = render_text(document_of(advice));
  CHECK(text.find("What makes it fit") != std::string::npos);
  CHECK(text.find("\x1b[") == std::string::npos);
  CHECK(text.find(" \n") == std::string::npos);
  TextStyle ascii;
  ascii.unicode = false;
  for (const char c : render_text(document_of(advice), ascii)) CHECK(static_cast<unsigned char>(c) < 0x80);
  const std::string markdown = render_markdown(document_of(advice));
  CHECK(markdown.find("### What makes it fit\n") != std::string::npos);
  CHECK(markdown.find("\n|---:|---|") != std::string::npos);
  CHECK(render_text(document_of(ask_fit(engine(), request))).find("RTX 4090") != std::string::npos);
  CHECK(render_text(document_of(ask_map(engine(), request))).find("32 768") != std::string::npos);
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    widest = std::max(widest, columns_of(std::string_view{text}.substr(at, end - at)));
    at = end + 1;
  }
  return widest;
}

TEST_CASE("tables of reports are no wider than the terminal") {
  const Value request = parsed(R"({"model":"llama-3.1-8b","method":"lora","gpu":"4090"})");
  TextStyle style;
  style.width = 80;
  const std::string advice = render_text(document_of(ask_advice(engine(), request)), style);
  const std::string fit = render_text(document_of(ask_fit(engine(), parsed(R"({"model":"llama-3.1-8b"})"))), style);
  CHECK(widest_line(advice) <= style.width);
  CHECK(widest_line(fit) <= style.width);
  CHECK(fit.find(" \n") == std::string::npos);
  // Broken between words: each of them still stands there.
  CHECK(advice.find("gradient_checkpointing") != std::string::npos);
}

// peft 0.18 tuners/oft/config.py: one of r and oft_block_size.
TEST_CASE("a frontier that the request does not take is told of") {
  const Value told = ask(R"({"verb": "advise", "model": "llama-3.2-1b", "method": "oft", "sequence_length": 512,
                             "gpu": "A100-80GB", "tiers": false, "modes": false})");
  CHECK(has_issue(told, "LEFT_OUT"));
  for (const Value& frontier : at(told, "frontiers").items) CHECK(at(frontier, "option").string != "adapter.r");
  CHECK_FALSE(has_issue(ask(R"({"verb": "advise", "model": "llama-3.2-1b", "method": "lora", "sequence_length": 512,
                                "gpu": "A100-80GB", "tiers": false, "modes": false})"),
                        "LEFT_OUT"));
}

}  // namespace
}  // namespace tidemark
