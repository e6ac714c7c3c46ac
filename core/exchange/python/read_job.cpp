#include "core/exchange/python/read_job.hpp"

#include "core/exchange/python/topics.hpp"

namespace tidemark::exchange {

void read_python_job(PyProgram& program, std::string_view text, Reading& reading) {
  PyJob job(program, text, reading);
  find_parts(job);
  read_task(job);
  read_model(job);
  read_quantization(job);
  read_method(job);
  read_arguments(job);
  read_plugins(job);
  read_wrappers(job);
  read_lightning(job);
  read_lengths(job);
  read_checkpointing(job);
  read_precision(job);
  read_own_flags(job);
  read_reference(job);
  read_rollout(job);
  read_other_models(job);
  ask(job);
  tell_unread(job);
}

}  // namespace tidemark::exchange
