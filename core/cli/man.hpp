#pragma once

#include <string>

namespace tidemark {

/// The manual page tidemark(1) in roff, made from the tables of commands, flags and options.
std::string manual_page();

}  // namespace tidemark
