// SPDX-License-Identifier: MIT
#include "suites/bench/peers/trace.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <fstream>
#include <unordered_map>
#include <utility>

namespace cuaudit::bench {

namespace {

// One generator for all: the same numbers on every machine and library.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Below(std::uint64_t limit) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return (state_ >> 11) % limit;
  }
  // Between two powers of two, each octave as likely as the next; whole numbers only, so that it is the same everywhere.
  std::size_t LogUniform(std::size_t lowest, std::size_t highest) {
    const auto octaves = static_cast<std::uint64_t>(std::bit_width(highest / lowest) - 1);
    const std::size_t base = lowest << Below(octaves);
    return base + Below(base);
  }

 private:
  std::uint64_t state_;
};

class Recorder {
 public:
  std::uint32_t Allocate(std::size_t bytes, std::uint16_t stream) {
    std::uint32_t block = 0;
    if (free_.empty()) {
      block = trace_.blocks++;
      sizes_.push_back(0);
    } else {
      block = free_.back();
      free_.pop_back();
    }
    sizes_[block] = bytes;
    live_ += bytes;
    trace_.peak_bytes = std::max(trace_.peak_bytes, live_);
    trace_.streams = std::max<std::uint16_t>(trace_.streams, static_cast<std::uint16_t>(stream + 1));
    ++trace_.allocations;
    trace_.ops.push_back({TraceKind::Allocate, stream, block, bytes});
    return block;
  }
  void Free(std::uint32_t block) {
    live_ -= sizes_[block];
    free_.push_back(block);
    trace_.ops.push_back({TraceKind::Free, 0, block, 0});
  }
  void Use(std::uint32_t block, std::uint16_t stream) { trace_.ops.push_back({TraceKind::Use, stream, block, 0}); }
  Trace Take() { return std::move(trace_); }

 private:
  Trace trace_;
  std::vector<std::size_t> sizes_;
  std::vector<std::uint32_t> free_;
  std::size_t live_ = 0;
};

constexpr std::uint16_t kCompute = 0, kGather = 1, kScatter = 2, kCopy = 3;
constexpr std::size_t kLayers = 24, kHidden = 2048, kHeads = 16, kVocabulary = 32000, kShards = 8, kHalf = 2, kFloat = 4;
constexpr std::size_t kLayerParameters = 12 * kHidden * kHidden;

struct Layer {
  std::uint32_t parameters = 0;
  std::vector<std::uint32_t> saved;
  std::uint32_t gradient_shard = 0;
};

// Gathered on one stream, used on another: what RecordUse is for.
std::uint32_t Gather(Recorder* to) {
  const std::uint32_t full = to->Allocate(kLayerParameters * kHalf, kGather);
  const std::uint32_t flat = to->Allocate(kLayerParameters * kHalf / kShards, kGather);
  to->Free(flat);
  return full;
}

void Forward(Recorder* to, std::size_t tokens, Layer* layer) {
  layer->parameters = Gather(to);
  const auto save = [&](std::size_t bytes) { layer->saved.push_back(to->Allocate(bytes, kCompute)); };
  save(tokens * kHidden * kHalf);                                                         // normalised input
  save(tokens * kFloat);                                                                  // its statistics
  save(3 * tokens * kHidden * kHalf);                                                     // query, key, value
  const std::uint32_t workspace = to->Allocate(tokens * kHeads * kFloat * 32, kCompute);  // of the attention
  save(tokens * kHidden * kHalf);                                                         // attention
  save(tokens * kHeads * kFloat);                                                         // its log-sum
  to->Free(workspace);
  const std::uint32_t projected = to->Allocate(tokens * kHidden * kHalf, kCompute);
  save(tokens * kHidden * kHalf);  // residual
  to->Free(projected);
  save(tokens * kFloat);
  save(4 * tokens * kHidden * kHalf);  // first half of the perceptron
  const std::uint32_t activated = to->Allocate(4 * tokens * kHidden * kHalf, kCompute);
  save(tokens * kHidden * kHalf);
  to->Free(activated);
  to->Use(layer->parameters, kCompute);
  to->Free(layer->parameters);
}

void Backward(Recorder* to, std::size_t tokens, Layer* layer) {
  layer->parameters = Gather(to);
  const std::uint32_t gradient = to->Allocate(kLayerParameters * kFloat, kCompute);
  std::uint32_t flowing = to->Allocate(tokens * kHidden * kHalf, kCompute);
  for (std::size_t i = layer->saved.size(); i-- > 0;) {
    const std::uint32_t next = to->Allocate((i == 6 || i == 2 ? 4 : 1) * tokens * kHidden * kHalf, kCompute);
    const std::uint32_t partial = to->Allocate(512 + 4096 * (i % 3), kCompute);
    to->Free(flowing);
    to->Free(layer->saved[i]);
    to->Free(partial);
    flowing = next;
  }
  layer->saved.clear();
  to->Free(flowing);
  to->Use(layer->parameters, kCompute);
  to->Free(layer->parameters);
  layer->gradient_shard = to->Allocate(kLayerParameters * kFloat / kShards, kScatter);
  to->Use(gradient, kScatter);
  to->Free(gradient);
}

void Step(Recorder* to, std::size_t tokens, std::vector<Layer>* layers) {
  const std::uint32_t batch = to->Allocate(tokens * 8, kCopy);
  const std::uint32_t labels = to->Allocate(tokens * 8, kCopy);
  to->Use(batch, kCompute);
  const std::uint32_t embedded = to->Allocate(tokens * kHidden * kHalf, kCompute);
  to->Free(batch);
  for (Layer& layer : *layers) Forward(to, tokens, &layer);
  const std::uint32_t logits = to->Allocate(tokens * kVocabulary * kHalf, kCompute);
  const std::uint32_t losses = to->Allocate(tokens * kFloat, kCompute);
  const std::uint32_t loss = to->Allocate(kFloat, kCompute);
  to->Use(labels, kCompute);
  to->Free(labels);
  const std::uint32_t slope = to->Allocate(tokens * kVocabulary * kHalf, kCompute);
  to->Free(logits);
  to->Free(losses);
  to->Free(slope);
  for (std::size_t i = layers->size(); i-- > 0;) Backward(to, tokens, &(*layers)[i]);
  to->Free(embedded);
  for (Layer& layer : *layers) {  // the optimizer, layer by layer
    const std::uint32_t update = to->Allocate(kLayerParameters * kFloat / kShards, kCompute);
    const std::uint32_t norm = to->Allocate(kFloat, kCompute);
    to->Use(layer.gradient_shard, kCompute);
    to->Free(update);
    to->Free(norm);
    to->Free(layer.gradient_shard);
  }
  to->Free(loss);
}

}  // namespace

Trace TrainingTrace() {
  Recorder to;
  std::vector<Layer> layers(kLayers);
  constexpr std::size_t kTokens[] = {4096, 3584, 4096, 2816, 4032, 3200};
  for (const std::size_t tokens : kTokens) Step(&to, tokens, &layers);
  return to.Take();
}

Trace ServingTrace() {
  struct Request {
    std::size_t left = 0;
    std::vector<std::uint32_t> cache;
  };
  constexpr std::size_t kRequests = 48, kTicks = 1500;
  Recorder to;
  Numbers numbers(2026);
  std::vector<Request> requests(kRequests);
  for (std::size_t tick = 0; tick < kTicks; ++tick) {
    Request& request = requests[numbers.Below(kRequests)];
    const auto stream = static_cast<std::uint16_t>(numbers.Below(3));
    if (request.left == 0) {  // a new one: its prompt at once
      for (const std::uint32_t block : request.cache) to.Free(block);
      request.cache.clear();
      request.left = 4 + numbers.Below(40);
      const std::uint32_t prompt = to.Allocate(numbers.LogUniform(65536, 16 << 20), kCopy);
      request.cache.push_back(to.Allocate(numbers.LogUniform(1 << 20, 64 << 20), stream));
      to.Use(prompt, stream);
      to.Free(prompt);
    }
    const std::uint32_t logits = to.Allocate(kVocabulary * kHalf, stream);
    const std::uint32_t scores = to.Allocate(numbers.LogUniform(4096, 4 << 20), stream);
    if (numbers.Below(4) == 0) request.cache.push_back(to.Allocate(numbers.LogUniform(256 << 10, 8 << 20), stream));
    to.Free(scores);
    to.Free(logits);
    --request.left;
  }
  for (const Request& request : requests) {
    for (const std::uint32_t block : request.cache) to.Free(block);
  }
  return to.Take();
}

// A trace from a file of lines "allocate|free|use, block, stream, bytes", as allocator_peers --print-trace writes them and
// suites/gpu/programs/torch_trace.py records them. '#' begins a comment.

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
