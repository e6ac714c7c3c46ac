#include "core/catalog/model_names.hpp"

#include <algorithm>
#include <iterator>

#include "core/units/excerpt.hpp"
#include "core/units/letters.hpp"
#include "core/units/nearest.hpp"
#include "core/units/sorted.hpp"

namespace tidemark {
namespace {

using Words = std::vector<std::string>;

bool holds(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_word(std::string_view atom) {
  return !is_size(atom) && !is_version(atom);
}

// Words that say how large a model is, which two families do not share anything by.
bool is_size_word(std::string_view word) {
  constexpr std::string_view kWords[] = {"tiny", "mini",  "micro", "small", "medium",
                                         "base", "large", "xl",    "xxl",   "giant"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

// Variants that have the base's shape (their config.json differs in positions, rope or vocabulary padding at most):
// Qwen2.5-Coder and -Math, Qwen3-Coder, Qwen3-Embedding and -Reranker, DeepSeek-Coder-V2.
struct Variant {
  std::string_view word;
  std::string_view family;   // first atom of the names that have it
  std::string_view version;  // the atom that follows
};
constexpr Variant kVariants[] = {{"coder", "qwen", "2.5"},  {"math", "qwen", "2.5"},    {"math", "qwen", "2"},
                                 {"coder", "qwen", "3"},    {"embedding", "qwen", "3"}, {"reranker", "qwen", "3"},
                                 {"coder", "deepseek", "2"}};

/// The name without a word that leaves the shape as it is; unchanged where there is none.
ModelName without_variant(ModelName name) {
  for (const Variant& variant : kVariants) {
    const auto found = std::find(name.atoms.begin(), name.atoms.end(), variant.word);
    if (found == name.atoms.end() || name.atoms.front() != variant.family) continue;
    if (!holds(name.atoms, variant.version)) continue;
    name.tuning.push_back(*found);
    name.atoms.erase(found);
    return name;
  }
  return name;
}

// unsloth's copies have Llama's classes where the original has its own (Phi 3.5 and 4): who does not name it means the
// original.
bool is_of_unsloth(std::string_view repository) {
  return repository.starts_with("unsloth/");
}

// The first Qwen was published as -Chat only: "Qwen 7B Instruct" means a later one.
bool denied(const ModelEntry& model, const ModelName& name) {
  return model.model_type() == "qwen" && holds(name.tuning, "instruct");
}

std::string quoted_list(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "\"" : ", \"") + word + "\"";
  return text;
}

std::string rule_of(const ModelName& name) {
  Words left_out = name.tuning;
  left_out.insert(left_out.end(), name.packing.begin(), name.packing.end());
  std::string rule = "by family and size";
  if (!left_out.empty()) rule += ", " + quoted_list(left_out) + " left out";
  if (!name.packing.empty()) {
    rule += "; the shape is that of the base";
  }
  return rule;
}

/// How many atoms of `whole` are missing in `part`, whose atoms must come in the same order; -1 where they do not.
/// `versions` counts those that are versions.
int missing_in(const Words& part, const Words& whole, int& versions) {
  std::size_t at = 0;
  int words = 0;
  versions = 0;
  for (const std::string& atom : whole) {
    if (at < part.size() && part[at] == atom) {
      ++at;
    } else if (is_version(atom)) {
      ++versions;
    } else if (is_word(atom) && !(atom.size() > 2 && atom.back() == 'b')) {
      ++words;  // "a3b" beside "30b" is no word of its own
    }
  }
  return at == part.size() ? words : -1;
}

}  // namespace

ModelNames::ModelNames(const std::vector<ModelEntry>& models) {
  for (std::size_t i = 0; i < models.size(); ++i) {
    add(models[i].id, i, Rank::kId);
    for (const std::string& alias : models[i].aliases) add(alias, i, Rank::kAlias);
    for (const std::string& id : models[i].same_arch_ids) add(id, i, Rank::kSameShape);
  }
  for (Reading& reading : readings_) reading.copied = is_of_unsloth(models[reading.model].id);
  sort_list(spellings_, [](const Spelling& a, const Spelling& b) {
    const int order = a.folded.compare(b.folded);
    return order != 0 ? order < 0 : a.rank < b.rank;
  });
  sort_list(readings_, [](const Reading& a, const Reading& b) {
    const int order = a.key.compare(b.key);
    if (order != 0) return order < 0;
    return a.rank != b.rank ? a.rank < b.rank : a.model < b.model;
  });
  sort_list(words_, [](const std::string& a, const std::string& b) { return a < b; });
  words_.erase(std::unique(words_.begin(), words_.end()), words_.end());
}

void ModelNames::add(std::string_view text, std::size_t model, Rank rank) {
  spellings_.push_back({lower_case(text), model, rank});
  ModelName name = std::move(read_model_name(text).front());
  if (rank != Rank::kSameShape) {
    for (const std::string& atom : name.atoms) {
      if (is_word(atom)) words_.push_back(atom);
    }
  }
  std::string key = name.key();
  readings_.push_back({std::move(key), std::move(name), model, rank, false});
}

const ModelNames::Spelling* ModelNames::spelt(std::string_view folded) const {
  const auto found = std::lower_bound(spellings_.begin(), spellings_.end(), folded,
                                      [](const Spelling& entry, std::string_view key) { return entry.folded < key; });
  return found != spellings_.end() && found->folded == folded ? &*found : nullptr;
}

const ModelNames::Reading* ModelNames::meant(const ModelName& name, bool of_unsloth,
                                             const std::vector<ModelEntry>& models) const {
  const std::string key = name.key();
  auto at = std::lower_bound(readings_.begin(), readings_.end(), key,
                             [](const Reading& entry, const std::string& wanted) { return entry.key < wanted; });
  const Reading* best = nullptr;
  bool tie = false;
  int best_surplus = 0;
  int best_shared = 0;
  for (; at != readings_.end() && at->key == key; ++at) {
    // What was said of repositories of the same shape counts where no name of ours does.
    if (best != nullptr && at->rank == Rank::kSameShape && best->rank != Rank::kSameShape) break;
    if (denied(models[at->model], name)) return nullptr;
    if (at->copied && !of_unsloth) continue;
    int surplus = 0;
    int shared = at->copied ? 1 : 0;
    for (const std::string& word : at->name.tuning) (holds(name.tuning, word) ? shared : surplus) += 1;
    const bool better = best == nullptr || surplus < best_surplus || (surplus == best_surplus && shared > best_shared);
    const bool equal = best != nullptr && surplus == best_surplus && shared == best_shared;
    if (better) {
      best = &*at;
      best_surplus = surplus;
      best_shared = shared;
      tie = false;
    } else if (equal && at->model != best->model) {
      tie = true;
    }
  }
  return tie ? nullptr : best;
}

const ModelNames::Reading* ModelNames::completed(const ModelName& name) const {
  if (name.atoms.size() < 2 || std::none_of(name.atoms.begin(), name.atoms.end(), is_size)) return nullptr;
  const Reading* best = nullptr;
  int fewest = 0;
  bool tie = false;
  int best_versions = 0;
  for (const Reading& reading : readings_) {
    if (reading.name.atoms.empty() || reading.name.atoms.front() != name.atoms.front()) continue;
    if (reading.copied) continue;
    int versions = 0;
    const int words = missing_in(name.atoms, reading.name.atoms, versions);
    if (words < 0) continue;
    if (best == nullptr || words < fewest) {
      best = &reading;
      fewest = words;
      best_versions = versions;
      tie = false;
    } else if (words == fewest && reading.model != best->model) {
      tie = true;
    }
  }
  return tie || best_versions > 0 || best == nullptr || best->rank == Rank::kSameShape ? nullptr : best;
}

const ModelNames::Reading* ModelNames::read_any(std::string_view repository, const std::vector<ModelEntry>& models,
                                                ModelName& read) const {
  const Reading* found = nullptr;
  const auto offer = [&](const Reading* reading, const ModelName& name) {
    if (reading == nullptr) return true;
    if (found != nullptr && found->model != reading->model) return false;
    if (found == nullptr) read = name;
    found = reading;
    return true;
  };
  const std::vector<ModelName> readings = read_model_name(repository);
  const bool copied = is_of_unsloth(repository);
  // The usual reading first; what else separators may mean only where all that is found agrees.
  if (offer(meant(readings.front(), copied, models), readings.front()) && found != nullptr) return found;
  for (const ModelName& name : readings) {
    if (!offer(meant(name, copied, models), name)) return nullptr;
  }
  for (std::size_t i = 0; found == nullptr && i < readings.size(); ++i) {
    const ModelName base = without_variant(readings[i]);
    if (base.atoms.size() != readings[i].atoms.size()) offer(meant(base, copied, models), base);
  }
  if (found == nullptr) offer(completed(readings.front()), readings.front());
  return found;
}

ModelMatch ModelNames::find(std::string_view typed, const std::vector<ModelEntry>& models) const {
  const std::vector<std::string> repositories = repositories_in(typed);
  if (const Spelling* exact = spelt(lower_case(typed))) return {&models[exact->model], ""};
  for (const std::string& repository : repositories) {
    if (const Spelling* exact = spelt(repository)) return {&models[exact->model], in_quotes(repository)};
    ModelName read;
    if (const Reading* reading = read_any(repository, models, read)) return {&models[reading->model], rule_of(read)};
  }
  return {};
}

std::string ModelNames::corrected(const std::string& word) const {
  constexpr std::size_t kShortestWord = 4;
  if (word.size() < kShortestWord || std::binary_search(words_.begin(), words_.end(), word)) return word;
  std::vector<std::string_view> candidates;
  for (const std::string& known : words_) {
    if (known.size() >= kShortestWord) candidates.push_back(known);
  }
  const std::string near = tidemark::nearest(word, candidates);
  return near.empty() ? word : near;
}

int ModelNames::likeness(const ModelName& typed, const Reading& reading) const {
  constexpr int kWord = 8;
  constexpr int kVersion = 4;
  constexpr int kSurplus = 1;
  int words = 0;
  int likeness = 0;
  int sizes = 0;
  int right_sizes = 0;
  bool versioned = false;
  for (const std::string& atom : typed.atoms) {
    const bool common = holds(reading.name.atoms, atom);
    if (is_size(atom)) {
      ++sizes;
      right_sizes += common ? 1 : 0;
    } else if (is_version(atom)) {
      versioned = true;
      likeness += common ? kVersion : 0;
    } else if (common) {
      words += is_size_word(atom) ? 0 : 1;
      likeness += kWord;
    }
  }
  if (words == 0 || right_sizes < sizes) return 0;
  for (const std::string& atom : reading.name.atoms) {
    if (is_word(atom) && !holds(typed.atoms, atom)) likeness -= 2 * kSurplus;
    if (is_version(atom) && versioned && !holds(typed.atoms, atom)) likeness -= kSurplus;
  }
  // The family stands first.
  if (!reading.name.atoms.empty() && holds(typed.atoms, reading.name.atoms.front())) likeness += kWord;
  return std::max(likeness, 1);
}

std::vector<std::string> ModelNames::nearest(std::string_view typed, const std::vector<ModelEntry>& models,
                                             std::size_t most) const {
  const std::vector<std::string> repositories = repositories_in(typed);
  if (repositories.empty()) return {};
  struct Offer {
    std::size_t model;
    int likeness;
    std::string_view version;
  };
  std::vector<Offer> offers;
  bool sized = false;
  for (ModelName& name : read_model_name(repositories.front())) {
    for (std::string& atom : name.atoms) {
      sized = sized || is_size(atom);
      if (is_word(atom)) atom = corrected(atom);
    }
    for (const Reading& reading : readings_) {
      if (reading.rank == Rank::kSameShape || denied(models[reading.model], name)) continue;
      const int points = likeness(name, reading);
      if (points == 0) continue;
      const auto version = std::find_if(reading.name.atoms.begin(), reading.name.atoms.end(), is_version);
      offers.push_back({reading.model, points,
                        version == reading.name.atoms.end() ? std::string_view{} : std::string_view{*version}});
    }
  }
  // Of several generations the newest.
  sort_list(offers, [](const Offer& a, const Offer& b) {
    if (a.likeness != b.likeness) return a.likeness > b.likeness;
    return a.version != b.version ? a.version > b.version : a.model < b.model;
  });
  std::vector<std::string> found;
  for (const Offer& offer : offers) {
    if (found.size() < most && !holds(found, models[offer.model].id)) found.push_back(models[offer.model].id);
  }
  if (!found.empty() || sized) return found;
  std::vector<std::string_view> candidates;
  for (const Spelling& spelling : spellings_) {
    if (spelling.rank != Rank::kSameShape) candidates.push_back(spelling.folded);
  }
  if (const Spelling* near = spelt(tidemark::nearest(repositories.front(), candidates))) {
    found.push_back(models[near->model].id);
  }
  return found;
}

}  // namespace tidemark
