#include "core/blocks/net.hpp"

#include "core/blocks/losses.hpp"
#include "core/job/module_pattern.hpp"
#include "core/state/quantised_weight.hpp"

namespace tidemark {

Net::Net(Tape& t, const Architecture& a, const TrainingJob& j)
    : tape(t),
      arch(a),
      job(j),
      B(j.micro_batch_size, Symbol::kBatch),
      S(j.sequence_length, Symbol::kSequence),
      T(j.micro_batch_size * j.sequence_length, Symbol::kTokens),
      H(a.hidden_size, Symbol::kHidden),
      F(a.intermediate_size, Symbol::kFeedForward),
      V(a.vocab_size, Symbol::kVocab),
      A(a.num_heads, Symbol::kHeads),
      Kv(a.num_kv_heads, Symbol::kKvHeads),
      hd(a.head_dim, Symbol::kHeadDim),
      Q(a.query_size(), Symbol::kQuery),
      K(a.kv_size(), Symbol::kKeyValue) {}

bool Net::trains(std::string_view module) const {
  if (job.method == Method::kLora || job.method == Method::kQlora) return false;
  for (const std::string& pattern : job.freeze) {
    if (matches_module(pattern, module)) return false;
  }
  return true;
}

bool Net::adapted(std::string_view module) const {
  if (job.method != Method::kLora && job.method != Method::kQlora) return false;
  if (job.adapter.all_linear) return true;
  for (const std::string& target : job.adapter.target_modules) {
    if (targets_module(target, module)) return true;
  }
  return false;
}

Dtype Net::weight_dtype(int rank) const {
  // peft/utils/other.py prepare_model_for_kbit_training: every 16-bit parameter that is not packed becomes fp32.
  if (job.method == Method::kQlora && is_half(job.recipe.weights)) {
    if (job.quantization.prepare_kbit == PrepareKbit::kAll) return Dtype::kFp32;
    if (job.quantization.prepare_kbit == PrepareKbit::kNormsOnly && rank <= 1) return Dtype::kFp32;
  }
  return job.recipe.weights;
}

bool Net::slides(Count layer) const {
  if (arch.sliding_window <= 0 || !tape.above(job.sequence_length, arch.sliding_window - 1)) return false;
  const auto i = static_cast<std::size_t>(layer);
  return i < arch.sliding_layers.size() && arch.sliding_layers[i];
}

bool Net::is_sliding_layer(Count layer) const {
  const auto i = static_cast<std::size_t>(layer);
  return i < arch.sliding_layers.size() && arch.sliding_layers[i];
}

bool Net::inputs_require_grads() const {
  if (job.checkpointing == Checkpointing::kNone) return false;
  // peft 0.18 peft_model.py: _prepare_model_for_gradient_checkpointing asks for it on every model that is not
  // quantised, utils/other.py: prepare_model_for_kbit_training on those that are.
  if (job.use_reentrant || job.method == Method::kLora) return true;
  return job.method == Method::kQlora && job.quantization.prepare_kbit != PrepareKbit::kOff;
}

bool Net::rotates(Count layer) const {
  const auto i = static_cast<std::size_t>(layer);
  return arch.rotary_dim > 0 && (i >= arch.no_rope_layers.size() || !arch.no_rope_layers[i]);
}

bool Net::saved_whole(std::string_view module) const {
  if (job.method != Method::kLora && job.method != Method::kQlora) return false;
  for (const std::string& name : job.adapter.modules_to_save) {
    if (targets_module(name, module)) return true;
  }
  return false;
}

Tensor Net::declare(const char* name, const char* leaf, const Shape& shape, bool is_embedding) {
  Parameter p;
  p.module = name;
  p.leaf = leaf;
  p.shape = shape;
  p.dtype = weight_dtype(shape.rank);
  p.requires_grad = trains(name);
  p.is_embedding = is_embedding;
  if (saved_whole(name)) {
    // peft/utils/other.py ModulesToSaveWrapper: the original stays, frozen and unused; its copy is trained.
    tape.parameter(p);
    p.requires_grad = true;
    p.is_adapter = true;
  }
  return tape.parameter(p);
}

void Net::return_weights() {
  Tensor weights = std::move(attn_weights);
  if (job.use_reentrant && job.checkpointing != Checkpointing::kNone) tape.return_also(weights);
  if (tape.phase() == Phase::kForward) outputs_weights = std::move(weights);
}

Tensor Net::parameter(const char* name, const char* leaf, const Shape& shape) {
  return declare(name, leaf, shape, false);
}

Tensor Net::embedding(const char* name, Tensor ids, Dim rows, Dim width) {
  Scope in(tape, name, source());
  Tensor weight = declare(name, "weight", Shape{rows, width}, true);
  return tidemark::embedding(std::move(ids), std::move(weight));
}

Tensor Net::linear(const char* name, Tensor x_in, Dim out_features, bool bias) {
  Scope in(tape, name, source());
  Tensor x = std::move(x_in);
  const Dim in_features = x.dim(-1);
  const bool is_adapted = adapted(name);
  Tensor kept;
  if (is_adapted) kept = x;
  Tensor result;
  if (quantised()) {
    result = quantised_linear(name, std::move(x), out_features, bias);
  } else {
    Tensor weight = parameter(name, "weight", Shape{out_features, in_features});
    Tensor b;
    if (bias) b = parameter(name, "bias", Shape{out_features});
    result = tidemark::linear(std::move(x), std::move(weight), std::move(b));
  }
  if (!is_adapted) return result;
  return adapter(name, std::move(result), std::move(kept), in_features, out_features, quantised());
}

Tensor Net::matmul_linear(const char* name, Tensor x_in, Dim out_features, bool bias) {
  // replace_with_bnb_linear asks for `type(module) is nn.Linear`: such modules stay in 16 bits.
  Scope in(tape, name, source());
  const Tensor x = std::move(x_in);
  const Dim in_features = x.dim(-1);
  Tensor result;
  {
    Tensor weight = parameter(name, "weight", Shape{out_features, in_features});
    weight = transpose(std::move(weight), 0, 1);
    result = matmul(x, std::move(weight));
  }
  if (bias) {
    Tensor b = parameter(name, "bias", Shape{out_features});
    result = add(std::move(result), std::move(b));
  }
  if (!adapted(name)) return result;
  return adapter(name, std::move(result), x, in_features, out_features, false);
}

Tensor Net::conv1d(const char* name, Tensor x_in, Dim out_features) {
  Scope in(tape, name, source());
  Tensor x = std::move(x_in);
  const Dim in_features = x.dim(-1);
  const bool is_adapted = adapted(name);
  Tensor kept;
  if (is_adapted) kept = x;
  // transformers 5.12 integrations/bitsandbytes.py replaces Conv1D as well as nn.Linear; the oracle's recorder replaces
  // only the latter, and we keep to what it can check: Conv1D weights stay in their dtype.
  Tensor weight = parameter(name, "weight", Shape{in_features, out_features});
  Tensor bias = parameter(name, "bias", Shape{out_features});
  Tensor result = conv1d_addmm(std::move(x), std::move(weight), std::move(bias));
  if (!is_adapted) return result;
  return adapter(name, std::move(result), std::move(kept), in_features, out_features, false);
}

// peft/tuners/lora/layer.py Linear.forward; for 4-bit bases peft/tuners/lora/bnb.py Linear4bit.forward (peft 0.18).
Tensor Net::adapter(const char* name, Tensor result_in, Tensor x_in, Dim in_features, Dim out_features,
                    bool quantised_base) {
  Tensor result = std::move(result_in);
  const Tensor argument = std::move(x_in);  // a module's arguments live until the call returns
  Tensor x = argument;
  const Dtype result_dtype = result.dtype();
  const Dim r(job.adapter.r, Symbol::kRank);
  Parameter a, b;
  a.module = b.module = name;
  a.leaf = "lora_A.weight";
  b.leaf = "lora_B.weight";
  a.shape = Shape{r, in_features};
  b.shape = Shape{out_features, r};
  a.dtype = b.dtype = job.adapter.dtype;
  a.requires_grad = b.requires_grad = true;
  a.is_adapter = b.is_adapter = true;
  if (quantised_base) result = clone(std::move(result));
  const bool convert = !quantised_base || !tape.autocast();
  if (convert) x = to(std::move(x), job.adapter.dtype);
  Tensor y = dropout(x, job.adapter.lora_dropout);
  const Tensor weight_a = tape.parameter(a);
  y = tidemark::linear(std::move(y), weight_a);
  const Tensor weight_b = tape.parameter(b);
  y = tidemark::linear(std::move(y), weight_b);
  if (job.adapter.use_dora) {
    Tensor scale = dora_scale(name, weight_a, weight_b, in_features, out_features, x.dtype());
    return dora_result(std::move(result), std::move(y), std::move(scale), result_dtype);
  }
  y = mul_scalar(std::move(y));
  if (quantised_base && convert) y = to(std::move(y), result_dtype);
  result = add(std::move(result), std::move(y));
  return to(std::move(result), result_dtype);
}

// peft/tuners/lora/dora.py DoraLinearLayer.forward (peft 0.18): the norm of the merged weight, made anew each time from
// an identity matrix sent through A and B; it is detached, so only the magnitude's ratio enters the graph.
Tensor Net::dora_scale(const char* name, const Tensor& weight_a, const Tensor& weight_b, Dim in_features,
                       Dim out_features, Dtype dtype) {
  Parameter magnitude;
  magnitude.module = name;
  magnitude.leaf = "lora_magnitude_vector";
  magnitude.shape = Shape{out_features};
  magnitude.dtype = job.adapter.dtype;
  magnitude.requires_grad = true;
  magnitude.is_adapter = true;
  Tensor m = tape.parameter(magnitude);
  Tensor norm;
  {
    Tensor eye = tape.allocate(Shape{in_features, in_features}, dtype, "dora identity");
    Tensor product = tidemark::linear(std::move(eye), weight_a);
    product = tidemark::linear(std::move(product), weight_b);
    product = detach(std::move(product));
    const Shape whole{out_features, in_features};
    Tensor weight;
    if (quantised() || weight_dtype(2) != dtype) weight = tape.allocate(whole, dtype, "dora weight");
    Tensor scaled = tape.allocate(whole, dtype, "dora scaled update");
    Tensor merged = tape.allocate(whole, dtype, "dora merged weight");
    norm = tape.allocate(Shape{out_features}, dtype, "dora weight norm");
  }
  Tensor ratio = div(std::move(m), std::move(norm));
  return view(std::move(ratio), Shape{Dim(1), out_features});
}

// (scale − 1)·base + scale·B(A(x))·scaling, added to the base's result.
Tensor Net::dora_result(Tensor base_in, Tensor update_in, Tensor scale_in, Dtype dtype) {
  const Tensor base = std::move(base_in);
  Tensor update = std::move(update_in);
  const Tensor scale = std::move(scale_in);
  Tensor less = add_scalar(scale);
  Tensor first = mul(std::move(less), base);
  update = mul(scale, std::move(update));
  update = mul_scalar(std::move(update));
  first = add(std::move(first), std::move(update));
  Tensor result = add(base, std::move(first));
  return to(std::move(result), dtype);
}

Tensor Net::quantised_linear(const char* name, Tensor x_in, Dim out_features, bool bias) {
  const Tensor argument = std::move(x_in);
  Tensor x = argument;
  const Dtype input_dtype = x.dtype();
  const QuantisedWeight packed = quantised_weight(job.quantization, out_features.n * x.size(-1));
  Parameter p;
  p.module = name;
  p.leaf = "weight";
  p.shape = Shape{out_features, x.dim(-1)};
  p.dtype = Dtype::kUint8;
  p.storage_bytes = packed.packed;
  Tensor weight = tape.parameter(p);
  for (const QuantisedWeight::Part& part : packed.state) {
    if (part.bytes > 0) tape.buffer(part.name, part.bytes, Category::kWeights);
  }
  Tensor b;
  if (bias) b = parameter(name, "bias", Shape{out_features});
  Dtype compute = Dtype::kBf16;
  if (job.recipe.autocast) {
    compute = *job.recipe.autocast;
  } else if (is_half(job.recipe.weights)) {
    compute = job.recipe.weights;
  }
  x = to(std::move(x), compute);
  x = dequantised_linear(std::move(x), out_features, packed, std::move(b));
  return to(std::move(x), input_dtype);
}

Tensor Net::lm_head(const char* name, Tensor x_in, Dim out_features, bool bias) {
  Scope in(tape, name, source());
  Tensor x = std::move(x_in);
  last_hidden = x;
  model_locals.clear();  // the model's forward has returned
  Tensor weight;
  if (arch.tie_word_embeddings && tied_embedding >= 0) {
    weight = tape.existing_parameter(tied_embedding);
  } else {
    weight = parameter(name, "weight", Shape{out_features, x.dim(-1)});
  }
  Tensor b;
  if (bias) b = parameter(name, "bias", Shape{out_features});
  if (fuse_loss) {
    if (job.loss == Loss::kChunked) return chunked_loss(*this, std::move(x), std::move(weight));
    if (job.loss == Loss::kCutCrossEntropy) return cut_cross_entropy(*this, std::move(x), std::move(weight));
    return liger_fused_loss(*this, std::move(x), std::move(weight));
  }
  return tidemark::linear(std::move(x), std::move(weight), std::move(b));
}

Tensor Net::layer_norm(const char* name, Tensor x, bool affine, bool bias) {
  Scope in(tape, name, source());
  Tensor weight, b;
  const Dim width = x.dim(-1);
  if (affine) weight = parameter(name, "weight", Shape{width});
  if (affine && bias) b = parameter(name, "bias", Shape{width});
  return tidemark::layer_norm(std::move(x), std::move(weight), std::move(b));
}

}  // namespace tidemark
