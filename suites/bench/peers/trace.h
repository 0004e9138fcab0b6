// SPDX-License-Identifier: MIT
// trace.h: sequences of allocations as programs make them: two made up from the shapes of a transformer, and recorded ones from a file.
//
// `training`: steps of a 24-layer transformer with sharded parameters. Each layer's parameters are gathered on a communication stream
// and used on the compute stream, gradients are scattered on another stream, and batches arrive on a copy stream. The sequence length
// differs from step to step. `serving`: requests of different lengths that come and go, each with a cache that grows. The same text
// gives the same trace everywhere. Streams are numbers from 0; sizes are in bytes. ReadTrace returns one line with file, line and what
// was expected, or an empty text on success.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cuaudit::bench {

enum class TraceKind : std::uint8_t { Allocate, Free, Use };

struct TraceOp {
  TraceKind kind = TraceKind::Allocate;
  std::uint16_t stream = 0;  // Allocate: the block's; Use: who used it
  std::uint32_t block = 0;   // a number that one block at a time has
  std::size_t bytes = 0;     // Allocate
};

inline constexpr std::uint16_t kTraceStreams = 16;  // at most

struct Trace {
  std::vector<TraceOp> ops;
  std::uint32_t blocks = 0;  // numbers in use are below this
  std::uint16_t streams = 0;
  std::size_t allocations = 0;
  std::size_t peak_bytes = 0;  // of what is live, as asked for
};

Trace TrainingTrace();
Trace ServingTrace();
// What is still allocated at the file's end is freed there.
[[nodiscard]] std::string ReadTrace(const std::string& path, Trace* out);

}  // namespace cuaudit::bench
