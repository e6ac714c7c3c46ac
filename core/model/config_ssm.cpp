#include "core/model/config_ssm.hpp"

#include <algorithm>
#include <string>

namespace tidemark {

void read_layer_kinds(ConfigFields& fields, Architecture& architecture, std::initializer_list<std::string_view> words,
                      Count period) {
  const Value* types = fields.find({"layer_types"});
  const bool stated = types != nullptr && types->is_array();
  if (stated && static_cast<Count>(types->items.size()) != architecture.num_layers) {
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
