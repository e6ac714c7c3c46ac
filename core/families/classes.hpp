#pragma once

#include <cstddef>
#include <string_view>

#include "core/model/architecture.hpp"

namespace tidemark {

/// A class with a head, of any family that has it.
struct ClassSuffix {
  std::string_view suffix;  ///< what follows the family's prefix in the class's name
  Head head;                ///< what it computes
};

/// The classes of one family. The first is the one that is trained unless something else is said.
struct Classes {
  const ClassSuffix* first;  ///< of an array that lives for ever
  std::size_t count;         ///< its length
  const ClassSuffix* begin() const { return first; }
  const ClassSuffix* end() const { return first + count; }

  template <std::size_t kSize>
  constexpr Classes(const ClassSuffix (&suffixes)[kSize]) : first(suffixes), count(kSize) {}  // NOLINT: a list is one
};

// What transformers 5.12.1 exports (`__all__` of models/*/modeling_*.py), by families that have the same.

inline constexpr ClassSuffix kFourHeads[] = {{"ForCausalLM", Head::kCausalLm},
                                             {"ForSequenceClassification", Head::kSequenceClassification},
                                             {"ForTokenClassification", Head::kTokenClassification},
                                             {"ForQuestionAnswering", Head::kQuestionAnswering},
                                             {"Model", Head::kNone}};
inline constexpr ClassSuffix kSequenceAndToken[] = {{"ForCausalLM", Head::kCausalLm},
                                                    {"ForSequenceClassification", Head::kSequenceClassification},
                                                    {"ForTokenClassification", Head::kTokenClassification},
                                                    {"Model", Head::kNone}};
inline constexpr ClassSuffix kSequenceAndSpan[] = {{"ForCausalLM", Head::kCausalLm},
                                                   {"ForSequenceClassification", Head::kSequenceClassification},
                                                   {"ForQuestionAnswering", Head::kQuestionAnswering},
                                                   {"Model", Head::kNone}};
inline constexpr ClassSuffix kSequenceOnly[] = {{"ForCausalLM", Head::kCausalLm},
                                                {"ForSequenceClassification", Head::kSequenceClassification},
                                                {"Model", Head::kNone}};
inline constexpr ClassSuffix kTokenOnly[] = {
    {"ForCausalLM", Head::kCausalLm}, {"ForTokenClassification", Head::kTokenClassification}, {"Model", Head::kNone}};
inline constexpr ClassSuffix kLanguageModelOnly[] = {{"ForCausalLM", Head::kCausalLm}, {"Model", Head::kNone}};
inline constexpr ClassSuffix kGpt2Classes[] = {{"LMHeadModel", Head::kCausalLm},
                                               {"DoubleHeadsModel", Head::kDoubleHeads},
                                               {"ForSequenceClassification", Head::kSequenceClassification},
                                               {"ForTokenClassification", Head::kTokenClassification},
                                               {"ForQuestionAnswering", Head::kQuestionAnswering},
                                               {"Model", Head::kNone}};
// Without "Text" these names are of the model that also sees.
inline constexpr ClassSuffix kGemma3Classes[] = {{"ForCausalLM", Head::kCausalLm},
                                                 {"TextForSequenceClassification", Head::kSequenceClassification},
                                                 {"TextModel", Head::kNone}};
inline constexpr ClassSuffix kBertClasses[] = {{"ForMaskedLM", Head::kMaskedLm},
                                               {"LMHeadModel", Head::kCausalLm},
                                               {"ForPreTraining", Head::kPreTraining},
                                               {"ForNextSentencePrediction", Head::kNextSentence},
                                               {"ForSequenceClassification", Head::kSequenceClassification},
                                               {"ForTokenClassification", Head::kTokenClassification},
                                               {"ForQuestionAnswering", Head::kQuestionAnswering},
                                               {"ForMultipleChoice", Head::kMultipleChoice},
                                               {"Model", Head::kNone}};
inline constexpr ClassSuffix kErnieClasses[] = {{"ForMaskedLM", Head::kMaskedLm},
                                                {"ForCausalLM", Head::kCausalLm},
                                                {"ForPreTraining", Head::kPreTraining},
                                                {"ForNextSentencePrediction", Head::kNextSentence},
                                                {"ForSequenceClassification", Head::kSequenceClassification},
                                                {"ForTokenClassification", Head::kTokenClassification},
                                                {"ForQuestionAnswering", Head::kQuestionAnswering},
                                                {"ForMultipleChoice", Head::kMultipleChoice},
                                                {"Model", Head::kNone}};
inline constexpr ClassSuffix kRobertaClasses[] = {{"ForMaskedLM", Head::kMaskedLm},
                                                  {"ForCausalLM", Head::kCausalLm},
                                                  {"ForSequenceClassification", Head::kSequenceClassification},
                                                  {"ForTokenClassification", Head::kTokenClassification},
                                                  {"ForQuestionAnswering", Head::kQuestionAnswering},
                                                  {"ForMultipleChoice", Head::kMultipleChoice},
                                                  {"Model", Head::kNone}};
inline constexpr ClassSuffix kDistilBertClasses[] = {{"ForMaskedLM", Head::kMaskedLm},
                                                     {"ForSequenceClassification", Head::kSequenceClassification},
                                                     {"ForTokenClassification", Head::kTokenClassification},
                                                     {"ForQuestionAnswering", Head::kQuestionAnswering},
                                                     {"ForMultipleChoice", Head::kMultipleChoice},
                                                     {"Model", Head::kNone}};
inline constexpr ClassSuffix kVitClasses[] = {{"ForImageClassification", Head::kImageClassification},
                                              {"ForMaskedImageModeling", Head::kMaskedImage},
                                              {"Model", Head::kNone}};
// The first T5 files name a class of a library version long gone.
inline constexpr ClassSuffix kT5Classes[] = {{"ForConditionalGeneration", Head::kSeq2SeqLm},
                                             {"WithLMHeadModel", Head::kSeq2SeqLm},
                                             {"ForSequenceClassification", Head::kSequenceClassification},
                                             {"ForTokenClassification", Head::kTokenClassification},
                                             {"ForQuestionAnswering", Head::kQuestionAnswering},
                                             {"EncoderModel", Head::kEncoder},
                                             {"Model", Head::kNone}};
inline constexpr ClassSuffix kBartClasses[] = {{"ForConditionalGeneration", Head::kSeq2SeqLm},
                                               {"ForSequenceClassification", Head::kSequenceClassification},
                                               {"ForQuestionAnswering", Head::kQuestionAnswering},
                                               {"ForCausalLM", Head::kCausalLm},
                                               {"Model", Head::kNone}};
inline constexpr ClassSuffix kPLBartClasses[] = {{"ForConditionalGeneration", Head::kSeq2SeqLm},
                                                 {"ForSequenceClassification", Head::kSequenceClassification},
                                                 {"ForCausalLM", Head::kCausalLm},
                                                 {"Model", Head::kNone}};
inline constexpr ClassSuffix kPegasusClasses[] = {
    {"ForConditionalGeneration", Head::kSeq2SeqLm}, {"ForCausalLM", Head::kCausalLm}, {"Model", Head::kNone}};
inline constexpr ClassSuffix kM2m100Classes[] = {{"ForConditionalGeneration", Head::kSeq2SeqLm},
                                                 {"Model", Head::kNone}};
inline constexpr ClassSuffix kMarianClasses[] = {
    {"MTModel", Head::kSeq2SeqLm}, {"ForCausalLM", Head::kCausalLm}, {"Model", Head::kNone}};
inline constexpr ClassSuffix kWhisperClasses[] = {{"ForConditionalGeneration", Head::kSeq2SeqLm},
                                                  {"ForAudioClassification", Head::kAudioClassification},
                                                  {"Model", Head::kNone}};
inline constexpr ClassSuffix kWav2Vec2Classes[] = {
    {"ForCTC", Head::kCtc}, {"ForSequenceClassification", Head::kSequenceClassification}, {"Model", Head::kNone}};

}  // namespace tidemark
