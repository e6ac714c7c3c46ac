#pragma once

#include "core/layers/program.hpp"

/// What stays beside a denoiser while it trains: a frozen autoencoder and frozen text encoders that work in each step.
namespace tidemark {

/// Encodes the batch's pictures where the job says that the autoencoder does so in each step (net.pixel_values
/// stay to the end of the micro-step), and declares what is on the card beside the denoiser. The text encoders' own
/// forward is left out: it holds less than the denoiser's at any moment. Their weights are buffers of the tape:
/// nothing trains, adapts, packs or divides them.
void encode_batch(Net& net);

}  // namespace tidemark
