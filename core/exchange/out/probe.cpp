// A script that runs the job with random weights and measures it. What it reads of PyTorch: torch 2.9.0
// torch/cuda/memory.py; how a Trainer steps: transformers 5.12.1 trainer.py: training_step, accelerate 1.14.0
// accelerator.py: backward.
#include "core/exchange/out/preferences.hpp"
#include "core/exchange/out/python.hpp"

namespace tidemark::exchange {
namespace {

constexpr std::string_view kHead = R"PY(#!/usr/bin/env python3
"""Measures one training job on this machine's first GPU: random weights, random tokens, a few steps.

Written by Tidemark. Needs torch, transformers, accelerate and what the job uses (peft, bitsandbytes); downloads nothing.
    python probe.py [--steps 3] [--cap 0.95] > measured.json
    tidemark import measured.json          sets it beside the estimate
The job runs in a child process that may take no more than --cap of the card.
"""
import argparse
import contextlib
import json
import os
import subprocess
import sys

)PY";

constexpr std::string_view kPieces = R"PY(

def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--cap", type=float, default=0.95)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def without_initialisation():
    """Weights are drawn on the card; those that transformers would draw on the CPU take minutes."""
    with contextlib.suppress(ImportError):
        from transformers.initialization import no_init_weights
        return no_init_weights()
    with contextlib.suppress(ImportError):
        from transformers.modeling_utils import no_init_weights
        return no_init_weights()
    return contextlib.nullcontext()


def quantise(model, compute):
    """What replace_with_bnb_linear of transformers does, with random weights."""
    import bitsandbytes as bnb
    import torch
    how = QUANTIZATION
    for name, module in list(model.named_modules()):
        if not isinstance(module, torch.nn.Linear) or name.split(".")[-1] in ("lm_head", "score"):
            continue
        weight = torch.empty(module.weight.shape, dtype=compute, device="cuda").uniform_(-0.02, 0.02)
        shape = (module.in_features, module.out_features, module.bias is not None)
        if how["bits"] == 8:
            new = bnb.nn.Linear8bitLt(*shape, has_fp16_weights=False, threshold=6.0)
            new.weight = bnb.nn.Int8Params(weight.cpu(), requires_grad=False, has_fp16_weights=False)
        else:
            new = bnb.nn.Linear4bit(*shape, compute_dtype=compute, compress_statistics=how["double_quant"],
                                    quant_type=how["quant_type"])
            new.weight = bnb.nn.Params4bit(weight, requires_grad=False, compress_statistics=how["double_quant"],
                                           quant_type=how["quant_type"])
        new.to("cuda")
        if module.bias is not None:
            new.bias = torch.nn.Parameter(module.bias.data.to("cuda"), requires_grad=False)
        parent, _, leaf = name.rpartition(".")
        setattr(model.get_submodule(parent), leaf, new)
        del weight
    setattr(model, "is_loaded_in_8bit" if how["bits"] == 8 else "is_loaded_in_4bit", True)
    model.is_quantized = True
    return model


class Phases:
    """The highest point of each phase of each step; `now` is the one that runs."""

    def __init__(self, torch):
        self.torch, self.steps, self.reserved, self.now = torch, [{}], 0, "load"

    def end(self, phase, then):
        cuda = self.torch.cuda
        cuda.synchronize()
        self.steps[-1][phase] = max(self.steps[-1].get(phase, 0), cuda.max_memory_allocated())
        self.reserved = max(self.reserved, cuda.max_memory_reserved())
        cuda.reset_peak_memory_stats()
        self.now = then

    def highest(self, steps):
        peaks = {}
        for step in steps:
            for phase, size in step.items():
                peaks[phase] = max(peaks.get(phase, 0), size)
        return peaks


def on_card():
    """What nvidia-smi shows for this process; nothing in containers that hide it."""
    with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError):
        rows = subprocess.run(["nvidia-smi", "--query-compute-apps=pid,used_gpu_memory", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, timeout=20, check=True).stdout.splitlines()
        for row in rows:
            pid, used = row.split(",")
            if int(pid) == os.getpid():
                return int(used) * 2**20
    return None


def versions():
    from importlib import metadata
    found = {}
    for name in ("torch", "transformers", "accelerate", "peft", "bitsandbytes"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def child(options):
    import torch
    from transformers import Trainer, TrainerCallback
    torch.cuda.set_per_process_memory_fraction(options.cap)
    phases = Phases(torch)
    result = {"tidemark_probe": 1, "job": JOB}
    try:
        model = build(torch)
        phases.end("load", "forward")

        class Tokens(torch.utils.data.Dataset):
            def __len__(self):
                return options.steps * ROWS_OF_A_STEP

            def __getitem__(self, row):
                tokens = torch.randint(0, model.config.get_text_config().vocab_size, (LENGTH,))
                mask = torch.ones(LENGTH, dtype=torch.int64)
                if PADDING:
                    mask[-1] = 0
                return {"input_ids": tokens, "labels": tokens.clone(), "attention_mask": mask}

        class Measured(Trainer):
            def compute_loss(self, *words, **names):
                phases.end("between", "forward")
                loss = super().compute_loss(*words, **names)
                phases.end("forward", "backward")
                return loss

        class Steps(TrainerCallback):
            def on_step_end(self, *words, **names):
                phases.end("optimizer", "between")
                phases.steps.append({})

        trainer = Measured(model=model, args=arguments(options.steps), train_dataset=Tokens(), callbacks=[Steps()])
        inner = trainer.accelerator.backward

        def backward(*words, **names):
            inner(*words, **names)
            phases.end("backward", "optimizer")

        trainer.accelerator.backward = backward
        trainer.train()
    except torch.cuda.OutOfMemoryError as error:
        result.update(error="out_of_memory", phase=phases.now, message=str(error))
    steady = phases.steps[1:-1] or phases.steps
    peaks = phases.highest(steady)
    result["phases"] = {name: size for name, size in peaks.items() if name != "between"}
    result["load_bytes"] = phases.steps[0].get("load")
    result["allocated_bytes"] = max(peaks.values(), default=0)
    result["first_step_allocated_bytes"] = max(
        (size for name, size in phases.steps[0].items() if name != "load"), default=0)
    result["reserved_bytes"] = phases.reserved
    result["device_bytes"] = on_card()
    properties = torch.cuda.get_device_properties(0)
    result["gpu"] = {"name": properties.name, "total_bytes": properties.total_memory,
                     "capability": f"{properties.major}.{properties.minor}"}
    result["versions"] = {**versions(), "cuda": torch.version.cuda}
    result["steps"] = options.steps
    print("\n" + json.dumps(result))


def main():
    options = parse()
    if options.child:
        return child(options)
    words = [sys.executable, os.path.abspath(__file__), "--child", "--steps", str(options.steps), "--cap", str(options.cap)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"tidemark_probe"')]
    if not lines:
        sys.exit(f"The job's process ended with status {done.returncode} and measured nothing; its words are above.")
    print(json.dumps(json.loads(lines[-1]), indent=2))


if __name__ == "__main__":
    main()
)PY";

/// No apostrophe of a word may end the text: in JSON they stand in words alone.
std::string raw(const Value& value) {
  std::string text;
  for (char c : json_text(value)) text += c == '\'' ? std::string{"\\u0027"} : std::string{c};
  return "json.loads(r'''" + text + "''')";
}

std::string python(bool value) {
  return value ? "True" : "False";
}

/// def build(torch): the model on the card, as the job has it.
void write_build(const ExportJob& job, Writer& out) {
  const TrainingJob& how = job.job;
  out.line("CONFIG = " + raw(job.config));
  out.line();
  out.line();
  out.line("def build(torch):");
  out.line("    from transformers import AutoConfig, AutoModelForCausalLM");
  out.line("    words = dict(CONFIG)");
  out.line("    config = AutoConfig.for_model(words.pop(\"model_type\"), **words)");
  out.line("    config.use_cache = False");
  out.line("    with without_initialisation():");
  out.line("        model = AutoModelForCausalLM.from_config(config, " +
           std::string{how.framework.at_least(4, 56) ? "dtype" : "torch_dtype"} + "=torch." +
           std::string{torch_name(how.recipe.weights)} +
           ", attn_implementation=" + quoted(attention_name(how.attention)) + ")");
  out.line("    model.tie_weights()");
  if (is_quantised(how)) {
    const Dtype compute = how.recipe.autocast.value_or(how.recipe.weights);
    out.line("    model = quantise(model, torch." + std::string{torch_name(compute)} + ")");
  }
  out.line("    model.to(\"cuda\")");
  out.line("    for parameter in model.parameters():");
  out.line("        if parameter.dtype in (torch.float32, torch.bfloat16, torch.float16):");
  out.line("            parameter.data.uniform_(-0.02, 0.02)");
}

/// What is trained of it.
void write_method(const ExportJob& job, Writer& out) {
  if (is_quantised(job.job) && job.job.quantization.prepare_kbit == PrepareKbit::kAll) {
    out.line("    from peft import prepare_model_for_kbit_training");
    out.line("    model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=" +
             python(checkpoints(job.job)) + ")");
  }
  if (has_adapter(job.job)) {
    Writer config;
    write_lora_config(job, config);
    Exported text = config.finish("LoRA");
    out.line("    from peft import LoraConfig, get_peft_model");
    for (std::size_t begin = 0; begin < text.text.size();) {
      const std::size_t end = text.text.find('\n', begin);
      out.line("    " + text.text.substr(begin, end - begin));
      begin = end + 1;
    }
    out.line(std::string{"    model = get_peft_model(model, peft_config"} +
             (job.job.adapter.dtype != Dtype::kFp32 ? ", autocast_adapter_dtype=False)" : ")"));
  }
  if (job.job.freezes_by_name()) {
    const auto named = [&](const std::vector<std::string>& parts) {
      return "any(part in name for part in " + quoted_list(parts) + ")";
    };
    out.line("    for name, parameter in model.named_parameters():");
    out.line("        frozen = " + (job.job.freeze.empty() ? "True" : named(job.job.freeze)));
    out.line("        parameter.requires_grad = not frozen" +
             (job.job.trainable.empty() ? "" : " or " + named(job.job.trainable)));
  }
  out.line("    return model");
}

void write_training_arguments(const ExportJob& job, Writer& out) {
  Writer arguments;
  write_arguments(job, "TrainingArguments", arguments);
  const std::string text = arguments.finish("The probe").text;
  out.line();
  out.line();
  out.line("def arguments(steps):");
  out.line("    from transformers import TrainingArguments");
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    if (line.rfind("    output_dir", 0) != 0) out.line("    " + line);
    begin = end + 1;
  }
  out.line("        output_dir=os.path.join(os.environ.get(\"TMPDIR\", \"/tmp\"), \"tidemark-probe\"),");
  out.line("        max_steps=steps, report_to=\"none\", save_strategy=\"no\", logging_strategy=\"no\",");
  out.line("        disable_tqdm=True, remove_unused_columns=False,");
  out.line("    )");
  out.line("    return args");
}

}  // namespace

Exported write_probe(const ExportJob& job) {
  Writer out;
  const TrainingJob& how = job.job;
  out.line(std::string{kHead} + "JOB = " + raw(job.request));
  out.line("LENGTH = " + std::to_string(how.sequence_length));
  out.line("PADDING = " + python(how.padding));
  out.line("ROWS_OF_A_STEP = " + std::to_string(how.micro_batch_size * how.gradient_accumulation_steps));
  out.line("QUANTIZATION = {\"bits\": " + std::to_string(how.quantization.bits) +
           ", \"quant_type\": " + quoted(how.quantization.quant_type == QuantType::kFp4 ? "fp4" : "nf4") +
           ", \"double_quant\": " + python(how.quantization.double_quant) + "}");
  write_build(job, out);
  write_method(job, out);
  write_training_arguments(job, out);
  out.line(std::string{kPieces});
  if (how.preference != Preference::kNone) lacks_task(job, false, out);
  if (how.packing) out.lacks("/packing", "packed samples: rows of random tokens have no borders");
  if (job.gpus > 1 || job.zero_stage > 0 || job.fsdp != "none") {
    out.lacks("/parallelism", "several GPUs: the probe runs on one");
  }
  lacks_without_deepspeed(job, out);
  return out.finish_without_comments("The probe");
}

}  // namespace tidemark::exchange
