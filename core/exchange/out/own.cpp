// The formats that are our own: the request, and the command that asks it.
#include "core/exchange/out/writer.hpp"
#include "core/options/options.hpp"

namespace tidemark::exchange {
namespace {

std::string shell(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string out = "'";
  for (char c : word) out += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return out + "'";
}

std::string on_one_line(std::string text) {
  std::string out;
  bool space = false;
  for (char c : text) {
    if (c == '\n') {
      space = true;
    } else if (!(space && c == ' ')) {
      space = false;
      out += c;
    }
  }
  return out;
}

/// As a flag takes it: words bare, lists by commas, everything else as JSON.
std::string word_of(const Value& value) {
  if (value.is_string()) return value.string;
  if (!value.is_array()) return on_one_line(json_text(value));
  std::string out;
  for (const Value& item : value.items) out += (out.empty() ? "" : ",") + word_of(item);
  return out;
}

const Option* option_of(const std::string& name) {
  for (const Option& option : options()) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

/// An object goes down to its options, unless it is one itself.
void write_flags(const Value& value, const std::string& path, Writer& out, std::string& command) {
  for (const Value::Member& member : value.members) {
    const std::string name = path.empty() ? member.key : path + "." + member.key;
    if (name == "schema" || name == "verb") continue;
    const Option* option = option_of(name);
    const bool deeper =
        member.value.is_object() &&
        (option == nullptr ||
         option_of(name + "." + (member.value.members.empty() ? "" : member.value.members[0].key)) != nullptr);
    if (deeper) {
      write_flags(member.value, name, out, command);
    } else if (option == nullptr || name == "config") {
      out.lacks("/" + name, name + ": there is no flag for its value");
    } else if (member.value.kind == Value::Kind::kBool && option->type == OptionType::kBool) {
      // A switch takes no word behind it.
      const std::string flag = flag_of(*option);
      command += " \\\n  " + (member.value.boolean ? flag : "--no-" + flag.substr(2));
    } else {
      command += " \\\n  " + flag_of(*option) + " " + shell(word_of(member.value));
    }
  }
}

}  // namespace

Exported write_command(const ExportJob& job) {
  Writer out;
  std::string command = "tidemark estimate";
  write_flags(job.request, "", out, command);
  out.line(command);
  return out.finish("A command");
}

Exported write_request(const ExportJob& job) {
  Writer out;
  out.line(json_text(job.request));
  return out.finish_without_comments("A request");
}

}  // namespace tidemark::exchange
