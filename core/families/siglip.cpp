// SigLIP: towers as CLIP's, whose vectors are compared pair by pair; or its tower of pictures with a classifier.
#include "core/families/family.hpp"
#include "core/families/towers.hpp"
#include "core/layers/vision.hpp"
#include "core/tape/scan_ops.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {

// transformers 5.12.1 models/siglip/configuration_siglip.py: SiglipTextConfig, of which the whole takes its sizes.
void read_siglip_text(ConfigFields& fields, Architecture& text) {
  read_tower_sizes(fields, text, 768, 12, 12, 3072);
  text.vocab_size = fields.count({"vocab_size"}, 32000);
  text.max_positions = fields.count({"max_position_embeddings"}, 64);
  text.activation = read_activation(fields, {"hidden_act"}, "gelu_pytorch_tanh");
  text.pooler_size = fields.nullable({"projection_size"}, std::nullopt).value_or(text.hidden_size);
  fields.accept({"projection_dim", "eos_token_id", "bos_token_id", "pad_token_id", "model_type"});
}

namespace {

// transformers 5.12.1 models/siglip/configuration_siglip.py: SiglipConfig. Either part may be left to its defaults.
void read_config(ConfigFields& fields, Architecture& architecture) {
  const Value nothing{Value::Kind::kObject};
  const Value* given = object_in(fields, "text_config");
  ConfigFields text(given != nullptr ? *given : nothing, fields.path() + "/text_config", fields.issues());
  read_siglip_text(text, architecture);
  text.report_unread("siglip");
  architecture.positions_by_token = true;
  architecture.body_prefix = "";
  fields.accept({"initializer_factor"});
  if (!read_tower(fields, architecture, "siglip_vision_model")) return;
  architecture.image_size = architecture.parts.front().image_size;
}

constexpr const char* kModel = "transformers 5.12 models/siglip/modeling_siglip.py: SiglipModel.forward";
constexpr const char* kClassifier =
    "transformers 5.12 models/siglip/modeling_siglip.py: SiglipForImageClassification.forward";

void inputs(Net& net) {
  if (net.arch.head == Head::kNone) return pair_inputs(net);
  const Dim side(net.arch.image_size), channels(net.arch.parts.front().num_channels);
  net.pixel_values = given_pixels(net, Shape{net.B, channels, side, side});
  class_labels(net);
}

// The tower's last hidden state and, in the last of `leaves`, what its head makes of it.
Tensor pictures(Net& net) {
  Net& tower = net.part(net.arch.parts.front(), net.B, Dim(net.arch.parts.front().max_positions));
  tower.pixel_values = net.pixel_values;
  return siglip_pooled(net, tower, siglip_tower(tower));
}

Tensor forward(Net& net) {
  return siglip_forward(net, kModel, pictures);
}

Outputs image_classification(Net& net, const Program&, Tensor hidden) {
  Scope in(net.tape, "", kClassifier);
  Tensor mean = mean_over(std::move(hidden), 1);
  take_outputs(net);  // they go; what is a leaf of the graph stays
  return classified(net, net.classifier("classifier", std::move(mean), Dim(net.arch.num_labels), true));
}

constexpr HeadForward kHeads[] = {{Head::kNone, siglip_contrastive},
                                  {Head::kImageClassification, image_classification}};
constexpr ClassSuffix kClasses[] = {{"Model", Head::kNone}, {"ForImageClassification", Head::kImageClassification}};

const Program kProgram = {.forward = forward, .heads = kHeads, .inputs = inputs, .check = check_picture_is_of_table};

// Its tower alone, as those that hold it name it.
std::string full_name_of(const Architecture&, std::string_view path) {
  return renamed(path, "vision_tower.", "vision_model.");
}

// SiglipModel.__init__ makes the text's tower first.
constexpr ClassFacts kFacts = {
    .no_split = NoSplit::kEmbeddings, .behind_language = "vision_tower", .full_name = full_name_of};

}  // namespace

Tensor siglip_pooled(Net& net, Net& tower, Tensor hidden) {
  if (!tower.outer_locals.empty()) net.leaves.push_back(tower.outer_locals.back());
  tower.outer_locals.clear();
  return hidden;
}

Tensor siglip_forward(Net& net, const char* source, Tensor (*pictures)(Net& net)) {
  Scope in(net.tape, "", source);
  Tensor hidden = pictures(net);
  if (net.arch.head != Head::kNone) return hidden;
  net.image_hidden_states = select(net.leaves.back(), 1);
  net.leaves.push_back(std::move(hidden));
  text_part(net, false, hidden);
  return net.linear("text_model.head", select(std::move(hidden), 1), Dim(net.arch.pooler_size), true);
}

Outputs siglip_contrastive(Net& net, const Program&, Tensor text) {
  Scope in(net.tape, "", kModel);
  Tape& t = net.tape;
  Outputs out;
  Tensor images = to_unit_length(std::move(net.image_hidden_states));
  Tensor texts = to_unit_length(std::move(text));
  Tensor logits = matmul(texts, transpose(images, 0, 1));
  Tensor scale = exp(net.parameter("", "logit_scale", Shape{Dim(1)}));
  logits = mul(std::move(logits), std::move(scale));
  logits = add(std::move(logits), net.parameter("", "logit_bias", Shape{Dim(1)}));
  const Tensor eye = t.allocate(logits.shape(), Dtype::kFp32, "eye");
  const Tensor signs = t.allocate(logits.shape(), Dtype::kFp32, "add");
  const Tensor likelihood = softplus(mul(signs, logits));  // logsigmoid
  out.loss = mean_all(likelihood);
  out.rest = take_outputs(net);
  out.rest.push_back(std::move(logits));
  out.rest.push_back(std::move(images));
  out.rest.push_back(std::move(texts));
  return out;
}

const Family kRows[] = {
    {"siglip", "Siglip", "SiglipModel", kClasses, read_config, &kProgram, "text_model.encoder.layers", kFacts},
};

extern const FamilyRows siglip_rows;
const FamilyRows siglip_rows = kRows;

}  // namespace tidemark
