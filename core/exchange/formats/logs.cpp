// Messages, tables and recordings about memory: what was measured, not what was asked for. Their readings are named as
// docs/trouble.md lists them.
#include <algorithm>

#include "core/exchange/fields.hpp"
#include "core/exchange/trouble/memory_summary.hpp"
#include "core/exchange/trouble/nvidia_smi.hpp"
#include "core/exchange/trouble/out_of_memory.hpp"
#include "core/exchange/trouble/phase.hpp"
#include "core/exchange/trouble/snapshot.hpp"

namespace tidemark::exchange {
namespace {

void put(Value& object, std::string_view key, Value value) {
  object.members.push_back({std::string{key}, std::move(value)});
}

Value of(std::optional<std::int64_t> number) {
  return number ? exchange::of(*number) : Value{};
}
using exchange::of;

/// A script or a configuration may speak of such things in comments.
bool is_log_by_name(const Source& source) {
  for (std::string_view ending : {".py", ".ipynb", ".sh", ".yaml", ".yml", ".json", ".toml", ".md", ".safetensors"}) {
    if (name_ends(source, ending)) return false;
  }
  return true;
}

int score_words(const Look& look, std::initializer_list<std::string_view> words, int score) {
  if (look.syntax == Look::Syntax::kBinary || !is_log_by_name(look.source)) return 0;
  const std::string_view text = look.source.bytes;
  const bool all = std::all_of(words.begin(), words.end(),
                               [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
  return all ? score : 0;
}

/// What the engine takes for a card of which only the size is known, to the hundredth that messages print.
Value card_of(Bytes bytes) {
  const Bytes hundredths = (bytes * 100 + kGiB / 2) / kGiB;
  return object({{"memory_gib", of(static_cast<double>(hundredths) / 100.0)}});
}

// Exhausted memory ----------------------------------------------------------------------------------------------------

int recognise_oom(const Look& look) {
  int score = 0;
  for (std::string_view word :
       {"out of memory", "No available memory for the cache blocks", "the current vLLM instance can use",
        "INTERNAL ASSERT FAILED", "CUBLAS_STATUS_ALLOC_FAILED", "can't allocate memory", "KV cache"}) {
    score = std::max(score, score_words(look, {word}, 85));
  }
  // A wrapped message may break even these words apart.
  if (score == 0) score = score_words(look, {"out of", "memory", "Tried to"}, 85);
  return score > 0 && find_out_of_memory(read_log(look.source.bytes)) ? score : 0;
}

Value others_of(const OutOfMemory& oom) {
  std::vector<Value> items;
  for (const OutOfMemory::Process& other : oom.others) {
    items.push_back(object({{"pid", of(other.pid)}, {"bytes", of(other.bytes)}}));
  }
  return of(std::move(items));
}

Value vllm_of(const VllmAccount& vllm) {
  return object({{"utilization", of(vllm.utilization)},
                 {"weights_bytes", of(vllm.weights)},
                 {"non_torch_bytes", of(vllm.non_torch)},
                 {"activation_peak_bytes", of(vllm.activation_peak)},
                 {"kv_cache_bytes", of(vllm.kv_cache)}});
}

/// vLLM's own messages need no traceback.
DiedIn died_in(const LogText& log, const OutOfMemory& oom) {
  if (oom.asynchronous) return {};
  if (oom.format == "vllm") {
    const bool wakes = log.flat.find("cumem_allocator") != std::string::npos;
    return {wakes ? "rollout_wake_up" : "engine_init", wakes ? "vLLM maps its pool again" : "vLLM starts", 0};
  }
  return phase_of(frames_of(log, oom.at));
}

Value oom_reading(const OutOfMemory& oom, const DiedIn& died) {
  Value out = object({{"kind_of_failure", of("oom")},
                      {"backend", of(oom.backend)},
                      {"torch_format", of(oom.format)},
                      {"gpu_index", of(oom.gpu)},
                      {"gpu_capacity_bytes", of(oom.capacity)},
                      {"allocated_bytes", of(oom.allocated)},
                      {"reserved_bytes", of(oom.reserved)},
                      {"free_bytes", of(oom.free)},
                      {"tried_to_allocate_bytes", of(oom.tried)},
                      {"process_in_use_bytes", of(oom.in_use)},
                      {"other_processes", others_of(oom)},
                      {"phase", of(died.phase)}});
  const std::pair<std::string_view, std::optional<Bytes>> rare[] = {{"non_pytorch_bytes", oom.non_pytorch},
                                                                    {"allowed_bytes", oom.allowed},
                                                                    {"private_pools_bytes", oom.private_pools},
                                                                    {"other_allocations_bytes", oom.other_allocations}};
  for (const auto& [key, bytes] : rare) {
    if (bytes) put(out, key, of(bytes));
  }
  if (!oom.pool.empty()) put(out, "pool", of(oom.pool));
  if (oom.vllm) put(out, "vllm", vllm_of(*oom.vllm));
  if (oom.messages > 1) put(out, "messages", of(oom.messages));
  if (!died.evidence.empty()) put(out, "phase_evidence", of(died.evidence));
  return out;
}

void tell_unknowns(Reading& reading) {
  for (const Value::Member& member : reading.log.members) {
    if (member.value.is_null()) reading.unknowns.push_back(member.key);
  }
}

void read_oom(const Look& look, Sources, Reading& reading) {
  const LogText log = read_log(look.source.bytes);
  const auto oom = find_out_of_memory(log);
  if (!oom) return;
  reading.log = oom_reading(*oom, died_in(log, *oom));
  const int line = log.lines[log.line_of(oom->at)].number;
  const bool card = oom->capacity && oom->backend != "mps" && oom->backend != "cpu";
  if (card) state(reading, "gpu", card_of(*oom->capacity), {{look.source.name, line, line}});
  tell_unknowns(reading);
  if (oom->asynchronous)
    reading.notes.push_back(
        "The error came from the driver, later than its cause: a traceback beside it says nothing.");
}

// nvidia-smi ----------------------------------------------------------------------------------------------------------

int recognise_smi(const Look& look) {
  return score_words(look, {"NVIDIA-SMI", "Driver Version:"}, 88);
}

Value cards_of(const NvidiaSmi& smi) {
  std::vector<Value> items;
  for (const NvidiaSmi::Gpu& gpu : smi.gpus) {
    items.push_back(object({{"index", of(gpu.index)},
                            {"name", of(gpu.name)},
                            {"used_mib", of(gpu.used)},
                            {"total_mib", of(gpu.total)},
                            {"utilization", of(gpu.utilization)}}));
  }
  return of(std::move(items));
}

Value instances_of(const NvidiaSmi& smi) {
  std::vector<Value> items;
  for (const NvidiaSmi::Instance& row : smi.instances) {
    items.push_back(object({{"gpu", of(row.gpu)},
                            {"gi", of(row.gi)},
                            {"ci", of(row.ci)},
                            {"device", of(row.device)},
                            {"used_mib", of(row.used)},
                            {"total_mib", of(row.total)}}));
  }
  return of(std::move(items));
}

Value processes_of(const NvidiaSmi& smi) {
  std::vector<Value> items;
  for (const NvidiaSmi::Process& row : smi.processes) {
    items.push_back(
        object({{"gpu", of(row.gpu)}, {"pid", of(row.pid)}, {"name", of(row.name)}, {"used_mib", of(row.used)}}));
  }
  return of(std::move(items));
}

/// The card, where all are the same: of a name that was cut only the size is known, in MIG mode an instance's.
void state_card(const NvidiaSmi& smi, const Source& source, Reading& reading) {
  if (smi.gpus.empty()) return;
  const NvidiaSmi::Gpu& first = smi.gpus.front();
  const bool same = std::all_of(smi.gpus.begin(), smi.gpus.end(), [&](const NvidiaSmi::Gpu& gpu) {
    return gpu.name == first.name && gpu.total == first.total;
  });
  if (!same || !first.total) return;
  if (!smi.instances.empty() && smi.instances.front().total) {
    const NvidiaSmi::Instance& instance = smi.instances.front();
    state(reading, "gpu", card_of(*instance.total * kMiB), {{source.name, instance.line, instance.line}});
  } else if (first.name.find("...") != std::string::npos) {
    state(reading, "gpu", card_of(*first.total * kMiB), {{source.name, first.line, first.line + 1}});
  } else {
    state(reading, "gpu", of(first.name), {{source.name, first.line, first.line}});
  }
}

void read_smi(const Look& look, Sources, Reading& reading) {
  const auto smi = find_nvidia_smi(read_log(look.source.bytes));
  if (!smi) return;
  reading.log = object({{"driver", smi->driver.empty() ? Value{} : of(smi->driver)},
                        {"cuda", smi->cuda.empty() ? Value{} : of(smi->cuda)},
                        {"gpus", cards_of(*smi)},
                        {"mig", instances_of(*smi)},
                        {"processes", processes_of(*smi)}});
  state_card(*smi, look.source, reading);
  tell_unknowns(reading);
}

// torch.cuda.memory_summary() -----------------------------------------------------------------------------------------

int recognise_summary(const Look& look) {
  return score_words(look, {"memory summary, device ID "}, 87);
}

Value row_of(const std::optional<MemorySummary::Row>& row) {
  return row ? object({{"current", of(row->current)}, {"peak", of(row->peak)}}) : Value{};
}

void read_summary(const Look& look, Sources, Reading& reading) {
  const auto summary = find_memory_summary(read_log(look.source.bytes));
  if (!summary) return;
  reading.log = object({{"device", of(summary->device)},
                        {"ooms", of(summary->ooms)},
                        {"cudamalloc_retries", of(summary->retries)},
                        {"allocated", row_of(summary->allocated)},
                        {"active", row_of(summary->active)},
                        {"reserved", row_of(summary->reserved)},
                        {"requested", row_of(summary->requested)},
                        {"tolerance", of("one unit of the printed cell (values are floored)")}});
  tell_unknowns(reading);
}

// Memory snapshots ----------------------------------------------------------------------------------------------------

int recognise_snapshot(const Look& look) {
  return looks_like_pickle(look.source.bytes) ? 90 : 0;
}

Value sites_of(const MemorySnapshot& snapshot) {
  std::vector<Value> items;
  for (const MemorySnapshot::Site& site : snapshot.at_peak) {
    items.push_back(object({{"site", of(site.name)}, {"bytes", of(site.bytes)}}));
  }
  return of(std::move(items));
}

void read_snapshot_file(const Look& look, Sources, Reading& reading) {
  std::string error = look.source.size > look.source.bytes.size() ? "too large" : "";
  const auto snapshot = error.empty() ? read_snapshot(look.source.bytes, error) : std::nullopt;
  if (!snapshot) {
    reading.log = object({{"error", of(error)}});
    reading.issues.push_back({"UNREADABLE_SNAPSHOT", Severity::kError, look.source.name,
                              "\"" + look.source.name + "\" is not read (" + error +
                                  "). Only what torch.cuda.memory._dump_snapshot() writes is: plain lists and numbers; "
                                  "nothing in a pickle is ever run.",
                              ""});
    return;
  }
  reading.log = object({{"reserved_bytes", of(snapshot->reserved)},
                        {"allocated_bytes", of(snapshot->allocated)},
                        {"inactive_bytes", of(snapshot->reserved - snapshot->allocated)},
                        {"segments", of(snapshot->segments)},
                        {"traces", of(snapshot->traces)},
                        {"trace_peak_allocated_bytes", of(snapshot->trace_peak)},
                        {"peak_allocated_bytes", of(snapshot->peak)},
                        {"ooms", of(snapshot->out_of_memories)},
                        {"at_peak", sites_of(*snapshot)}});
}

const Format kRows[] = {
    {"oom", "message about exhausted memory", recognise_oom, read_oom, 10},
    {"nvidia_smi", "nvidia-smi's table", recognise_smi, read_smi, 15},
    {"memory_summary", "torch.cuda.memory_summary()", recognise_summary, read_summary, 10},
    {"snapshot", "recording of PyTorch's allocator", recognise_snapshot, read_snapshot_file, 10},
};

}  // namespace

extern const FormatRows logs_rows;
const FormatRows logs_rows = kRows;

}  // namespace tidemark::exchange
