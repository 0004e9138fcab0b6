// SPDX-License-Identifier: MIT
// Writes the snapshots that check_snapshot_test.py reads: snapshot_samples DIRECTORY
#include <cstdio>

#include "allocator/observe/snapshot_pickle.h"

namespace {

using namespace cuaudit::alloc;

constexpr CUdeviceptr kBase = 0x7f0000000000;

// An allocator's part towards its tracer.
class Told {
 public:
  explicit Told(History* history) : tracer_(history->tracer()) {}
  void* Tell(TraceAction action, CUdeviceptr address, std::size_t size, std::uint64_t stream = 11, std::uint64_t other = 0,
             std::uint64_t sequence = 0, int device = 0) const {
    TraceEvent event = {};
    event.action = action;
    event.device = device;
    event.address = address;
    event.size = size;
    event.stream = stream;
    event.other = other;
    event.sequence = sequence;
    event.stack = tracer_.capture(tracer_.self);
    tracer_.record(tracer_.self, event);
    return event.stack;
  }

 private:
  Tracer tracer_;
};

// One segment in which every state occurs, and the trace that led there.
Snapshot Everything(History* history) {
  const Told told(history);
  Snapshot snapshot;
  SnapshotSegment segment;
  segment.address = kBase;
  segment.total_size = 2U << 20;
  segment.allocated_size = 512;
  segment.active_size = 1536;
  segment.requested_size = 1100;
  segment.stream = 11;
  segment.blocks.resize(3);
  SnapshotBlock& held = segment.blocks[0];
  held = {.address = kBase, .size = 512, .requested = 100, .state = BlockState::ActiveAllocated, .stream = 11, .uses = {}};
  segment.blocks[1] = {.address = kBase + 512,
                       .size = 1024,
                       .requested = 1000,
                       .state = BlockState::ActivePendingFree,
                       .stream = 11,
                       .uses = {{.stream = 7, .sequence = 91, .captured = false}}};
  segment.blocks[2] = {.address = kBase + 1536,
                       .size = (2U << 20) - 1536,
                       .in_thread_cache = true,
                       .stream = 12,
                       .uses = {{.stream = 3, .sequence = 5, .captured = false}, {.stream = 4, .sequence = 1, .captured = true}}};
  SnapshotSegment graph;
  graph.device = 1;
  graph.address = kBase + (2U << 20);
  graph.total_size = graph.allocated_size = graph.active_size = graph.requested_size = 20U << 20;
  graph.large = graph.expandable = true;
  graph.pool = {0, 3};
  graph.blocks = {{.address = graph.address, .size = 20U << 20, .requested = 20U << 20, .state = BlockState::ActiveAllocated, .uses = {}}};
  told.Tell(TraceAction::SegmentAlloc, kBase, 2U << 20);
  held.stack = told.Tell(TraceAction::Alloc, kBase, 512);
  told.Tell(TraceAction::Alloc, kBase + 512, 1024);
  told.Tell(TraceAction::UseRecorded, kBase + 512, 1024, 7, 0, 90);
  told.Tell(TraceAction::FreeRequested, kBase + 512, 1024);
  told.Tell(TraceAction::FreeCompleted, kBase + 512, 1024);
  told.Tell(TraceAction::UseElided, kBase + 512, 1024, 11, 7, 89);
  told.Tell(TraceAction::UseWaited, kBase + 512, 1024, 11, 7, 90);
  told.Tell(TraceAction::UseWaited, kBase + 512, 1024, 11, 8, 2);
  told.Tell(TraceAction::Alloc, kBase + 512, 1024);
  told.Tell(TraceAction::FreeRequested, kBase + 512, 1024);
  told.Tell(TraceAction::Oom, 12345, std::size_t{1} << 40, 11, 0, 0, 1);
  snapshot.segments = {segment, graph};
  return snapshot;
}

Snapshot Many() {
  Snapshot snapshot;
  SnapshotSegment segment;
  segment.address = UINT64_MAX - (std::uint64_t{1} << 40);
  segment.stream = UINT64_MAX;
  CUdeviceptr address = segment.address;
  for (std::size_t i = 0; i < 3000; ++i) {
    segment.blocks.push_back({.address = address, .size = 512 + 512 * (i % 3), .uses = {}});
    address += segment.blocks.back().size;
  }
  segment.total_size = address - segment.address;
  snapshot.segments.push_back(segment);
  return snapshot;
}

bool Save(const std::string& directory, const char* name, const SnapshotDocument& document) {
  const std::string wrong = SaveSnapshot(document, directory + "/" + name);
  if (!wrong.empty()) std::fprintf(stderr, "%s\n", wrong.c_str());
  return wrong.empty();
}

}  // namespace

// Its name is looked for in the stacks.
__attribute__((visibility("default"))) bool WriteSamples(const std::string& directory) {
  History history;
  History narrow;  // forgets the oldest
  if (history.Start({}) != CUDA_SUCCESS || narrow.Start({.max_entries = 8, .max_stacks = 16, .stacks = StackLevel::Never}) != CUDA_SUCCESS)
    return false;
  const Snapshot everything = Everything(&history);
  const Snapshot overflowed = Everything(&narrow);
  const Snapshot none;
  const Snapshot many = Many();
  Snapshot unending = everything;  // what the viewer cannot draw
  unending.segments[0].blocks[1].state = BlockState::Inactive;
  unending.segments[0].active_size = 512;
  unending.segments[0].requested_size = 100;

  const SnapshotDocument settled = {.snapshot = &everything,
                                    .history = &history,
                                    .device_count = 2,
                                    .settings = {{"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"},
                                                 {"max_split_size", "18446744073709551615"},
                                                 {"garbage_collection_threshold", "0.5"},
                                                 {"expandable_segments", "True"},
                                                 {"release_lock_on_cudamalloc", "False"}}};
  SnapshotDocument hostile = {.snapshot = &none,
                              .backend = "cudaMallocAsync",
                              .precision = UsePrecision::AtTheFree,
                              .settings = {{"utf8",
                                            "gr\xc3\xb6\xc3\x9f"
                                            "e \xf0\x9f\x98\x80"},
                                           {"broken", "a\xff\xc0\x80z\xed\xa0\x80"},
                                           {"empty", ""},
                                           {"number-like", "1e999x"}}};
  for (int i = 0; i < 400; ++i) hostile.settings.emplace_back("key" + std::to_string(i), "value " + std::to_string(i));
  return Save(directory, "empty", {.snapshot = &none, .settings = {}}) && Save(directory, "everything", settled) &&
         Save(directory, "overflowed", {.snapshot = &overflowed, .history = &narrow, .device_count = 2, .settings = {}}) &&
         Save(directory, "many", {.snapshot = &many, .settings = {}}) && Save(directory, "hostile", hostile) &&
         Save(directory, "unending", {.snapshot = &unending, .history = &history, .device_count = 2, .settings = {}});
}

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: snapshot_samples DIRECTORY\n");
    return 2;
  }
  return WriteSamples(arguments[1]) ? 0 : 1;
}
