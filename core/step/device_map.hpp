#pragma once

#include "core/job/training_job.hpp"
#include "core/model/architecture.hpp"

namespace tidemark {

/// Bytes of a decoder's modules, as transformers counts them before it loads anything.
struct ModuleBytes {
  Bytes table = 0;
  Bytes layer = 0;  ///< each of them
  Count layers = 0;
  Bytes norm = 0;
  Bytes rotary = 0;  ///< buffers
  Bytes head = 0;    ///< 0 where its weight is the table's
  bool tied = false;
  double share = 1.0;  ///< of what each GPU is given: quantisers keep a tenth free
};

/// Where device_map="auto" puts them.
struct DeviceMap {
  std::vector<Count> layers;  ///< of each GPU
  Count table = 0;
  Count head = 0;
  Count norm = 0;
  Count rotary = 0;
};

/// transformers 5.12 integrations/accelerate.py: get_balanced_memory, infer_auto_device_map (accelerate 1.14
/// utils/modeling.py is alike). All GPUs but the last get an equal share and 1.25 layers more, the first keeps room for
/// the largest module that is still to come, and the last takes the rest; all of them are taken to have room for it.
DeviceMap device_map_of(const ModuleBytes& modules, Count gpus);

/// What the job's model is made of.
ModuleBytes module_bytes(const Architecture& architecture, const TrainingJob& job);

/// The job with its layers laid on its GPUs; as it is where it says so already, or uses no device_map.
TrainingJob laid_out(const Architecture& architecture, const TrainingJob& job);

}  // namespace tidemark
