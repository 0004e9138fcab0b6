// SPDX-License-Identifier: MIT
// objects.h: the simulated objects behind the handles: contexts, streams, events, pools, arrays, modules, physical memory.
//
//   Owns      plain records in the world's arena; who destroys them is said by Object::owner.
//   Threads   the world's lock is held by every caller.
//   Units     bytes; virtual nanoseconds.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0.
//   Not here  graphs (graph.h); queued operations (operation.h).
#pragma once

#include <cuda.h>

#include <cstdint>

#include "faults/sim/object.h"
#include "faults/sim/range.h"

namespace cuaudit::sim {

struct Operation;
struct Capture;
struct Node;
struct Stream;

struct Context : Object {
  static constexpr Tag kTag = Tag::Context;
  CUdevice device = 0;
  bool primary = false;
  bool active = false;           // a primary context is a handle for life and alive only while somebody retains it
  std::uint32_t references = 0;  // of a primary context
  std::uint32_t flags = 0;
  std::uint32_t api_version = 0;
  std::uint64_t id = 0;
  CUresult sticky = CUDA_SUCCESS;
  ObjectList children;
  Range* ranges = nullptr;
  Stream* legacy = nullptr;
  Vector<Stream*> streams;  // all of them, default streams included
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
  CUsharedconfig banks = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
  std::uint64_t limits[CU_LIMIT_MAX] = {};
};

// One recording of an event: done once the operations before it have run.
struct Marker {
  std::uint32_t references = 1;
  bool done = false;
  std::uint64_t ticket = 0;
  std::uint64_t time = 0;
  Stream* stream = nullptr;  // valid until done
};

struct Stream : Object {
  static constexpr Tag kTag = Tag::Stream;
  bool blocking = true;  // waits for the legacy default stream, which waits for it
  bool legacy = false;
  std::uint32_t flags = 0;
  int priority = 0;
  std::uint64_t id = 0;
  std::uint64_t thread = 0;  // of a per-thread default stream
  bool busy = false;         // its operation runs right now, perhaps without the lock
  Operation* head = nullptr;
  Operation* tail = nullptr;
  Capture* capture = nullptr;
  Vector<Node*> capture_tips;
};

struct Event : Object {
  static constexpr Tag kTag = Tag::Event;
  std::uint32_t flags = 0;
  Marker* marker = nullptr;  // null until recorded
  Capture* capture = nullptr;
  bool was_captured = false;  // its last record was
  Vector<Node*> capture_tips;
};

struct Pool : Object {
  static constexpr Tag kTag = Tag::Pool;
  CUdevice device = 0;
  bool is_default = false;
  bool destroyed = false;  // the handle is gone, allocations still live in it
  CUmemPoolProps properties = {};
  std::uint64_t threshold = 0;
  std::uint64_t reserved = 0;
  std::uint64_t reserved_high = 0;
  std::uint64_t used = 0;
  std::uint64_t used_high = 0;
  std::uint64_t allocations = 0;
  int reuse[3] = {1, 1, 1};
  CUmemAccess_flags access[8] = {};
};

struct MipmappedArray;

struct Array : Object {
  static constexpr Tag kTag = Tag::Array;
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {};
  std::uint32_t element = 0;  // bytes
  std::uint64_t pitch = 0;
  std::uint64_t rows = 0;
  std::uint64_t slices = 0;
  Range* range = nullptr;
  std::uint64_t offset = 0;          // of a level inside its mipmapped array's bytes
  MipmappedArray* parent = nullptr;  // of a level
  std::uint64_t Size() const noexcept { return pitch * rows * slices; }
};

struct MipmappedArray : Object {
  static constexpr Tag kTag = Tag::MipmappedArray;
  static constexpr unsigned kMaxLevels = 18;
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {};
  unsigned levels = 0;
  Range* range = nullptr;
  Array* level[kMaxLevels] = {};
};

struct Texture : Object {
  static constexpr Tag kTag = Tag::Texture;
  CUDA_RESOURCE_DESC resource = {};
  CUDA_TEXTURE_DESC texture = {};
  CUDA_RESOURCE_VIEW_DESC view = {};
  bool has_view = false;
};

struct Surface : Object {
  static constexpr Tag kTag = Tag::Surface;
  CUDA_RESOURCE_DESC resource = {};
};

struct Physical : Object {
  static constexpr Tag kTag = Tag::Physical;
  CUmemAllocationProp properties = {};
  std::uint64_t size = 0;
  std::uint32_t references = 1;  // of clients
  std::uint32_t mappings = 0;
  bool released = false;  // no client holds it, mappings do
  Block* block = nullptr;
  Region* region = nullptr;
};

struct Reservation {
  std::uint64_t base = 0;
  std::uint64_t size = 0;
  Reservation* next = nullptr;
};

}  // namespace cuaudit::sim
