#pragma once

#include "core/exchange/python/program.hpp"

namespace tidemark::exchange {

/// What a program trains, told as findings: rules of transformers, PEFT, TRL, Unsloth and plain PyTorch over its calls.
/// Sources, where a rule names none: transformers 4.28.1 to 5.12.0 training_args.py, modeling_utils.py:
/// from_pretrained; peft 0.18.0 tuners/lora/config.py, utils/constants.py, utils/other.py:
/// prepare_model_for_kbit_training; trl 0.9.3 to 1.9.0 trainer/*.py; unsloth 015bdef0.
void read_python_job(PyProgram& program, std::string_view text, Reading& reading);

}  // namespace tidemark::exchange
