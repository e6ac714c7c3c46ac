// What the script of `tidemark probe` prints: a job, and what it took on a card.
#include "core/exchange/fields.hpp"

namespace tidemark::exchange {
namespace {

int recognise_probe(const Look& look) {
  return look.is_map() && look.has("tidemark_probe") ? 99 : 0;
}

/// Each leaf of the job that was measured; a list is one.
void state_job(const Node& node, const std::string& path, Keys& keys) {
  for (std::size_t at = 0; at < node.items.size(); ++at) {
    const std::string name = path.empty() ? node.keys[at] : path + "." + node.keys[at];
    const Node& member = node.items[at];
    if (member.is_map() && name != "config") {
      state_job(member, name, keys);
    } else if (name != "gpu" && name != "gpus") {
      keys.state(name, to_value(member), {&member});
    }
  }
}

void read_probe(const Look& look, Sources, Reading& reading) {
  Keys keys(look.document.root, look.source.name, reading);
  reading.log = empty_object();
  for (std::size_t at = 0; at < keys.root.items.size(); ++at) {
    if (keys.root.keys[at] == "job") continue;
    reading.log.members.push_back({keys.root.keys[at], to_value(keys.root.items[at])});
  }
  if (const Node* job = keys["job"]; job != nullptr && job->is_map()) state_job(*job, "", keys);
  if (const Node* name = keys["gpu.name"]; name != nullptr) keys.state("gpu", of(name->text), {name});
  if (keys.text("error") == "out_of_memory") {
    keys.note("The probe ran out of memory in " + keys.text("phase") + ": its figures are of the time before.");
  }
}

const Format kRows[] = {
    {"probe", "measurement of a probe", recognise_probe, read_probe, 40},
};

}  // namespace

extern const FormatRows probe_rows;
const FormatRows probe_rows = kRows;

}  // namespace tidemark::exchange
