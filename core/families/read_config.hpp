#pragma once

#include <string_view>
#include <vector>

#include "core/model/architecture.hpp"
#include "core/units/issue.hpp"
#include "core/units/value.hpp"

namespace tidemark {

/// What a config.json describes, and all that is to be said about it. With an error among the issues the architecture
/// is not complete and must not be used.
struct ConfigResult {
  Architecture architecture;
  Issues issues;
};

/// Reads a Hugging Face config.json, with the defaults that transformers 5.12.1's class of that model type has.
/// `class_override` is the contract's `architecture` key: the class that is trained where it is not the one that the
/// file names ("BertForSequenceClassification"), or empty. Paths of issues start at "/config".
ConfigResult read_config(const Value& config, std::string_view class_override = {});

/// The values of `model_type` that are modelled, file by file.
std::vector<std::string_view> supported_model_types();

}  // namespace tidemark
