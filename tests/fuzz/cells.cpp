// (e) The page's map: a request, and two lists of doubles of any bits.
#include <cmath>
#include <cstring>

#include "core/wire/map_cells.hpp"
#include "tests/fuzz/mutate.hpp"

// Input: one byte (rows), one byte (columns), the doubles, then the request's text.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t*, std::size_t, std::size_t);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  fuzz::Dice dice(seed + 1);
  std::string head, text;
  const std::size_t rows = 1 + fuzz::roll(dice, 4), columns = 1 + fuzz::roll(dice, 4);
  head += static_cast<char>(rows);
  head += static_cast<char>(columns);
  for (std::size_t i = 0; i < rows + columns; ++i) {
    static const double kSizes[] = {0.0,  1.0,         1.5,  -1.0,           NAN,   INFINITY, -INFINITY,
                                    1e9,  999999999.0, 1e12, 999999999999.0, 1e300, 5e-324,   64,
                                    4096, 1e6};
    const double size_here =
        fuzz::roll(dice, 2) == 0 ? kSizes[fuzz::roll(dice, 16)] : double(1 + fuzz::roll(dice, 10000));
    head.append(reinterpret_cast<const char*>(&size_here), sizeof size_here);
  }
  std::size_t at = 2;
  if (size > 2) at = std::min<std::size_t>(size, 2 + 8 * (std::size_t{data[0]} % 5 + std::size_t{data[1]} % 5));
  if (size > at) text.assign(reinterpret_cast<const char*>(data) + at, size - at);
  fuzz::json root = fuzz::json::parse(text, nullptr, false);
  if (root.is_discarded()) root = fuzz::json::object();
  fuzz::mutate(root, dice);
  const std::string all = head + root.dump(-1, ' ', false, fuzz::json::error_handler_t::replace);
  if (all.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, all.data(), all.size());
  return all.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t rows = data[0] % 5, columns = data[1] % 5;
  if (size < 2 + 8 * (rows + columns)) return 0;
  std::vector<double> batches(rows), sequences(columns);
  std::memcpy(batches.data(), data + 2, 8 * rows);
  std::memcpy(sequences.data(), data + 2 + 8 * rows, 8 * columns);
  const std::string request(reinterpret_cast<const char*>(data) + 2 + 8 * (rows + columns),
                            size - 2 - 8 * (rows + columns));
  const std::vector<double> cells = tidemark::map_cells(fuzz::engine(), request, batches, sequences);
  if (cells.size() != rows * columns) fuzz::broken("one cell per pair", request, "");
  for (double cell : cells)
    if (!std::isnan(cell) && !(cell >= 0.0)) fuzz::broken("a cell below zero", request, std::to_string(cell));
  return 0;
}
