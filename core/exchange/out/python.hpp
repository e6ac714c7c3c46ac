#pragma once

#include "core/exchange/out/writer.hpp"

namespace tidemark::exchange {

// What the Python exports share; each writes lines of a script.

/// "AutoModelForCausalLM", or the class itself where no Auto class has such a head.
std::string auto_class(const std::string& class_name);
/// bnb_config = BitsAndBytesConfig(...).
void write_quantization(const ExportJob& job, Writer& out);
/// model = AutoModelForCausalLM.from_pretrained(...), and its preparation for quantised weights.
void write_model(const ExportJob& job, Writer& out);
/// peft_config = LoraConfig(...).
void write_lora_config(const ExportJob& job, Writer& out);
/// The arguments that TrainingArguments and SFTConfig share, without the closing bracket.
void write_arguments(const ExportJob& job, std::string_view type, Writer& out);
/// A loss that no argument of the script can say.
void lacks_loss(const ExportJob& job, Writer& out);
/// Modules that are not trained.
void write_freezing(const ExportJob& job, Writer& out);

}  // namespace tidemark::exchange
