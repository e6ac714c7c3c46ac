#include <string>

#include "core/engine/calibrate/least_squares.hpp"
#include "core/runtime/nccl.hpp"
#include "core/wire/engine.hpp"
#include "core/wire/json.hpp"
#include "tests/unit/catalog_engine.hpp"
#include "tests/unit/catch.hpp"
#include "tests/unit/member_at.hpp"

namespace tidemark {
namespace {

constexpr const char* kJob = R"("model":"llama-3.2-1b","gpu":"A100-80GB","sequence_length":512)";

Value parsed(const std::string& text) {
  Issues issues;
  Value value = parse_json(text, "", issues);
  REQUIRE(issues.empty());
  return value;
}

Value ask(const std::string& request) {
  return parsed(engine().handle(request));
}

const Value* issue_of(const Value& reply, std::string_view code) {
  for (const Value& issue : at(reply, "issues").items) {
    if (at(issue, "code").string == code) return &issue;
  }
  return nullptr;
}

/// The engine's own figures of a job.
struct Ours {
  Bytes allocated = 0, cached = 0, context = 0, activations = 0;

  explicit Ours(const std::string& job) {
    const Value reply = ask("{" + job + "}");
    const Value& estimate = at(reply, "estimate");
    allocated = at(estimate, "allocated.expected").integer;
    cached = at(estimate, "reserved.expected").integer - allocated;
    context = at(estimate, "device.expected").integer - allocated - cached;
    for (const Value& group : at(estimate, "breakdown").items) {
      if (at(group, "category").string == "activations") activations = at(group, "bytes").integer;
    }
  }
};

std::string measurement(const std::string& job, Bytes allocated, Bytes reserved, Bytes device) {
  return "{\"job\":{" + job + "},\"allocated_bytes\":" + std::to_string(allocated) +
         ",\"reserved_bytes\":" + std::to_string(reserved) + ",\"device_bytes\":" + std::to_string(device) + "}";
}

Value calibrate(const std::string& measurements, const std::string& more = "") {
  return ask("{\"verb\":\"calibrate\"" + more + ",\"measurements\":[" + measurements + "]}");
}

Value estimate_with(const std::string& job, const Value& calibration, const std::string& verb = "estimate") {
  return ask("{\"verb\":\"" + verb + "\"," + job + ",\"calibration\":" + write_json(calibration) + "}");
}

}  // namespace

TEST_CASE("least squares: what is computed by hand") {
  // (1·2 + 2·4 + 3·7) / (1 + 4 + 9).
  CHECK(*least_squares({{1, 2, 3}}, {2, 4, 7}).front() == Approx(31.0 / 14.0));
  // A line through (0, 1), (1, 3), (2, 4), (3, 4): slope 5 / 5, and 3 − 1.5 at zero.
  const auto line = least_squares({{1, 1, 1, 1}, {0, 1, 2, 3}}, {1, 3, 4, 4});
  CHECK(*line[0] == Approx(1.5));
  CHECK(*line[1] == Approx(1.0));
}

TEST_CASE("least squares: an unknown that nothing determines has no value") {
  CHECK(!least_squares({{0, 0}}, {1, 2}).front());
  CHECK(!least_squares({{}}, {}).front());
  const auto both = least_squares({{1, 1}, {2, 2}}, {3, 3});
  CHECK(*both[0] == Approx(3.0));
  CHECK(!both[1]);
}

TEST_CASE("calibrate: fragmentation is the factor of least squares on what is cached") {
  const Ours job(kJob);
  const auto run = [&](Bytes cached) {
    const Bytes reserved = job.allocated + cached;
    return measurement(kJob, job.allocated, reserved, reserved + job.context);
  };
  // The same job twice, 1.2 and 1.6 times what we say: 1.4; without one of them, the other's.
  const Value reply = calibrate(run(job.cached * 12 / 10) + "," + run(job.cached * 16 / 10));
  CHECK(at(reply, "calibration.factors.fragmentation").real == Approx(1.4).margin(2e-4));
  const Value& row = at(reply, "calibration.measurements.0.rows.1");
  CHECK(at(row, "what").string == "reserved");
  CHECK(at(row, "estimated_bytes").integer == job.allocated + job.cached);
  CHECK(at(row, "left_out_bytes").integer == Approx(job.allocated + job.cached * 16 / 10).margin(2));
  CHECK(at(reply, "calibration.factors.activations").is_null());
  CHECK(at(reply, "calibration.factors.communication").is_null());
  const Value told = estimate_with(kJob, reply);
  const Bytes reserved = at(told, "estimate.reserved.expected").integer;
  CHECK(reserved - job.allocated == Approx(1.4 * static_cast<double>(job.cached)).epsilon(2e-4));
}

TEST_CASE("calibrate: one GPU tells the context, two tell NCCL's buffers beside it") {
  const std::string two = std::string{kJob} + R"(,"parallelism":{"data":2})";
  const Ours one_gpu(kJob), two_gpus(two);
  const Bytes more = 100 * kMiB, nccl = nccl_communicator(2);
  const auto device = [](const Ours& job, Bytes extra) { return job.allocated + job.cached + job.context + extra; };
  const std::string alone =
      measurement(kJob, one_gpu.allocated, one_gpu.allocated + one_gpu.cached, device(one_gpu, more));
  const std::string together =
      measurement(two, two_gpus.allocated, two_gpus.allocated + two_gpus.cached, device(two_gpus, more + nccl / 2));
  const Value both = calibrate(alone + "," + together);
  CHECK(at(both, "calibration.factors.communication").real == Approx(1.5).margin(1e-4));
  CHECK(at(both, "calibration.factors.context.0.bytes").integer == Approx(one_gpu.context + more).margin(1024));
  CHECK(at(both, "calibration.errors.calibrated.worst_percent").real < 0.01);

  // From two GPUs alone the two cannot be told apart: the context takes it all.
  const Value only = calibrate(together);
  CHECK(at(only, "calibration.factors.communication").is_null());
  CHECK(at(only, "calibration.factors.context.0.bytes").integer ==
        Approx(one_gpu.context + more + nccl / 2).margin(1024));

  const Value told = estimate_with(two, both);
  CHECK(at(told, "estimate.device.expected").integer == Approx(device(two_gpus, more + nccl / 2)).margin(nccl * 1e-4));
  const Value other = estimate_with(R"("model":"llama-3.2-1b","gpu":"4090")", both);
  CHECK(at(*issue_of(other, "CALIBRATED"), "message").string.find("RTX 4090 was not measured") != std::string::npos);
}

TEST_CASE("calibrate: activations are fitted where that is asked for, and a mismatch is told either way") {
  const std::string job_text = R"("model":"llama-3.2-1b","gpu":"A100-80GB","sequence_length":8192)";
  const Ours job(job_text);
  const Bytes allocated = job.allocated + job.activations;
  const std::string run =
      measurement(job_text, allocated, allocated + job.cached, allocated + job.cached + job.context);
  const Value without = calibrate(run);
  CHECK(at(without, "calibration.factors.activations").is_null());
  CHECK(issue_of(without, "MISMATCH") != nullptr);
  const Value with = calibrate(run, R"(,"activations":true)");
  CHECK(at(with, "calibration.factors.activations").real == Approx(2.0).margin(1e-4));
  CHECK(at(with, "calibration.measurements.0.rows.0.left_out_bytes").integer == job.allocated);
  const Value told = estimate_with(job_text, with);
  CHECK(at(told, "estimate.allocated.expected").integer == Approx(allocated).epsilon(1e-3));
  Bytes sum = 0;
  for (const Value& group : at(told, "estimate.breakdown").items) sum += at(group, "bytes").integer;
  CHECK(sum == at(told, "estimate.allocated.expected").integer);
}

TEST_CASE(
    "calibrate: an answer that uses a calibration says so, and warns of one that does not fit what it was made of") {
  const Ours job(kJob);
  const Bytes twice = 2 * job.allocated;
  const Value far = calibrate(measurement(kJob, twice, twice + job.cached, twice + job.cached + job.context));
  for (const char* verb : {"estimate", "fit", "advise", "map"}) {
    CAPTURE(verb);
    const Value reply = estimate_with(kJob, at(far, "calibration"), verb);
    const Value* issue = issue_of(reply, "CALIBRATED");
    REQUIRE(issue != nullptr);
    CHECK(at(*issue, "severity").string == "warning");
  }
  const Value near =
      calibrate(measurement(kJob, job.allocated, job.allocated + job.cached, job.allocated + job.cached + job.context));
  CHECK(issue_of(near, "MISMATCH") == nullptr);
  CHECK(at(*issue_of(estimate_with(kJob, near), "CALIBRATED"), "severity").string == "note");
}

TEST_CASE("calibrate: factors that no run can have are left out, with a warning") {
  const Ours job(kJob);
  const Bytes reserved = job.allocated + job.cached * 100;
  const Value reply = calibrate(measurement(kJob, job.allocated, reserved, reserved / 2));
  CHECK(issue_of(reply, "UNLIKELY_FACTOR") != nullptr);
  CHECK(at(reply, "calibration.factors.fragmentation").is_null());
  CHECK(at(reply, "calibration.factors.context").items.empty());
}

TEST_CASE("calibrate: measurements share the request's options") {
  const Value reply = ask(std::string{"{\"verb\":\"calibrate\","} + kJob +
                          R"(,"measurements":[{"allocated_bytes":9000000000},
                              {"name":"longer","job":{"sequence_length":1024},"allocated_bytes":9000000000}]})");
  const Value& jobs = at(reply, "calibration.measurements");
  CHECK(at(jobs, "0.name").string == "measurement 1");
  CHECK(at(jobs, "1.name").string == "longer");
  CHECK(at(jobs, "0.rows.0.estimated_bytes").integer < at(jobs, "1.rows.0.estimated_bytes").integer);
}

TEST_CASE("calibrate: what cannot be read is refused with its place") {
  const auto path = [](const std::string& measurements) { return at(calibrate(measurements), "issues.0.path").string; };
  CHECK(path("") == "/measurements");
  CHECK(path(R"({"job":{"model":"llama-3.2-1b"}})") == "/measurements/0");
  CHECK(path(R"({"job":{"model":"llama-3.2-1b"},"allocated_bytes":-1})") == "/measurements/0/allocated_bytes");
  CHECK(at(calibrate(R"({"allocated_bytes":1})"), "issues.0.code").string == "MISSING_MODEL");
  CHECK(at(calibrate(R"({"job":{"model":"no such model"},"allocated_bytes":1})"), "issues.0.code").string ==
        "UNKNOWN_MODEL");
}

}  // namespace tidemark
