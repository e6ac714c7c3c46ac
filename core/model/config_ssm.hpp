#pragma once

#include <initializer_list>

#include "core/model/architecture.hpp"
#include "core/model/config_fields.hpp"

namespace tidemark {

/// `layer_types`, or Nemotron-H's `layers_block_type`, whose words are these: a layer's kind is the number of its word.
/// Where the key is absent, the last word's kind on every `period`-th layer and the first's elsewhere.
void read_layer_kinds(ConfigFields& fields, Architecture& architecture, std::initializer_list<std::string_view> words,
                      Count period);
/// How a Mamba-2 mixer of this width is cut, in the words of Falcon-H1 and Granite: `mamba_n_heads`, `mamba_d_state` …
void read_mamba2_sizes(ConfigFields& fields, StateSpace& s);
/// Qwen's gated delta nets: `linear_…`.
void read_delta_net(ConfigFields& fields, Architecture& architecture);

}  // namespace tidemark
