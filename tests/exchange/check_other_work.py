#!/usr/bin/env python3
"""Files that train nothing are no jobs, whatever they say of models and GPUs: an error, and beside a job a warning.

    tests/exchange/check_other_work.py COMMAND

The commands are those of the tools' own examples and manuals: ms-swift's examples/{infer,deploy,export,app}, LLaMA-Factory's
examples/{inference,merge_lora}, axolotl's and TRL's manuals, vLLM's, SGLang's, llama.cpp's and lm-evaluation-harness's.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

LOADS = """from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", torch_dtype="bfloat16").cuda()
"""
NO_JOBS = {
    "swift_deploy.sh": "CUDA_VISIBLE_DEVICES=0,1 swift deploy --model Qwen/Qwen2.5-VL-7B-Instruct --infer_backend vllm",
    "swift_infer.sh": "swift infer --model Qwen/Qwen3-8B --stream true --max_new_tokens 2048",
    "swift_export.sh": "swift export --model Qwen/Qwen3-235B-A22B --quant_bits 4 --quant_method awq --max_length 2048",
    "megatron_export.sh": "megatron export --model Qwen/Qwen3-8B --to_mcore true",
    "chat.sh": "llamafactory-cli chat --model_name_or_path meta-llama/Llama-3.1-8B-Instruct --template llama3",
    "inference.sh": "axolotl inference qlora.yml --base-model NousResearch/Llama-2-7b-hf --lora-model-dir out",
    "merge.sh": "python -m axolotl.cli.merge_lora lora.yml --base_model NousResearch/Llama-2-7b-hf",
    "trl.sh": "trl vllm-serve --model Qwen/Qwen2.5-7B-Instruct --tensor_parallel_size 2",
    "vllm.sh": "nohup vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 8192",
    "api.sh": "python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen2.5-7B-Instruct",
    "sglang.sh": "python -m sglang.launch_server --model-path Qwen/Qwen2.5-7B-Instruct",
    "gguf.sh": "python convert_hf_to_gguf.py --model_name_or_path meta-llama/Llama-3.1-8B",
    "pissa.sh": "python scripts/pissa_init.py --model_name_or_path meta-llama/Meta-Llama-3-8B-Instruct --output_dir models/pissa",
    "lm_eval.sh": "accelerate launch -m lm_eval --model hf --model_args pretrained=EleutherAI/gpt-j-6B --batch_size 8",
    "glue.sh": "python run_glue.py --model_name_or_path bert-base-uncased --task_name mrpc --do_eval",
    "export.yaml": "model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct\nadapter_name_or_path: saves/lora\n"
                   "template: llama3\nfinetuning_type: lora\nexport_dir: models/merged\n",
    "export_v1.yaml": "model: Qwen/Qwen3-4B\npeft_config:\n  name: lora\n  adapter_name_or_path: ./outputs/lora\n  export_dir: ./merged\n",
    "predict.yaml": "model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct\nstage: sft\ndo_predict: true\n"
                    "finetuning_type: lora\neval_dataset: identity\ntemplate: llama3\ncutoff_len: 2048\n",
    "infer.yaml": "model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct\ntemplate: llama3\ninfer_backend: vllm\n",
    "generate.py": LOADS + "print(model.generate(ids, max_new_tokens=20))\n",
    "pipe.py": "from transformers import pipeline\nprint(pipeline('text-generation', model='Qwen/Qwen2.5-0.5B')('hi'))\n",
    "vllm_batch.py": "from vllm import LLM\nprint(LLM(model='Qwen/Qwen2.5-0.5B', tensor_parallel_size=2).generate(['hi']))\n",
    "merge.py": LOADS + "from peft import PeftModel\nPeftModel.from_pretrained(model, 'out').merge_and_unload()\n",
    "evaluate.py": LOADS + "from transformers import Trainer, TrainingArguments\n"
                           "Trainer(model, TrainingArguments('out'), eval_dataset=data).evaluate()\n",
    "forward.py": LOADS + "import torch\nwith torch.no_grad():\n    print(model(**inputs).logits)\n",
    "encode.py": "from sentence_transformers import SentenceTransformer\nprint(SentenceTransformer('BAAI/bge-m3').encode(['hi']))\n",
    "paint.py": "from diffusers import StableDiffusionPipeline\n"
                "StableDiffusionPipeline.from_pretrained('runwayml/stable-diffusion-v1-5')('a boat')\n",
    "notebook.ipynb": json.dumps({"cells": [{"cell_type": "code", "source": [LOADS, "model.generate(ids)\n"]}]}),
}
TRAINS = LOADS + """from transformers import Trainer, TrainingArguments
Trainer(model, TrainingArguments("out", per_device_train_batch_size=2), train_dataset=data).train()
"""
JOBS = {
    "sft.sh": "swift sft --model Qwen/Qwen2.5-0.5B --tuner_type lora --max_length 2048\nswift infer --adapters out --stream true\n",
    "grpo.sh": "CUDA_VISIBLE_DEVICES=7 swift rollout --model Qwen/Qwen2.5-0.5B &\n"
               "swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-0.5B --use_vllm true --vllm_mode server\n",
    "glue.sh": "python run_glue.py --model_name_or_path bert-base-uncased --do_train --do_eval --max_seq_length 128",
    "train_eval.py": TRAINS + "print(model.generate(ids))\n",
    "loop.py": LOADS + "for batch in data:\n    model(**batch).loss.backward()\nmodel.generate(ids)\n",
    "snippet.py": LOADS + "from peft import LoraConfig, get_peft_model\nmodel = get_peft_model(model, LoraConfig(r=8))\n"
                          "model.generate(ids)\n",
    "lora.yaml": "model_name_or_path: Qwen/Qwen2.5-0.5B\nstage: sft\ndo_train: true\ndo_predict: true\nfinetuning_type: lora\n"
                 "dataset: identity\ntemplate: qwen\ncutoff_len: 2048\n",
    "notebook.ipynb": json.dumps({"cells": [{"cell_type": "code", "source": LOADS},
                                            {"cell_type": "code", "source": "!accelerate launch train.py"},
                                            {"cell_type": "code", "source": "model.generate(ids)"}]}),
}


def main() -> int:
    command, failures = sys.argv[1], 0
    folder = pathlib.Path(tempfile.mkdtemp())

    def asked(verb: str, *files: str) -> tuple[list[dict], dict]:
        done = subprocess.run([command, verb, *files, *(["--gpu", "H100"] if verb == "estimate" else []), "--json"],
                              capture_output=True, text=True, timeout=60)
        answer = json.loads(done.stdout or done.stderr)
        return [issue for issue in answer.get("issues", []) if issue["code"] == "NO_JOB"], answer

    def written(name: str, text: str) -> str:
        (folder / name).write_text(text, encoding="utf-8")
        return str(folder / name)

    def expect(what: str, holds: bool, answer: dict) -> None:
        nonlocal failures
        if not holds:
            failures += 1
            print(f"{what}: {json.dumps(answer)[:400]}")

    for name, text in NO_JOBS.items():
        found, answer = asked("estimate", written(name, text))
        expect(f"{name} trains nothing", "estimate" not in answer and [one["severity"] for one in found] == ["error"], answer)
    beside = written("callbacks.py", "def show(model, ids):\n    return model.generate(ids)\n")
    for name, text in JOBS.items():
        found, answer = asked("import", written(name, text))
        expect(f"{name} trains", not found, answer)
    found, answer = asked("estimate", written("train.py", TRAINS), beside)
    expect("a module beside a job", "estimate" in answer and [one["severity"] for one in found] == ["warning"], answer)
    print(f"{len(NO_JOBS)} files that train nothing and {len(JOBS) + 1} that train, {failures} wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
