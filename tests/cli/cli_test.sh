#!/bin/sh
# What scripts rely on: exit status, and what goes to standard output and standard error.
#   cli_test.sh path/to/tidemark
tidemark=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failures=0
NO_COLOR=1
export NO_COLOR

fail() {
  echo "FAILED: $*"
  echo "--- stdout"; head -c 600 "$dir/out"
  echo "--- stderr"; head -c 600 "$dir/err"
  failures=$((failures + 1))
}

# run STATUS arguments…
run() {
  wanted=$1
  shift
  "$tidemark" "$@" >"$dir/out" 2>"$dir/err" </dev/null
  status=$?
  [ "$status" -eq "$wanted" ] || fail "tidemark $*: status $status, not $wanted"
  case $wanted in
    2) [ -s "$dir/out" ] && fail "tidemark $*: writes to standard output"
       [ -s "$dir/err" ] || fail "tidemark $*: says nothing on standard error" ;;
    *) [ -s "$dir/err" ] && fail "tidemark $*: writes to standard error"
       [ -s "$dir/out" ] || fail "tidemark $*: says nothing" ;;
  esac
}
out_has() { grep -q -e "$1" "$dir/out" || fail "standard output lacks: $1"; }
err_has() { grep -q -e "$1" "$dir/err" || fail "standard error lacks: $1"; }

# Answers.
run 0 estimate --model llama-3.2-1b
out_has 'peak'
run 0 estimate llama-3.2-1b --bytes --explain
out_has ' B)'
run 0 estimate -m llama-3.2-1b --json
out_has '"allocated"'
python3 -m json.tool "$dir/out" >/dev/null 2>&1 || fail "--json is not JSON"
run 0 estimate -m llama-3.2-1b --markdown
out_has '^## meta-llama/Llama-3.2-1B'
run 0 estimate --params 7e9
out_has 'ASSUMED_ARCHITECTURE'
run 0 estimate --params 7B --json
out_has 'meta-llama/Llama-2-7b-hf'
run 0 models llama-2
out_has 'meta-llama/Llama-2-7b-hf'
run 0 gpus a100
out_has 'A100'
run 0 models --json
run 0 gpus --names
run 0 describe
run 0 describe optimizer
out_has 'paged_adamw_8bit'
run 0 describe seq-len
run 0 describe --json
out_has '"adapter.r"'
run 0 describe --markdown
run 0 version
run 0 --version
run 0 --help
run 0 help
run 0 estimate --help
run 0 estimate --help-all
out_has '--parallelism-zero-stage'
run 0 completion bash
bash -n "$dir/out" 2>/dev/null || fail "the bash completion is not bash"
bash -c '. "$0"; COMP_WORDS=(tidemark map --quic) COMP_CWORD=2; _tidemark; [ "${COMPREPLY[*]}" = --quick ]' "$dir/out" ||
  fail "bash does not complete the flag of a verb's key"
bash -c '. "$0"; COMP_WORDS=(tidemark fit --lora-r) COMP_CWORD=2; _tidemark; [[ ${COMPREPLY[*]} = *--lora-r* ]]' "$dir/out" ||
  fail "bash does not complete the flag of an option"
run 0 completion zsh
out_has '--no-frontiers'
run 0 completion fish
out_has 'subcommand_from fit. -l all-gpus'
for command in estimate check calibrate fit advise map models gpus describe schema completion version; do
  run 0 $command --help
  out_has "tidemark $command"
done
run 0 describe --man
out_has '^.TH TIDEMARK 1'
out_has '^.B .-.-activations'
if command -v groff >/dev/null; then
  groff -man -Tutf8 -ww "$dir/out" >/dev/null 2>"$dir/err" || fail "groff does not take the manual page"
  [ -s "$dir/err" ] && fail "groff warns of the manual page"
fi
run 0 advise -m smollm2-135m --gpu H100 --no-tiers --json
out_has '"tiers": .]'
run 0 schema request
out_has '"adapter"'
python3 -m json.tool "$dir/out" >/dev/null 2>&1 || fail "schema request is not JSON"
run 0 schema answer
python3 -m json.tool "$dir/out" >/dev/null 2>&1 || fail "schema answer is not JSON"
run 2 schema

# Verdicts.
run 0 estimate -m llama-3.2-1b --precision pure_bf16 --gpu A100-80GB
out_has 'fits'
run 1 estimate -m llama-2-70b --gpu 4090
out_has 'does not fit'
run 1 estimate -m llama-2-70b --gpu 4090 --json
out_has '"does_not_fit"'
run 1 estimate -m llama-3.2-1b --gpu A100-80GB --gpu 4GiB
out_has '4.00 GiB'

# A card just below the expected peak: tight in words, and more than it gives for the exit status.
run 0 estimate -m llama-3.2-1b --json
short=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["estimate"]["allocated"]["expected"] * 0.9999 / 2**30)' "$dir/out")
run 1 estimate -m llama-3.2-1b --gpu "${short}GiB" --cuda-context-gib 0
out_has 'tight'
out_has 'too much, but the'

# Flags that need care.
run 0 estimate -m llama-3.2-1b --lora-r 8 --method lora --target-modules q_proj,v_proj --padding --json
run 0 estimate -m llama-3.2-1b --padding=false --no-packing --no-double-quant
# A file that is not there is not taken for a model's name.
run 2 estimate no-such-file.yaml
err_has 'no file "no-such-file.yaml"'
# A word that belongs to no flag is not swallowed: a switch takes none.
run 2 estimate -m llama-3.2-1b --zero-grad-to-none false
# What commas or brackets cannot say is said in JSON.
run 0 estimate -m llama-3.2-1b --gpu '{"vram_gb": 80}'
run 0 estimate -m llama-3.2-1b --method lora --target-modules '["q_proj", "v_proj"]'
run 0 estimate -m llama-3.2-1b --precision pure_bf16 --precision-optimizer-states fp32
out_has 'fp32 optimizer states'
run 0 estimate -m llama-3.2-1b --gradient-checkpointing-every 2
out_has 'one layer in 2'
run 0 estimate -m llama-3.2-1b --gradient-accumulation-steps 8 --seq-len 512 -b 2

# Cards.
run 0 fit -m llama-3.2-1b
out_has 'NVIDIA H100'
run 0 fit -m llama-3.2-1b --gpu H100 --vram-gb 80 --rule-of-thumb 0.8
out_has '80 GB card'
run 1 fit -m llama-2-7b --gpu 4090 --gpu H200
run 0 fit -m llama-2-7b --gpu 4090 --all-gpus --json
out_has '"fits"'
python3 -m json.tool "$dir/out" >/dev/null 2>&1 || fail "fit --json is not JSON"
run 1 advise -m llama-2-7b --gpu 4090
out_has 'What makes it fit'
run 0 advise -m smollm2-135m --gpu H100 --markdown
out_has '^### How far it goes'
run 1 advise -m llama-2-7b --vram-gb 24 --json
python3 -m json.tool "$dir/out" >/dev/null 2>&1 || fail "advise --json is not JSON"
run 0 map -m smollm2-135m --gpu 3060 --batches 1,2 --sequences 512,1024
out_has '1 024'
run 0 map -m smollm2-135m --gpu 3060 --quick --json
python3 -m json.tool "$dir/out" >/dev/null 2>&1 || fail "map --json is not JSON"
for command in fit advise map; do run 0 $command --help; done

# Help for a terminal of 80 columns; what is no option but has some lists them.
run 0 describe parallelism.fsdp_options
out_has 'backward-prefetch'
for command in estimate scan check import export probe trace calibrate fit advise map; do
  COLUMNS=80 "$tidemark" $command --help >"$dir/out" 2>"$dir/err"
  widest=$(awk '{ if (length($0) > most) most = length($0) } END { print most }' "$dir/out")
  [ "$widest" -le 80 ] || fail "$command --help: a line of $widest columns"
done

# Files.
printf '{"schema":1,"model":"llama-3.2-1b","sequence_length":256}' >"$dir/job.json"
run 0 estimate --request "$dir/job.json"
out_has '1 × 256 tokens'
run 0 estimate --request "$dir/job.json" --sequence-length 512
out_has '1 × 512 tokens'
"$tidemark" estimate --request - <"$dir/job.json" >"$dir/out" 2>"$dir/err" || fail "a request from standard input"
printf '{"model_type":"llama","hidden_size":256,"intermediate_size":512,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":1000}' >"$dir/config.json"
run 0 estimate --config "$dir/config.json"
out_has 'LlamaForCausalLM'

# A request is a file like others, whatever stands in it, and the estimate is what is asked for where no command is named.
printf '{"model":"llama-3.2-1b","sequence_length":256,"parallelism":{"data":2,"fsdp":"full_shard","fsdp_options":{"backward_prefetch":"none"}}}' >"$dir/sharded.json"
run 0 estimate --request "$dir/sharded.json"
cp "$dir/out" "$dir/sharded.txt"
run 0 estimate "$dir/sharded.json"
cmp -s "$dir/out" "$dir/sharded.txt" || fail "a request as a file is another job than the same with --request"
run 0 "$dir/sharded.json"
cmp -s "$dir/out" "$dir/sharded.txt" || fail "a file alone is not estimated"
run 0 llama-3.2-1b --sequence-length 256
out_has '1 × 256 tokens'
run 0 --model llama-3.2-1b --sequence-length 256
out_has '1 × 256 tokens'

# A job said in a sentence is the job of the flags, and nothing is said twice.
run 0 estimate -m llama-3.2-1b --method qlora --gpu 4090 --sequence-length 4096
cp "$dir/out" "$dir/flags.txt"
for sentence in 'llama-3.2-1b with qlora on 4090 at 4096' 'llama-3.2-1b qlora 4090 at 4k' \
  'llama-3.2-1b on rtx 4090 at 4,096 with qlora'; do
  # shellcheck disable=SC2086
  run 0 $sentence
  cmp -s "$dir/out" "$dir/flags.txt" || fail "\"$sentence\" is another job than its flags"
done
run 0 fit llama-3.2-1b lora
out_has 'LoRA, rank 16'
run 2 llama-3.2-1b on 4090 on 3090
err_has '"3090" belongs to no flag, and the card is stated already.'
run 2 estimate llama-2-7b --method lora qlora
err_has '"qlora" belongs to no flag, and the method is stated already.'
run 2 estimate llama-2-7b foo
err_has 'no card of the name "foo"'

# What was chosen for a job is no help where the job is refused.
run 2 estimate -m llama-2-7b --method lorra
err_has 'lora'
grep -q CHOSEN_PRECISION "$dir/err" && fail "a note stands beside an error"

# Bad usage and input: status 2, nothing on standard output.
run 2
run 2 estimate
err_has 'MISSING_MODEL'
err_has 'tidemark estimate --model'
run 2 dance
err_has 'tidemark help'
run 2 esitmate
err_has 'estimate'
run 2 estimate --model lama-2-7b
err_has 'UNKNOWN_MODEL'
err_has 'llama'
run 2 estimate -m llama-2-7b --gpu a1000000
err_has 'UNKNOWN_GPU'
run 2 estimate -m llama-2-7b --optimizer adamw_fused --json
err_has 'INVALID_VALUE'
err_has 'adamw_torch_fused'
run 2 estimate -m llama-2-7b --micro-batch-size 0
err_has '--micro-batch-size'
run 2 estimate -m llama-2-7b --micro-batch-size many
run 2 estimate -m llama-2-7b --sequence-length
run 2 estimate -m llama-2-7b --sequnce-length 4
err_has '--sequence-length'
run 2 estimate -m llama-2-7b --gradient-checkpointing full --gradient-checkpointing-every 2
run 2 estimate -m llama-2-7b --parallelism-pipeline-schedule dualpipev
err_has 'UNSUPPORTED_OPTION'
run 2 estimate -m allenai/Molmo-7B-D-0924
err_has 'UNSUPPORTED_ARCHITECTURE'
err_has 'weights'
run 2 advise -m llama-2-7b
err_has 'MISSING_GPU'
err_has '--gpu 24GB'
run 2 export no-such-format -m llama-2-7b
err_has 'no-such-format'
run 2 fit -m llama-2-7b --rule-of-thumb 80
run 2 map -m smollm2-135m --batches one
run 2 fit --model lama-2-7b
run 2 estimate --request "$dir/absent.json"
err_has 'UNREADABLE_FILE'
run 2 estimate --request "$dir"
run 2 estimate --config "$dir/absent.json"
printf '{"model":' >"$dir/broken.json"
run 2 estimate --request "$dir/broken.json"
err_has 'INVALID_JSON'
run 2 estimate "$dir/broken.json"
err_has 'Line 1'
: >"$dir/empty.json"
run 2 estimate "$dir/empty.json"
err_has 'is empty'
printf '[]' >"$dir/list.json"
run 2 estimate --request "$dir/list.json"
run 2 estimate --request - 
run 2 models no-such-model
run 2 gpus no-such-card
run 2 describe no-such-option
run 2 completion tcsh
run 2 models --nonsense

# Numbers and flags as people write them.
for length in 4k 4K 4,096 4_096 '4 096' 4.096; do
  run 0 estimate -m smollm2-135m --seq-len "$length"
  out_has '4.096 tokens'
done
run 2 estimate -m smollm2-135m --seq-len 4.5
run 2 estimate -m smollm2-135m --seq-len 4kk
err_has '"4kk"'
run 2 estimate -m smollm2-135m --seq-len -4k
run 0 map -m smollm2-135m --sequences 1k,2k --batches 1,2
out_has '2.048'
run 0 estimate -m flux.1-dev --method lora --image-size 896x1344
out_has '896 × 1.344 pixels'
run 2 estimate -m flux.1-dev --method lora --image-size 896x
err_has '896x1344'
run 0 estimate -m smollm2-135m --max_seq_length 512 --per_device_train_batch_size=2
out_has 'batch 2 × 512 tokens'
run 0 estimate -m smollm2-135m --vram 24
out_has 'fits'
run 0 estimate -m smollm2-135m --num_gpus 2
out_has '2 GPUs'
run 2 estimate -m smollm2-135m --lora
err_has 'Try: --method lora'
run 2 estimate -m smollm2-135m --fp32
err_has 'Try: --precision fp32'
run 2 estimate llama-3.2-1b --deepspeed zero3
err_has 'Try: --zero 3'
run 2 estimate llama-3.2-1b --ctx 4096
err_has 'Try: --seq-len'
run 2 estimate llama-3.2-1b --epochs 3
err_has 'It moves no memory'
run 2 estimate 7b
err_has '--params 7b'
run 2 estimate llama-3.2-1b --gpu 2
err_has '--num-gpus 2'
run 2 estimate llama-3.2-1b --method dora
err_has '--use-dora'
run 0 help estimate
out_has 'tidemark estimate FILE'
run 0 estimate bert-base-uncased
out_has '512 tokens'
run 2 estimate -m smollm2-135m --learning_rate 1e-4
err_has 'no memory of the peak'
run 2 mistral
err_has '--model mistral'

# What cannot be meant is refused, not guessed.
run 2 estimate -m gpt2 --zero-grad-to-none false
err_has 'switch'
run 2 estimate nonsense
err_has 'UNKNOWN_MODEL'
run 2 estimate -m gpt2 nonsense
err_has 'nonsense'
run 2 estimate gpt2 nonsense
run 2 estimate -m gpt2 --micro-batch-size 2 --micro-batch-size 4
err_has 'more than once'
run 2 estimate -m gpt2 -b 2 --micro-batch-size 4
run 2 estimate -m gpt2 --padding --padding
run 2 estimate -m gpt2 --json --markdown
run 2 estimate --request ''
run 2 map -m smollm2-135m --batches ''
run 2 map -m smollm2-135m --sequences ''
run 2 fit -m smollm2-135m --rule-of-thumb ''
# A choice that is a switch, too, takes no flag for its value.
run 0 estimate -m smollm2-135m --method qlora --prepare-kbit --json
out_has '"allocated"'
run 0 estimate -m smollm2-135m --method qlora --precision bf16_amp --prepare-kbit norms_only
cp "$dir/out" "$dir/norms"
run 0 estimate -m smollm2-135m --method qlora --precision bf16_amp --prepare-kbit
cmp -s "$dir/out" "$dir/norms" && fail "--prepare-kbit norms_only is that of the bare flag"
run 0 estimate -m smollm2-135m --freeze wte --freeze wpe --method freeze

# Scripts get the issues as JSON where they asked for JSON.
run 2 estimate -m no-such-model-at-all --json
python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["issues"][0]["code"] == "UNKNOWN_MODEL"' "$dir/err" ||
  fail "--json: the issues on standard error are not JSON"

# Names do not steer the terminal.
escape=$(printf '\033[31m')
for flags in "estimate --model $escape" "estimate -m gpt2 --gpu $escape" "estimate -m gpt2 --optimizer $escape" \
  "models $escape" "gpus $escape" "describe $escape" "estimate $escape" "estimate -m gpt2 --$escape" "$escape" \
  "estimate --request $escape"; do
  # shellcheck disable=SC2086
  run 2 $flags
  grep -q "$(printf '\033')" "$dir/err" && fail "tidemark $flags: an escape character reaches standard error"
done
printf '{"model":"gpt2","gpu":{"memory_gib":24,"name":"\\u001b[31mred"}}' >"$dir/red.json"
run 2 estimate --request "$dir/red.json"
grep -q "$(printf '\033')" "$dir/err" && fail "a card's name: an escape character reaches standard error"

# Output that cannot be written is an error.
if [ -c /dev/full ]; then
  "$tidemark" estimate -m gpt2 >/dev/full 2>"$dir/err"
  status=$?
  [ "$status" -eq 3 ] || fail "standard output to a full device: status $status, not 3"
  [ -s "$dir/err" ] || fail "standard output to a full device: nothing is said"
fi
"$tidemark" version >&- 2>"$dir/err"
status=$?
[ "$status" -eq 3 ] || fail "standard output closed: status $status, not 3"

[ "$failures" -eq 0 ] && echo "all as promised"
[ "$failures" -eq 0 ]
