// SPDX-License-Identifier: MIT
#include "allocator/observe/snapshot_pickle.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <new>
#include <unordered_map>

#include "allocator/observe/pickle_writer.h"

namespace cuaudit::alloc {
namespace {

// In the order of BlockState and TraceAction.
constexpr const char* kStates[] = {"active_allocated", "active_pending_free", "inactive", "inactive"};
static_assert(std::size(kStates) == static_cast<std::size_t>(BlockState::Unmapped) + 1);
constexpr const char* kActions[] = {"alloc",        "free_requested", "free_completed", "segment_alloc",
                                    "segment_free", "segment_map",    "segment_unmap",  "oom",
                                    "use_recorded", "use_waited",     "use_elided"};
static_assert(std::size(kActions) == kTraceActions);
constexpr const char* Name(BlockState state) { return kStates[static_cast<std::size_t>(state)]; }
constexpr const char* Name(TraceAction action) { return kActions[static_cast<std::size_t>(action)]; }

class Writer {
 public:
  Writer(const History* history, std::string* out) : history_(history), pickle_(out) {}

  void Write(const SnapshotDocument& document) {
    pickle_.BeginDict();
    pickle_.Key("segments");
    pickle_.BeginList();
    for (const SnapshotSegment& segment : document.snapshot->segments) {
      Segment(segment);
      pickle_.ItemDone();
    }
    pickle_.EndList();
    Traces(document.device_count);
    Settings(document);
    Field("backend", document.backend);
    Field("record_use", document.precision == UsePrecision::AtTheCall ? "at_the_call" : "at_the_free");
    Field("trace_overflowed", history_ == nullptr ? 0 : history_->overflowed());
    Field("trace_max_entries", history_ == nullptr ? 0 : history_->max_entries());
    pickle_.EndDict();
    pickle_.Finish();
  }

 private:
  void Field(const char* name, std::uint64_t value) {
    pickle_.Key(name);
    pickle_.Unsigned(value);
  }
  void Field(const char* name, const std::string& value) {
    pickle_.Key(name);
    pickle_.Text(value);
  }
  void Flag(const char* name, bool value) {
    pickle_.Key(name);
    pickle_.Bool(value);
  }
  void Pool(const PoolId& pool) {
    pickle_.Key("segment_pool_id");
    pickle_.Pair(pool.first, pool.second);
  }

  void Frames(const void* token) {
    pickle_.Key("frames");
    const StackId id = CallStacks::FromToken(token);
    const auto [found, is_new] = frame_lists_.try_emplace(id, 0);
    if (!is_new) return pickle_.Recall(found->second);
    std::uintptr_t frames[kMaxFrames];
    const std::size_t count = history_ == nullptr ? 0 : history_->stacks().Read(id, frames);
    pickle_.BeginList();
    for (std::size_t i = 0; i < count; ++i) {
      const Frame frame = CallStacks::Describe(frames[i]);
      pickle_.BeginDict();
      Field("filename", frame.module.empty() ? "?" : frame.module);
      Field("line", 0);
      Field("name", frame.name);
      pickle_.EndDict();
      pickle_.ItemDone();
    }
    pickle_.EndList();
    found->second = pickle_.Remember();
  }

  void Uses(const std::vector<PendingUse>& uses) {
    pickle_.Key("pending_uses");
    pickle_.BeginList();
    for (const PendingUse& use : uses) {
      pickle_.BeginDict();
      Field("stream", use.stream);
      Field("seq", use.sequence);
      Flag("captured", use.captured);
      pickle_.EndDict();
      pickle_.ItemDone();
    }
    pickle_.EndList();
  }

  void Block(const SnapshotBlock& block) {
    pickle_.BeginDict();
    Field("address", block.address);
    Field("size", block.size);
    Field("requested_size", block.requested);
    Field("state", Name(block.state));
    Frames(block.stack);
    Field("last_stream", block.stream);
    if (block.in_thread_cache) Flag("in_thread_cache", true);
    if (!block.uses.empty()) Uses(block.uses);
    pickle_.EndDict();
  }

  void Segment(const SnapshotSegment& segment) {
    pickle_.BeginDict();
    pickle_.Key("device");
    pickle_.Int(segment.device);
    Field("address", segment.address);
    Field("total_size", segment.total_size);
    Field("allocated_size", segment.allocated_size);
    Field("active_size", segment.active_size);
    Field("requested_size", segment.requested_size);
    Field("stream", segment.stream);
    Field("segment_type", segment.large ? "large" : "small");
    Pool(segment.pool);
    Flag("is_expandable", segment.expandable);
    Frames(segment.stack);
    pickle_.Key("blocks");
    pickle_.BeginList();
    for (const SnapshotBlock& block : segment.blocks) {
      Block(block);
      pickle_.ItemDone();
    }
    pickle_.EndList();
    pickle_.EndDict();
  }

  // What an allocation waited for comes before it in the trace.
  void Entry(const HistoryEntry& entry) {
    const TraceEvent& event = entry.event;
    pickle_.BeginDict();
    Field("action", Name(event.action));
    Field(event.action == TraceAction::Oom ? "device_free" : "addr", event.address);
    Field("size", event.size);
    Field("stream", event.stream);
    Field("time_us", entry.time_us);
    Pool(event.pool);
    Frames(event.stack);
    switch (event.action) {
      case TraceAction::UseWaited: {
        std::string& text = waits_[event.address];
        text +=
            (text.empty() ? "waited for stream " : ", stream ") + std::to_string(event.other) + " seq " + std::to_string(event.sequence);
        [[fallthrough]];
      }
      case TraceAction::UseElided:
        Field("use_stream", event.other);
        Field("use_seq", event.sequence);
        break;
      case TraceAction::UseRecorded:
        Field("use_stream", event.stream);
        Field("use_seq", event.sequence);
        break;
      case TraceAction::Alloc:
        if (const auto waited = waits_.find(event.address); waited != waits_.end()) {
          Field("user_metadata", waited->second);
          waits_.erase(waited);
        }
        break;
      case TraceAction::FreeRequested:
      case TraceAction::FreeCompleted:
      case TraceAction::SegmentAlloc:
      case TraceAction::SegmentFree:
      case TraceAction::SegmentMap:
      case TraceAction::SegmentUnmap:
      case TraceAction::Oom:
        break;
    }
    pickle_.EndDict();
  }

  void Traces(int device_count) {
    const std::vector<HistoryEntry> entries = history_ == nullptr ? std::vector<HistoryEntry>() : history_->Copy();
    pickle_.Key("device_traces");
    pickle_.BeginList();
    for (int device = 0; device < device_count; ++device) {
      waits_.clear();
      pickle_.BeginList();
      for (const HistoryEntry& entry : entries) {
        if (entry.event.device != device) continue;
        Entry(entry);
        pickle_.ItemDone();
      }
      pickle_.EndList();
      pickle_.ItemDone();
    }
    pickle_.EndList();
  }

  void Settings(const SnapshotDocument& document) {
    pickle_.Key("allocator_settings");
    pickle_.BeginDict();
    for (const auto& [name, value] : document.settings) {
      pickle_.Key(name);
      std::uint64_t number = 0;
      double real = 0;
      const char* const end = value.data() + value.size();
      if (value == "True" || value == "False") {
        pickle_.Bool(value == "True");
      } else if (const auto read = std::from_chars(value.data(), end, number); read.ec == std::errc() && read.ptr == end) {
        pickle_.Unsigned(number);
      } else if (const auto also = std::from_chars(value.data(), end, real); also.ec == std::errc() && also.ptr == end) {
        pickle_.Float(real);
      } else {
        pickle_.Text(value);
      }
    }
    pickle_.EndDict();
  }

  const History* history_;
  PickleWriter pickle_;
  std::unordered_map<StackId, std::uint32_t> frame_lists_;
  std::unordered_map<CUdeviceptr, std::string> waits_;
};

}  // namespace

bool FormatSnapshot(const SnapshotDocument& document, std::string* out) noexcept {
  out->clear();
  try {
    Writer(document.history, out).Write(document);
    return true;
  } catch (const std::bad_alloc&) {
    out->clear();
    return false;
  }
}

std::string SaveSnapshot(const SnapshotDocument& document, const std::string& path) {
  std::string bytes;
  if (!FormatSnapshot(document, &bytes)) return path + ": no memory for the snapshot";
  const std::string unfinished = path + ".unfinished";
  std::FILE* const file = std::fopen(unfinished.c_str(), "wbe");
  if (file == nullptr) return unfinished + ": " + std::strerror(errno);
  const bool is_written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  int error = errno;
  const bool is_closed = std::fclose(file) == 0;
  if (is_written && !is_closed) error = errno;
  if (is_written && is_closed && std::rename(unfinished.c_str(), path.c_str()) == 0) return {};
  if (is_written && is_closed) error = errno;
  unlink(unfinished.c_str());
  return path + ": " + std::strerror(error);
}

}  // namespace cuaudit::alloc
