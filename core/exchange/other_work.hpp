#pragma once

#include <string>
#include <string_view>

#include "core/exchange/args.hpp"
#include "core/exchange/python/program.hpp"
#include "core/exchange/reading.hpp"

namespace tidemark::exchange {

/// What is done to a model beside training it.
inline constexpr std::string_view kServes = "serves a model";
inline constexpr std::string_view kGenerates = "lets a model answer";
inline constexpr std::string_view kEvaluates = "evaluates a model";
inline constexpr std::string_view kConverts = "merges, quantises or converts weights";
inline constexpr std::string_view kPrepares = "prepares files";

/// "`swift deploy` serves a model".
std::string work_in_words(std::string_view name, std::string_view work);

/// What a launch does where it surely does not train: "`swift deploy` serves a model". Empty where it trains, or nobody
/// knows. Such commands name a model, a method and GPUs as those of training do, and must not be estimated as one.
std::string other_work(const Launch& launch);

/// The same of a whole script without a launch that trains: of its launches, or of a server's own command (`vllm
/// serve`).
std::string other_work(const TrainingScript& script);

/// The same of a program of Python: it generates, merges, serves or evaluates, and no call of it trains.
std::string other_work(const PyProgram& program);

/// The error that says so.
void tell_other_work(Reading& reading, std::string_view file, std::string_view work);

}  // namespace tidemark::exchange
