// Aria: Idefics 3's tower on each piece of a picture, learned queries that attend to its patches, and a decoder of
// Llama's kind whose experts multiplied one after another, each its own rows of the tokens sorted by expert, until
// transformers 5.18 gave it the experts that all have.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/families/family.hpp"
#include "core/families/mixtures.hpp"
#include "core/families/towers.hpp"
#include "core/layers/moe.hpp"
#include "core/tape/routing_ops.hpp"
#include "core/tape/vision_ops.hpp"

namespace tidemark {
namespace {

constexpr const char* kMoe = "transformers 5.12 models/aria/modeling_aria.py: AriaTextMoELayer.forward";
constexpr const char* kExperts = "transformers 5.12 models/aria/modeling_aria.py: AriaExperts.forward";
constexpr const char* kGemm = "transformers 5.12 models/aria/modeling_aria.py: sequential_experts_gemm";
constexpr const char* kShared = "transformers 5.12 models/aria/modeling_aria.py: AriaSharedExpertsMLP.forward";
constexpr const char* kLayer = "transformers 5.12 models/aria/modeling_aria.py: AriaTextDecoderLayer.forward";
constexpr const char* kFeatures = "transformers 5.12 models/aria/modeling_aria.py: AriaModel.get_image_features";
constexpr const char* kCross = "transformers 5.12 models/aria/modeling_aria.py: AriaCrossAttention.forward";
constexpr const char* kProjector = "transformers 5.12 models/aria/modeling_aria.py: AriaProjector.forward";
constexpr const char* kModel = "transformers 5.12 models/aria/modeling_aria.py: AriaModel.forward";
constexpr const char* kAttention = "torch.nn.functional: multi_head_attention_forward";

// -- the experts ------------------------------------------------------------------------------------------------------

// torch/csrc/autograd/functions/tensor.cpp CopySlices::apply: a copy of the whole gradient, of which the part is cloned
// and then filled with zeros; the zeros that were filled first need none.
void put_slice_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  Tensor whole = t.allocate(n.input_shapes[0], g[0].dtype(), "new_empty_strided");
  r[1] = t.allocate(n.input_shapes[1], g[0].dtype(), "clone");
  if (!n.needs(0)) return;
  { const Tensor filled = t.allocate(n.input_shapes[1], g[0].dtype(), "zeros_like"); }
  r[0] = std::move(whole);
}

// output[start:end] = part
Tensor put_slice(Tensor output_in, const Tensor& part) {
  const Tensor output = std::move(output_in);
  Tape& t = output.tape();
  Node* n = t.record("CopySlices", put_slice_backward, {&output, &part});
  Tensor out = output;
  out.leave_graph();
  t.attach(n, out);
  return out;
}

// derivatives.yaml index_copy: grad.index_select(dim, index).expand_as(source) keeps the source for its shape.
void index_copy_backward(Tape& t, Node& n, Tensor* g, Tensor* r) {
  r[1] = t.allocate(n.input_shapes[1], g[0].dtype(), "index_select");
}

// zeros.index_copy_(0, index, rows)
Tensor index_copy(Tensor zeros_in, const Tensor& index, const Tensor& rows) {
  Tensor out = std::move(zeros_in);
  Tape& t = out.tape();
  Node* n = t.record("index_copy_", index_copy_backward, {&out, &rows});
  t.save(n, index);
  t.save(n, rows);
  out.leave_graph();
  t.attach(n, out);
  return out;
}

Tensor gemm(Net& net, const char* module, const Tensor& x, Dim out_features, const std::vector<Count>& rows) {
  Scope in(net.tape, module, kGemm);
  const Dim experts(net.arch.experts.count);
  const Tensor weight = net.expert_parameter(module, "weight", Shape{experts, x.dim(1), out_features});
  Tensor output = zeros(net.tape, Shape{x.dim(0), out_features}, x.dtype());
  Tensor tokens, out;
  Count start = 0;
  for (const Count count : rows) {
    if (count <= 0) continue;
    tokens = narrow(x, 0, start, Dim(count));
    out = matmul(tokens, select(weight, 0));
    output = put_slice(std::move(output), out);
    start += count;
  }
  return output;
}

Tensor experts(Net& net, const Tensor& hidden, const Tensor& logits) {
  Scope in(net.tape, "mlp.experts", kExperts);
  Tape& t = net.tape;
  const Experts& e = net.arch.experts;
  const Dim k(e.per_token), count(e.count), n(hidden.size(0) * e.per_token), width(e.width);
  const Shape list{n};
  Tensor weights, indices;
  {
    TopK top = topk(logits, k);
    indices = std::move(top.indices);
    weights = softmax(std::move(top.values));
  }
  Tensor per_expert;
  {
    Tensor flat = t.allocate(list, Dtype::kFp32, "to");
    Tensor counted = t.allocate(Shape{count}, Dtype::kFp32, "histc");
    flat.reset();
    per_expert = t.allocate(Shape{count}, Dtype::kInt64, "to");
  }
  Tensor sorted;
  {
    const Tensor values = t.allocate(list, Dtype::kInt64, "sort");
    sorted = t.allocate(list, Dtype::kInt64, "sort indices");
  }
  Tensor permuted;
  {
    Tensor rows = t.allocate(list, Dtype::kInt64, "floor_divide");
    permuted = index_some(hidden, std::move(rows), n);
  }
  const std::vector<Count> rows = rows_of_experts(net, hidden.size(0), e.per_token);
  Tensor h = gemm(net, "mlp.experts.fc1", permuted, Dim(2 * e.width), rows);
  const Pieces parts = split(std::move(h), -1, {width, width});
  h = silu(parts.part[0]);
  h = mul(std::move(h), parts.part[1]);
  const Tensor made = gemm(net, "mlp.experts.fc2", h, hidden.dim(1), rows);
  Tensor back = zeros(t, Shape{n, hidden.dim(1)}, made.dtype());
  back = index_copy(std::move(back), sorted, made);
  back = view(std::move(back), Shape{hidden.dim(0), k, hidden.dim(1)});
  Tensor weighted = mul(back, unsqueeze(weights, -1));
  return sum_over(std::move(weighted), 1, false);
}

// From this release on AriaTextTopKRouter and @use_experts_implementation(is_transposed=True).
constexpr int kTopKRelease = 18;
constexpr ExpertForm kForm = {.source = "transformers 5.18 models/aria/modeling_aria.py: AriaExperts.forward",
                              .transposed = true};

Tensor routed_by_choice(Net& net, const Tensor& hidden, const Tensor& logits) {
  TopK best = topk(logits, Dim(net.arch.experts.per_token));
  const Tensor weights = softmax(std::move(best.values));
  return run_experts(net, kForm, hidden, best.indices, weights);
}

Tensor moe(Net& net, Tensor hidden_in) {
  Scope in(net.tape, "mlp", kMoe);
  const Tensor hidden = as_tokens(net, std::move(hidden_in));
  const Tensor logits = router_logits(net, "mlp.router", hidden, kTopKRelease);
  const bool chooses = net.job.framework.at_least(5, kTopKRelease);
  const Tensor routed =
      as_sequences(net, chooses ? routed_by_choice(net, hidden, logits) : experts(net, hidden, logits));
  const GatedNames names = {"mlp.shared_experts", "mlp.shared_experts.gate_proj", "mlp.shared_experts.act_fn",
                            "mlp.shared_experts.up_proj", "mlp.shared_experts.down_proj"};
  const Tensor shared =
      gated_mlp(net, names, kShared, as_sequences(net, hidden), Dim(net.arch.experts.shared_width), net.arch.mlp_bias);
  return add(routed, shared);
}

Tensor layer(Net& net, Tensor hidden) {
  return pre_norm_layer(net, std::move(hidden), kLayer, llama_attention, moe);
}

const Program kText = {.forward = one_stack<llama_embed, layer, llama_norm>, .lm_head = llama_head};

// -- pictures ---------------------------------------------------------------------------------------------------------

constexpr Count kMostPatches = 1'000'000;  // a key of the configuration that is none

/// Tokens of a piece of a picture, by the patches that the tower makes of it (projector_patch_to_query_dict).
Count queries_of(const Architecture& architecture, Count patches) {
  const std::vector<Count>& pairs = architecture.pictures.grids;
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (pairs[i] == patches) return pairs[i + 1];
  }
  return 0;
}

Count patches_of(const Architecture& architecture, PictureSize size) {
  const Architecture& tower = architecture.parts.front();
  return (size.height / tower.patch_size) * (size.width / tower.patch_size);
}

// nn.MultiheadAttention with queries that are no keys, a mask and its weights: two products with the mask inside the
// first one's kernel, and the weights' mean over the heads.
Tensor attend(Net& net, Net& tower, const Tensor& q_in, const Tensor& k_in, const Tensor& v_in) {
  const char* const kModule = "multi_modal_projector.cross_attn.multihead_attn";
  Scope in(net.tape, kModule, kAttention);
  Tape& t = net.tape;
  const Dim width = tower.H, heads = tower.A, columns = tower.hd, n = q_in.dim(0), queries = q_in.dim(1),
            keys = k_in.dim(1), all(n.n() * heads.n());
  const Shape scores{all, queries, keys};
  Tensor weight = net.parameter(kModule, "in_proj_weight", Shape{Dim(3 * width.n()), width});
  Tensor bias = net.parameter(kModule, "in_proj_bias", Shape{Dim(3 * width.n())});
  const Tensor mask = t.allocate(scores, t.autocast().value_or(q_in.dtype()), "zeros_like");
  const Pieces weights = split(std::move(weight), 0, {width, width, width});
  const Pieces biases = split(std::move(bias), 0, {width, width, width});
  const auto by_head = [&](const Tensor& x, int i, Dim length) {
    const auto at = static_cast<std::size_t>(i);
    Tensor rows = linear(transpose(x, 0, 1), weights.part[at], biases.part[at]);
    return transpose(view(std::move(rows), Shape{length, all, columns}), 0, 1);
  };
  const Tensor q = by_head(q_in, 0, queries), k = by_head(k_in, 1, keys), v = by_head(v_in, 2, keys);
  Tensor scaled = mul_scalar(q);
  Tensor attended = baddbmm(mask, scaled, transpose(k, 1, 2));
  attended = softmax(std::move(attended));
  Tensor out = matmul(attended, v);
  out = contiguous(transpose(std::move(out), 0, 1));
  out = view(std::move(out), Shape{Dim(queries.n() * n.n()), width});
  Tensor of_out = net.linear_weight("multi_modal_projector.cross_attn.multihead_attn.out_proj", width, width);
  Tensor bias_of_out = net.parameter("multi_modal_projector.cross_attn.multihead_attn.out_proj", "bias", Shape{width});
  out = linear(std::move(out), std::move(of_out), std::move(bias_of_out));
  out = view(std::move(out), Shape{queries, n, width});
  { const Tensor mean = mean_over(view(attended, Shape{n, heads, queries, keys}), 1); }
  return transpose(std::move(out), 0, 1);
}

Tensor cross_attention(Net& net, Net& tower, const Tensor& seen, const Tensor& queries) {
  Scope in(net.tape, "multi_modal_projector.cross_attn", kCross);
  const Dim width = tower.H;
  Tensor q = net.layer_norm("multi_modal_projector.cross_attn.layer_norm", queries);
  q = net.linear("multi_modal_projector.cross_attn.q_proj", std::move(q), width);
  const Tensor states = net.layer_norm("multi_modal_projector.cross_attn.layer_norm_kv", seen);
  const Tensor k = net.linear("multi_modal_projector.cross_attn.k_proj", states, width);
  const Tensor v = net.linear("multi_modal_projector.cross_attn.v_proj", states, width);
  Tensor out = attend(net, tower, q, k, v);
  return net.linear("multi_modal_projector.cross_attn.linear", std::move(out), width, true);
}

Tensor project(Net& net, Net& tower, const Tensor& seen) {
  Scope in(net.tape, "multi_modal_projector", kProjector);
  Tape& t = net.tape;
  const Dim n = seen.dim(0);
  const Count wanted = std::max<Count>(1, queries_of(net.arch, seen.size(1)));
  const Tensor ignored = t.allocate(Shape{n, seen.dim(1)}, Dtype::kBool, "logical_not");
  Tensor table = net.parameter("multi_modal_projector", "query", Shape{Dim(net.arch.pictures.tokens), tower.H});
  table = narrow(std::move(table), 0, 0, Dim(wanted));
  const Tensor queries = repeat_rows(unsqueeze(std::move(table), 0), n);
  const Tensor mask = t.allocate(Shape{n, tower.A, seen.dim(1)}, Dtype::kBool, "repeat_interleave");
  const Tensor attended = cross_attention(net, tower, seen, queries);
  Tensor out = net.layer_norm("multi_modal_projector.layer_norm", attended);
  out = net.linear("multi_modal_projector.feed_forward.linear_in", std::move(out), net.H);
  out = activate(Activation::kGeluNew, std::move(out));
  return net.linear("multi_modal_projector.feed_forward.linear_out", std::move(out), net.H);
}

Tensor features(Net& net) {
  Scope in(net.tape, "", kFeatures);
  const PictureSize size = picture_size(net);
  const Dim pieces(tile_count(net)), patches(patches_of(net.arch, size));
  Net& tower = net.part(net.arch.parts.front(), pieces, patches);
  const Tensor patch_mask = net.tape.allocate(Shape{pieces, patches}, Dtype::kBool, "gt");
  tower.pixel_values =
      net.pixel_values.defined()
          ? net.pixel_values
          : net.tape.allocate(Shape{pieces, Dim(tower.arch.num_channels), Dim(size.height), Dim(size.width)},
                              net.weight_dtype(4), "pixel_values");
  tower.hands_out_all = true;  // get_image_features asks for all hidden states, whichever it takes
  const Tensor last = tower.arch.program->forward(tower);
  tower.hands_out_all = false;
  Tensor made = project(net, tower, last);
  let_tower_go(net, tower, last);
  net.keep_image_output(made);
  return made;
}

Tensor merge(Net& net, Tensor embeds) {
  return merge_features(net, std::move(embeds), features, kModel);
}

void inputs(Net& net) {
  const PictureSize size = picture_size(net);
  picture_inputs(net, Dim(tile_count(net)), size);
  if (net.job.images_per_sample == 0) return;
  net.more_inputs.push_back(
      net.tape.allocate(Shape{Dim(tile_count(net)), Dim(size.height), Dim(size.width)}, Dtype::kBool, "pixel_mask"));
}

// transformers 5.12.1 models/aria/configuration_aria.py: AriaTextConfig.
void read_text(ConfigFields& outer, Architecture& architecture) {
  ConfigFields fields(required_object(outer, "text_config"), outer.path() + "/text_config", outer.issues());
  read_llama_config(fields, architecture);
  Experts& e = architecture.experts;
  e.count = fields.count({"moe_num_experts"}, 8);
  e.per_token = fields.count({"moe_topk"}, 2);
  e.width = architecture.intermediate_size;
  e.shared_width = architecture.intermediate_size * fields.count({"moe_num_shared_experts"}, 2);
  if (e.per_token > e.count) {
    fields.error("INVALID_VALUE", "moe_topk", "A token passes through more experts than there are.");
  }
  fields.accept({"model_type", "architectures", "torch_dtype", "dtype", "_name_or_path"});
  fields.report_unread("aria_text");
}

// AriaConfig.
void read_config(ConfigFields& fields, Architecture& architecture) {
  read_text(fields, architecture);
  architecture.language = &kText;
  architecture.tie_word_embeddings = fields.flag({"tie_word_embeddings"}, false);
  Pictures& p = architecture.pictures;
  const Value* pairs = object_in(fields, "projector_patch_to_query_dict");
  if (pairs == nullptr) p.grids = {1225, 128, 4900, 256};
  for (std::size_t i = 0; pairs != nullptr && i < pairs->members.size(); ++i) {
    const Value::Member& pair = pairs->members[i];
    Count patches = 0;
    for (const char digit : pair.key) {
      patches = digit >= '0' && digit <= '9' ? std::min(patches * 10 + digit - '0', kMostPatches) : 0;
    }
    if (patches > 0 && pair.value.is_integer() && pair.value.integer > 0) {
      p.grids.push_back(patches);
      p.grids.push_back(pair.value.integer);
    }
  }
  for (std::size_t i = 1; i < p.grids.size(); i += 2) p.tokens = std::max(p.tokens, p.grids[i]);
  if (p.tokens == 0) {
    fields.error("INVALID_VALUE", "projector_patch_to_query_dict",
                 "Numbers of patches and of the tokens that they become are needed.");
  }
  if (fields.count({"vision_feature_layer"}, -1, -100) != -1) {
    fields.error("UNSUPPORTED_VALUE", "vision_feature_layer", "Only the tower's last layer is modelled.", "-1");
  }
  ConfigFields vision(required_object(fields, "vision_config"), fields.path() + "/vision_config", fields.issues());
  Architecture part;
  read_idefics_tower(vision, part);
  vision.report_unread("idefics3_vision");
  architecture.parts.push_back(std::move(part));
  fields.accept({"image_token_index", "image_token_id", "initializer_range"});
}

void check(const Architecture& architecture, const TrainingJob& job, Issues& issues) {
  if (job.has_adapter() && !job.adapter.target_parameters.empty() && !job.framework.at_least(5, kTopKRelease)) {
    issues.push_back({"UNSUPPORTED_VALUE", Severity::kError, "/adapter/target_parameters",
                      "Adapters of Aria's experts are not modelled.", ""});
  }
  if (job.images_per_sample == 0 || architecture.parts.empty()) return;
  const Architecture& tower = architecture.parts.front();
  const PictureSize size = job.image_height > 0 ? PictureSize{job.image_height, job.image_width}
                                                : PictureSize{tower.image_size, tower.image_size};
  if (size.height == size.width && queries_of(architecture, patches_of(architecture, size)) > 0) return;
  issues.push_back({"INVALID_VALUE", Severity::kError, "/image_size",
                    "AriaImageProcessor makes squares of 490 or 980 pixels of a picture (max_image_size): give one of "
                    "them, and pieces as \"image_tiles\".",
                    "980"});
}

const Program kProgram = {
    .forward = forward_with_pictures<merge>, .lm_head = language_head, .inputs = inputs, .check = check};

// Its tower is Idefics 3's by another name.
std::string full_name_of(const Architecture& architecture, std::string_view path) {
  return name_within_body(architecture, renamed(path, "vision_model.", "vision_tower."), "language_model.");
}

constexpr ClassFacts kFacts = {.flex_attention = false,
                               .one_experts_form = true,
                               .experts_forms_since = kTopKRelease,
                               .no_split = NoSplit::kAbsentToo,
                               .named_anew_since = 23,
                               .named_anew = NoSplit::kOtherParts,
                               .tiles = true,
                               .full_name = full_name_of};

}  // namespace

const Family kRows[] = {
    {"aria", "Aria", "AriaForConditionalGeneration", kSeeingClasses, read_config, &kProgram, kModelLayers, kFacts},
};

extern const FamilyRows aria_rows;
const FamilyRows aria_rows = kRows;

}  // namespace tidemark
