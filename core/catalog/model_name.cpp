#include "core/catalog/model_name.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "core/units/letters.hpp"

namespace tidemark {
namespace {

// No published name is longer; a hostile one must not cost more.
constexpr std::size_t kLongestName = 160;
// Readings double with each digit-separator-digit; published names have at most three.
constexpr std::size_t kMostJoints = 4;

// Words that tell how a model was trained further: the shape of the weights stays.
constexpr std::string_view kTuning[] = {
    "abliterated", "base",      "chat",       "dpo",        "finetune",    "finetuned", "grpo",    "hf",    "inst",
    "instruct",    "it",        "latest",     "main",       "merged",      "mixture",   "mpo",     "orpo",  "ppo",
    "preview",     "pretrain",  "pretrained", "pt",         "reason",      "rlhf",      "sft",     "simpo", "think",
    "thinking",    "reasoning", "tuned",      "uncensored", "instruction", "dedup",     "deduped", "lora",  "qlora"};

// Words that tell how the weights are stored.
constexpr std::string_view kPacking[] = {"bnb",  "dynamic", "gguf", "ggml",  "gptq",      "awq",     "exl2",
                                         "exl3", "mlx",     "onnx", "quant", "quantized", "unsloth", "safetensors",
                                         "bin",  "torchao", "hqq",  "kv",    "of",        "aqlm"};
// What follows these is about the storing alone ("GPTQ-4b-128g").
constexpr std::string_view kEndsTheName[] = {"gguf", "ggml", "gptq", "awq", "exl2", "exl3", "aqlm"};
// Before a number of bits: "int4", "fp8", "q4", "w4a16".
constexpr std::string_view kFormats[] = {"int",  "uint",  "fp", "nf", "bf", "f", "nvfp",
                                         "mxfp", "float", "q",  "iq", "w",  "a"};
// Finer kinds of llama.cpp's formats: "Q4_K_M".
constexpr std::string_view kFormatKinds[] = {"k", "m", "s", "l", "xs", "xxs", "xl", "nl"};
// Makers that people put before the family, where it is not part of an address.
constexpr std::string_view kMakers[] = {"meta",      "google",  "microsoft", "facebook", "nvidia",   "openai",
                                        "mistralai", "alibaba", "ibm",       "tiiuae",   "thebloke", "huggingface"};
// Hosts of addresses written without "https://".
constexpr std::string_view kHosts[] = {"huggingface.co", "www.huggingface.co", "hf.co",     "hf-mirror.com",
                                       "modelscope.cn",  "www.modelscope.cn",  "ollama.com"};

template <std::size_t N>
bool is_one_of(std::string_view word, const std::string_view (&list)[N]) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return c >= 'a' && c <= 'z';
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

/// A number with its unit ("8b", "2.5", "8x7b", "4bit") or a run of letters, with what stood before it.
struct Piece {
  std::string text;
  bool glued = false;    // to the piece before: no separator between
  bool version = false;  // a "v" stood before the number
};

/// Splits a lower-case name; `turned` has a bit for each joint between digits that is read the other way than usual.
class Splitter {
 public:
  Splitter(std::string_view name, unsigned turned) : name_(name), turned_(turned) {}

  std::vector<Piece> split() {
    while (at_ < name_.size()) {
      const char c = name_[at_];
      if (is_digit(c)) {
        number();
      } else if (is_letter(c)) {
        word();
      } else {
        ++at_;
        glued_ = false;
      }
    }
    return std::move(pieces_);
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < name_.size() ? name_[at_ + ahead] : ' '; }

  /// Whether the character here joins the digits on both sides into one number.
  bool joins() {
    if (!is_digit(peek(1))) return false;
    if (peek() == '.' || peek() == 'p') return true;
    if (peek() != '_' && peek() != '-') return false;
    return (peek() == '_') != (((turned_ >> joint_++) & 1U) != 0);
  }

  std::string digits() {
    std::string text;
    while (is_digit(peek())) text += name_[at_++];
    return text;
  }

  void number() {
    std::string text = digits();
    if (text.size() < 4 && joins()) {
      ++at_;
      text += "." + digits();
    }
    const std::size_t start = at_;
    std::string unit;
    while (is_letter(peek())) unit += name_[at_++];
    if (unit == "x" && is_digit(peek())) {
      // Experts times size: "8x7b".
      text += "x" + digits();
      if (peek() == 'b') text += name_[at_++];
    } else if (unit == "b" && is_digit(peek()) && text.find('.') == std::string::npos) {
      text += "." + digits() + "b";  // BLOOM writes 1.7b as 1b7
    } else if (unit == "b" || unit == "m" || unit == "k" || unit == "t" || unit == "e" || unit == "g" ||
               unit == "bit" || unit == "bits") {
      text += unit.substr(0, unit == "bits" ? 3 : unit.size());
    } else {
      at_ = start;
    }
    add(std::move(text));
  }

  void word() {
    std::string text;
    const bool fresh = !glued_;
    while (is_letter(peek())) text += name_[at_++];
    const bool before_number = is_digit(peek());
    if (before_number && fresh && text == "v") {
      version_ = true;
      return;
    }
    // Active or effective size: "a3b", "a400m", "e4b".
    if (before_number && fresh && (text == "a" || text == "e")) {
      const std::size_t start = at_;
      const std::size_t many = pieces_.size();
      number();
      const char unit = pieces_.size() > many ? pieces_.back().text.back() : ' ';
      if (unit == 'b' || (unit == 'm' && text == "a")) {
        pieces_.back().text = text + pieces_.back().text;
        pieces_.back().glued = false;
        return;
      }
      pieces_.resize(many);
      at_ = start;
    }
    add(std::move(text));
  }

  void add(std::string text) {
    pieces_.push_back({std::move(text), glued_, version_});
    glued_ = true;
    version_ = false;
  }

  std::string_view name_;
  unsigned turned_;
  std::size_t at_ = 0;
  std::size_t joint_ = 0;
  bool glued_ = false;
  bool version_ = false;
  std::vector<Piece> pieces_;
};

/// How many times "_" or "-" stands between digits.
std::size_t joints_in(std::string_view name) {
  std::size_t joints = 0;
  for (std::size_t i = 1; i + 1 < name.size(); ++i) {
    if ((name[i] == '_' || name[i] == '-') && is_digit(name[i - 1]) && is_digit(name[i + 1])) ++joints;
  }
  return std::min(joints, kMostJoints);
}

bool is_context(std::string_view atom) {
  return atom == "1m" || (atom.size() > 1 && atom.back() == 'k' && is_digit(atom[atom.size() - 2]));
}

/// Sorts the pieces into what names the shape and what does not.
ModelName sorted_out(const std::vector<Piece>& pieces) {
  ModelName name;
  bool ended = false;   // what follows is about storing
  bool format = false;  // the piece before was a format: "q4", whose kind may follow
  // Without a size in digits "base" is the size: BERT, T5, ViT.
  const bool sized = std::any_of(pieces.begin(), pieces.end(), [](const Piece& piece) { return is_size(piece.text); });
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    const std::string& text = piece.text;
    const bool before_number = i + 1 < pieces.size() && pieces[i + 1].glued && is_digit(pieces[i + 1].text[0]);
    const bool after_format = format;
    format = false;
    if (ended || is_one_of(text, kPacking) || (text.size() > 3 && text.substr(text.size() - 3) == "bit")) {
      ended = ended || (is_one_of(text, kEndsTheName) && name.atoms.size() > 1);
      name.packing.push_back(text);
    } else if (before_number && is_one_of(text, kFormats) && (text != "w" || !name.atoms.empty())) {  // not "w2v-bert"
      name.packing.push_back(text + pieces[++i].text);
      format = true;
    } else if (after_format && (is_one_of(text, kFormatKinds) || is_one_of(text, kFormats))) {
      name.packing.push_back(text);
      format = true;
    } else if (text == "bit" && !name.atoms.empty() && is_version(name.atoms.back())) {
      name.packing.push_back(name.atoms.back() + text);  // "4-bit"
      name.atoms.pop_back();
    } else if ((is_one_of(text, kTuning) && (sized || text != "base")) || (all_digits(text) && text.size() >= 4) ||
               is_context(text) || (piece.version && text == "1.0")) {
      name.tuning.push_back(text);
    } else if (!(name.atoms.empty() && is_one_of(text, kMakers))) {
      name.atoms.push_back(text);
    }
  }
  return name;
}

std::string_view without_host(std::string_view text, bool& address) {
  const std::size_t scheme = text.find("://");
  if (scheme != std::string_view::npos) {
    address = true;
    text.remove_prefix(scheme + 3);
    const std::size_t slash = text.find('/');
    return slash == std::string_view::npos ? std::string_view{} : text.substr(slash + 1);
  }
  for (std::string_view host : kHosts) {
    if (text.substr(0, host.size()) != host || text.substr(host.size(), 1) != "/") continue;
    address = true;
    return text.substr(host.size() + 1);
  }
  return text;
}

std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : path) {
    if (c != '/' && c != '\\') {
      part += c;
    } else if (!part.empty()) {
      parts.push_back(std::move(part));
      part.clear();
    }
  }
  if (!part.empty()) parts.push_back(std::move(part));
  return parts;
}

std::vector<std::string> of_address(std::vector<std::string> parts) {
  constexpr std::string_view kSections[] = {"tree", "blob", "resolve", "raw", "commit", "discussions"};
  constexpr std::string_view kShelves[] = {"models", "library", "api"};
  while (!parts.empty() && is_one_of(parts.front(), kShelves)) parts.erase(parts.begin());
  if (parts.empty()) return {};
  if (parts.size() == 1 || is_one_of(parts[1], kSections)) return {parts[0]};
  return {parts[0] + "/" + parts[1]};
}

/// "models--meta-llama--Llama-2-7b-hf", a folder of the hub's cache, is "meta-llama/Llama-2-7b-hf".
std::string of_cache(std::string folder) {
  constexpr std::string_view kMark = "models--";
  if (folder.rfind(kMark, 0) != 0) return folder;
  folder.erase(0, kMark.size());
  const std::size_t dashes = folder.find("--");
  return dashes == std::string::npos ? folder : folder.substr(0, dashes) + "/" + folder.substr(dashes + 2);
}

bool is_local(std::string_view text, std::size_t parts) {
  const char first = text.empty() ? ' ' : text.front();
  const bool drive = text.size() > 2 && text[1] == ':' && (text[2] == '\\' || text[2] == '/');
  return first == '/' || first == '.' || first == '~' || drive || parts > 2 ||
         text.find('\\') != std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kAround = " \t\r\n\"'`";
  const std::size_t first = text.find_first_not_of(kAround);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kAround) - first + 1);
}

}  // namespace

std::string ModelName::key() const {
  std::string text;
  for (const std::string& atom : atoms) text += (text.empty() ? "" : " ") + atom;
  return text;
}

std::vector<std::string> repositories_in(std::string_view typed) {
  bool address = false;
  const std::string lower = lower_case(trimmed(typed).substr(0, 4 * kLongestName));
  std::string_view text = without_host(lower, address);
  // Revision, query, fragment.
  text = text.substr(0, text.find('@', 1));
  if (address) text = text.substr(0, text.find_first_of("?#"));
  for (std::string_view prefix : {"ollama/", "ollama:", "hf:", "huggingface/", "models/"}) {
    if (text.substr(0, prefix.size()) == prefix) text.remove_prefix(prefix.size());
  }
  std::vector<std::string> parts = parts_of(text);
  if (address) return of_address(std::move(parts));
  if (!is_local(text, parts.size())) {
    std::string name;
    for (const std::string& part : parts) name += (name.empty() ? "" : "/") + part;
    return {std::move(name)};
  }
  std::vector<std::string> names;
  for (std::size_t i = parts.size(); i-- > 0;) {
    if (i > 0 && parts[i].rfind("models--", 0) != 0) names.push_back(parts[i - 1] + "/" + parts[i]);
    names.push_back(of_cache(parts[i]));
  }
  return names;
}

std::vector<ModelName> read_model_name(std::string_view repository) {
  const std::string lower = lower_case(repository.substr(0, kLongestName));
  const std::size_t slash = lower.rfind('/');
  const std::string_view name =
      slash == std::string::npos ? std::string_view{lower} : std::string_view{lower}.substr(slash + 1);
  std::vector<ModelName> readings;
  for (unsigned turned = 0; turned < 1U << joints_in(name); ++turned) {
    readings.push_back(sorted_out(Splitter(name, turned).split()));
  }
  return readings;
}

bool is_size(std::string_view atom) {
  return atom.size() > 1 && is_digit(atom.front()) && (atom.back() == 'b' || atom.back() == 'm');
}

bool is_version(std::string_view atom) {
  return !atom.empty() && std::all_of(atom.begin(), atom.end(), [](char c) { return is_digit(c) || c == '.'; });
}

}  // namespace tidemark
