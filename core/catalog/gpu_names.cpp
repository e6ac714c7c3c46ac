#include "core/catalog/gpu_names.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

#include "core/units/letters.hpp"
#include "core/units/nearest.hpp"

namespace tidemark {
namespace {

// No maker's name is longer.
constexpr std::size_t kLongestName = 120;
// A machine with more cards of one kind than this is a cluster, and the number something else.
constexpr int kMostCards = 64;

// Where a card is, not which one.
constexpr std::string_view kPlaces[] = {"colab", "kaggle",  "google",  "macbook", "mac",  "studio", "mini",    "imac",
                                        "air",   "desktop", "edition", "gpu",     "gpus", "card",   "graphics"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

/// How many cards a word says; 0 where it says none.
int count_in(std::string_view word) {
  const bool fits = is_number(word) && word.size() <= 2;
  int count = 0;
  for (const char digit : fits ? word : std::string_view{}) count = count * 10 + (digit - '0');
  return count <= kMostCards ? count : 0;
}

/// Words of a name, lower case; everything but letters, digits, "+" and a dot between digits parts them.
std::vector<std::string> words_of(std::string_view typed) {
  std::vector<std::string> words;
  std::string word;
  const std::string lower = lower_case(typed.substr(0, kLongestName));
  // A minus sign is no dash of a name: less than nothing is no card.
  if (const std::size_t first = lower.find_first_not_of(' '); first != std::string::npos && lower[first] == '-')
    words.emplace_back("minus");
  const auto end = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (std::size_t i = 0; i < lower.size(); ++i) {
    const char c = lower[i];
    const bool dot = c == '.' && i > 0 && i + 1 < lower.size() && is_digit(lower[i - 1]) && is_digit(lower[i + 1]);
    if ((c >= 'a' && c <= 'z') || is_digit(c) || c == '+' || dot) {
      word += c;
    } else if (c == '\xC3' && i + 1 < lower.size() && lower[i + 1] == '\x97') {
      word += 'x';  // the multiplication sign
      ++i;
    } else {
      end();
      // "H100:8", as SkyPilot and Slurm count.
      if (c == '*' || (c == ':' && count_in(lower.substr(i + 1)) > 0)) words.emplace_back("x");
    }
  }
  end();
  return words;
}

/// "24gb", "24g", "1.5gib": the number, or 0. `unit` is what follows it.
double memory_of(std::string_view word, std::string& unit) {
  constexpr double kMost = 1e6;
  double number = 0.0;
  double place = 0.0;  // of the next digit behind the dot
  std::size_t at = 0;
  for (; at < word.size() && (is_digit(word[at]) || word[at] == '.'); ++at) {
    if (word[at] == '.') {
      place = 0.1;
    } else if (place > 0.0) {
      number += (word[at] - '0') * place;
      place /= 10.0;
    } else {
      number = number * 10.0 + (word[at] - '0');
    }
  }
  unit = std::string{word.substr(at)};
  const bool known = unit == "gb" || unit == "g" || unit == "gib" || unit == "gig" || unit == "gigs";
  return known && number <= kMost ? number : 0.0;
}

/// A name taken apart.
struct Parts {
  std::vector<std::string> words;  // that name the card
  double memory = 0.0;             // GB that were said; 0: none
  int count = 0;                   // that was said; 0: none
};

/// "h100x8": a number of the card's name, an x and a count. Takes it off.
bool take_last_count(Parts& parts) {
  std::string& word = parts.words.back();
  const std::size_t x = word.rfind('x');
  if (x == std::string::npos || x == 0 || !is_digit(word[x - 1])) return false;
  parts.count = count_in(word.substr(x + 1));
  if (parts.count > 0) word.resize(x);
  return parts.count > 0;
}

/// Takes a count off either end: "2x t4", "2 x t4", "8xa100", "t4 x2", "t4 x 2", "t4x2".
void take_count(Parts& parts) {
  std::vector<std::string>& words = parts.words;
  const std::size_t many = words.size();
  if (many > 1 && words[0].size() > 1 && words[0].back() == 'x' &&
      count_in(words[0].substr(0, words[0].size() - 1)) > 0) {
    parts.count = count_in(words[0].substr(0, words[0].size() - 1));
    words.erase(words.begin());
  } else if (many > 2 && words[1] == "x" && count_in(words[0]) > 0) {
    parts.count = count_in(words[0]);
    words.erase(words.begin(), words.begin() + 2);
  } else if (many > 2 && words[many - 2] == "x" && count_in(words.back()) > 0) {
    parts.count = count_in(words.back());
    words.resize(many - 2);
  } else if (many > 1 && words.back().size() > 1 && words.back()[0] == 'x' && count_in(words.back().substr(1)) > 0) {
    parts.count = count_in(words.back().substr(1));
    words.pop_back();
  } else if (many > 0 && !take_last_count(parts)) {
    // "8xa100": a digit, an x and a name.
    const std::size_t x = words[0].find('x');
    if (x == std::string::npos || x + 2 > words[0].size() || count_in(words[0].substr(0, x)) == 0) return;
    parts.count = count_in(words[0].substr(0, x));
    words[0].erase(0, x + 1);
  }
}

Parts parts_of(std::string_view typed) {
  Parts parts;
  parts.words = words_of(typed);
  std::vector<std::string> rest;
  for (std::size_t i = 0; i < parts.words.size(); ++i) {
    const std::string& word = parts.words[i];
    std::string unit;
    double memory = memory_of(word, unit);
    if (memory == 0.0 && is_number(word) && i + 1 < parts.words.size() && !is_digit(parts.words[i + 1][0]) &&
        memory_of(word + parts.words[i + 1], unit) > 0.0) {
      memory = memory_of(word + parts.words[i + 1], unit);
      ++i;
    }
    if (memory > 0.0 && parts.memory == 0.0) {
      parts.memory = memory;
    } else {
      rest.push_back(word);
    }
  }
  parts.words = std::move(rest);
  take_count(parts);
  return parts;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += word;
  return text;
}

/// The key of a name without its memory: "a100sxm" of "NVIDIA A100 SXM 80GB".
std::string bare_key(std::string_view name) {
  return gpu_key(joined(parts_of(name).words));
}

Bytes bytes_of(double gb) {
  return static_cast<Bytes>(gb * static_cast<double>(kGiB));
}

bool sold_with(const Gpu& gpu, Bytes memory) {
  return gpu.marketed_bytes == memory ||
         std::find(gpu.memory_options.begin(), gpu.memory_options.end(), memory) != gpu.memory_options.end();
}

/// The card with the memory that was said; what was measured holds for the largest only.
Gpu in_size(Gpu gpu, Bytes memory) {
  if (memory == 0 || memory == gpu.marketed_bytes) return gpu;
  gpu.name += " " + std::to_string(memory / kGiB) + "GB";
  gpu.marketed_bytes = memory;
  gpu.nvidia_smi_bytes = 0;
  gpu.torch_visible_bytes = 0;
  return gpu;
}

template <class Visit>
void for_names(const Gpu& gpu, Visit visit) {
  visit(gpu.name);
  for (const std::string& alias : gpu.aliases) visit(alias);
}

/// The card one of whose names has this key, whole or without the memory in it; null where several do.
const Gpu* of_key(std::span<const Gpu> gpus, std::string_view key, Bytes memory) {
  const Gpu* found = nullptr;
  if (key.empty()) return nullptr;
  for (const Gpu& gpu : gpus) {
    if (memory > 0 && !sold_with(gpu, memory)) continue;
    bool whole = false;
    bool bare = false;
    for_names(gpu, [&](std::string_view name) {
      whole = whole || gpu_key(name) == key;
      bare = bare || bare_key(name) == key;
    });
    if (whole) return &gpu;
    if (!bare) continue;
    if (found != nullptr) return nullptr;
    found = &gpu;
  }
  return found;
}

std::optional<GpuMatch> of_parts(std::span<const Gpu> gpus, const Parts& parts) {
  const Bytes memory = bytes_of(parts.memory);
  const std::string key = gpu_key(joined(parts.words));
  const Gpu* gpu = of_key(gpus, key, memory);
  if (gpu != nullptr) return GpuMatch{in_size(*gpu, memory), std::max(1, parts.count), false};
  // "v100 32": a number at the end that is a size in which the card is sold.
  if (parts.memory == 0.0 && parts.words.size() > 1 && is_number(parts.words.back()) && parts.words.back().size() < 4) {
    Parts sized = parts;
    std::string unit;
    sized.memory = memory_of(sized.words.back() + "gb", unit);
    sized.words.pop_back();
    return of_parts(gpus, sized);
  }
  return std::nullopt;
}

std::optional<GpuMatch> of_instance(std::span<const Gpu> gpus, std::string_view typed) {
  std::vector<std::string> words = words_of(typed);
  if (!words.empty() && words.front() == "standard") words.erase(words.begin());  // Azure's "Standard_NC6s_v3"
  const std::string key = joined(words);
  for (const Gpu& gpu : gpus) {
    for (const Gpu::Instance& instance : gpu.instances) {
      if (joined(words_of(instance.name)) == key) return GpuMatch{gpu, instance.count, true};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<MemoryText> read_memory_text(std::string_view typed) {
  const std::vector<std::string> words = words_of(typed);
  if (words.empty() || words.size() > 2) return std::nullopt;
  std::string unit;
  const double memory = memory_of(joined(words), unit);
  if (memory <= 0.0 || (words.size() == 2 && words[1] != unit)) return std::nullopt;
  MemoryText read;
  (unit == "gib" ? read.memory_gib : read.vram_gb) = memory;
  return read;
}

std::optional<GpuMatch> find_gpu(std::span<const Gpu> gpus, std::string_view typed) {
  if (typed.size() > kLongestName) return std::nullopt;
  // As the catalog writes it, whatever it holds ("GH200 480GB" is not its memory).
  const std::string key = gpu_key(typed);
  for (const Gpu& gpu : gpus) {
    bool named = false;
    for_names(gpu, [&](std::string_view name) { named = named || (!key.empty() && gpu_key(name) == key); });
    if (named) return GpuMatch{gpu, 1, false};
  }
  if (std::optional<GpuMatch> instance = of_instance(gpus, typed)) return instance;
  Parts parts = parts_of(typed);
  if (std::optional<GpuMatch> match = of_parts(gpus, parts)) return match;
  // "MacBook Pro" is a place, the "Pro" of "M3 Pro" is not.
  for (std::size_t i = 0; i + 1 < parts.words.size(); ++i) {
    if (parts.words[i] == "macbook" && parts.words[i + 1] == "pro")
      parts.words.erase(parts.words.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  std::vector<std::string> words;
  for (const std::string& word : parts.words) {
    if (std::find(std::begin(kPlaces), std::end(kPlaces), word) == std::end(kPlaces)) words.push_back(word);
  }
  if (words.size() == parts.words.size()) return std::nullopt;
  parts.words = std::move(words);
  return of_parts(gpus, parts);
}

std::string nearest_gpu(std::span<const Gpu> gpus, std::string_view typed) {
  const Parts parts = parts_of(typed);
  std::vector<std::string> keys;
  std::vector<const Gpu*> owners;
  const auto offer = [&](std::string key, const Gpu& gpu) {
    keys.push_back(std::move(key));
    owners.push_back(&gpu);
  };
  for (const Gpu& gpu : gpus) {
    for_names(gpu, [&](std::string_view name) {
      offer(gpu_key(name), gpu);
      if (parts.memory == 0.0 || sold_with(gpu, bytes_of(parts.memory))) offer(bare_key(name), gpu);
    });
  }
  const std::vector<std::string_view> candidates(keys.begin(), keys.end());
  for (const std::string& key : {gpu_key(joined(parts.words)), gpu_key(typed)}) {
    const std::string found = nearest(key, candidates);
    for (std::size_t i = 0; !found.empty() && i < keys.size(); ++i) {
      const bool right_size = parts.memory == 0.0 || sold_with(*owners[i], bytes_of(parts.memory));
      if (keys[i] == found && right_size) return owners[i]->name;
    }
    for (std::size_t i = 0; !found.empty() && i < keys.size(); ++i) {
      if (keys[i] == found) return owners[i]->name;
    }
  }
  return {};
}

}  // namespace tidemark
