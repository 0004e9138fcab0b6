// SPDX-License-Identifier: MIT
// blame_counted.cc: counted references that two owners hold at once, one of which loses its own; each with a repaired twin. See blame.h.
#include <dlfcn.h>

#include "blame.h"

int wrong;

namespace {

// wrappers: two classes retain the primary context. They are destroyed in another order than they were made.
class Decoder {
 public:
  bool Open() {
    if (failed(cuDevicePrimaryCtxRetain(&context_, 0))) return false;
    open_ = true;
    return true;
  }
  void Close() {
    if (open_) (void)cuDevicePrimaryCtxRelease(0);
    open_ = false;
  }

 private:
  CUcontext context_ = nullptr;
  bool open_ = false;
};
class Encoder {
 public:
  bool Open() {
    if (failed(cuDevicePrimaryCtxRetain(&context_, 0))) return false;
    if (failed(cuStreamCreate(&stream_, 0))) {
      if (!wrong) (void)cuDevicePrimaryCtxRelease(0);
      return false;
    }
    open_ = true;
    return true;
  }
  void Close() {
    if (!open_) return;
    (void)cuStreamDestroy(stream_);
    (void)cuDevicePrimaryCtxRelease(0);
    open_ = false;
  }

 private:
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  bool open_ = false;
};
int Wrappers() {
  Decoder decoder;
  Encoder encoder;
  if (!decoder.Open()) return 1;
  if (!encoder.Open()) {
    decoder.Close();
    return 1;
  }
  decoder.Close();
  encoder.Close();
  return 0;
}

// wrappers_nested: the same by constructors and destructors, in the reverse order.
class Library {
 public:
  Library() { good_ = !failed(cuDevicePrimaryCtxRetain(&context_, 0)); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (good_) (void)cuDevicePrimaryCtxRelease(0);
  }
  bool good() const { return good_; }

 private:
  CUcontext context_ = nullptr;
  bool good_ = false;
};
class Handle {
 public:
  bool Init() {
    if (failed(cuDevicePrimaryCtxRetain(&context_, 0))) return false;
    if (failed(cuMemAlloc(&memory_, 256))) {
      if (!wrong) (void)cuDevicePrimaryCtxRelease(0);
      return false;
    }
    good_ = true;
    return true;
  }
  ~Handle() {
    if (!good_) return;
    (void)cuMemFree(memory_);
    (void)cuDevicePrimaryCtxRelease(0);
  }

 private:
  CUcontext context_ = nullptr;
  CUdeviceptr memory_ = 0;
  bool good_ = false;
};
int WrappersNested() {
  const Library library;
  Handle handle;
  return library.good() && handle.Init() ? 0 : 1;
}

// first_loses: the first of two owners loses, and the second goes on and gives back its own.
bool plugin_start(CUstream* stream) {
  CUcontext context = nullptr;
  if (failed(cuDevicePrimaryCtxRetain(&context, 0))) return false;
  if (failed(cuStreamCreate(stream, 0))) {
    if (!wrong) (void)cuDevicePrimaryCtxRelease(0);
    return false;
  }
  return true;
}
void plugin_stop(CUstream stream) {
  (void)cuStreamDestroy(stream);
  (void)cuDevicePrimaryCtxRelease(0);
}
bool filter_start() {
  CUcontext context = nullptr;
  return !failed(cuDevicePrimaryCtxRetain(&context, 0));
}
void filter_stop() { (void)cuDevicePrimaryCtxRelease(0); }
int FirstLoses() {
  CUstream stream = nullptr;
  const bool plugin = plugin_start(&stream);
  const bool filter = filter_start();
  if (plugin) plugin_stop(stream);
  if (filter) filter_stop();
  return plugin && filter ? 0 : 1;
}

// shared_helper: all owners go through the same two functions.
bool context_get() {
  CUcontext context = nullptr;
  return !failed(cuDevicePrimaryCtxRetain(&context, 0));
}
void context_put() { (void)cuDevicePrimaryCtxRelease(0); }
bool source_open() { return context_get(); }
void source_close() { context_put(); }
bool sink_open(CUevent* event) {
  if (!context_get()) return false;
  if (failed(cuEventCreate(event, 0))) {
    if (!wrong) context_put();
    return false;
  }
  return true;
}
void sink_close(CUevent event) {
  (void)cuEventDestroy(event);
  context_put();
}
int SharedHelper() {
  CUevent event = nullptr;
  if (!source_open()) return 1;
  if (!sink_open(&event)) {
    source_close();
    return 1;
  }
  source_close();
  sink_close(event);
  return 0;
}

// no_names: the names of the functions tell nothing.
bool up() {
  CUcontext context = nullptr;
  return !failed(cuDevicePrimaryCtxRetain(&context, 0));
}
void down() { (void)cuDevicePrimaryCtxRelease(0); }
bool begin(CUevent* event) {
  CUcontext context = nullptr;
  if (failed(cuDevicePrimaryCtxRetain(&context, 0))) return false;
  if (failed(cuEventCreate(event, 0))) {
    if (!wrong) (void)cuDevicePrimaryCtxRelease(0);
    return false;
  }
  return true;
}
void finish(CUevent event) {
  (void)cuEventDestroy(event);
  (void)cuDevicePrimaryCtxRelease(0);
}
int NoNames() {
  CUevent event = nullptr;
  if (!up()) return 1;
  if (!begin(&event)) {
    down();
    return 1;
  }
  down();
  finish(event);
  return 0;
}

// physical: memory that is mapped by two owners, each with a reference to its handle.
CUmemAllocationProp Properties() {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return properties;
}
constexpr std::size_t kBytes = std::size_t{2} << 20;
struct Range {
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle memory = 0;
};
bool range_open(Range* range) {
  const CUmemAllocationProp properties = Properties();
  if (failed(cuMemAddressReserve(&range->address, kBytes, 0, 0, 0))) return false;
  if (!failed(cuMemCreate(&range->memory, kBytes, &properties, 0))) {
    if (!failed(cuMemMap(range->address, kBytes, 0, range->memory, 0))) return true;
    (void)cuMemRelease(range->memory);
  }
  (void)cuMemAddressFree(range->address, kBytes);
  return false;
}
void range_close(const Range& range) {
  (void)cuMemUnmap(range.address, kBytes);
  (void)cuMemRelease(range.memory);
  (void)cuMemAddressFree(range.address, kBytes);
}
bool export_open(const Range& range, CUmemGenericAllocationHandle* memory, CUevent* event) {
  void* const address = reinterpret_cast<void*>(range.address);
  if (failed(cuMemRetainAllocationHandle(memory, address))) return false;
  if (failed(cuEventCreate(event, 0))) {
    if (!wrong) (void)cuMemRelease(*memory);
    return false;
  }
  return true;
}
void export_close(CUmemGenericAllocationHandle memory, CUevent event) {
  (void)cuEventDestroy(event);
  (void)cuMemRelease(memory);
}
int Physical() {
  Range range;
  CUmemGenericAllocationHandle memory = 0;
  CUevent event = nullptr;
  if (!range_open(&range)) return 1;
  if (!export_open(range, &memory, &event)) {
    range_close(range);
    return 1;
  }
  range_close(range);
  export_close(memory, event);
  return 0;
}

// dlopen: two owners of one library.
constexpr const char* kLibrary = "libm.so.6";
void* codec_open() { return dlopen(kLibrary, RTLD_NOW); }
void codec_close(void* library) { (void)dlclose(library); }
void* scaler_open(CUevent* event) {
  void* const library = dlopen(kLibrary, RTLD_NOW);
  if (library == nullptr) return nullptr;
  if (failed(cuEventCreate(event, 0))) {
    if (!wrong) (void)dlclose(library);
    return nullptr;
  }
  return library;
}
void scaler_close(void* library, CUevent event) {
  (void)cuEventDestroy(event);
  (void)dlclose(library);
}
int Dlopen() {
  CUevent event = nullptr;
  void* const codec = codec_open();
  if (codec == nullptr) return 1;
  void* const scaler = scaler_open(&event);
  if (scaler == nullptr) {
    codec_close(codec);
    return 1;
  }
  codec_close(codec);
  scaler_close(scaler, event);
  return 0;
}

constexpr Row kRows[] = {
    {"wrappers", &Wrappers},      {"wrappers_nested", &WrappersNested},
    {"first_loses", &FirstLoses}, {"shared_helper", &SharedHelper},
    {"no_names", &NoNames},       {"physical", &Physical},
    {"dlopen", &Dlopen},
};

}  // namespace

int main(int argc, char** argv) { return run_row(kRows, static_cast<int>(sizeof(kRows) / sizeof(kRows[0])), argc, argv); }
