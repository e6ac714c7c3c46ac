#pragma once

#include "core/families/shared.hpp"
#include "core/layers/heads.hpp"

/// Heads of BERT's and RoBERTa's files that others repeat.
namespace tidemark {

/// What a masked language model's head is called, and its parts.
struct BertHeadNames {
  const char *module, *dense, *norm, *decoder;
};
inline constexpr BertHeadNames kBertHead = {"cls.predictions", "cls.predictions.transform.dense",
                                            "cls.predictions.transform.LayerNorm", "cls.predictions.decoder"};
/// Where the parts of an encoder of BERT's kind are.
struct BertNames {
  EmbeddingNames embeddings;
  const char* pooler;
  BertHeadNames head;
  bool is_roberta =
      false;  ///< its heads are RoBERTa's; where there is a table of positions, they count from the padding
};
extern const BertNames kNomicBertNames, kJinaNames, kGteNames, kMegatronBertNames, kRemBertNames, kLayoutLmNames,
    kMobileBertNames, kMobileBertPlainNames, kLiltNames, kLongformerNames, kSqueezeBertNames;

/// The windowed layers' mask of an encoder: none while the window covers everything and nothing is padded.
void make_window_mask(Net& net, const Tensor& embeds);
/// BertPooler.forward
Tensor bert_pool(Net& net, const Tensor& hidden);
Outputs bert_pre_training(Net& net, const Program& program, Tensor hidden);
Outputs bert_next_sentence(Net& net, const Program& program, Tensor hidden);
Outputs bert_choice(Net& net, const Program& program, Tensor hidden);
/// BertLMPredictionHead.forward, RobertaLMHead.forward
Tensor bert_lm_head(Net& net, Tensor hidden);
/// What they do beside their biases: to that width, an activation, a norm, and words.
Tensor bert_predictions(Net& net, const BertHeadNames& names, Tensor hidden, Dim width, Activation activation);
/// ForMaskedLMLoss, which works on an fp32 copy.
Outputs wide_masked_lm(Net& net, const Program& program, Tensor hidden);
/// A body with its pooler.
Outputs bert_body(Net& net, const Program& program, Tensor hidden);
Outputs bert_sequence(Net& net, const Program& program, Tensor hidden);
Outputs encoder_span(Net& net, const Program& program, Tensor hidden);
/// RobertaClassificationHead.forward: the first token's vector through a layer of its own.
Outputs roberta_sequence(Net& net, const Program& program, Tensor hidden);
/// BertForTokenClassification.forward
Outputs encoder_tokens(Net& net, const Program& program, Tensor hidden);

/// The classes of BERT's file.
inline constexpr HeadForward kBertHeads[] = {{Head::kMaskedLm, masked_lm},
                                             {Head::kCausalLm, causal_lm},
                                             {Head::kPreTraining, bert_pre_training},
                                             {Head::kNextSentence, bert_next_sentence},
                                             {Head::kSequenceClassification, bert_sequence},
                                             {Head::kTokenClassification, encoder_tokens},
                                             {Head::kQuestionAnswering, encoder_span},
                                             {Head::kMultipleChoice, bert_choice},
                                             {Head::kNone, bert_body}};

}  // namespace tidemark
