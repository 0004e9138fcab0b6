// SPDX-License-Identifier: MIT
// owner.h: keeps the buffer alive whose address a graph's kernel node was given. The reducers of section C share it.
//
//   Drop        the destructor of a user object may not call the driver, so it only marks the buffer as free to go. The code that frees the
//               buffer waits for the mark, with a bound. A genuine driver runs the destructor on a thread of its own, some time after the
//               last reference is released. The simulated driver has run it when the call returns, so a fuzzer sets the bound to zero.
//   Drawing     a graph with one kernel node over a buffer, its executable, and what they need.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "cuaudit/lifecycle.h"

namespace cuaudit::reducers {

class Drop {
 public:
  static inline std::chrono::seconds bound{5};
  // Not on the heap, because a driver may call the destructor after every wait has ended.
  static Drop* Next() {
    static std::array<Drop, 256> drops;
    static std::atomic<std::size_t> next = 0;
    Drop& drop = drops[next++ % drops.size()];
    const std::lock_guard<std::mutex> lock(drop.guard_);
    drop.seen_ = false;
    return &drop;
  }
  static void CUDA_CB Call(void* drop) {
    auto* const self = static_cast<Drop*>(drop);
    const std::lock_guard<std::mutex> lock(self->guard_);
    self->seen_ = true;
    self->changed_.notify_all();
  }
  bool Seen() {
    const std::lock_guard<std::mutex> lock(guard_);
    return seen_;
  }
  bool Await() {
    std::unique_lock<std::mutex> lock(guard_);
    return changed_.wait_for(lock, bound, [this] { return seen_; });
  }

 private:
  std::mutex guard_;
  std::condition_variable changed_;
  bool seen_ = false;
};

inline CUresult Earlier(CUresult one, CUresult two) { return one != CUDA_SUCCESS ? one : two; }

// A kernel that ignores its pointer, so that the defective forms, which are wrong about lifetime only, are harmless on a GPU.
struct Kernel {
  CUmodule module = nullptr;
  CUfunction function = nullptr;

  CUresult Load(DriverRef driver) {
    static constexpr char kModule[] =
        ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry ignore_pointer(.param .u64 pointer)\n{\n  ret;\n}\n";
    const CUresult code = driver.ModuleLoadData(&module, kModule);
    if (code != CUDA_SUCCESS) module = nullptr;
    return code != CUDA_SUCCESS ? code : driver.ModuleGetFunction(&function, module, "ignore_pointer");
  }
  CUresult Unload(DriverRef driver) { return module == nullptr ? CUDA_SUCCESS : driver.ModuleUnload(std::exchange(module, nullptr)); }
  // The driver copies the value of the argument.
  template <typename Use>
  CUresult With(CUdeviceptr pointer, const Use& use) const {
    void* arguments[] = {&pointer};
    CUDA_KERNEL_NODE_PARAMS parameters = {};
    parameters.func = function;
    parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
    parameters.blockDimX = parameters.blockDimY = parameters.blockDimZ = 1;
    parameters.kernelParams = arguments;
    return use(parameters);
  }
  CUresult AddTo(DriverRef driver, CUgraph graph, CUdeviceptr pointer, CUgraphNode* node) const {
    return With(pointer,
                [&](const CUDA_KERNEL_NODE_PARAMS& parameters) { return driver.GraphAddKernelNode(node, graph, nullptr, 0, &parameters); });
  }
};

// The holders of references to the user object once it is attached.
enum class Holder { Graph, GraphAndCaller };

// Makes a new user object whose destructor is `drop`, held by `graph`. Nothing is left when it fails.
inline CUresult Attach(DriverRef driver, CUgraph graph, Drop* drop, Holder holder, CUuserObject* object) {
  CUresult code = driver.UserObjectCreate(object, drop, Drop::Call, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  if (code != CUDA_SUCCESS) return code;
  code = driver.GraphRetainUserObject(graph, *object, 1, holder == Holder::Graph ? unsigned{CU_GRAPH_USER_OBJECT_MOVE} : 0U);
  if (code != CUDA_SUCCESS) (void)driver.UserObjectRelease(*object, 1);
  return code;
}

inline constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

// Releases every handle once, whatever the driver answers.
struct Drawing {
  Kernel kernel;
  CUstream stream = nullptr;
  CUdeviceptr buffer = 0;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  Drop* drop = nullptr;    // set: the graph holds the buffer, and says when it may go
  bool under_way = false;  // a launch that nobody has waited for

  // All but the executable.
  CUresult Open(DriverRef driver) {
    CUresult code = kernel.Load(driver);
    if (code == CUDA_SUCCESS) code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (code == CUDA_SUCCESS) code = driver.MemAlloc(&buffer, kBufferBytes);
    if (code == CUDA_SUCCESS) code = driver.GraphCreate(&graph, 0);
    return code;
  }
  CUresult Hold(DriverRef driver, CUgraph holder) {
    CUuserObject object = nullptr;
    Drop* const wanted = Drop::Next();
    const CUresult code = Attach(driver, holder, wanted, Holder::Graph, &object);
    if (code == CUDA_SUCCESS) drop = wanted;
    return code;
  }
  CUresult Instantiate(DriverRef driver) { return driver.GraphInstantiateWithFlags(&executable, graph, 0); }
  CUresult Launch(DriverRef driver) {
    CUresult code = driver.GraphLaunch(executable, stream);
    if (code == CUDA_SUCCESS) code = driver.StreamSynchronize(stream);
    // A launch that failed may have been done: the code may be that of earlier work.
    under_way = code != CUDA_SUCCESS;
    return code;
  }
  CUresult FreeBuffer(DriverRef driver) { return buffer == 0 ? CUDA_SUCCESS : driver.MemFree(std::exchange(buffer, 0)); }
  CUresult DestroyGraphs(DriverRef driver) {
    CUresult code = executable == nullptr ? CUDA_SUCCESS : driver.GraphExecDestroy(std::exchange(executable, nullptr));
    if (graph != nullptr) code = Earlier(code, driver.GraphDestroy(std::exchange(graph, nullptr)));
    return code;
  }
  // After a refused destruction the buffer is never marked free, and no launch can follow. While a launch is in progress it is not yet
  // marked.
  CUresult Close(DriverRef driver) {
    const CUresult code = DestroyGraphs(driver);
    if (code != CUDA_SUCCESS) drop = nullptr;
    if (drop != nullptr && under_way) {
      const CUresult finished = driver.StreamSynchronize(stream);
      if (finished != CUDA_SUCCESS) return finished;  // the rest is kept for another try
      under_way = false;
    }
    if (drop != nullptr && !std::exchange(drop, nullptr)->Await()) return CUDA_ERROR_NOT_READY;
    return Earlier(code, CloseRest(driver));
  }
  CUresult CloseRest(DriverRef driver) {
    CUresult code = FreeBuffer(driver);
    if (stream != nullptr) code = Earlier(code, driver.StreamDestroy(std::exchange(stream, nullptr)));
    return Earlier(code, kernel.Unload(driver));
  }
};

}  // namespace cuaudit::reducers
