// SPDX-License-Identifier: MIT
// pickle_writer.h: values as a Python pickle of protocol 2, in the opcodes that PyTorch's memory viewer reads.
//
//   Owns      the bytes written so far, in the caller's string, and the memo of texts already written.
//   Threads   one writer, one thread.
//   Errors    throws what std::string throws; WriteSnapshot catches it at the boundary.
//   Source    Python's pickletools.py (protocol 2). The viewer at pytorch.org/memory_viz knows none of the opcodes for bytes, globals or
//             LONG4, and pushes all items of one APPENDS through one call: lists are written in batches.
//   Not here  what a snapshot holds (snapshot.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace cuaudit::alloc {

class PickleWriter {
 public:
  explicit PickleWriter(std::string* out);
  PickleWriter(const PickleWriter&) = delete;
  PickleWriter& operator=(const PickleWriter&) = delete;

  void None();
  void Bool(bool value);
  void Int(std::int64_t value);
  void Unsigned(std::uint64_t value);
  void Float(double value);
  void Text(std::string_view value);  // a text that was written before is one reference; bytes that are no UTF-8 become '?'

  void Pair(std::uint64_t first, std::uint64_t second);  // a tuple

  void BeginList();
  void EndList();
  void BeginDict();
  void Key(std::string_view name) { Text(name); }
  void EndDict();
  // Inside a list, after each item; closes and opens a batch when it is full.
  void ItemDone();

  // Remembers the value on top, written just now and whole; Recall puts the same object there again.
  [[nodiscard]] std::uint32_t Remember();
  void Recall(std::uint32_t memo);

  void Finish();

 private:
  void Byte(unsigned value) { out_->push_back(static_cast<char>(value)); }
  void Little(std::uint64_t value, unsigned bytes);

  std::string* out_;
  std::unordered_map<std::string, std::uint32_t> texts_;
  static constexpr std::size_t kDepth = 16;
  std::string open_;                  // 'l' or 'd', innermost last
  std::uint32_t items_[kDepth] = {};  // of the open lists, in the batch under way
  std::uint32_t memos_ = 0;
};

}  // namespace cuaudit::alloc
