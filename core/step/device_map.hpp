#pragma once

#include <string>
#include <vector>

#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"

namespace tidemark {

/// A model's modules as transformers sees them before it loads anything.
struct ModuleTree {
  struct Node {
    std::string name;  ///< in full
    Bytes bytes = 0;   ///< of all that is in it
    std::vector<std::size_t> children;
  };
  std::vector<Node> nodes = {{}};  ///< the first is the model; one of `_no_split_modules` has no children here
  Bytes largest_block = 0;         ///< of what those name, the first (until 5.17) or the largest
  std::string table, head;         ///< get_input_embeddings(), get_output_embeddings()
  bool tied = false;
  double share = 1.0;  ///< of what each GPU is given: quantisers keep a tenth free

  /// Adds bytes to the module of that name and to all around it.
  void add(const std::string& name, Bytes bytes);
  bool holds(std::size_t node, const std::string& name) const;
};

/// Where device_map="auto" puts them: transformers 5.12 integrations/accelerate.py: get_balanced_memory,
/// infer_auto_device_map (accelerate 1.14 utils/modeling.py is alike). All GPUs but the last get an equal share
/// and 1.25 blocks more, the first keeps room for the largest module that is still to come, and the last takes the
/// rest; all of them are taken to have room for it.
std::vector<Pipeline::Place> device_map_of(const ModuleTree& tree, Count gpus);

/// What the job's model is made of.
ModuleTree module_tree(const Architecture& architecture, const TrainingJob& job);

/// The job with its modules laid on its GPUs; as it is where it says so already, or uses no device_map.
TrainingJob laid_out(const Architecture& architecture, const TrainingJob& job);

}  // namespace tidemark
