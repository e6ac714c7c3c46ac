// Every checkpoint of the catalog, by options that few records combine: each is answered, or refused with a reason.
#include "tests/unit/asked.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

bool is_told(const Answer& answer) {
  for (const Issue& issue : answer.issues) {
    if (issue.severity == Severity::kError) return !issue.message.empty();
  }
  return answer.estimate && answer.estimate->allocated.expected > 0;
}

TEST_CASE("every checkpoint is answered or refused with its saved tensors in host memory") {
  for (const ModelEntry& model : engine().catalog().models()) {
    for (const char* how : {R"("lora","use_reentrant":false)", R"("qlora","use_reentrant":true)"}) {
      CAPTURE(model.id, how);
      CHECK(is_told(ask(R"({"model":")" + model.id + R"(","sequence_length":256,"activation_offloading":true,)" +
                        R"("gradient_checkpointing":"full","method":)" + how + "}")));
    }
  }
}

}  // namespace
}  // namespace tidemark
