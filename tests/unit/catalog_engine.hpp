#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "core/wire/engine.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {

inline std::string text_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

inline std::string catalog_text(const std::string& name) {
  return text_of(std::string{TIDEMARK_CATALOG} + "/" + name);
}

/// An engine that has read the whole catalog without complaint.
inline const Engine& engine() {
  static const Engine ready = [] {
    Engine made;
    REQUIRE(made.load_catalog(catalog_text("models.json"), catalog_text("gpus.json")).empty());
    return made;
  }();
  return ready;
}

}  // namespace tidemark
