// xtuner 0.2.0's configurations, which are Python of mmengine (xtuner 520f7a09 xtuner/model/sft.py: SupervisedFinetune;
// xtuner/configs).
#include <string>
#include <utility>

#include "core/exchange/formats/shared.hpp"
#include "core/exchange/python/program.hpp"
#include "core/units/letters.hpp"

namespace tidemark::exchange {
namespace {

int recognise_xtuner(const Look& look) {
  if (look.syntax != Look::Syntax::kPython || !look.mentions("xtuner")) return 0;
  const bool settings = look.mentions("accumulative_counts") || look.mentions("SupervisedFinetune");
  return settings && (look.mentions("mmengine") || look.mentions("optim_wrapper")) ? 95 : 0;
}

class Config {
 public:
  Config(const PyProgram& program, Reading& reading) : program_(program), reading_(reading) {}

  const PyValue* top(std::string_view name) const {
    for (auto one = program_.assignments.rbegin(); one != program_.assignments.rend(); ++one) {
      if (one->name == name) return &one->value;
    }
    return nullptr;
  }
  static const PyValue* in(const PyValue* value, std::string_view key) {
    return value == nullptr ? nullptr : value->find(key);
  }
  void say(std::string_view path, Value value, const PyValue* by, std::string why = {}) {
    std::vector<Origin> places = by == nullptr ? std::vector<Origin>{} : by->places;
    if (places.size() > 3) places.resize(3);
    state(reading_, path, std::move(value), std::move(places), std::move(why));
  }
  bool copy(std::string_view path, const PyValue* by) {
    if (by == nullptr || !by->is_known() || by->kind == PyValue::Kind::kNone || by->kind == PyValue::Kind::kObject)
      return false;
    say(path, to_value(*by), by);
    return true;
  }

  void read() {
    const PyValue* model = top("model");
    const PyValue* llm = in(model, "llm");
    say("framework.name", of("transformers"), nullptr, "xtuner trains transformers' models with mmengine");
    if (!copy("model", in(llm, "pretrained_model_name_or_path"))) copy("model", top("pretrained_model_name_or_path"));
    if (find(reading_, "model") == nullptr) copy("model", top("llm_name_or_path"));
    read_method(model, llm);
    copy("micro_batch_size", top("batch_size"));
    copy("gradient_accumulation_steps", top("accumulative_counts"));
    copy("sequence_length", top("max_length"));
    copy("packing", top("pack_to_max_length"));
    copy("max_grad_norm", top("max_norm"));
    read_optimizer();
    read_precision(llm);
    const PyValue* kept = in(model, "use_activation_checkpointing");
    const bool on = kept == nullptr || kept->kind != PyValue::Kind::kBool || kept->boolean;
    say("gradient_checkpointing", of(on ? "full" : "none"), kept,
        "SupervisedFinetune: use_activation_checkpointing=True by default (model/sft.py L90)");
    if (on) say("use_reentrant", of(true), nullptr, "default of gradient_checkpointing_enable then");
    const PyValue* type = in(model, "type");
    say("task",
        of(type != nullptr && contains(type->text, "LLaVA") ? "vlm"
           : type != nullptr && contains(type->text, "DPO") ? "dpo"
                                                            : "sft"),
        nullptr, "from the model's type");
    reading_.unknowns = {"gpu", "parallelism (launcher; --deepspeed deepspeed_zero2)"};
  }

 private:
  void read_method(const PyValue* model, const PyValue* llm) {
    const PyValue* lora = in(model, "lora") != nullptr ? in(model, "lora") : in(model, "llm_lora");
    const PyValue* bits = in(llm, "quantization_config");
    const PyValue* four = in(bits, "load_in_4bit");
    const PyValue* eight = in(bits, "load_in_8bit");
    const bool is_four = four != nullptr && four->boolean;
    const bool is_eight = eight != nullptr && eight->boolean;
    if (lora == nullptr || lora->kind != PyValue::Kind::kDict) return say("method", of("full"), nullptr, "no lora");
    const PyValue* rank = in(lora, "r");
    const PyValue* by = is_four ? four : is_eight ? eight : rank;
    PyValue both = rank == nullptr ? *by : *rank;
    if (both.places.empty() && !lora->places.empty()) both.places.push_back(lora->places[0]);
    both.places.insert(both.places.begin(), by->places.begin(), by->places.end());
    say("method", of(is_four || is_eight ? "qlora" : "lora"), &both);
    if (is_four || is_eight) {
      const PyValue* type = in(bits, "bnb_4bit_quant_type");
      const PyValue* nested = in(bits, "bnb_4bit_use_double_quant");
      say("quantization.bits", of(is_four ? 4 : 8), by);
      say("quantization.quant_type",
          of(is_eight          ? "int8"
             : type == nullptr ? "fp4"
                               : type->text),
          type == nullptr ? by : type);
      if (is_four)
        say("quantization.double_quant", of(nested != nullptr && nested->boolean), nested == nullptr ? by : nested);
      say("quantization.prepare_kbit", of(true), by, "SupervisedFinetune calls prepare_model_for_kbit_training");
    }
    for (const char* name : {"r", "lora_alpha", "lora_dropout"}) copy(std::string{"adapter."} + name, in(lora, name));
    if (!copy("adapter.target_modules", in(lora, "target_modules")))
      say("adapter.target_modules", of("all-linear"), rank,
          "xtuner find_all_linear_names when target_modules is absent");
  }

  void read_optimizer() {
    const PyValue* type = top("optim_type");
    if (type == nullptr) type = in(in(top("optim_wrapper"), "optimizer"), "type");
    if (type == nullptr) return;
    const std::string word =
        lower_case(type->text.substr(type->text.rfind('.') == std::string::npos ? 0 : type->text.rfind('.') + 1));
    say("optimizer",
        of(word == "adamw"             ? "adamw_torch"
           : word == "pagedadamw32bit" ? "paged_adamw_32bit"
           : word == "pagedadamw8bit"  ? "paged_adamw_8bit"
                                       : word),
        type);
  }

  void read_precision(const PyValue* llm) {
    const PyValue* wrapper = in(top("optim_wrapper"), "type");
    const PyValue* dtype = in(top("optim_wrapper"), "dtype");
    const bool amp = wrapper != nullptr && contains(wrapper->text, "Amp");
    const PyValue* loaded = in(llm, "torch_dtype");
    const bool adapted = find(reading_, "method") != nullptr && find(reading_, "method")->value.string != "full";
    const bool brain = dtype != nullptr && contains(dtype->text, "bfloat16");
    const char* why = "AmpOptimWrapper's dtype; torch_dtype at load";
    if (!amp) return say("precision", of("fp32"), wrapper, "no AmpOptimWrapper");
    if (brain) return say("precision", of(adapted ? "bf16_amp" : "amp_bf16"), dtype, why);
    const bool half = adapted && loaded != nullptr;
    say("precision", precision_of(half ? "fp16" : "fp32", "fp16"), dtype, why);
  }

  const PyProgram& program_;
  Reading& reading_;
};

void read_xtuner(const Look& look, Sources all, Reading& reading) {
  PyProgram program(look.source, all);
  program.run(look.source.bytes, -1);
  Config(program, reading).read();
}

const Format kRows[] = {
    {"xtuner", "xtuner configuration", recognise_xtuner, read_xtuner, 60},
};

}  // namespace

extern const FormatRows xtuner_rows;
const FormatRows xtuner_rows = kRows;

}  // namespace tidemark::exchange
