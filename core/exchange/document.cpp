#include "core/exchange/document.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/exchange/fields.hpp"

namespace tidemark::exchange {
namespace {

/// A list, each item as `write` has it.
template <class List, class Write>
Value list_of(const List& items, Write write) {
  std::vector<Value> list;
  for (const auto& item : items) list.push_back(write(item));
  return of(std::move(list));
}

Value words_of(const std::vector<std::string>& words) {
  return list_of(words, [](const std::string& word) { return of(word); });
}

Value value_of(const Origin& origin) {
  Value value = object({{"file", of(origin.file)}});
  if (origin.cell >= 0) set(value, "cell", of(origin.cell));
  set(value, "lines", of(std::vector<Value>{of(origin.first), of(origin.last)}));
  return value;
}

Value value_of(const Unread& unread) {
  Value value = value_of(unread.origin);
  set(value, "key", of(unread.key));
  set(value, "harmless", of(unread.harmless));
  return value;
}

Value value_of(const Reading& reading) {
  Value value = object({{"file", of(reading.file)}});
  set(value, "format", reading.format.empty() ? Value{} : of(reading.format));
  if (!reading.what.empty()) set(value, "what", of(reading.what));
  if (!reading.log.is_null()) set(value, "reading", reading.log);
  set(value, "unread", list_of(reading.unread, [](const Unread& unread) { return value_of(unread); }));
  if (!reading.companions.empty()) set(value, "companions", words_of(reading.companions));
  return value;
}

}  // namespace

Value value_of(const Issue& issue) {
  const std::string_view severity = issue.severity == Severity::kError     ? "error"
                                    : issue.severity == Severity::kWarning ? "warning"
                                                                           : "note";
  return object(
      {{"code", of(issue.code)}, {"severity", of(severity)}, {"path", of(issue.path)}, {"message", of(issue.message)}});
}

Value document_of(const Import& import) {
  Value provenance = empty_object();
  Value assumed = empty_object();
  for (const Finding& field : import.fields) {
    const auto write = [](const Origin& origin) { return value_of(origin); };
    if (!field.origins.empty()) set(provenance, field.path, list_of(field.origins, write));
    if (!field.assumed.empty()) set(assumed, field.path, of(field.assumed));
  }
  return object({{"schema", of(1)},
                 {"files", list_of(import.readings, [](const Reading& reading) { return value_of(reading); })},
                 {"request", import.request},
                 {"provenance", std::move(provenance)},
                 {"assumed", std::move(assumed)},
                 {"unknowns", words_of(import.unknowns)},
                 {"notes", words_of(import.notes)},
                 {"issues", list_of(import.issues, [](const Issue& issue) { return value_of(issue); })}});
}

}  // namespace tidemark::exchange
