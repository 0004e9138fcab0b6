// SPDX-License-Identifier: MIT
#include "allocator/trace/snapshot.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <new>
#include <unordered_map>

#include "allocator/trace/pickle_writer.h"

namespace cuaudit::alloc {
namespace {

constexpr const char* StateName(BlockState state) {
  switch (state) {
    case BlockState::ActiveAllocated: return "active_allocated";
    case BlockState::ActivePendingFree: return "active_pending_free";
    case BlockState::Inactive: return "inactive";
  }
  return "";
}

std::string Number(std::uint64_t value) { return std::to_string(value); }

class SnapshotWriter {
 public:
  SnapshotWriter(const CallStacks* stacks, std::string* out) : stacks_(stacks), pickle_(out) {}

  void Write(const Snapshot& snapshot) {
    pickle_.BeginDict();
    pickle_.Key("segments");
    pickle_.BeginList();
    for (const SnapshotSegment& segment : snapshot.segments) {
      Segment(segment);
      pickle_.ItemDone();
    }
    pickle_.EndList();
    Traces(snapshot);
    Settings(snapshot);
    Field("backend", snapshot.backend);
    Field("trace_overflowed", snapshot.trace_overflowed);
    Field("trace_max_entries", snapshot.trace_max_entries);
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

  void Frames(StackId id) {
    pickle_.Key("frames");
    const auto [found, is_new] = frame_lists_.try_emplace(id, 0);
    if (!is_new) return pickle_.Recall(found->second);
    std::uintptr_t frames[kMaxFrames];
    const std::size_t count = stacks_ == nullptr ? 0 : stacks_->Read(id, frames);
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

  void Uses(const std::vector<SnapshotUse>& uses) {
    pickle_.Key("pending_uses");
    pickle_.BeginList();
    for (const SnapshotUse& use : uses) {
      pickle_.BeginDict();
      Field("stream", use.stream);
      Field("seq", use.sequence);
      pickle_.Key("ready");
      pickle_.Bool(use.is_ready);
      pickle_.EndDict();
      pickle_.ItemDone();
    }
    pickle_.EndList();
  }

  void Segment(const SnapshotSegment& segment) {
    std::uint64_t total = 0, allocated = 0, active = 0, requested = 0;
    for (const SnapshotBlock& block : segment.blocks) {
      total += block.size_bytes;
      if (block.state == BlockState::ActiveAllocated) allocated += block.size_bytes;
      if (block.state != BlockState::Inactive) {
        active += block.size_bytes;
        requested += block.requested_bytes;
      }
    }
    pickle_.BeginDict();
    pickle_.Key("device");
    pickle_.Int(segment.device);
    Field("address", segment.address);
    Field("total_size", total);
    Field("allocated_size", allocated);
    Field("active_size", active);
    Field("requested_size", requested);
    Field("stream", segment.stream);
    Field("segment_type", segment.is_large ? "large" : "small");
    pickle_.Key("segment_pool_id");
    pickle_.Pair(segment.pool_id[0], segment.pool_id[1]);
    pickle_.Key("is_expandable");
    pickle_.Bool(segment.is_expandable);
    Frames(segment.stack);
    pickle_.Key("blocks");
    pickle_.BeginList();
    std::uint64_t address = segment.address;
    for (const SnapshotBlock& block : segment.blocks) {
      pickle_.BeginDict();
      Field("address", address);
      Field("size", block.size_bytes);
      Field("requested_size", block.requested_bytes);
      Field("state", StateName(block.state));
      Frames(block.stack);
      if (!block.pending_uses.empty()) Uses(block.pending_uses);
      pickle_.EndDict();
      pickle_.ItemDone();
      address += block.size_bytes;
    }
    pickle_.EndList();
    pickle_.EndDict();
  }

  void Entry(const TraceEntry& entry) {
    pickle_.BeginDict();
    pickle_.Key("action");
    pickle_.Text(TraceActionName(entry.action));
    Field(entry.action == TraceAction::Oom ? "device_free" : "addr", entry.address);
    Field("size", entry.size_bytes);
    Field("stream", entry.stream);
    Field("time_us", entry.time_us);
    pickle_.Key("segment_pool_id");
    pickle_.Pair(entry.pool_id[0], entry.pool_id[1]);
    Frames(entry.stack);
    switch (entry.action) {
      case TraceAction::UseRecorded:
      case TraceAction::UseWaited:
      case TraceAction::UseElided:
        Field("use_stream", entry.use_stream);
        Field("use_seq", entry.use_sequence);
        Metadata(entry);
        break;
      case TraceAction::Alloc:
        if (const auto waited = waits_.find(entry.address); waited != waits_.end()) {
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
      case TraceAction::Snapshot:
      case TraceAction::Oom: break;
    }
    pickle_.EndDict();
  }

  // What a hand-over had to wait for is told with the allocation that got the memory: newer viewers print it there.
  void Metadata(const TraceEntry& entry) {
    if (entry.action != TraceAction::UseWaited) return;
    std::string& text = waits_[entry.address];
    text += (text.empty() ? "waited for stream " : ", stream ") + Number(entry.use_stream) + " seq " + Number(entry.use_sequence);
  }

  void Traces(const Snapshot& snapshot) {
    pickle_.Key("device_traces");
    pickle_.BeginList();
    for (int device = 0; device < snapshot.device_count; ++device) {
      waits_.clear();
      pickle_.BeginList();
      for (const TraceEntry& entry : snapshot.trace) {
        if (entry.device != device) continue;
        Entry(entry);
        pickle_.ItemDone();
      }
      pickle_.EndList();
      pickle_.ItemDone();
    }
    pickle_.EndList();
  }

  void Settings(const Snapshot& snapshot) {
    pickle_.Key("allocator_settings");
    pickle_.BeginDict();
    for (const auto& [name, value] : snapshot.settings) {
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

  const CallStacks* stacks_;
  PickleWriter pickle_;
  std::unordered_map<StackId, std::uint32_t> frame_lists_;
  std::unordered_map<CUdeviceptr, std::string> waits_;
};

}  // namespace

bool WriteSnapshot(const Snapshot& snapshot, const CallStacks* stacks, std::string* out) noexcept {
  out->clear();
  try {
    SnapshotWriter(stacks, out).Write(snapshot);
    return true;
  } catch (const std::bad_alloc&) {
    out->clear();
    return false;
  }
}

std::string WriteSnapshotFile(const Snapshot& snapshot, const CallStacks* stacks, const std::string& path) {
  std::string bytes;
  if (!WriteSnapshot(snapshot, stacks, &bytes)) return path + ": no memory for the snapshot";
  const std::string unfinished = path + ".unfinished";
  std::FILE* const file = std::fopen(unfinished.c_str(), "wbe");
  if (file == nullptr) return unfinished + ": " + std::strerror(errno);
  const bool is_written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  const int write_error = errno;
  const bool is_closed = std::fclose(file) == 0;
  if (!is_written || !is_closed) {
    const std::string why = unfinished + ": " + std::strerror(is_written ? errno : write_error);
    unlink(unfinished.c_str());
    return why;
  }
  if (std::rename(unfinished.c_str(), path.c_str()) != 0) {
    const std::string why = path + ": " + std::strerror(errno);
    unlink(unfinished.c_str());
    return why;
  }
  return {};
}

std::string CheckSnapshot(const Snapshot& snapshot) {
  const auto at = [](CUdeviceptr address) {
    char text[32];
    std::snprintf(text, sizeof(text), "0x%llx", address);
    return std::string(text);
  };
  std::vector<const SnapshotSegment*> segments;
  std::unordered_map<CUdeviceptr, std::uint64_t> closing;  // addresses whose free may end later than the trace, or ends further on in it
  for (const SnapshotSegment& segment : snapshot.segments) {
    segments.push_back(&segment);
    CUdeviceptr address = segment.address;
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.size_bytes == 0) return "block at " + at(address) + " has no bytes";
      if (block.requested_bytes > block.size_bytes) return "block at " + at(address) + ": more bytes requested than it has";
      if (block.state == BlockState::ActivePendingFree) ++closing[address];
      address += block.size_bytes;
    }
    if (segment.blocks.empty()) return "segment at " + at(segment.address) + " has no blocks";
  }
  const auto end_of = [](const SnapshotSegment& segment) {
    CUdeviceptr end = segment.address;
    for (const SnapshotBlock& block : segment.blocks) end += block.size_bytes;
    return end;
  };
  std::sort(segments.begin(), segments.end(), [](const auto* a, const auto* b) {
    return a->device != b->device ? a->device < b->device : a->address < b->address;
  });
  for (std::size_t i = 1; i < segments.size(); ++i) {
    if (segments[i - 1]->device == segments[i]->device && end_of(*segments[i - 1]) > segments[i]->address) {
      return "segments at " + at(segments[i - 1]->address) + " and " + at(segments[i]->address) + " overlap";
    }
  }
  for (std::size_t i = snapshot.trace.size(); i-- > 0;) {
    const TraceEntry& entry = snapshot.trace[i];
    if (entry.action == TraceAction::FreeCompleted) ++closing[entry.address];
    if (entry.action == TraceAction::FreeRequested && closing[entry.address]-- == 0) {
      return "trace entry " + Number(i) + ": free_requested of " + at(entry.address) + " that never ends and is not pending in any segment";
    }
  }
  return {};
}

}  // namespace cuaudit::alloc
