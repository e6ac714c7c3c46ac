#pragma once

#include "core/exchange/reading.hpp"

namespace tidemark::exchange {

/// Releases that a file installs for its job: `pip install "transformers==4.56.2"`, `uv run --with`, a list of packages
/// of an image, PEP 723's dependencies in a script's head, a requirements.txt. States framework.version and
/// framework.peft; a release with no upper bound says nothing.
void read_pins(const Look& look, Reading& reading);

}  // namespace tidemark::exchange
