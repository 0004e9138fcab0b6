// SPDX-License-Identifier: MIT
// A trace from a file of lines "allocate|free|use, block, stream, bytes", as allocator_peers --print-trace writes them and
// suites/gpu/programs/torch_trace.py records them. '#' begins a comment.
#include <algorithm>
#include <charconv>
#include <fstream>
#include <unordered_map>

#include "suites/bench/peers/trace.h"

namespace cuaudit::bench {
namespace {

constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << 24;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;
constexpr std::size_t kFields = 4;

bool Number(std::string_view text, std::uint64_t most, std::uint64_t* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size() && *out <= most;
}

class Reader {
 public:
  // What is wrong with the line; null: nothing.
  const char* Take(std::string_view line) {
    std::string_view field[kFields];
    for (std::size_t i = 0; i < kFields; ++i) {
      const std::size_t end = line.find('\t');
      if ((end == std::string_view::npos) != (i + 1 == kFields)) return "four words between tabs expected";
      field[i] = line.substr(0, end);
      line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
    }
    std::uint64_t block = 0, stream = 0, bytes = 0;
    if (!Number(field[1], kMostBlocks - 1, &block)) return "the number of a block expected, below 2^24";
    if (!Number(field[2], kTraceStreams - 1, &stream)) return "the number of a stream expected, below 16";
    if (!Number(field[3], kMostBytes, &bytes)) return "a number of bytes expected, at most 2^50";
    TraceOp op{TraceKind::Use, static_cast<std::uint16_t>(stream), static_cast<std::uint32_t>(block), 0};
    const auto live = live_.find(op.block);
    if (field[0] == "allocate") {
      if (bytes == 0) return "more than 0 bytes expected";
      if (live != live_.end()) return "the block is allocated already";
      op.kind = TraceKind::Allocate;
      op.bytes = bytes;
      live_[op.block] = bytes;
      live_bytes_ += bytes;
      ++trace.allocations;
      trace.peak_bytes = std::max<std::size_t>(trace.peak_bytes, live_bytes_);
      trace.blocks = std::max(trace.blocks, op.block + 1);
    } else if (field[0] != "free" && field[0] != "use") {
      return "allocate, free or use expected";
    } else if (live == live_.end()) {
      return "the block is not allocated";
    } else if (field[0] == "free") {
      op.kind = TraceKind::Free;
      live_bytes_ -= live->second;
      live_.erase(live);
    }
    trace.streams = std::max<std::uint16_t>(trace.streams, static_cast<std::uint16_t>(stream + 1));
    trace.ops.push_back(op);
    return nullptr;
  }
  // Replayed again and again, it must end as it began.
  void End() {
    for (const auto& [block, bytes] : live_) trace.ops.push_back({TraceKind::Free, 0, block, 0});
  }

  Trace trace;

 private:
  std::unordered_map<std::uint32_t, std::uint64_t> live_;
  std::uint64_t live_bytes_ = 0;
};

}  // namespace

std::string ReadTrace(const std::string& path, Trace* out) {
  std::ifstream file(path);
  if (!file) return path + ": cannot be read";
  Reader reader;
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line.front() == '#') continue;
    if (const char* const wrong = reader.Take(line); wrong != nullptr) return path + ":" + std::to_string(number) + ": " + wrong;
  }
  if (file.bad()) return path + ": cannot be read to its end";
  if (reader.trace.allocations == 0) return path + ": no allocation in it";
  reader.End();
  *out = std::move(reader.trace);
  return {};
}

}  // namespace cuaudit::bench
