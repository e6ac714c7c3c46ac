// The reader of other people's files, seen from JavaScript: sources in, what they say out. A module of its own beside
// the engine, loaded once something is dropped. Texts go through `room` and come back where `read` and its kin point,
// as many bytes as `written` says: wasm/reader.js is the other side, and all the glue that there is.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/exchange/document.hpp"
#include "core/exchange/import.hpp"
#include "core/exchange/job.hpp"
#include "core/exchange/out/job.hpp"
#include "core/exchange/out/patch.hpp"
#include "core/exchange/trouble/compare.hpp"
#include "core/job/defaults.hpp"
#include "core/units/category.hpp"
#include "core/wire/json.hpp"
#include "core/wire/read_request.hpp"

namespace {

using tidemark::Bytes;
using tidemark::Issues;
using tidemark::Value;
namespace exchange = tidemark::exchange;

struct Desk {
  std::vector<exchange::Source> sources;
  exchange::Import import;
};

/// One text on its way in, one on its way out.
std::string incoming, outgoing;

const char* hand_out(std::string text) {
  outgoing = std::move(text);
  return outgoing.data();
}

/// What lies on the table: one reading at a time.
Desk& desk() {
  static Desk instance;
  return instance;
}

/// All sources as one job: the document of `tidemark import --json` with "job", what the engine is asked for.
std::string read_all() {
  desk().import = exchange::import_sources(desk().sources);
  Issues told;
  const Value job = exchange::job_of(desk().import, told);
  // What has no path is in the document already: notes, keys without effect, questions.
  Value names = tidemark::empty_array();
  Value words = tidemark::empty_array();
  for (const tidemark::Issue& issue : told) {
    if (issue.code == "NOT_COUNTED") {
      names.items.push_back(tidemark::to_value(issue.path));
    } else if (!issue.path.empty()) {
      words.items.push_back(exchange::value_of(issue));
    }
  }
  Value document = exchange::document_of(desk().import);
  tidemark::set(document, "job", job);
  tidemark::set(document, "told", std::move(words));
  tidemark::set(document, "not_counted", std::move(names));
  return tidemark::write_json(document);
}

Value parsed(const std::string& json) {
  Issues issues;
  return tidemark::parse_json(json, "", issues);
}

const Value& at(const Value& object, std::string_view key) {
  static const Value nothing;
  const Value* value = object.find(key);
  return value == nullptr ? nothing : *value;
}

tidemark::Range range_of(const Value& value) {
  return {at(value, "low").integer, at(value, "expected").integer, at(value, "high").integer};
}

/// What a comparison looks at of an estimate.
tidemark::Estimate estimate_of(const Value& value) {
  tidemark::Estimate estimate;
  estimate.allocated = range_of(at(value, "allocated"));
  estimate.reserved = range_of(at(value, "reserved"));
  estimate.device = range_of(at(value, "device"));
  estimate.peak.at = at(at(value, "peak"), "at").string;
  for (int i = 0; i < tidemark::kPhaseCount; ++i) {
    const auto phase = static_cast<tidemark::Phase>(i);
    estimate.phase_peaks[i] = at(at(value, "phase_peaks"), name_of(phase)).integer;
    if (at(at(value, "peak"), "phase").string == name_of(phase)) estimate.peak.phase = phase;
  }
  return estimate;
}

/// The logs that were read beside an answer's estimate: a list of comparisons.
std::string compare_with(const std::string& estimate) {
  Value list = tidemark::empty_array();
  const tidemark::Estimate read = estimate_of(parsed(estimate));
  for (const exchange::Reading& reading : desk().import.readings) {
    if (!reading.log.is_object() || reading.log.find("error") != nullptr) continue;
    Value row = to_value(exchange::compare(read, reading.format, reading.log));
    tidemark::set(row, "file", reading.file);
    list.items.push_back(std::move(row));
  }
  return tidemark::write_json(list);
}

/// "ForCausalLM" and what was there before it; encoder-decoders generate on other conditions.
bool is_causal(std::string_view name, const Value& config) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  const bool generates = has("ForConditionalGeneration") && !at(config, "is_encoder_decoder").boolean;
  return has("CausalLM") || (has("LMHead") && config.find("is_encoder_decoder") == nullptr) || generates;
}

/// The job as the engine understands it, without the model's program: what other tools are told needs none.
exchange::ExportJob job_of(const Value& asked, bool& causal) {
  const Value& config = at(asked, "config");
  Issues issues;
  Value whole = at(asked, "request");
  for (const Value::Member& one : at(asked, "assumed").members) tidemark::set(whole, one.key, one.value);
  tidemark::Request request = tidemark::read_request(exchange::without_sharding(whole), issues);
  std::string name = class_of(config, request, {});
  if (const Value& own = at(config, "architectures"); name.empty() && !own.items.empty()) name = own.items[0].string;
  settle_quantization(config, request.job, issues);
  settle_defaults(request.open, checkpoint_dtype(config), request.job, issues);
  causal = is_causal(name, config);
  if (!causal) {
    request.job.loss = tidemark::Loss::kDefault;
    request.job.packing = false;
  }
  return exchange::export_job(at(asked, "model").string, std::move(name), request.job, at(asked, "request"), config);
}

Value written(std::string_view file, const exchange::Exported& exported) {
  Value lacks = tidemark::empty_array();
  for (const tidemark::Issue& issue : exported.issues) lacks.items.push_back(tidemark::to_value(issue.message));
  Value out = tidemark::empty_object();
  tidemark::set(out, "file", file);
  tidemark::set(out, "text", exported.text);
  tidemark::set(out, "lacks", std::move(lacks));
  return out;
}

/// {"request", "config" and "model" of the catalog, "format"} in, {"file", "text", "lacks"} out; null where there is no
/// such file.
std::string write_job(const std::string& json) {
  const Value asked = parsed(json);
  const std::string& format = at(asked, "format").string;
  bool causal = false;
  const exchange::ExportJob job = job_of(asked, causal);
  if (const exchange::Exporter* exporter = exchange::find_exporter(format); exporter != nullptr) {
    return tidemark::write_json(written(exporter->file, exporter->write(job)));
  }
  if (format != "probe" || !causal) return "null";
  return tidemark::write_json(written("probe.py", exchange::write_probe(job)));
}

/// The first of the sources with other values in it: {"adapter.r": 8} in, {"file", "text", "diff", "lacks"} out.
std::string patch_with(const std::string& json) {
  std::vector<exchange::Change> changes;
  for (const Value::Member& member : parsed(json).members) changes.emplace_back(member.key, member.value);
  const std::vector<exchange::Source>& sources = desk().sources;
  const exchange::Patched patched = exchange::patch(sources, changes);
  Value out = written(sources.empty() ? "" : sources[0].name, {patched.text, patched.issues});
  tidemark::set(out, "diff", patched.diff);
  return tidemark::write_json(out);
}

/// The formats that jobs are written in: [{"name", "what", "file"}].
std::string all_formats_out() {
  Value list = tidemark::empty_array();
  for (const exchange::Exporter& exporter : exchange::exporters()) {
    Value row = tidemark::empty_object();
    tidemark::set(row, "name", exporter.name);
    tidemark::set(row, "what", exporter.what);
    tidemark::set(row, "file", exporter.file);
    list.items.push_back(std::move(row));
  }
  return tidemark::write_json(list);
}

}  // namespace

#define TIDEMARK_EXPORT(name) __attribute__((export_name(#name)))

extern "C" {

/// Where the caller writes `bytes` bytes, before it calls one of those that take them.
TIDEMARK_EXPORT(room) char* room(std::size_t bytes) {
  incoming.assign(bytes, ' ');
  return incoming.data();
}

/// The bytes of what was handed out last.
TIDEMARK_EXPORT(written) std::size_t written_bytes() {
  return outgoing.size();
}

TIDEMARK_EXPORT(forget) void forget() {
  desk() = {};
}

/// Takes a file's name, then its text or first bytes; `size` of the whole file, where that is more.
TIDEMARK_EXPORT(name) void take_name() {
  desk().sources.push_back({std::move(incoming), {}, 0});
}
TIDEMARK_EXPORT(bytes) void take_bytes(double size) {
  exchange::Source& source = desk().sources.back();
  source.bytes = std::move(incoming);
  const auto whole = static_cast<std::uint64_t>(size);
  if (whole > source.bytes.size()) source.size = whole;
}

TIDEMARK_EXPORT(read) const char* read_sources() {
  return hand_out(read_all());
}
TIDEMARK_EXPORT(compare) const char* compare_logs() {
  return hand_out(compare_with(incoming));
}
TIDEMARK_EXPORT(exported) const char* exported_job() {
  return hand_out(write_job(incoming));
}
TIDEMARK_EXPORT(patched) const char* patched_file() {
  return hand_out(patch_with(incoming));
}
TIDEMARK_EXPORT(formats) const char* list_formats() {
  return hand_out(all_formats_out());
}
}
