#include "core/blocks/program.hpp"

#include <string>

#include "core/job/module_pattern.hpp"

namespace tidemark {

const Program* program_for(const Architecture& architecture) {
  switch (architecture.family) {
    case Family::kLlama:
      return &kLlamaProgram;
    case Family::kGpt2:
      return &kGpt2Program;
    case Family::kGptBigCode:
      return &kGptBigCodeProgram;
    case Family::kGptNeoX:
      return &kGptNeoXProgram;
    case Family::kOpt:
      return &kOptProgram;
    case Family::kBert:
      return &kBertProgram;
    case Family::kDistilBert:
      return &kDistilBertProgram;
    case Family::kVit:
      return &kVitProgram;
    case Family::kBloom:
      return &kBloomProgram;
    case Family::kFalcon:
      return &kFalconProgram;
    case Family::kGptJ:
      return &kGptJProgram;
    case Family::kGptNeo:
      return &kGptNeoProgram;
    case Family::kMpt:
      return &kMptProgram;
    case Family::kQwen3:
      return &kQwen3Program;
    case Family::kGemma:
      return &kGemmaProgram;
    case Family::kGemma2:
      return &kGemma2Program;
    case Family::kGemma3:
      return &kGemma3Program;
    case Family::kPhi:
      return &kPhiProgram;
    case Family::kPhi3:
      return &kPhi3Program;
    case Family::kStableLm:
      return &kStableLmProgram;
    case Family::kOlmo:
      return &kOlmoProgram;
    case Family::kOlmo2:
      return &kOlmo2Program;
    case Family::kGranite:
      return &kGraniteProgram;
    case Family::kStarcoder2:
      return &kStarcoder2Program;
    case Family::kCohere:
      return &kCohereProgram;
    case Family::kGlm:
      return &kGlmProgram;
    case Family::kGlm4:
      return &kGlm4Program;
    case Family::kNemotron:
      return &kNemotronProgram;
    case Family::kApertus:
      return &kApertusProgram;
    case Family::kHelium:
      return &kHeliumProgram;
    case Family::kInternLm2:
      return &kInternLm2Program;
    case Family::kBaichuan:
      return &kBaichuanProgram;
    default:
      return nullptr;
  }
}

void text_inputs(Net& net) {
  const Shape rows{net.B, net.S};
  net.input_ids = net.tape.allocate(rows, Dtype::kInt64, "input_ids");
  if (net.job.padding) net.attention_mask = net.tape.allocate(rows, Dtype::kInt64, "attention_mask");
  const bool classifies = net.arch.head == Head::kSequenceClassification;
  net.labels = net.tape.allocate(classifies ? Shape{net.B} : rows, Dtype::kInt64, "labels");
}

std::int64_t layer_kind(const Net& net, Count layer) {
  const auto i = static_cast<std::size_t>(layer);
  std::int64_t kind = 0;
  if (net.slides(layer)) kind |= 1;
  if (i < net.arch.no_rope_layers.size() && net.arch.no_rope_layers[i]) kind |= 2;
  if (i < net.arch.local_layers.size() && net.arch.local_layers[i] != 0) kind |= 4;
  if (i < net.arch.sliding_layers.size() && net.arch.sliding_layers[i]) kind |= 8;
  if (net.job.checkpointing == Checkpointing::kEvery && net.job.checkpoint_every > 0 &&
      layer % net.job.checkpoint_every == 0) {
    kind |= 16;
  }
  return kind;
}

}  // namespace tidemark
