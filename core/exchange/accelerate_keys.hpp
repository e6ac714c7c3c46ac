#pragma once

#include <string>

#include "core/exchange/args.hpp"
#include "core/exchange/fields.hpp"

namespace tidemark::exchange {

/// What accelerate's keys say of how the model is divided, wherever they stand: its YAML, the flags of its launcher,
/// the plugins of a script. The keys are the YAML's: distributed_type, mixed_precision, fsdp_config, deepspeed_config.
void read_accelerate_sharding(Keys& keys);

/// `accelerate launch --use_fsdp --fsdp_sharding_strategy 2`: flags beside a configuration, or without one. Whether
/// they divide the model.
bool read_accelerate_flags(Args& options, const std::string& file, Reading& reading);

/// A map that is put together key by key: "fsdp_config.fsdp_version".
void put_node(Node& map, std::string_view dotted, Node value);
Node text_node(std::string_view text, int line);

}  // namespace tidemark::exchange
