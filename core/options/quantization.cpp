#include "core/options/builders.hpp"
#include "core/options/topics.hpp"

namespace tidemark {
namespace {

constexpr int kEightBits = 8;

void bits(Request& r, const OptionValue& v) {
  r.job.quantization.bits = static_cast<int>(v.integer);
  if (v.integer == kEightBits) r.job.quantization.quant_type = QuantType::kInt8;
}

/// What has one number of bits for a weight.
constexpr int fixed_bits(QuantType type) {
  return type == QuantType::kInt8 || type == QuantType::kQuanto || type == QuantType::kTorchao ||
                 type == QuantType::kEetq
             ? kEightBits
         : type == QuantType::kAqlm ? 2
                                    : 0;
}

// The defaults of transformers' GPTQConfig, AwqConfig and HqqConfig. None of them packs its scales.
void quant_type(Request& r, const OptionValue& v) {
  Quantization& q = r.job.quantization;
  q.quant_type = static_cast<QuantType>(v.choice);
  if (!q.is_bitsandbytes()) {
    q.double_quant = false;
    q.group_size = q.quant_type == QuantType::kHqq ? 64 : 128;
    if (const int bits = fixed_bits(q.quant_type); bits > 0) q.bits = bits;
    return;
  }
  q.bits = q.quant_type == QuantType::kInt8 ? kEightBits : 4;
  if (v.text == "torchao_nf4") {
    r.job.stand_ins.push_back(v.text + " weights, answered by bitsandbytes'");
  }
}

void check_quant_type(const OptionValue& v, const ReadSoFar& read, Issues& issues) {
  const QuantType type = static_cast<QuantType>(v.choice);
  if (!read.states("quantization.bits") || (type > QuantType::kInt8 && fixed_bits(type) == 0)) return;
  const int bits = read.request.job.quantization.bits;
  if (type > QuantType::kInt8) {
    if (bits == fixed_bits(type)) return;
    issues.push_back(
        {"INVALID_VALUE", Severity::kError, "/quantization/bits",
         type == QuantType::kAqlm
             ? "Of AQLM one codebook of 16 bits for 8 weights is modelled: \"bits\": 2."
             : "Of " + v.text + " weights of 8 bits are modelled" +
                   (type == QuantType::kTorchao  ? "; PEFT adapts no others (\"only supports int8 weights for "
                                                   "now\")."
                    : type == QuantType::kQuanto ? ": which kernel takes fewer bits is up to the card."
                                                 : "."),
         std::to_string(fixed_bits(type))});
    return;
  }
  const bool eight = type == QuantType::kInt8;
  if ((bits == kEightBits) == eight) return;
  issues.push_back({"INVALID_VALUE", Severity::kError, "/quantization/quant_type",
                    "\"quantization.quant_type\" " + v.text + " has " + (eight ? "8" : "4") + " bits, not " +
                        std::to_string(bits) + ".",
                    eight ? "nf4" : "int8"});
}

constexpr Choice kQuantTypes[] = {
    {"nf4", number(QuantType::kNf4), "4-bit NormalFloat"},
    {"fp4", number(QuantType::kFp4), "4-bit float"},
    {"int8", number(QuantType::kInt8), "LLM.int8()"},
    {"gptq", number(QuantType::kGptq),
     "GPTQ of 2, 3, 4 or 8 bits: gptqmodel's layers, AutoGPTQ's before transformers 5"},
    {"awq", number(QuantType::kAwq), "AWQ of 4 bits: gptqmodel's layers, AutoAWQ's before transformers 5"},
    {"hqq", number(QuantType::kHqq), "HQQ of 2, 3, 4 or 8 bits"},
    {"torchao_nf4", number(QuantType::kNf4), "torchao's NF4 tensors: bitsandbytes' stand in, with a wide range"},
    {"quanto", number(QuantType::kQuanto), "optimum-quanto's weights of 8 bits"},
    {"torchao", number(QuantType::kTorchao), "torchao's weights of 8 bits (Int8WeightOnlyConfig)"},
    {"aqlm", number(QuantType::kAqlm), "AQLM of 2 bits: a codebook of 2^16 vectors of 8 weights"},
    {"eetq", number(QuantType::kEetq), "EETQ of 8 bits, before transformers 5"},
    {"fp8", 0, "8-bit floats: transformers does not train beside them", false},
    {"mxfp4", 0, "gpt-oss' experts as published, which transformers trains dequantised only: use lora", false},
    {"int4", 0, "torchao's 4-bit integers, which PEFT refuses: it adapts torchao's int8 alone", false},
};

constexpr Choice kStorages[] = {
    {"auto", kNoDtype, "bytes, bitsandbytes' own; under FSDP the weights' dtype"},
    {"uint8", number(Dtype::kUint8), "bytes"},
    {"bf16", number(Dtype::kBf16), "words of bfloat16"},
    {"fp16", number(Dtype::kFp16), "words of half precision"},
    {"fp32", number(Dtype::kFp32), "words of 32 bits"},
    {"bfloat16", number(Dtype::kBf16), "", true, "bf16"},
    {"float16", number(Dtype::kFp16), "", true, "fp16"},
    {"float32", number(Dtype::kFp32), "", true, "fp32"},
};

constexpr Choice kPrepareKbit[] = {
    {"false", number(PrepareKbit::kOff), "weights that are not quantised keep their dtype"},
    {"true", number(PrepareKbit::kAll), "peft.prepare_model_for_kbit_training: all of them become fp32"},
    {"norms_only", number(PrepareKbit::kNormsOnly), "only norms become fp32"},
    {"norms_back", number(PrepareKbit::kNormsBack),
     "all become fp32, then norms, token table and head go back, as Axolotl has it: what stays are experts"},
};

void only_beside_adapters(const OptionValue& v, const ReadSoFar& read, Issues& issues) {
  const Method method = read.request.job.method;
  if (!v.boolean || method == Method::kLora || method == Method::kQlora) return;
  issues.push_back({"INVALID_VALUE", Severity::kError, "/method",
                    "Quantised weights cannot be trained themselves: write \"method\": \"qlora\".", "qlora"});
}

void not_in_two_ways(const OptionValue& v, const ReadSoFar& read, Issues& issues) {
  only_beside_adapters(v, read, issues);
  if (!v.boolean || !read.states("quantization.bits") || read.request.job.quantization.bits == kEightBits) return;
  issues.push_back({"INVALID_VALUE", Severity::kError, "/load_in_8bit",
                    "\"load_in_8bit\" says 8 bits and \"quantization.bits\" another number. Leave one of them out.",
                    "false"});
}

/// LoRA on a base that is loaded in so many bits.
void hold_in(Request& r, const OptionValue& v, int wanted) {
  if (!v.boolean || !r.job.has_adapter()) return;
  r.job.method = Method::kQlora;
  r.job.quantization.bits = wanted;
  if (wanted == kEightBits) r.job.quantization.quant_type = QuantType::kInt8;
}

constexpr Option kOptions[] = {
    integer("quantization.bits", "4", "Bits per weight",
            "Bits per quantised weight: 4 or 8; of GPTQ and HQQ also 2 and 3.")
        .within(2, 8, "bits")
        .known_as("quantization_bit,quant_bits")
        .spelled("--bits")
        .sets(bits),
    choice("quantization.quant_type", "\"nf4\"", kQuantTypes, "Number format", "Number format; 8 bits mean int8.")
        .known_as("bnb_4bit_quant_type,quantization_type,quantization.method,quantization.quant_method,quant_method")
        .spelled("--quant-type")
        .checked(check_quant_type)
        .sets(quant_type),
    flag("quantization.double_quant", true, "Double quantisation", "Block scales are quantised again.")
        .known_as("bnb_4bit_use_double_quant,double_quantization,use_nested_quant")
        .spelled("--double-quant")
        .when("quantization.quant_type", "nf4,fp4")
        .into<&TrainingJob::quantization, &Quantization::double_quant>(),
    flag("quantization.moe_experts", false, "Packed experts",
         "Also experts whose weights are one parameter are packed, and unpacked as a layer runs: Axolotl's.")
        .known_as("quantize_moe_experts")
        .when("quantization.quant_type", "nf4,fp4,int8")
        .further()
        .into<&TrainingJob::quantization, &Quantization::experts>(),
    integer("quantization.group_size", "64", "Block size",
            "Elements that share a scale; -1: a whole row (GPTQ, AWQ). Of GPTQ and AWQ 128 unless stated.")
        .within(-1, 65536, "elements")
        .when("quantization.quant_type", "nf4,fp4,gptq,awq,hqq")
        .further()
        .into<&TrainingJob::quantization, &Quantization::group_size>(),
    flag(
        "quantization.desc_act", false, "Order of activations",
        "GPTQ quantised columns in the order of their activations. AutoGPTQ multiplies by such weights in other steps.")
        .when("quantization.quant_type", "gptq")
        .further()
        .into<&TrainingJob::quantization, &Quantization::desc_act>(),
    choice("quantization.quant_storage", "\"auto\"", kStorages, "Storage dtype",
           "Elements of packed weights, which GPUs divide and gather.")
        .known_as("bnb_4bit_quant_storage")
        .further()
        .sets([](Request& r, const OptionValue& v) { store(r.job.quantization.storage, v); }),
    choice("quantization.prepare_kbit", "false", kPrepareKbit, "Prepared for k-bit training",
           "Whether peft.prepare_model_for_kbit_training ran: it upcasts what is not quantised.")
        .spelled("--prepare-kbit")
        .into<&TrainingJob::quantization, &Quantization::prepare_kbit>(),
    flag("load_in_4bit", false, "Loaded in 4 bits", "from_pretrained(load_in_4bit=True): what method qlora means.")
        .further()
        .checked(only_beside_adapters)
        .sets([](Request& r, const OptionValue& v) { hold_in(r, v, 4); }),
    flag("load_in_8bit", false, "Loaded in 8 bits", "from_pretrained(load_in_8bit=True): method qlora with 8 bits.")
        .further()
        .checked(not_in_two_ways)
        .sets([](Request& r, const OptionValue& v) { hold_in(r, v, kEightBits); }),
};

}  // namespace

constinit const Topic kQuantizationTopic{
    {"quantization", "Quantised weights (method qlora)", true, {"method", "qlora"}}, kPacked<kOptions>};

}  // namespace tidemark
