#include "core/model/config_ssm.hpp"

#include <algorithm>
#include <string>

namespace tidemark {

void read_layer_kinds(ConfigFields& fields, Architecture& architecture, std::initializer_list<std::string_view> words,
                      Count period) {
  const Value* types = fields.find({"layer_types", "layers_block_type"});
  const bool stated = types != nullptr && !types->is_null();
  if (stated && (!types->is_array() || static_cast<Count>(types->items.size()) != architecture.num_layers)) {
    fields.error("INVALID_VALUE", "layer_types", "\"layer_types\" must be a list with one entry per layer.");
    return;
  }
  const auto last = static_cast<std::uint8_t>(words.size() - 1);
  for (Count layer = 0; layer < architecture.num_layers; ++layer) {
    std::uint8_t kind = (layer + 1) % period == 0 ? last : 0;
    if (stated) {
      const std::string& type = types->items[static_cast<std::size_t>(layer)].string;
      const auto* found = std::find(words.begin(), words.end(), type);
      if (found == words.end()) {
        fields.error("INVALID_VALUE", "layer_types", "Layers of the type \"" + type + "\" are not modelled.");
        return;
      }
      kind = static_cast<std::uint8_t>(found - words.begin());
    }
    architecture.layer_kinds.push_back(kind);
  }
}

void read_mamba2_sizes(ConfigFields& fields, StateSpace& s) {
  s.heads = fields.count({"mamba_n_heads"}, 128);
  const Value* width = fields.find({"mamba_d_head"});
  s.head_dim = width != nullptr && width->is_integer() ? width->integer : s.width / s.heads;
  s.groups = fields.count({"mamba_n_groups"}, 1);
  s.state = fields.count({"mamba_d_state"}, 256);
  s.kernel = fields.count({"mamba_d_conv"}, 4);
  s.chunk = fields.count({"mamba_chunk_size"}, 256);
  s.conv_bias = fields.flag({"mamba_conv_bias"}, true);
  s.bias = fields.flag({"mamba_proj_bias"}, false);
}

void read_delta_net(ConfigFields& fields, Architecture& architecture) {
  StateSpace& s = architecture.ssm;
  s.kernel = fields.count({"linear_conv_kernel_dim"}, 4);
  s.state = fields.count({"linear_key_head_dim"}, 128);
  s.head_dim = fields.count({"linear_value_head_dim"}, 128);
  s.groups = fields.count({"linear_num_key_heads"}, 16);
  s.heads = fields.count({"linear_num_value_heads"}, 32);
  if (s.heads % s.groups != 0) {
    fields.error("INVALID_VALUE", "linear_num_key_heads", "Heads of keys must divide those of values.");
  }
  read_layer_kinds(fields, architecture, {"linear_attention", "full_attention"},
                   fields.count({"full_attention_interval"}, 4));
}

}  // namespace tidemark
