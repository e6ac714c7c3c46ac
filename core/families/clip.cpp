// CLIP: a tower of pictures and one of texts, whose vectors are compared with each other.
#include <algorithm>
#include <vector>

#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/scan_ops.hpp"

namespace tidemark {
namespace {

// transformers 5.12.1 models/clip/configuration_clip.py: CLIPTextConfig, of which the whole takes its sizes.
void read_text(ConfigFields& fields, Architecture& text) {
  read_tower_sizes(fields, text, 512, 12, 8, 2048);
  text.vocab_size = fields.count({"vocab_size"}, 49408);
  text.max_positions = fields.count({"max_position_embeddings"}, 77);
  text.activation = read_activation(fields, {"hidden_act"}, "quick_gelu");
  fields.accept({"projection_dim", "eos_token_id", "bos_token_id", "pad_token_id", "model_type"});
}

// transformers 5.12.1 models/clip/configuration_clip.py: CLIPConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  ConfigFields text(required_object(fields, "text_config"), fields.path() + "/text_config", fields.issues());
  read_text(text, architecture);
  text.report_unread("clip");
  architecture.positions_by_token = true;
  architecture.body_prefix = "";
  architecture.pooler_size = fields.count({"projection_dim"}, 512);
  fields.accept({"logit_scale_init_value"});
  if (!read_tower(fields, architecture, "clip_vision_model")) return;
  architecture.image_size = architecture.parts.front().image_size;
}

constexpr const char* kModel = "transformers 5.12 models/clip/modeling_clip.py: CLIPModel.forward";
constexpr const char* kVision = "transformers 5.12 models/clip/modeling_clip.py: CLIPVisionModel.forward";
constexpr const char* kText = "transformers 5.12 models/clip/modeling_clip.py: CLIPTextModel.forward";
constexpr const char* kLoss = "transformers 5.12 models/clip/modeling_clip.py: image_text_contrastive_loss";

// Its tokenizer's own length, unless the job's is shorter.
bool is_shorter(const Net& net) {
  return net.job.sequence_length > 0 && !net.tape.above(net.job.sequence_length, net.arch.max_positions);
}

Count text_length(const Net& net) {
  return is_shorter(net) ? net.job.sequence_length : net.arch.max_positions;
}

}  // namespace

void pair_texts(Net& net) {
  net.input_ids = net.tape.allocate(Shape{net.B, Dim(text_length(net))}, Dtype::kInt64, "input_ids");
  if (net.job.padding) {
    net.attention_mask = net.tape.allocate(Shape{net.B, Dim(text_length(net))}, Dtype::kInt64, "attention_mask");
  }
}

void pair_inputs(Net& net) {
  const Dim side(net.arch.image_size), channels(net.arch.parts.front().num_channels);
  pair_texts(net);
  net.pixel_values = given_pixels(net, Shape{net.B, channels, side, side});
}

namespace {

// get_image_features
Tensor image_embeds(Net& net) {
  const Architecture& tower = net.arch.parts.front();
  Net& part = net.part(tower, net.B, Dim(tower.max_positions));
  Scope in(net.tape, "vision_model", kVision);
  Tensor patches = patch_embedding(part, "vision_model.embeddings.patch_embedding", net.pixel_values, false);
  Tensor token = part.parameter("vision_model.embeddings", "class_embedding", Shape{part.H});
  const Tensor tokens = expand(std::move(token), Shape{net.B, Dim(1), part.H});
  Tensor hidden = cat({&tokens, &patches}, 1);
  Tensor positions = picture_positions(part, "vision_model.embeddings.position_embedding", tower.max_positions);
  hidden = add(std::move(hidden), std::move(positions));
  patches.reset();
  hidden = part.layer_norm("vision_model.pre_layrnorm", std::move(hidden));
  hidden = part.layers({"vision_model.encoder.layers", tower.num_layers, clip_layer}, std::move(hidden));
  net.leaves.push_back(hidden);  // vision_model_output: among the outputs
  const Tensor pooled = part.layer_norm("vision_model.post_layernorm", select(std::move(hidden), 1));
  return net.linear("visual_projection", pooled, Dim(net.arch.pooler_size));
}

}  // namespace

Net& text_part(Net& net, bool causal, Tensor& hidden) {
  const Dim length(text_length(net), is_shorter(net) ? Symbol::kSequence : Symbol::kNone);
  Net& part = net.part(net.arch, net.B, length);
  part.attention_mask = net.attention_mask;
  part.input_ids = net.input_ids;
  Scope in(net.tape, "text_model", kText);
  net.tape.buffer("text_model.embeddings.position_ids", 8 * net.arch.max_positions);
  const Tensor ids = net.tape.part_of_buffer(Shape{Dim(1), length}, Dtype::kInt64);
  hidden = part.token_embedding("text_model.embeddings.token_embedding", part.H);
  {
    const Tensor positions =
        part.embedding("text_model.embeddings.position_embedding", ids, Dim(net.arch.max_positions), part.H);
    hidden = add(std::move(hidden), positions);
  }
  const Tensor embeds = hidden;  // a name of the forward's, until the encoder is through
  causal ? make_causal_masks(part, embeds) : make_bidirectional_mask(part, embeds);
  hidden = part.layers({"text_model.encoder.layers", net.arch.num_layers, clip_layer}, std::move(hidden));
  part.shared = {};
  hidden = part.layer_norm("text_model.final_layer_norm", std::move(hidden));
  net.leaves.push_back(hidden);  // text_model_output
  return part;
}

namespace {

// get_text_features
Tensor text_embeds(Net& net) {
  Tensor hidden;
  text_part(net, true, hidden);
  Scope in(net.tape, "text_model", kText);
  const Tensor rows = net.tape.allocate(Shape{net.B}, Dtype::kInt64, "arange");
  const Tensor ends = net.tape.allocate(Shape{net.B}, Dtype::kInt64, "argmax");
  const Tensor pooled = pick(std::move(hidden), rows, ends);
  return net.linear("text_projection", pooled, Dim(net.arch.pooler_size));
}

}  // namespace

// The graph holds what the hook of enable_input_require_grads made a leaf; the outputs are gone before backward.
std::vector<Tensor> take_outputs(Net& net) {
  const auto is_leaf = [](const Tensor& x) { return x.body().is_detached_leaf; };
  std::vector<Tensor>& held = net.leaves;
  const auto outputs = std::stable_partition(held.begin(), held.end(), is_leaf);
  std::vector<Tensor> taken(outputs, held.end());
  held.erase(outputs, held.end());
  return taken;
}

// x / _get_vector_norm(x)
Tensor to_unit_length(Tensor x) {
  Tensor norm = power(x);
  norm = sum_over(std::move(norm), -1, true);
  norm = power(std::move(norm));
  return div(std::move(x), std::move(norm));
}

namespace {

Tensor forward(Net& net) {
  Scope in(net.tape, "", kModel);
  net.image_hidden_states = image_embeds(net);
  return text_embeds(net);
}

Outputs contrastive(Net& net, const Program&, Tensor text) {
  Scope in(net.tape, "", kLoss);
  Outputs out;
  Tensor images = to_unit_length(std::move(net.image_hidden_states));
  Tensor texts = to_unit_length(std::move(text));
  Tensor logits = matmul(texts, transpose(images, 0, 1));
  Tensor scale = exp(net.parameter("", "logit_scale", Shape{}));
  logits = mul(std::move(logits), std::move(scale));
  const Tensor labels = net.tape.allocate(Shape{net.B}, Dtype::kInt64, "arange");
  Tensor captions = cross_entropy(logits, labels);
  Tensor pictures = cross_entropy(transpose(logits, 0, 1), labels);
  out.loss = mul_scalar(add(std::move(captions), std::move(pictures)));
  out.rest = take_outputs(net);
  out.rest.push_back(std::move(logits));
  out.rest.push_back(std::move(images));
  out.rest.push_back(std::move(texts));
  return out;
}

constexpr HeadForward kHeads[] = {{Head::kNone, contrastive}};
constexpr ClassSuffix kClasses[] = {{"Model", Head::kNone}};

// deepspeed 0.19 runtime/engine.py _broadcast_model: p.data.view(torch.uint8) of all that is not divided; torch 2.14
// distributed/fsdp/{_init_utils.py: _verify_managed_params, _fully_shard/_fsdp_init.py: _verify_managed_param}.
void check(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  check_picture_is_of_table(architecture, job, issues);
  const Sharding how = job.data_parallel.sharding;
  if (how == Sharding::kNone || how == Sharding::kZero3) return;
  const bool flat = how == Sharding::kZero1 || how == Sharding::kZero2;
  issues.push_back({"INVALID_VALUE", Severity::kError, flat ? "/parallelism/zero_stage" : "/parallelism/fsdp",
                    std::string{"CLIP's logit_scale has no dimension, and "} +
                        (flat ? "DeepSpeed fails to broadcast it (\"self.dim() cannot be 0 to view\")."
                              : "FSDP refuses it (\"doesn't support scalar parameters\")."),
                    ""});
}

const Program kProgram = {.forward = forward, .heads = kHeads, .inputs = pair_inputs, .check = check};

constexpr ClassFacts kFacts = {.input_embeddings = false};

}  // namespace

const Family kRows[] = {
    {"clip", "CLIP", "CLIPModel", kClasses, read_config, &kProgram, "text_model.encoder.layers", kFacts},
};

extern const FamilyRows clip_rows;
const FamilyRows clip_rows = kRows;

}  // namespace tidemark
