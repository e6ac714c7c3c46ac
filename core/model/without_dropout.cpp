#include "core/model/architecture.hpp"

namespace tidemark {

Architecture without_dropout(Architecture a) {
  a.attention_dropout = a.residual_dropout = a.embedding_dropout = a.activation_dropout = 0.0;
  a.classifier_dropout = a.qa_dropout = a.summary_dropout = a.feature_dropout = a.head_dropout = 0.0;
  return a;
}

}  // namespace tidemark
