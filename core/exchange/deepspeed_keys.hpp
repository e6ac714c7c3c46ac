#pragma once

#include "core/exchange/fields.hpp"

namespace tidemark::exchange {

/// What DeepSpeed's keys say, in its JSON or in a dictionary of a script.
void read_deepspeed_keys(Keys& keys);

}  // namespace tidemark::exchange
