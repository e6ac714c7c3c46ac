// Gemma 3 and PaliGemma that see: SigLIP's last hidden state, pooled or not, through one matrix.
#include "core/families/family.hpp"
#include "core/families/gemma.hpp"
#include "core/families/towers.hpp"
#include "core/layers/kept_loss.hpp"
#include "core/layers/norms.hpp"

namespace tidemark {
namespace {

constexpr const char* kProjector3 =
    "transformers 5.12 models/gemma3/modeling_gemma3.py: Gemma3MultiModalProjector.forward";
constexpr const char* kModel3 = "transformers 5.12 models/gemma3/modeling_gemma3.py: Gemma3Model.forward";
constexpr const char* kPali = "transformers 5.12 models/paligemma/modeling_paligemma.py: PaliGemmaModel.forward";

void accept_tokens(ConfigFields& fields) {
  fields.accept({"image_token_index", "image_token_id", "boi_token_index", "eoi_token_index", "boi_token_id",
                 "eoi_token_id", "eos_token_id", "pad_token_id", "bos_token_id", "vocab_size", "hidden_size",
                 "ignore_index", "num_hidden_layers"});
}

}  // namespace

void read_gemma3_pictures(ConfigFields& fields, Architecture& architecture) {
  architecture.pictures.tokens = fields.count({"mm_tokens_per_image"}, 256);
  accept_tokens(fields);
  if (!read_tower(fields, architecture, "siglip_vision_model")) return;
  const Architecture& tower = architecture.parts.front();
  Count side = 1;
  while ((side + 1) * (side + 1) <= architecture.pictures.tokens) ++side;
  architecture.pictures.merge = tower.image_size / tower.patch_size / side;
  if (architecture.pictures.merge < 1) {
    fields.error("INVALID_VALUE", "mm_tokens_per_image", "A picture has more tokens than patches.");
  }
}

namespace {

// transformers 5.12.1 models/gemma3/configuration_gemma3.py: Gemma3Config.
void read_gemma3(ConfigFields& fields, Architecture& architecture) {
  read_language(fields, architecture, "gemma3_text");
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  read_gemma3_pictures(fields, architecture);
}

// transformers 5.12.1 models/paligemma/configuration_paligemma.py: PaliGemmaConfig.
void read_paligemma(ConfigFields& fields, Architecture& architecture) {
  read_language(fields, architecture, "gemma");
  architecture.logit_softcap = false;  // Gemma 2 has one, this model's head does not
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, true);
  architecture.pictures.width = fields.count({"projection_dim"}, 2048);
  accept_tokens(fields);
  if (!read_tower(fields, architecture, "siglip_vision_model")) return;
  if (architecture.pictures.width != architecture.hidden_size) {
    fields.error("INVALID_VALUE", "projection_dim", "The projector's width must be the language model's.");
  }
}

Tensor last_hidden_state(Net& net) {
  Net& tower = tower_part(net, Dim(picture_count(net)));
  Tensor last = tower.arch.program->forward(tower);
  tower.outer_locals.clear();
  net.keep_image_output(last);
  return last;
}

}  // namespace

Tensor gemma3_features(Net& net) {
  const Tensor last = last_hidden_state(net);
  const char* const kName = "multi_modal_projector";
  Scope in(net.tape, kName, kProjector3);
  const Count side = net.arch.parts.front().image_size / net.arch.parts.front().patch_size;
  const Dim width = last.dim(2);
  const Tensor reshaped = contiguous(view(transpose(last, 1, 2), Shape{last.dim(0), width, Dim(side), Dim(side)}));
  Tensor pooled = average_pool(reshaped, net.arch.pictures.merge);
  const Dim tokens(pooled.size(2) * pooled.size(3));
  pooled = transpose(view(std::move(pooled), Shape{last.dim(0), width, tokens}), 1, 2);
  const Tensor weight = net.parameter(kName, "mm_input_projection_weight", Shape{width, net.H});
  const Tensor normed = gemma_norm(net, "multi_modal_projector.mm_soft_emb_norm", pooled);
  Tensor projected = to(matmul(normed, weight), last.dtype());
  net.keep_image_output(projected);
  return projected;
}

namespace {

Tensor linear_features(Net& net) {
  const Tensor last = last_hidden_state(net);
  Scope in(net.tape, "multi_modal_projector", kPali);
  Tensor projected = net.linear("multi_modal_projector.linear", last, net.H, true);
  net.keep_image_output(projected);
  return projected;
}

Tensor merge3(Net& net, Tensor embeds) {
  return merge_features(net, std::move(embeds), gemma3_features, kModel3);
}

Tensor merge_pali(Net& net, Tensor embeds) {
  return merge_features(net, std::move(embeds), linear_features, kPali);
}

void inputs(Net& net) {
  picture_inputs(net, Dim(picture_count(net)), picture_size(net));
  integer_input(net, Shape{net.B, net.S}, "token_type_ids");
}

// Gemma3ForConditionalGeneration.forward until 5.12: logits in fp32, which it returns, and a shifted copy for
// CrossEntropyLoss; neither without labels.
Outputs gemma3_lm(Net& net, const Program& program, Tensor hidden) {
  const bool calls_loss_function = net.job.framework.at_least(5, 13);
  if (calls_loss_function || net.job.loss != Loss::kDefault || net.job.has_outer_loss()) {
    return causal_lm(net, program, std::move(hidden));
  }
  Tensor logits = program.lm_head(net, std::move(hidden));
  logits = to(std::move(logits), Dtype::kFp32);
  Outputs out;
  out.loss = kept_cross_entropy(net, logits);
  out.rest = {std::move(logits)};
  if (net.image_hidden_states.defined()) out.rest.push_back(std::move(net.image_hidden_states));
  return out;
}

constexpr HeadForward kGemma3Heads[] = {
    {Head::kCausalLm, gemma3_lm}, {Head::kSequenceClassification, sequence_classification}, {Head::kNone, body_alone}};

const Program kGemma3Program = {.forward = forward_with_pictures<merge3>,
                                .lm_head = language_head,
                                .heads = kGemma3Heads,
                                .inputs = inputs,
                                .attention = kFlashUntil523};
const Program kPaliGemmaProgram = {.forward = forward_with_pictures<merge_pali>,
                                   .lm_head = language_head,
                                   .inputs = inputs,
                                   .attention = kFlashUntil523};

constexpr ClassFacts kFacts = {.no_split = NoSplit::kAbsentToo, .pictures = PictureRule::kOwnSize};

}  // namespace

const Family kRows[] = {
    {"gemma3", "Gemma3", "Gemma3ForConditionalGeneration", kJudgingClasses, read_gemma3, &kGemma3Program, kModelLayers,
     kFacts},
    {"paligemma", "PaliGemma", "PaliGemmaForConditionalGeneration", kSeeingClasses, read_paligemma, &kPaliGemmaProgram,
     kModelLayers, kFacts},
};

extern const FamilyRows gemma3_rows;
const FamilyRows gemma3_rows = kRows;

}  // namespace tidemark
