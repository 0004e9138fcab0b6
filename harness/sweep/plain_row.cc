// SPDX-License-Identifier: MIT
#include "harness/sweep/plain_row.h"

#include <charconv>
#include <cstddef>

namespace cuaudit::harness {
namespace {

class PlainReader {
 public:
  explicit PlainReader(std::string_view line) : rest_(line) {}

  bool Skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  bool Number(std::uint64_t* number) {
    const auto read = std::from_chars(rest_.data(), rest_.data() + rest_.size(), *number);
    const auto digits = static_cast<std::size_t>(read.ptr - rest_.data());
    if (read.ec != std::errc() || (digits > 1 && rest_.front() == '0')) return false;
    rest_.remove_prefix(digits);
    return true;
  }

  bool Numbers(std::vector<std::uint64_t>* numbers) {
    numbers->clear();
    if (!Skip("[")) return false;
    if (Skip("]")) return true;
    do {
      std::uint64_t number = 0;
      if (!Number(&number)) return false;
      numbers->push_back(number);
    } while (Skip(","));
    return Skip("]");
  }

  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace

bool ReadPlainRow(std::string_view line, PlainRow* row) {
  PlainReader reader(line);
  row->findings.clear();
  row->notes.clear();
  row->after.reset();
  if (!reader.Skip(R"({"trial":)") || !reader.Number(&row->trial)) return false;
  if (!reader.Skip(R"(,"faults":)") || !reader.Numbers(&row->faults)) return false;
  if (!reader.Skip(R"(,"as":)") || !reader.Number(&row->as)) return false;
  if (!reader.Skip(R"(,"at":)") || !reader.Numbers(&row->at)) return false;
  if (reader.Skip(R"(,"findings":)") && !reader.Numbers(&row->findings)) return false;
  if (reader.Skip(R"(,"notes":)") && !reader.Numbers(&row->notes)) return false;
  if (reader.Skip(R"(,"after":)") && !reader.Number(&row->after.emplace())) return false;
  return reader.Skip("}") && reader.at_end();
}

}  // namespace cuaudit::harness
