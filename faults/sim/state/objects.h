// SPDX-License-Identifier: MIT
// objects.h: the simulated objects behind the handles: contexts, streams, events, pools, arrays, modules, physical memory. Graphs are in
// graph.h, queued operations in work.h.
//
//   Owns      plain records in the world's arena. Object::owner says which context destroys an object.
//   Threads   the caller holds the world's lock.
//   Units     bytes; virtual nanoseconds.
//   Source    CUDA Driver API 13.0.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "faults/sim/base/arena.h"
#include "faults/sim/base/object.h"
#include "faults/sim/base/region.h"
#include "faults/sim/state/order.h"

namespace cuaudit::sim {

// The records of what other processes may open, and of what was opened from them. share.h works on them.
//
//   ShareFile belongs to one world and is made when the world first shares something: a table of what is shared, then the bytes.
//   Import    what this world opened from another process.
//   Units     bytes.

struct Range;

enum class ShareKind : std::uint32_t { Memory = 1, Event, Pool, PoolMemory };

// The content of an exported handle. It fits into the 64 bytes of each such handle.
struct ShareName {
  std::uint32_t magic;
  std::int32_t process;
  std::int32_t file;
  std::uint32_t slot;
  std::uint32_t life;  // generation of the slot
  ShareKind kind;
  std::uint32_t group;  // slot of its pool
  std::uint32_t unused;
  std::uint64_t nonce;  // tells worlds apart
  std::uint64_t size;
};
static_assert(sizeof(ShareName) <= 64);

struct Import {
  ShareName name;
  char* bytes;
  char* table;
  std::uint32_t opens;
  Range* range;
};

struct ShareFile {
  int file = -1;
  char* table = nullptr;
  std::uint32_t slots = 0;
  std::uint64_t end = 0;
  std::uint64_t nonce = 0;
  Vector<Range*> ranges;
  Vector<Import*> imports;
};

struct Backing;
struct Binding;
struct History;
struct Operation;
struct Capture;
struct GraphMemory;
struct Node;
struct Coredump;
struct Module;
struct Stream;
struct Symbol;
struct Marker;
struct GreenContext;
struct ExternalSemaphore;

inline constexpr int kLimits = 10;  // number of CUlimit values in CUDA 13.0

struct Context : Object {
  static constexpr Tag kTag = Tag::Context;
  CUdevice device = 0;
  bool primary = false;
  bool active = false;           // a primary context keeps its handle for life and is active only while somebody retains it
  std::uint32_t ending = 0;      // number of calls that are finishing its work to end it afterwards
  std::uint32_t references = 0;  // retains of a primary context
  std::uint32_t flags = 0;
  std::uint32_t api_version = 0;
  std::uint64_t id = 0;
  CUresult sticky = CUDA_SUCCESS;
  ObjectList children;
  Range* ranges = nullptr;
  Stream* legacy = nullptr;
  Stream* carrier = nullptr;          // internal stream for records and waits of the whole context
  Marker* gate = nullptr;             // new streams wait for it
  GreenContext* green = nullptr;      // the green context whose view this is; calls work in its primary context
  std::uint32_t greens = 0;           // number of green contexts that hold this primary context
  Vector<std::uint64_t> peers;        // contexts with peer access granted to kernels of this one
  Vector<Stream*> own_streams;        // per-thread default streams
  Vector<std::uint32_t> fresh_slots;  // slots of blocking streams with work that is not yet in the legacy stream's clock
  std::uint64_t time = 0;             // when the last operation of any of its streams ended
  std::uint64_t blocking_time = 0;    // when the last operation of a blocking stream ended
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
  Coredump* coredump = nullptr;   // null: the driver-wide settings
  std::uint32_t attachments = 0;  // cuCtxAttach calls without a cuCtxDetach
  std::uint64_t limits[kLimits] = {};
};

struct GreenContext : Object {
  static constexpr Tag kTag = Tag::GreenContext;
  CUdevice device = 0;
  std::uint64_t id = 0;
  Context* primary = nullptr;
  Context* view = nullptr;
  Stream* standard = nullptr;  // the default stream while the view is current
  Marker* gate = nullptr;      // new streams wait for it
  CUdevResource resource = {};
};

// One recording of an event: done once the operations before it have run.
struct Marker {
  std::uint32_t references = 1;
  bool done = false;
  std::uint64_t ticket = 0;
  std::uint64_t time = 0;
  Stream* stream = nullptr;  // valid until done
  Clock clock;
};

struct StreamAttributes {
  CUaccessPolicyWindow window = {};
  std::uint32_t policy = ~0U;  // value that the driver reports if it was never set
  CUlaunchMemSyncDomain domain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
  CUlaunchMemSyncDomainMap domains = {0, 1};
};

struct Stream : Object {
  static constexpr Tag kTag = Tag::Stream;
  bool blocking = true;  // synchronises with the legacy default stream
  bool legacy = false;
  std::uint32_t flags = 0;
  int priority = 0;
  StreamAttributes attributes;
  GreenContext* green = nullptr;
  std::uint64_t id = 0;
  std::uint64_t thread = 0;  // Thread::serial of a per-thread default stream
  bool busy = false;         // its first operation is running, perhaps without the lock
  bool destroyed = false;    // the handle is gone; work is left or the stream is pinned
  std::uint32_t pins = 0;
  std::uint32_t busy_index = 0;  // 1 + its index in World::busy_streams; 0: no work is left
  std::uint64_t time = 0;        // when its last operation ended
  std::uint32_t slot = 0;        // its index in the clocks (clock.h); 0: no work yet
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
  bool was_captured = false;  // its last record was captured
  std::uint32_t share = 0;    // slot in share.h if other processes may open it
  bool foreign = false;       // opened from another process
  bool inherited = false;     // recorded in a forked child, where nobody learns that it is reached
  Vector<Node*> capture_tips;
};

struct Pool : Object {
  static constexpr Tag kTag = Tag::Pool;
  CUdevice device = 0;
  bool is_default = false;
  bool destroyed = false;  // the handle is gone; allocations still live in it
  CUmemPoolProps properties = {};
  std::uint64_t threshold = 0;
  std::uint64_t reserved = 0;
  std::uint64_t reserved_high = 0;
  std::uint64_t used = 0;      // bytes as requested
  std::uint64_t occupied = 0;  // bytes as rounded
  std::uint64_t used_high = 0;
  std::uint64_t allocations = 0;
  std::uint32_t share = 0;  // slot in share.h if exported
  bool imported = false;    // opened from another process
  int file = -1;            // of an imported pool: its own duplicate of the descriptor that it was imported from
  ShareName origin = {};
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
  std::uint64_t offset = 0;          // of a mip level in its mipmapped array's bytes
  MipmappedArray* parent = nullptr;  // of a mip level
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

struct TextureReference : Object {
  static constexpr Tag kTag = Tag::TextureReference;
  Module* module = nullptr;  // the module that declares it; null: made by cuTexRefCreate
  const Symbol* symbol = nullptr;
  std::uint64_t address = 0;  // at most one of address, array and levels is not 0
  std::uint64_t array = 0;    // handle
  std::uint64_t levels = 0;   // handle of a mipmapped array
  CUarray_format format = CU_AD_FORMAT_FLOAT;
  int channels = 1;
  CUaddress_mode address_mode[3] = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP};
  CUfilter_mode filter = CU_TR_FILTER_MODE_POINT;
  CUfilter_mode level_filter = CU_TR_FILTER_MODE_POINT;
  float level_bias = 0;
  float least_level = 0;
  float most_level = 0;
  int anisotropy = 0;
  float border[4] = {};
  unsigned flags = 0;
};

struct SurfaceReference : Object {
  static constexpr Tag kTag = Tag::SurfaceReference;
  const Symbol* symbol = nullptr;
  std::uint64_t array = 0;  // handle
};

// A registered callback. The simulator never has a reason to call it.
struct CallbackEntry : Object {
  static constexpr Tag kTag = Tag::Callback;
  CUdevice device = -1;  // device of an asynchronous notification; -1: log messages
  void (*function)() = nullptr;
  void* data = nullptr;
};

struct Physical : Object {
  static constexpr Tag kTag = Tag::Physical;
  CUmemAllocationProp properties = {};
  std::uint64_t size = 0;
  std::uint32_t references = 1;  // references held by clients
  std::uint32_t mappings = 0;
  bool released = false;  // no client holds it, but mappings do
  Backing* backing = nullptr;
};

// The bytes behind handles of physical memory (physical.h).
struct Backing {
  std::uint32_t references = 1;  // handles of this world; a handle lives at least as long as its mappings
  std::uint64_t size = 0;
  int charged_device = -1;
  Block* block = nullptr;  // null: the bytes are in the file
  char* bytes = nullptr;
  int file = -1;
  std::uint64_t inode = 0;
  History* history = nullptr;  // of the bytes, whatever address was used
};

struct External : Object {
  static constexpr Tag kTag = Tag::External;
  Backing* backing = nullptr;
  std::uint32_t mappings = 0;
  bool destroyed = false;  // no client holds it, but mapped buffers and arrays do
};

struct Reservation {
  std::uint64_t base = 0;
  std::uint64_t size = 0;
  Reservation* next = nullptr;
};

}  // namespace cuaudit::sim
