// Weights packed by GPTQ, AWQ, HQQ, quanto, torchao, EETQ and AQLM. Sizes are counted by hand from the libraries'
// constructors.
#include "core/state/packed_linear.hpp"

#include <algorithm>
#include <string>

#include "tests/unit/asked.hpp"
#include "tests/unit/catch.hpp"

using namespace tidemark;

namespace {

Bytes bytes_of(const PackedLinear& layer, Count rows, Count columns) {
  const QuantisedWeight weight = packed_parts(layer, rows, columns);
  Bytes sum = weight.packed;
  for (const QuantisedWeight::Part& part : weight.state) sum += part.bytes;
  return sum;
}

// Llama's, in small.
const std::string kModel =
    R"("config":{"model_type":"llama","hidden_size":256,"intermediate_size":512,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":1000)";
const std::string kLora = R"(},"method":"qlora","sequence_length":64)";

Answer job_with(const std::string& keys, const std::string& config = "") {
  return ask("{" + kModel + config + kLora + keys + "}");
}

bool refuses(const Answer& answer, const std::string& path) {
  return std::any_of(answer.issues.begin(), answer.issues.end(),
                     [&](const Issue& issue) { return issue.severity == Severity::kError && issue.path == path; });
}

}  // namespace

TEST_CASE("a packed layer has the bytes that its library registers") {
  // gptqmodel 7.7 GPTQQuantLinear: qweight 512 x 4096 words, qzeros 32 x 512 words, scales 32 x 4096 fp16, 4096
  // indices, 8 shifts.
  PackedLinear gptq{QuantType::kGptq, 4, 128};
  CHECK(bytes_of(gptq, 4096, 4096) == 8388608 + 65536 + 262144 + 16384 + 32);
  gptq.bits = 3;  // 384 x 4096 words, 32 x 384 words, 36 shifts
  CHECK(bytes_of(gptq, 4096, 4096) == 6291456 + 49152 + 262144 + 16384 + 144);
  gptq = {QuantType::kGptq, 8, -1};  // one group
  CHECK(bytes_of(gptq, 1024, 4096) == 4194304 + 1024 + 2048 + 16384 + 16);
  // AWQuantLinear: 4096 x 512 words, 32 x 512 words, 32 x 4096 fp16.
  CHECK(bytes_of({QuantType::kAwq, 4, 128}, 4096, 4096) == 8388608 + 65536 + 262144);
  // hqq 0.2.8 Quantizer.quantize: two numbers of 16 bits for each 64 elements; ten codes of 3 bits in a word.
  CHECK(bytes_of({QuantType::kHqq, 4, 64}, 4096, 4096) == 8388608 + 2 * 524288);
  CHECK(bytes_of({QuantType::kHqq, 3, 64}, 1000, 64) == 100 * 64 * 4 + 2 * 2000);
  // A byte a weight; a scale a row, which torchao gives a zero of 8 bytes.
  CHECK(bytes_of({QuantType::kQuanto, 8}, 1000, 512) == 512000 + 2000);
  CHECK(bytes_of({QuantType::kEetq, 8}, 1000, 512) == 512000 + 2000);
  CHECK(bytes_of({QuantType::kTorchao, 8}, 1000, 512) == 512000 + 2000 + 8000);
  // aqlm 1.1.7 QuantizedLinear: 16 bits for 8 weights, 65536 vectors of them, a scale a row.
  CHECK(bytes_of({QuantType::kAqlm, 2}, 1000, 512) == 1000 * 64 * 2 + 65536 * 8 * 2 + 2000);
}

TEST_CASE("a checkpoint's quantization_config says how its weights are packed") {
  const std::string gptq = R"(,"quantization_config":{"quant_method":"gptq","bits":8,"group_size":64,"desc_act":true})";
  const Quantization& read = job_with("", gptq).job.quantization;
  CHECK(read.quant_type == QuantType::kGptq);
  CHECK(read.bits == 8);
  CHECK(read.group_size == 64);
  CHECK(read.desc_act);
  CHECK_FALSE(read.double_quant);
  const Quantization& hqq =
      job_with(
          "",
          R"(,"quantization_config":{"quant_method":"hqq","quant_config":{"weight_quant_params":{"nbits":2,"group_size":16}}})")
          .job.quantization;
  CHECK(hqq.quant_type == QuantType::kHqq);
  CHECK(hqq.bits == 2);
  CHECK(hqq.group_size == 16);
  const auto type_of = [](const std::string& own) {
    return job_with("", R"(,"quantization_config":{"quant_method":)" + own + "}").job.quantization.quant_type;
  };
  CHECK(type_of(R"("torchao","quant_type":{"default":{"_type":"Int8WeightOnlyConfig"}})") == QuantType::kTorchao);
  CHECK(type_of(R"("quanto","weights":"int8")") == QuantType::kQuanto);
  CHECK(type_of(R"("aqlm","num_codebooks":1,"nbits_per_codebook":16)") == QuantType::kAqlm);
  for (const char* own : {R"("fp8")", R"("quanto","weights":"int4")", R"("aqlm","num_codebooks":2)",
                          R"("torchao","quant_type":{"default":{"_type":"Int4WeightOnlyConfig"}})"}) {
    CHECK(refuses(job_with("", R"(,"quantization_config":{"quant_method":)" + std::string(own) + "}"),
                  "/config/quantization_config"));
  }
}

TEST_CASE("what a format cannot be is refused") {
  const auto with = [](const std::string& keys) { return job_with(R"(,"quantization":{"quant_type":)" + keys + "}"); };
  CHECK(with(R"("gptq")").estimate);
  CHECK(with(R"("gptq","bits":3,"group_size":-1)").estimate);
  CHECK(refuses(with(R"("torchao","bits":4)"), "/quantization/bits"));
  CHECK(refuses(with(R"("aqlm","bits":3)"), "/quantization/bits"));
  CHECK(refuses(with(R"("quanto","prepare_kbit":true)"), "/quantization/prepare_kbit"));
  CHECK(refuses(with(R"("eetq")"), "/quantization/quant_type"));  // transformers 5, which PEFT does not know
  CHECK(refuses(with(R"("gptq","double_quant":true)"), "/quantization/double_quant"));
  CHECK(refuses(with(R"("gptq","group_size":100)"), "/quantization/group_size"));
  CHECK(refuses(with(R"("awq","bits":8)"), "/quantization/bits"));
  CHECK(refuses(with(R"("awq","desc_act":true)"), "/quantization/desc_act"));
  CHECK(refuses(with(R"("hqq","group_size":-1)"), "/quantization/group_size"));
  CHECK(refuses(with(R"("nf4","group_size":8)"), "/quantization/group_size"));
  CHECK(refuses(job_with(R"(,"quantization":{"quant_type":"gptq"},"adapter":{"use_dora":true})"), "/adapter/use_dora"));
  CHECK(refuses(job_with(R"(,"quantization":{"quant_type":"hqq"},"precision":"amp_bf16")"), "/precision"));
  CHECK(job_with(R"(,"quantization":{"quant_type":"hqq"},"framework":{"version":"4.57"})").estimate);
  for (const char* word : {"fp8", "mxfp4", "int4"}) {
    CHECK(refuses(with("\"" + std::string{word} + "\""), "/quantization/quant_type"));
  }
}
