// What kernels allocate, held to what an H200 allocated for them (tests/measured/kernels.jsonl: torch's memory
// history).
#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/tape/convolution_workspace.hpp"
#include "core/tape/ops.hpp"
#include "core/tape/reduction.hpp"
#include "core/wire/json.hpp"
#include "tests/unit/catch.hpp"

namespace tidemark {
namespace {

constexpr int kHopper = 90;

std::vector<Value> rows_of(const std::string& what) {
  std::ifstream file(std::string{TIDEMARK_TEST_DATA} + "/../../measured/kernels.jsonl");
  std::vector<Value> rows;
  for (std::string line; std::getline(file, line);) {
    Issues issues;
    Value row = parse_json(line, "", issues);
    const Value* name = row.find("what");
    if (name != nullptr && name->string == what) rows.push_back(std::move(row));
  }
  return rows;
}

Count number(const Value& row, const char* key) {
  return row.find(key)->integer;
}

std::vector<Bytes> sizes(const Value& row, const char* part) {
  std::vector<Bytes> all;
  for (const Value& size : row.find(part)->items) all.push_back(size.integer);
  return all;
}

// Allocations and releases (less than 0) from an event on.
std::vector<Bytes> sizes(const Tape& tape, std::size_t from) {
  std::vector<Bytes> all;
  for (std::size_t e = from; e < tape.events().size(); ++e) {
    const Event& event = tape.events()[e];
    const Bytes bytes = tape.storages()[static_cast<std::size_t>(event.subject)].bytes;
    all.push_back(event.allocates() ? bytes : -bytes);
  }
  return all;
}

Tensor heads(Tape& tape, Count batch, Count length, Count count, Count head_dim, Dtype dtype) {
  Parameter p;
  p.module = "attention";
  p.leaf = "heads";
  p.shape = Shape{Dim(batch), Dim(length), Dim(count), Dim(head_dim)};
  p.dtype = dtype;
  p.requires_grad = true;
  return transpose(tape.parameter(p), 1, 2);
}

TEST_CASE("cuDNN's attention takes what it took on a card") {
  int seen = 0;
  for (const Value& row : rows_of("attention")) {
    // One query, as in decoding, has another kernel.
    if (row.find("kernel")->string != "cudnn" || number(row, "queries") == 1) continue;
    ++seen;
    CAPTURE(write_json(row));
    const Dtype dtype = row.find("dtype")->string == "fp16" ? Dtype::kFp16 : Dtype::kBf16;
    const Count batch = number(row, "batch"), queries = number(row, "queries"), keys = number(row, "keys");
    const Count head_dim = number(row, "head_dim"), kv_heads = number(row, "kv_heads");
    const std::string kind = row.find("mask")->string;
    Tape tape;
    tape.use_parameters_of(-1);
    Tensor q = heads(tape, batch, queries, number(row, "heads"), head_dim, dtype);
    Tensor k = heads(tape, batch, keys, kv_heads, head_dim, dtype);
    Tensor v = heads(tape, batch, keys, kv_heads, head_dim, dtype);
    Tensor mask;
    if (kind != "none" && kind != "causal") {
      const Shape shape{Dim(batch), Dim(1), Dim(kind == "bool_of_keys" ? 1 : queries), Dim(keys)};
      mask = tape.allocate(shape, kind == "additive" ? dtype : Dtype::kBool, "mask");
    }
    std::size_t from = tape.events().size();
    Tensor out = cudnn_attention(q, k, v, mask);
    std::vector<Bytes> forward = sizes(row, "forward");
    // where(mask, 0, -inf) makes tensors of its two numbers.
    std::erase_if(forward, [&](Bytes bytes) { return bytes == 2 || bytes == -2; });
    CHECK(sizes(tape, from) == forward);

    const Tensor gradient = tape.allocate(out.shape(), dtype, "gradient");
    from = tape.events().size();
    tape.backward(std::move(out), gradient);
    // dq, dk, dv and the workspace; on the card the caller takes the gradients, here parameters do.
    std::vector<Bytes> backward = sizes(tape, from), of_card = sizes(row, "backward");
    REQUIRE(backward.size() > 4);
    backward.resize(5);
    of_card.resize(5);
    CHECK(backward == of_card);
  }
  CHECK(seen > 100);
}

TEST_CASE("a sum over rows takes what it took on a card") {
  int divided = 0;
  for (const Value& row : rows_of("linear")) {
    if (!row.find("bias")->boolean) continue;
    CAPTURE(write_json(row));
    const Reduction of = reduction_of(number(row, "width"), kHopper);
    const Count blocks = blocks_of(number(row, "rows"), of);
    std::vector<Bytes> beside = sizes(row, "backward");  // the gradients of input, weight and bias, and then
    beside.erase(beside.begin(), beside.begin() + 3);
    const Bytes partial = of.partial * blocks;
    if (blocks > 0) {
      ++divided;
      CHECK(beside == std::vector<Bytes>{partial, of.semaphores, -of.semaphores, -partial});
    } else {
      CHECK(beside.empty());
    }
  }
  CHECK(divided > 3);
}

/// What a convolution took beside its output, its input's gradient and its weight's.
struct Beside {
  Bytes forward = 0;
  Bytes gradients[3] = {};
};

// What is let go right behind its allocation is no result.
void take_beside(const std::vector<Bytes>& sizes, Bytes* beside, int results) {
  int result = -1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0) continue;
    const bool passing = i + 1 < sizes.size() && sizes[i + 1] == -sizes[i];
    if (!passing) ++result;
    if (passing && result >= 0 && result < results) beside[result] = std::max(beside[result], sizes[i]);
  }
}

TEST_CASE("a convolution's range holds what cuDNN took beside it on a card") {
  int seen = 0, to_the_byte = 0;
  for (const Value& row : rows_of("convolution")) {
    CAPTURE(write_json(row));
    const Dtype dtype = row.find("dtype")->string == "fp32" ? Dtype::kFp32 : Dtype::kBf16;
    const Count side = number(row, "size"), kernel = number(row, "kernel"), step = number(row, "stride");
    const Count inputs = number(row, "inputs"), outputs = number(row, "outputs");
    const Dim out_side(kernel == step ? side / kernel : (side + step - 1) / step);
    Shape x{Dim(number(row, "batch")), Dim(inputs), Dim(side), Dim(side)};
    if (row.find("channels_last")->boolean) {
      const Count strides[] = {inputs * side * side, 1, inputs * side, inputs};
      std::copy(std::begin(strides), std::end(strides), x.strides);
    }
    const Shape weight{Dim(outputs), Dim(inputs / number(row, "groups")), Dim(kernel), Dim(kernel)};
    const Shape y{x.dim(0), Dim(outputs), out_side, out_side};
    const ConvolutionWorkspace ours = convolution_workspace(x, weight, y, dtype);
    Beside beside;
    take_beside(sizes(row, "forward"), &beside.forward, 1);
    take_beside(sizes(row, "backward"), beside.gradients, 3);
    ++seen;
    CHECK(ours.forward >= beside.forward);
    CHECK(ours.input_gradient >= beside.gradients[0]);
    CHECK(ours.weight_gradient >= beside.gradients[1]);
    constexpr Bytes kAlignment = 131;  // where a call asks for less of it
    if (beside.forward > kMiB && ours.forward - beside.forward <= kAlignment) ++to_the_byte;
  }
  CHECK(seen == 48);
  CHECK(to_the_byte >= 8);  // where 16-bit tensors are copied, channels first
}

}  // namespace
}  // namespace tidemark
