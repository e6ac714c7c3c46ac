// pip's list of requirements beside a job: releases of the packages that its memory depends on.
#include "core/exchange/fields.hpp"
#include "core/exchange/pins.hpp"

namespace tidemark::exchange {
namespace {

int recognise_requirements(const Look& look) {
  const std::string_view name = base_name(look.source.name);
  const bool named = name.starts_with("requirements") && (name.ends_with(".txt") || name.ends_with(".in"));
  return named && look.syntax != Look::Syntax::kBinary ? 90 : 0;
}

void read_requirements(const Look& look, Sources, Reading& reading) {
  Look lines{look.source, Look::Syntax::kText, {}, look.head};
  read_pins(lines, reading);
  reading.unknowns.push_back("everything about training");
}

// A script that installs another release by itself is nearer to what runs.
const Format kRows[] = {
    {"requirements", "list of Python packages", recognise_requirements, read_requirements, 10},
};

}  // namespace

extern const FormatRows requirements_rows;
const FormatRows requirements_rows = kRows;

}  // namespace tidemark::exchange
