#include "core/exchange/args.hpp"

#include <algorithm>
#include <utility>

#include "core/exchange/accelerate_keys.hpp"
#include "core/exchange/formats/shared.hpp"
#include "core/exchange/other_work.hpp"
#include "core/units/letters.hpp"
#include "core/units/word_list.hpp"

namespace tidemark::exchange {
namespace {

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}
bool has(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

bool is_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9') && word[1] != '.';
}

/// "a.b=c" or "+a.b=c", as Hydra takes it.
std::size_t override_at(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0 || word[0] == '-' || word[0] == '/' || word[0] == '$')
    return std::string::npos;
  for (std::size_t at = 0; at < equals; ++at) {
    const char letter = word[at];
    const bool plain =
        (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9');
    if (!plain && letter != '_' && letter != '.' && letter != '+' && letter != '-' && letter != '@' && letter != '/')
      return std::string::npos;
  }
  return equals;
}

std::string key_of(std::string_view flag) {
  while (!flag.empty() && (flag[0] == '-' || flag[0] == '+')) flag.remove_prefix(1);
  std::string key{flag};
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

std::vector<Origin> origins_of(const ShellWord& word, const std::string& file) {
  std::vector<Origin> origins;
  for (int line : word.lines()) origins.push_back({file, line, line, -1});
  return origins;
}

/// A word behind the equals sign of another.
ShellWord part_of(const ShellWord& word, std::size_t from) {
  ShellWord part = word;
  part.text.text = word.text.text.substr(from);
  part.text.lines.assign(word.text.lines.begin() + static_cast<std::ptrdiff_t>(from), word.text.lines.end());
  return part;
}

}  // namespace

void Args::add(Arg arg) {
  all.push_back(std::move(arg));
}

bool Args::has(std::string_view key) const {
  return std::any_of(all.begin(), all.end(), [&](const Arg& arg) { return arg.key == key; });
}

Arg* Args::find(std::string_view key) {
  Arg* found = nullptr;
  for (Arg& arg : all) {
    if (arg.key != key) continue;
    arg.read = true;
    found = &arg;
  }
  if (found == nullptr || found->value.is_null()) return nullptr;
  return found->unresolved.empty() ? found : nullptr;
}

Arg* Args::any(std::initializer_list<std::string_view> keys) {
  Arg* first = nullptr;
  for (std::string_view key : keys) {
    Arg* arg = find(key);
    if (first == nullptr) first = arg;
  }
  return first;
}

bool Args::on(std::string_view key) {
  const Arg* arg = find(key);
  if (arg == nullptr) return false;
  if (arg->value.is_bool()) return arg->value.boolean;
  return arg->value.is_number() ? arg->value.real != 0
                                : lower_case(arg->value.text) != "false" && !arg->value.text.empty();
}

std::string Args::text(std::string_view key) {
  const Arg* arg = find(key);
  return arg == nullptr ? std::string{} : arg->value.text;
}

void Args::state(std::string_view path, Value value, std::initializer_list<const Arg*> args, std::string assumed) {
  std::vector<Origin> origins;
  for (const Arg* arg : args) {
    if (arg == nullptr) continue;
    origins.insert(origins.end(), arg->origins.begin(), arg->origins.end());
    if (assumed.empty()) assumed = arg->assumed;
  }
  exchange::state(reading, path, std::move(value), std::move(origins), std::move(assumed));
}

bool Args::copy(std::string_view path, std::initializer_list<std::string_view> keys) {
  if (const Arg* arg = any(keys); arg != nullptr) {
    state(path, to_value(arg->value), {arg});
    return true;
  }
  for (std::string_view key : keys) {
    for (const Arg& arg : all) {
      if (arg.key != key || arg.unresolved.empty()) continue;
      unknown(std::string{path} + ": " + arg.unresolved + " is not set in the file");
      return true;
    }
  }
  return false;
}

void Args::unknown(std::string what) {
  if (std::find(reading.unknowns.begin(), reading.unknowns.end(), what) == reading.unknowns.end())
    reading.unknowns.push_back(std::move(what));
}

void Args::tell_unread() {
  for (const Arg& arg : all) {
    if (arg.read || reading.unread.size() > 200) continue;
    reading.unread.push_back({arg.key, arg.origins.empty() ? Origin{} : arg.origins[0], is_harmless_key(arg.key)});
  }
}

// trl 1.9 scripts/utils.py: TrlParser.parse_args_and_config; transformers 5.12 hf_argparser.py: parse_yaml_file.
std::string configuration_of(const Launch& launch) {
  Reading scratch;
  Args args(scratch);
  add_arguments(args, launch.arguments, "");
  const Arg* config = args.find("config");
  const std::string name = config != nullptr          ? config->value.text
                           : launch.arguments.empty() ? std::string{}
                                                      : launch.arguments.front().word();
  const bool readable = name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json");
  return readable && name.find('$') == std::string::npos ? name : std::string{};
}

Arg arg_of(std::string key, const ShellWord& word, const std::string& file) {
  Arg arg;
  arg.key = std::move(key);
  arg.value = plain_scalar(word.word());
  if (arg.value.is_null()) arg.value.kind = word.word().empty() ? Node::Kind::kNull : arg.value.kind;
  arg.origins = origins_of(word, file);
  if (word.tentative) arg.assumed = "the script's own default; its argument may say otherwise";
  if (const std::size_t dollar = word.word().find('$'); dollar != std::string::npos) {
    std::size_t end = dollar + 1;
    const std::string& text = word.word();
    while (end < text.size() && ((text[end] >= 'A' && text[end] <= 'Z') || (text[end] >= 'a' && text[end] <= 'z') ||
                                 (text[end] >= '0' && text[end] <= '9') || text[end] == '_'))
      ++end;
    arg.unresolved = text.substr(dollar, end - dollar);
  }
  return arg;
}

void add_arguments(Args& args, const std::vector<ShellWord>& words, const std::string& file) {
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at].word();
    if (!is_flag(word)) {
      if (const std::size_t equals = override_at(word); equals != std::string::npos) {
        args.add(arg_of(key_of(word.substr(0, equals)), part_of(words[at], equals + 1), file));
      }
      continue;
    }
    if (const std::size_t equals = word.find('='); equals != std::string::npos) {
      args.add(arg_of(key_of(word.substr(0, equals)), part_of(words[at], equals + 1), file));
      continue;
    }
    std::size_t end = at + 1;
    // `--config c.yaml batch_size=8`: what follows a value that is none is an override of its own.
    const bool of_pairs = end < words.size() && override_at(words[end].word()) != std::string::npos;
    const auto belongs = [&](const std::string& next) {
      return !is_flag(next) && (of_pairs || end == at + 1 || override_at(next) == std::string::npos);
    };
    while (end < words.size() && belongs(words[end].word()) && end - at < 64) ++end;
    if (end == at + 1) {
      Arg flag;
      flag.key = key_of(word);
      flag.value.kind = Node::Kind::kBool;
      flag.value.boolean = true;
      flag.value.text = "true";
      flag.origins = origins_of(words[at], file);
      args.add(std::move(flag));
      continue;
    }
    Arg arg = arg_of(key_of(word), words[at + 1], file);
    if (end > at + 2) {
      Node list;
      list.kind = Node::Kind::kArray;
      for (std::size_t item = at + 1; item < end; ++item) {
        list.items.push_back(plain_scalar(words[item].word()));
        for (const Origin& origin : origins_of(words[item], file)) {
          const bool known = std::any_of(arg.origins.begin(), arg.origins.end(),
                                         [&](const Origin& other) { return other.first == origin.first; });
          if (!known) arg.origins.push_back(origin);
        }
      }
      list.text = arg.value.text;
      arg.value = std::move(list);
    }
    args.add(std::move(arg));
    at = end - 1;
  }
}

namespace {

/// Launchers' options that no word follows.
bool stands_alone(const std::string& flag) {
  constexpr std::string_view kAlone[] = {"--multi_gpu",
                                         "--standalone",
                                         "--use_deepspeed",
                                         "--use_fsdp",
                                         "--no_python",
                                         "--use_env",
                                         "--module",
                                         "--cpu",
                                         "--tpu",
                                         "-m",
                                         "--no_local_rank",
                                         "--same_network",
                                         "--dynamo_use_fullgraph",
                                         "--use_megatron_lm",
                                         "--bind_cores_to_rank",
                                         "--force_multi",
                                         "--debug",
                                         "-u",
                                         "-q",
                                         "--quiet",
                                         "--no-capture-output",
                                         "--multi-gpu"};
  return std::find(std::begin(kAlone), std::end(kAlone), flag) != std::end(kAlone) ||
         flag.find('=') != std::string::npos;
}

/// Splits what stands behind a launcher into its options, the program and the program's arguments.
void split(Launch& launch, const std::vector<ShellWord>& words, std::size_t at) {
  bool module = false;
  for (; at < words.size(); ++at) {
    const std::string& word = words[at].word();
    if (word == "-m" || word == "--module") {
      module = true;
      continue;
    }
    if (is_flag(word)) {
      launch.options.push_back(words[at]);
      if (!stands_alone(word) && at + 1 < words.size() && !is_flag(words[at + 1].word()) &&
          !ends_with(words[at + 1].word(), ".py"))
        launch.options.push_back(words[++at]);
      continue;
    }
    if (!module && launch.launcher != "python" && !ends_with(word, ".py") && has(word, "=")) {
      launch.options.push_back(words[at]);
      continue;
    }
    launch.program = word;
    ++at;
    break;
  }
  for (; at < words.size(); ++at) launch.arguments.push_back(words[at]);
}

std::string bare(const std::string& word) {
  return std::string{base_name(word)};
}

bool is_python(const std::string& name) {
  return name == "python" || name == "python3" || name.compare(0, 8, "python3.") == 0 || name == "$PYTHON" ||
         name == "$(...)python";
}

/// One command's launch, where it is one.
bool launch_of(const ShellCommand& command, Launch& launch) {
  const std::vector<ShellWord>& words = command.words;
  const std::string first = words.empty() ? std::string{} : words[0].word();
  for (const char* quiet : {"echo", "printf", "pip", "pip3", "conda", "apt", "apt-get", "cd", "mkdir", "cat", "grep",
                            "which", "git", "set", "source", "export", "test", "[", "[["}) {
    if (first == quiet) return false;
  }
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string name = bare(words[at].word());
    const std::string next = at + 1 < words.size() ? words[at + 1].word() : std::string{};
    launch.command = &command;
    if (name == "torchrun" || name == "deepspeed" || name == "colossalai") {
      launch.launcher = name == "colossalai" ? "torchrun" : name;
      split(launch, words, at + 1 + (name == "colossalai" ? 1 : 0));
    } else if (name == "accelerate" && next == "launch") {
      launch.launcher = name;
      split(launch, words, at + 2);
    } else if (name == "swift" || name == "megatron" || name == "llamafactory-cli" || name == "axolotl" ||
               name == "tune" || name == "xtuner" || name == "trl") {
      if (next.empty() || is_flag(next)) return false;
      launch.launcher = name;
      launch.program = next;
      launch.arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(at) + 2, words.end());
    } else if (is_python(name)) {
      std::size_t module = at + 1;
      while (module < words.size() && (words[module].word() == "-u" || words[module].word() == "-O")) ++module;
      const std::string what =
          module + 1 < words.size() && words[module].word() == "-m" ? words[module + 1].word() : std::string{};
      const bool distributed = what == "torch.distributed.run" || what == "torch.distributed.launch";
      const bool accelerated = has(what, "accelerate.commands.launch");
      launch.launcher = distributed ? "torchrun" : accelerated ? "accelerate" : "python";
      split(launch, words, distributed || accelerated ? module + 2 : at + 1);
    } else {
      continue;
    }
    return !launch.program.empty();
  }
  return false;
}

/// How likely this is the one that trains.
int likelihood(const Launch& launch) {
  const std::string name = lower_case(launch.program);
  int score = static_cast<int>(std::min<std::size_t>(launch.arguments.size(), 60));
  if (!other_work(launch).empty()) score -= 1000;
  for (const char* word :
       {"train", "sft", "finetune", "pretrain", "rlhf", "dpo", "grpo", "pt", "run_clm", "main_ppo"}) {
    if (has(name, word)) score += 40;
  }
  for (const char* word : {"eval", "infer", "merge", "export", "convert", "download", "preprocess", "prepare",
                           "tokeniz", "generate", "serve", "deploy", "rollout", "test", "plot"}) {
    if (has(bare(name), word)) score -= 120;
  }
  return score;
}

}  // namespace

bool has_flag(const Launch& launch, std::string_view name) {
  return std::any_of(launch.arguments.begin(), launch.arguments.end(),
                     [&](const ShellWord& word) { return flag_of(word.word()) == name; });
}

std::string_view flag_of(std::string_view word) {
  const std::size_t first = word.find_first_not_of('-');
  return first == 0 || first == std::string_view::npos ? std::string_view{}
                                                       : word.substr(first, word.find('=') - first);
}

std::vector<Launch> launches_of(const ShellScript& script) {
  std::vector<Launch> launches;
  for (const ShellCommand& command : script.commands) {
    Launch launch;
    if (launch_of(command, launch)) launches.push_back(std::move(launch));
  }
  return launches;
}

const Launch* training_launch(const std::vector<Launch>& launches) {
  const Launch* best = nullptr;
  int most = 0;
  for (const Launch& launch : launches) {
    const int likely = likelihood(launch);
    if (best != nullptr && likely <= most) continue;
    best = &launch;
    most = likely;
  }
  return best;
}

bool starts_this(std::string_view program, std::string_view file) {
  const std::string_view started = base_name(program);
  const std::string_view known = base_name(file);
  if (started.empty() || !known.ends_with(started)) return false;
  const std::string_view before = known.substr(0, known.size() - started.size());
  return before.empty() || before.ends_with("__");
}

TrainingScript training_script(const Look& look) {
  TrainingScript read{read_shell(look.head), {}, nullptr};
  read.launches = launches_of(read.script);
  read.launch = training_launch(read.launches);
  return read;
}

void tell_no_launch(Reading& reading, const Look& look) {
  reading.issues.push_back(
      {"NO_JOB", Severity::kError, look.source.name, "No command in the file starts a training.", ""});
}

const ShellWord* environment_of(const ShellScript& script, const Launch* launch, const std::string& name) {
  if (launch != nullptr) {
    const auto there = launch->command->environment.find(name);
    if (there != launch->command->environment.end()) return &there->second;
  }
  const auto known = script.variables.find(name);
  return known == script.variables.end() ? nullptr : &known->second;
}

void read_environment(Args& args, const ShellScript& script, const Launch* launch, const std::string& file) {
  const auto variable = [&](const char* name) { return environment_of(script, launch, name); };
  const ShellWord* conf = variable("PYTORCH_CUDA_ALLOC_CONF");
  if (conf == nullptr) conf = variable("PYTORCH_ALLOC_CONF");
  if (conf != nullptr && has(lower_case(conf->word()), "expandable_segments:true")) {
    exchange::state(args.reading, "allocator.expandable_segments", of(true), origins_of(*conf, file));
  }
  const ShellWord* visible = variable("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr && !visible->word().empty() && !has(visible->word(), "$")) {
    const auto count = 1 + std::count(visible->word().begin(), visible->word().end(), ',');
    exchange::state(args.reading, "visible_gpus", of(static_cast<std::int64_t>(count)), origins_of(*visible, file));
  }
}

namespace {

/// Where processes meet and what they print.
bool is_plumbing(const std::string& key) {
  constexpr std::string_view kPlumbing[] = {"m",
                                            "u",
                                            "module",
                                            "standalone",
                                            "node_rank",
                                            "master_addr",
                                            "master_port",
                                            "main_process_ip",
                                            "main_process_port",
                                            "max_restarts",
                                            "tee",
                                            "log_dir",
                                            "multi_gpu",
                                            "hostfile",
                                            "launcher",
                                            "use_env",
                                            "no_local_rank",
                                            "num_cpu_threads_per_process",
                                            "dynamo_backend",
                                            "no_python",
                                            "bind_cores_to_rank",
                                            "local_ranks_filter",
                                            "role",
                                            "monitor_interval"};
  return key.starts_with("rdzv") || std::find(std::begin(kPlumbing), std::end(kPlumbing), key) != std::end(kPlumbing);
}

void tell_launcher_unread(const Args& options, Reading& reading) {
  for (const Arg& arg : options.all) {
    if (arg.read || is_plumbing(arg.key) || is_harmless_key(arg.key)) continue;
    reading.unread.push_back({arg.key, arg.origins.empty() ? Origin{} : arg.origins[0], false});
  }
}

/// deepspeed --include localhost:0,1: the GPUs of a host (DeepSpeed 0.18 launcher/runner.py:
/// parse_inclusion_exclusion); 0 where hosts stand without theirs.
std::int64_t included_gpus(const std::string& text) {
  std::int64_t all = 0;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('@', at), text.size());
    const std::string host = text.substr(at, end - at);
    const std::size_t colon = host.find(':');
    if (colon == std::string::npos) return 0;
    all += 1 + std::count(host.begin() + static_cast<std::ptrdiff_t>(colon), host.end(), ',');
    at = end + 1;
  }
  return all;
}

}  // namespace

void state_trl_config(Args& args, const Arg& config) {
  const std::string name{base_name(config.value.text)};
  constexpr std::string_view kKnown =
      "zero1,zero2,zero3,deepspeed_zero1,deepspeed_zero2,deepspeed_zero3,fsdp1,fsdp2,multi_gpu,single_gpu";
  if (!has_word(kKnown, name.substr(0, name.find('.')))) return args.unknown("parallelism.data");
  const std::string why = "as TRL's own file of that name";
  const auto tell = [&](const char* path, Value value) { args.state(path, std::move(value), {&config}, why); };
  const int stage = zero_stage_of_name(name);
  const bool first = name.starts_with("fsdp1");
  if (stage > 0) tell("parallelism.zero_stage", of(stage));
  if (name.starts_with("fsdp")) tell("parallelism.fsdp", of(first ? "full_shard" : "fsdp2"));
  if (first) {
    tell("parallelism.fsdp_options.backward_prefetch", of("backward_pre"));
    tell("parallelism.fsdp_options.forward_prefetch", of(true));
  }
  tell("parallelism.data", of(name.starts_with("single") ? 1 : 8));
  tell("mixed_precision", of("bf16"));
}

void read_launcher(Args& args, const Launch& launch, const std::string& file) {
  Reading scratch;
  Args options(scratch);
  add_arguments(options, launch.options, file);
  const Arg* processes = options.any({"nproc_per_node", "nproc", "num_processes", "num_gpus"});
  const Arg* nodes = options.any({"nnodes", "num_nodes", "num_machines"});
  if (launch.launcher == "accelerate") {
    if (const Arg* config = options.find("config_file"); config != nullptr) {
      args.unknown("accelerate config: " + config->value.text);
      args.reading.companions.push_back(config->value.text);
      if (config->value.text.find("accelerate_configs/") != std::string::npos) state_trl_config(args, *config);
    }
    read_accelerate_flags(options, file, args.reading);
  }
  const bool open = options.has("nnodes") && nodes == nullptr;
  if (processes != nullptr && processes->value.is_integer() && !open &&
      (nodes == nullptr || nodes->value.is_integer())) {
    const bool per_node = launch.launcher != "accelerate";
    const std::int64_t total = processes->value.integer * (per_node && nodes != nullptr ? nodes->value.integer : 1);
    args.state("parallelism.data", of(total), {processes, nodes});
  } else if (const Arg* hosts = options.find("include");
             hosts != nullptr && launch.launcher == "deepspeed" && included_gpus(hosts->value.text) > 0) {
    args.state("parallelism.data", of(included_gpus(hosts->value.text)), {hosts});
  } else if (launch.launcher == "python") {
    args.assume(
        "parallelism.data", of(1),
        "python without a launcher: one GPU; where it sees several, transformers' Trainer takes nn.DataParallel "
        "(parallelism.data_parallel dp)");
  } else if (!args.told("parallelism.data")) {
    args.unknown("parallelism.data");
  }
  tell_launcher_unread(options, args.reading);
}

// LLaMA-Factory ff6d4d12 launcher.py: launch.
void read_llamafactory_processes(Args& args, const TrainingScript& text, const std::string& file) {
  const auto number = [&](const char* name, std::vector<Origin>& origins) -> std::int64_t {
    const ShellWord* word = environment_of(text.script, text.launch, name);
    const Node node = word == nullptr ? Node{} : plain_scalar(word->word());
    if (!node.is_integer()) return 0;
    for (const Origin& origin : origins_of(*word, file)) origins.push_back(origin);
    return node.integer;
  };
  std::vector<Origin> origins;
  std::int64_t local = number("NPROC_PER_NODE", origins);
  const Finding* seen = find(args.reading, "visible_gpus");
  if (local == 0 && seen != nullptr) {
    local = seen->value.integer;
    origins = seen->origins;
  }
  const std::int64_t nodes = std::max<std::int64_t>(1, number("NNODES", origins));
  if (local > 0) return exchange::state(args.reading, "parallelism.data", of(local * nodes), std::move(origins));
  args.unknown("parallelism.data: llamafactory-cli takes all GPUs in sight");
}
void tell_other_launches(Reading& reading, const TrainingScript& text) {
  if (text.launch == nullptr) return;
  const auto arguments = [](const Launch& launch) {
    std::vector<std::string> words{launch.launcher, launch.program};
    for (const ShellWord& word : launch.arguments) words.push_back(word.word());
    return words;
  };
  std::vector<std::vector<std::string>> others{arguments(*text.launch)};
  for (const Launch& launch : text.launches) {
    if (likelihood(launch) < likelihood(*text.launch) || !other_work(launch).empty()) continue;
    const std::vector<std::string> words = arguments(launch);
    if (std::find(others.begin(), others.end(), words) == others.end()) others.push_back(words);
  }
  if (others.size() < 2) return;
  const std::vector<ShellWord>& words = text.launch->command->words;
  const std::vector<int> lines = words.empty() ? std::vector<int>{} : words[0].lines();
  reading.notes.push_back(std::to_string(others.size()) + " commands train, each with other words; the one " +
                          (lines.empty() ? std::string{"that stands first"} : "of line " + std::to_string(lines[0])) +
                          " is read");
}
void read_script(Args& args, const Look& look, const TrainingScript& text) {
  const std::string& file = look.source.name;
  tell_other_launches(args.reading, text);
  read_slurm_header(args.reading, look.head, file);
  read_environment(args, text.script, text.launch, file);
  add_arguments(args, text.launch->arguments, file);
}

void read_slurm_header(Reading& reading, std::string_view text, const std::string& file) {
  int line = 0;
  while (!text.empty()) {
    ++line;
    const std::size_t end = text.find('\n');
    std::string row{text.substr(0, end)};
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (row.compare(0, 8, "#SBATCH ") != 0) continue;
    if (const std::size_t comment = row.find(" #", 8); comment != std::string::npos) row.resize(comment);
    const ShellScript script = read_shell(row.substr(8));
    Reading scratch;
    Args args(scratch);
    if (!script.commands.empty()) add_arguments(args, script.commands[0].words, file);
    const Origin origin{file, line, line, -1};
    const auto tell = [&](const char* path, Value value) { state(reading, path, std::move(value), {origin}); };
    for (const char* key : {"gres", "gpus_per_node", "gpus", "G"}) {
      const Arg* arg = args.find(key);
      if (arg == nullptr) continue;
      std::string value = arg->value.text;
      if (value.compare(0, 4, "gpu:") == 0) value = value.substr(4);
      if (value.compare(0, 3, "gpu") == 0 && value.size() == 3) value = "1";
      const std::size_t colon = value.find(':');
      if (colon != std::string::npos) {
        std::string card = value.substr(0, colon);
        std::transform(card.begin(), card.end(), card.begin(), [](char letter) {
          return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
        });
        tell("gpu", of(card));
        value = value.substr(colon + 1);
      }
      const Node count = plain_scalar(value.substr(0, value.find_first_of("(,")));
      if (count.is_integer()) tell("parallelism.gpus_per_node", to_value(count));
    }
    if (const Arg* nodes = args.any({"nodes", "N"}); nodes != nullptr && nodes->value.is_integer())
      tell("nodes", to_value(nodes->value));
    if (const Arg* queue = args.any({"partition", "p"}); queue != nullptr)
      tell("slurm_partition", of(queue->value.text));
    if (const Arg* kind = args.any({"constraint", "C"}); kind != nullptr) tell("gpu_constraint", of(kind->value.text));
    if (const Arg* memory = args.find("mem"); memory != nullptr) tell("host_memory", of(memory->value.text));
  }
}

}  // namespace tidemark::exchange
