#include <string>

#include "tests/unit/catalog_engine.hpp"
#include "tests/unit/catch.hpp"

// What `tidemark trace` wrote of torch.nn.Linear(1000, 500) on [B, 1000], whose loss is the mean of what comes out;
// with `OPS` for what lies between. Expected bytes are counted by hand from the operations of torch.

namespace {

using namespace tidemark;

std::string trace_with(const std::string& ops, const std::string& blocks = "[]") {
  return R"({"model_type":"model_trace","format":1,"torch":"2.14.1","class":"Net","parameters":500500,"tie_word_embeddings":false,
            "inputs":[["x",0,[[0,1,0,0],1000],"fp32"]],"ops":[)" +
         ops + R"(],"blocks":)" + blocks + R"(,"loss":9,"outputs":[]})";
}

std::string ask(const std::string& trace, const std::string& more = "") {
  return engine().handle(
      R"({"schema":1,"micro_batch_size":64,"sequence_length":16,"precision":"fp32","optimizer":"sgd")" + more +
      R"(,"config":)" + trace + "}");
}

const std::string kLinear = R"(["linear",1,0,"proj",500,1,1000])";
const std::string kMean = R"(["mean_all",9,1])";

bool refused(const std::string& ops, const std::string& blocks = "[]") {
  const std::string answer = ask(trace_with(ops, blocks));
  INFO(answer);
  return answer.find("\"estimate\"") == std::string::npos && answer.find("\"error\"") != std::string::npos;
}

}  // namespace

TEST_CASE("a traced model has the parameters that its forward used") {
  const std::string answer = ask(trace_with(kLinear + "," + kMean));
  INFO(answer.substr(0, 2000));
  CHECK(answer.find("\"total\":500500") != std::string::npos);
  CHECK(answer.find("MODEL_TRACE") != std::string::npos);
}

TEST_CASE("a trace that makes no sense gets an error and no number") {
  CHECK_FALSE(refused(kLinear + "," + kMean));
  CHECK(refused(R"(["teleport",1,0],)" + kMean));
  CHECK(refused(R"(["linear",1,0,"proj",500,1,999],)" + kMean));
  CHECK(refused(R"(["linear",1,7,"proj",500,1,1000],)" + kMean));
  CHECK(refused(R"(["linear",1,0],)" + kMean));
  CHECK(refused(kLinear + R"(,["view",2,1,[7,7]],["mean_all",9,2])"));
  CHECK(refused(kLinear + R"(,["view",2,1,[[0,1,0,0],500,1,1,1,1,1]],["mean_all",9,2])"));
  CHECK(refused(kLinear + R"(,["narrow",2,1,1,[400],[200]],["mean_all",9,2])"));
  CHECK(refused(kLinear + R"(,["narrow",2,1,4,[0],[2]],["mean_all",9,2])"));
  CHECK(refused(kLinear + R"(,["permute",2,1,[0,0]],["mean_all",9,2])"));
  CHECK(refused(kLinear +
                R"(,["make",2,[[0,0,0,99999999999],99999999999],"fp32","ones"],["add",3,1,2],["mean_all",9,3])"));
  CHECK(refused(kLinear + R"(,["make",2,[[0,0,0,1099511627776],1],"fp32","ones"],["add",3,1,2],["mean_all",9,3])"));
  CHECK(refused(kLinear + R"(,["make",2,[[-100,1,0,0],500],"fp32","ones"],["add",3,1,2],["mean_all",9,3])"));
  CHECK(refused(kLinear + R"(,["make",2,[7,7],"fp32","ones"],["add",3,1,2],["mean_all",9,3])"));
  CHECK(refused(kLinear + R"(,["to",2,1,"quaternion",-1],["mean_all",9,2])"));
  CHECK(refused(kLinear + R"(,["dropout",2,1,{"p":7}],["mean_all",9,2])"));
  CHECK(refused(kLinear));
  CHECK(refused(kLinear + R"(,["drop",1],)" + kMean));
  CHECK(refused(kLinear + R"(,["stack",2,1,"layers",[[0,[]]]],["mean_all",9,2])"));
  const std::string block = R"([{"captures":1,"out":2,"source":"","ops":[["add",2,0,1]]}])";
  CHECK_FALSE(refused(kLinear + R"(,["stack",2,1,"layers",[[0,[1]],[0,[1]]]],["mean_all",9,2])", block));
  CHECK(refused(kLinear + R"(,["stack",2,1,"layers",[[0,[]]]],["mean_all",9,2])", block));
  CHECK(refused(kLinear + R"(,["stack",2,1,"layers",[[3,[1]]]],["mean_all",9,2])", block));
}

TEST_CASE("unsqueezing and stacking stop at five dimensions") {
  std::string ops = kLinear;
  for (int i = 0; i < 8; ++i)
    ops += ",[\"unsqueeze\"," + std::to_string(10 + i + 1) + "," + (i == 0 ? "1" : std::to_string(10 + i)) + ",0]";
  CHECK(refused(ops + R"(,["mean_all",9,18])"));
}

TEST_CASE("what a trace cannot say of a job is refused by name") {
  const std::string trace = trace_with(kLinear + "," + kMean);
  CHECK(ask(trace, R"(,"attention":"flash_attention_2")").find("/attention") != std::string::npos);
  CHECK(ask(trace, R"(,"gradient_checkpointing":"full")").find("/gradient_checkpointing") != std::string::npos);
  CHECK(ask(trace, R"(,"padding":true)").find("/padding") != std::string::npos);
}
