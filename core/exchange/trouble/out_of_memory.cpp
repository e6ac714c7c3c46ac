#include "core/exchange/trouble/out_of_memory.hpp"

#include <algorithm>

#include "core/exchange/trouble/sizes.hpp"

namespace tidemark::exchange {
namespace {

/// A message is read this far, and what precedes it (the exception's name) so far back.
constexpr std::size_t kLongestMessage = 3000;
constexpr std::size_t kLongestName = 60;

/// Words that such a message begins with.
struct Opening {
  std::string_view words;
  std::string_view backend;
  std::string_view format;  ///< empty: PyTorch's allocator, whose versions differ in words
  bool asynchronous = false;
};
constexpr Opening kOpenings[] = {
    {"CUDA out of memory", "cuda", ""},
    {"HIP out of memory", "rocm", ""},
    {"XPU out of memory", "xpu", ""},
    {"MPS backend out of memory", "mps", "mps"},
    {"would exceed allowed memory. (out of memory)", "cuda", "cudaMallocAsync"},
    {"CUDA error: out of memory", "cuda", "cuda_error", true},
    {"CUDA Error: out of memory", "cuda", "cuda_error", true},
    {"HIP error: out of memory", "rocm", "cuda_error", true},
    {"cuda runtime error (2) : out of memory", "cuda", "0.x"},
    {"Error out of memory at line", "cuda", "bitsandbytes"},
    {"No available memory for the cache blocks", "cuda", "vllm"},
    {"the current vLLM instance can use total_gpu_memory", "cuda", "vllm"},
    {"Free memory on device", "cuda", "vllm"},
    {"KV cache is needed, which is larger than", "cuda", "vllm"},
    {"tokens that can be stored in KV cache", "cuda", "vllm"},
    {"NVML_SUCCESS == r INTERNAL ASSERT FAILED", "cuda", "2.1-2.4"},
    {"CUBLAS_STATUS_ALLOC_FAILED", "cuda", "cublas"},
    {"uda failure 2 'out of memory'", "cuda", "nccl"},
    {"uda failure 'out of memory'", "cuda", "nccl"},
    {"DefaultCPUAllocator: can't allocate memory", "cpu", "cpu_allocator"},
    {"DefaultCPUAllocator: not enough memory", "cpu", "cpu_allocator"},
};

struct Place {
  std::size_t at;
  const Opening* opening;
};

/// Where messages begin, in order. Each search goes over the text once.
std::vector<Place> places_of(std::string_view flat) {
  std::vector<Place> places;
  for (const Opening& opening : kOpenings) {
    for (std::size_t at = flat.find(opening.words); at != std::string_view::npos;
         at = flat.find(opening.words, at + opening.words.size())) {
      places.push_back({at, &opening});
    }
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.at < b.at; });
  return places;
}

/// One message, from its opening to the next one's exception.
class Message {
 public:
  Message(std::string_view text, std::string_view before) : text_(text), before_(before) {}

  bool has(std::string_view words) const { return text_.find(words) != std::string_view::npos; }
  bool raised_as(std::string_view name) const { return before_.find(name) != std::string_view::npos; }
  std::string_view text() const { return text_; }

  /// The size that stands before, respectively after these words.
  std::optional<Bytes> before(std::string_view words) const {
    const std::size_t at = text_.find(words);
    return at == std::string_view::npos ? std::nullopt : size_before(text_, at);
  }
  std::optional<Bytes> after(std::string_view words) const {
    const std::size_t at = text_.find(words);
    return at == std::string_view::npos ? std::nullopt : size_after(text_, at + words.size());
  }
  /// The number in digits after these words.
  std::optional<std::int64_t> number_after(std::string_view words) const {
    const std::size_t at = text_.find(words);
    if (at == std::string_view::npos) return std::nullopt;
    return whole_number(digits_at(at + words.size()));
  }
  std::string_view digits_at(std::size_t at) const {
    std::size_t end = at;
    while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
    return text_.substr(at, end - at);
  }

 private:
  std::string_view text_;
  std::string_view before_;
};

std::optional<Bytes> sum(std::optional<Bytes> a, std::optional<Bytes> b) {
  if (!a || !b) return std::nullopt;
  return *a + *b;
}

/// Which versions of torch word it so (c10/cuda/CUDACachingAllocator.cpp, OutOfMemoryError's message, tags v1.0 to
/// v2.9); of a message without numbers only the exception tells.
std::string_view version_of(const Message& message, bool rocm) {
  if (message.has("total capacity;")) {
    if (message.has(" cached)")) return "1.0-1.3";
    // OutOfMemoryError is of 1.13; what the message ends with may have been cut off.
    const bool later = message.has("If reserved memory is >>") || message.raised_as("OutOfMemoryError");
    return later ? "1.10-2.0" : "1.4-1.9";
  }
  if (message.has("total capacty of")) return "2.1";
  if (message.has("total capacity of")) {
    if (message.has("PYTORCH_ALLOC_CONF") || (rocm && message.has("PYTORCH_CUDA_ALLOC_CONF"))) return "2.9";
    return message.raised_as("torch.OutOfMemoryError") ? "2.5-2.8" : "2.2-2.4";
  }
  if (message.raised_as("torch.OutOfMemoryError")) return "2.5-2.8";
  return message.raised_as("OutOfMemoryError") ? "1.10-2.0" : "1.4-1.9";
}

/// "(GPU 0; 10.92 GiB total capacity; 8.57 MiB already allocated; 9.28 GiB free; 4.68 MiB cached)", torch 0.4 to 2.0.
void read_before_2_1(const Message& message, OutOfMemory& out) {
  out.gpu = message.number_after("(GPU ");
  out.capacity = message.before(" total capacity");
  out.allocated = message.before(" already allocated");
  out.free = message.before(" free;");
  out.reserved = message.before(" reserved in total by PyTorch");
  // Until 1.3 "cached" is what lies beyond the allocated bytes (torch v1.3 CUDACachingAllocator.cpp: malloc).
  if (const auto cached = message.before(" cached)")) out.reserved = sum(out.allocated, cached);
}

/// "Process 12 has 414.00 MiB memory in use.", for each other one.
void read_processes(const Message& message, OutOfMemory& out) {
  constexpr std::string_view kProcess = "Process ", kHas = " has ";
  const std::string_view text = message.text();
  for (std::size_t at = text.find(kProcess); at != std::string_view::npos; at = text.find(kProcess, at + 1)) {
    const std::string_view digits = message.digits_at(at + kProcess.size());
    const std::size_t behind = at + kProcess.size() + digits.size();
    const auto pid = whole_number(digits);
    if (!pid || text.substr(behind, kHas.size()) != kHas) continue;
    std::optional<Bytes> bytes = size_after(text, behind + kHas.size());
    if (bytes == 0) bytes.reset();  // NVML in a container knows no other process's memory
    out.others.push_back({*pid, bytes});
  }
}

/// "GPU 0 has a total capacity of 23.65 GiB of which 11.06 MiB is free. ...", torch 2.1 and later.
void read_since_2_1(const Message& message, OutOfMemory& out) {
  out.gpu = message.number_after(" GPU ");
  out.capacity = message.after("total capacity of");
  if (!out.capacity) out.capacity = message.after("total capacty of");
  out.free = message.after(" of which");
  out.in_use = message.after("this process has");
  if (out.in_use == 0) out.in_use.reset();
  out.allocated = message.before(" is allocated by PyTorch");
  if (!out.allocated) out.allocated = message.after("Of the allocated memory");
  out.private_pools = message.before(" allocated in private pools");
  out.reserved = sum(out.allocated, message.before(" is reserved by PyTorch but unallocated"));
  if (out.in_use && out.reserved) out.non_pytorch = *out.in_use - *out.reserved;
  read_processes(message, out);
}

/// aten/src/ATen/mps/MPSAllocator.mm: no index, no reserved bytes; what it calls allowed is the limit.
void read_mps(const Message& message, OutOfMemory& out) {
  out.allocated = message.after("MPS allocated:");
  out.other_allocations = message.after("other allocations:");
  out.capacity = message.after("max allowed:");
  for (std::string_view pool : {"private", "shared"}) {
    if (message.has("on " + std::string{pool} + " pool")) out.pool = pool;
  }
}

/// c10/cuda/CUDAMallocAsyncAllocator.cpp: a line for each figure.
void read_async_allocator(const Message& message, OutOfMemory& out) {
  out.allocated = message.after("Currently allocated :");
  out.tried = message.after("Requested :");
  out.capacity = message.after("Device limit :");
  out.free = message.after("Free (according to CUDA):");
  out.allowed = message.after("PyTorch limit (set by user-supplied memory fraction) :");
}

/// vllm/worker/worker.py: determine_num_available_blocks, what it logs.
void read_vllm(const Message& message, OutOfMemory& out) {
  out.capacity = message.after("total_gpu_memory (");
  if (!out.capacity) return;
  VllmAccount& vllm = out.vllm.emplace();
  constexpr std::string_view kShare = "gpu_memory_utilization (";
  if (const std::size_t at = message.text().find(kShare); at != std::string_view::npos) {
    const std::string_view whole = message.digits_at(at + kShare.size());
    const std::string_view decimals = message.digits_at(at + kShare.size() + whole.size() + 1);
    double unit = 1.0;
    for (std::size_t i = 0; i < decimals.size(); ++i) unit *= 10.0;
    vllm.utilization = static_cast<double>(whole_number(whole).value_or(0)) +
                       static_cast<double>(whole_number(decimals).value_or(0)) / unit;
  }
  vllm.weights = message.after("model weights take");
  vllm.non_torch = message.after("non_torch_memory takes");
  vllm.activation_peak = message.after("PyTorch activation peak memory takes");
  vllm.kv_cache = message.after("reserved for KV Cache is");
}

/// Where the traceback of torch's own allocator says nothing but "CUDA error", the words after it may.
std::string_view format_of(const Opening& opening, const Message& message) {
  if (opening.format != "cuda_error") return opening.format;
  if (message.has("cumem_allocator")) return "vllm";
  return message.raised_as("AcceleratorError") ? "2.8+ cuda_error" : opening.format;
}

OutOfMemory read_message(const Opening& opening, const Message& message) {
  OutOfMemory out;
  out.backend = opening.backend;
  out.format = format_of(opening, message);
  out.asynchronous = opening.asynchronous && out.format != "vllm";
  out.tried = message.after("Tried to allocate");
  if (out.format.empty()) {
    out.format = version_of(message, opening.backend == "rocm");
    out.allowed = message.before(" allowed;");
    message.has("(GPU ") ? read_before_2_1(message, out) : read_since_2_1(message, out);
  } else if (out.format == "mps") {
    read_mps(message, out);
  } else if (out.format == "cudaMallocAsync") {
    read_async_allocator(message, out);
  } else if (out.format == "vllm") {
    read_vllm(message, out);
  } else if (out.format == "cpu_allocator") {
    out.tried = message.after("you tried to allocate");
  }
  return out;
}

/// vLLM accounts for the card at each start: trouble only where nothing is left for the cache.
bool harmless(const OutOfMemory& out) {
  return out.vllm && out.vllm->kv_cache.value_or(0) >= 0;
}

}  // namespace

std::optional<OutOfMemory> find_out_of_memory(const LogText& log) {
  const std::string_view flat = log.flat;
  const std::vector<Place> places = places_of(flat);
  std::optional<OutOfMemory> found;
  int messages = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::size_t begin = places[i].at;
    const std::size_t end = std::min(i + 1 < places.size() ? places[i + 1].at : flat.size(), begin + kLongestMessage);
    const std::size_t before = begin - std::min(begin, kLongestName);
    OutOfMemory out =
        read_message(*places[i].opening, {flat.substr(begin, end - begin), flat.substr(before, begin - before)});
    if (harmless(out)) continue;
    out.at = begin;
    ++messages;
    const bool says_more = found && !found->tried && !found->capacity && (out.tried || out.capacity);
    if (!found || says_more) found = std::move(out);
  }
  if (found) found->messages = messages;
  return found;
}

}  // namespace tidemark::exchange
