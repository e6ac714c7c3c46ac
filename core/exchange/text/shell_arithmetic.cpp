#include "core/exchange/text/shell_arithmetic.hpp"

#include "core/exchange/text/shell_words.hpp"

namespace tidemark::exchange {
namespace {

constexpr int kDeepest = 12;
constexpr int kMostDigits = 10;
constexpr long long kLargestProduct = 1LL << 30;
constexpr long long kLargestSum = 1LL << 50;

class Arithmetic {
 public:
  explicit Arithmetic(std::string_view text) : text_(text) {}
  std::optional<long long> value() {
    const std::optional<long long> sum = this->sum(0);
    space();
    return at_ == text_.size() ? sum : std::nullopt;
  }

 private:
  void space() {
    while (at_ < text_.size() && is_shell_space(text_[at_])) ++at_;
  }
  std::optional<long long> sum(int depth) {
    std::optional<long long> left = product(depth);
    for (space(); left && at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-'); space()) {
      const char sign = text_[at_++];
      const std::optional<long long> right = product(depth);
      if (!right) return std::nullopt;
      left = sign == '+' ? *left + *right : *left - *right;
      if (*left > kLargestSum || *left < -kLargestSum) return std::nullopt;
    }
    return left;
  }
  std::optional<long long> product(int depth) {
    std::optional<long long> left = atom(depth);
    for (space(); left && at_ < text_.size() && (text_[at_] == '*' || text_[at_] == '/' || text_[at_] == '%');
         space()) {
      const char sign = text_[at_++];
      const std::optional<long long> right = atom(depth);
      if (!right || (sign != '*' && *right == 0)) return std::nullopt;
      left = sign == '*' ? *left * *right : sign == '/' ? *left / *right : *left % *right;
      if (*left > kLargestProduct || *left < -kLargestProduct) return std::nullopt;
    }
    return left;
  }
  std::optional<long long> atom(int depth) {
    space();
    if (depth > kDeepest || at_ >= text_.size()) return std::nullopt;
    if (text_[at_] == '(') {
      ++at_;
      const std::optional<long long> inner = sum(depth + 1);
      space();
      if (at_ >= text_.size() || text_[at_] != ')') return std::nullopt;
      ++at_;
      return inner;
    }
    long long number = 0;
    const std::size_t first = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && at_ - first < kMostDigits; ++at_)
      number = number * 10 + (text_[at_] - '0');
    return at_ == first ? std::nullopt : std::optional{number};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<long long> shell_arithmetic(std::string_view text) {
  return Arithmetic(text).value();
}

}  // namespace tidemark::exchange
