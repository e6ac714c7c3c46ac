#pragma once

#include <utility>

#include "core/layers/program.hpp"

/// What models that see share: pictures on the device, their towers, and the place where what the tower makes of them
/// joins the language model's embeddings.
namespace tidemark {

/// Sides in pixels.
struct PictureSize {
  Count height = 0, width = 0;
};
/// The job's pictures, or as large as the tower's own.
PictureSize picture_size(const Net& net);
/// Pictures of a micro batch; one where the job has none, to know what a tower's modules are.
Count picture_count(const Net& net);

/// The job's pictures, or the model's own, of a model of pictures alone.
PictureSize own_picture_size(const Net& net);
/// Pictures, or sounds, in the model's dtype. FSDP's mixed precision casts what its root is given, and fp32 weights are
/// given fp32 pictures, which stay beside the copy as long as the batch does.
Tensor given_pixels(Net& net, const Shape& shape, const char* name = "pixel_values");
/// The batch of such a model, of which each picture has so many tokens: pictures as input_ids, and labels.
void picture_batch(Net& net, Dim tokens);
/// Stochastic depth: a whole branch left out at random, sample by sample; the branch itself at a rate of 0.
Tensor drop_path(Net& net, Tensor x, double rate);

/// The batch of a text model, and pictures as most processors hand them over: [n, 3, height, width] in the model's
/// dtype. `n` is how many, tiles included.
void picture_inputs(Net& net, Dim n, PictureSize size);
/// Tiles of a micro batch's pictures (`image_tiles` of each), and pictures handed over as such: tiles have the tower's
/// own size, whatever a picture has.
Count tile_count(const Net& net);
void tile_inputs(Net& net);
/// A tensor of whole numbers beside them: sizes, grids, types of tokens.
void integer_input(Net& net, const Shape& shape, const char* name);

/// A model's forward with pictures: the language model's, in which `merge` follows the token table.
template <Tensor (*merge)(Net& net, Tensor embeds)>
Tensor forward_with_pictures(Net& net) {
  net.merge = merge;
  return net.arch.language->forward(net);
}
/// The language model's head.
Tensor language_head(Net& net, Tensor hidden);

/// Where a job has no pictures the tower is there and never runs: its parameters are declared without a trace of its
/// activations. Lives as long as the part that is declared.
class Declared {
 public:
  explicit Declared(Net& net) : Declared(net, net.job.images_per_sample == 0) {}
  /// Of any other part; `declared` false: it runs.
  Declared(Net& net, bool declared);
  ~Declared();
  Declared(const Declared&) = delete;
  Declared& operator=(const Declared&) = delete;
  explicit operator bool() const { return declared_; }

 private:
  Tape& tape_;
  bool declared_, grad_before_, stopped_before_, alone_before_;
  std::int16_t card_before_;
};

/// inputs_embeds.masked_scatter(input_ids == image_token_id, features): `features` has a row for each placeholder.
Tensor scatter_features(Net& net, Tensor embeds, Tensor features, const char* source);

/// How the layer of a tower of CLIP's kind names its modules.
struct TowerLayer {
  const char* source;                                      ///< the layer's forward
  const char* norms[2];                                    ///< before attention and before the feed-forward
  const char *q, *k, *v, *out;                             ///< projections
  const char *fc1, *fc2;                                   ///< feed-forward
  void (*turn)(Net& net, Tensor& q, Tensor& k) = nullptr;  ///< what turns q and k
  bool narrow_softmax = false;  ///< its eager form has a softmax in the scores' dtype (Llama 4)
};
/// CLIPEncoderLayer.forward, SiglipEncoderLayer.forward: both have the same names.
extern const TowerLayer kClipLayer;
Tensor tower_layer(Net& net, Tensor hidden, const TowerLayer& names);
Tensor clip_layer(Net& net, Tensor hidden);

/// nn.Conv2d over patches, as [n, patches, H]; what inputs_require_grads speaks of is hooked to it.
Tensor patch_embedding(Net& net, const char* name, Tensor pixels, bool bias);
/// nn.Embedding of the positions of a picture of the tower's own size, by a buffer of their numbers.
Tensor picture_positions(Net& net, const char* name, Count rows);

/// Keeps every layer's output (output_hidden_states=True) until Net::let_handed_out_go, and those that pictures.layers
/// names in model_locals.
Tensor keep_hidden(Net& net, Tensor hidden);

}  // namespace tidemark
