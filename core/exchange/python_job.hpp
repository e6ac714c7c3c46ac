#pragma once

#include "core/exchange/python_program.hpp"

namespace tidemark::exchange {

/// What a program trains, told as findings: rules of transformers, PEFT, TRL, Unsloth and plain PyTorch over its calls.
void read_python_job(PyProgram& program, std::string_view text, Reading& reading);

}  // namespace tidemark::exchange
