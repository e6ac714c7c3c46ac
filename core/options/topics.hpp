#pragma once

#include "core/options/packed.hpp"

namespace tidemark {

/// A heading and its options, each in a file of that name. Read from top to bottom: where an option refines another,
/// it stands below it.
struct Topic {
  OptionGroup group;
  OptionTable options;
};

extern const Topic kModelTopic;
extern const Topic kMethodTopic;
extern const Topic kAdapterTopic;
extern const Topic kQuantizationTopic;
extern const Topic kPrecisionTopic;
extern const Topic kBatchTopic;
extern const Topic kMemoryTopic;
extern const Topic kOptimizerTopic;
extern const Topic kLossTopic;
extern const Topic kLoopTopic;
extern const Topic kParallelismTopic;
extern const Topic kMoeTopic;
extern const Topic kOffloadTopic;
extern const Topic kRuntimeTopic;
extern const Topic kGpuTopic;

}  // namespace tidemark
