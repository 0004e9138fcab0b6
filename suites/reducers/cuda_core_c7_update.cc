// SPDX-License-Identifier: MIT
// cuda_core_c7_update.cc: an executable graph that lives on and is updated with new arguments.
//
// Story   C7: the owners of all arguments that an executable ever had are kept in a list beside it and go with it, which in a serving
//         process is never. Repaired: the graph it is updated from holds the owner; the update takes the references over and gives the
//         former ones back, once no launch uses them.
// Source  https://github.com/NVIDIA/cuda-python/pull/2041 and its follow-ups; CUDA programming guide, user objects. Written anew from
//         the facts. The executable is made beforehand, over a buffer of its own.
#include "suites/reducers/owner.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::cuda_core_c7_update {
namespace {

Drawing& TheDrawing() {
  static Drawing drawing;
  return drawing;
}
CUresult MakeTheExecutable(DriverRef driver) {
  Drawing& drawing = TheDrawing();
  drawing = Drawing();
  CUgraphNode node = nullptr;
  CUresult code = drawing.Open(driver);
  if (code == CUDA_SUCCESS) code = drawing.kernel.AddTo(driver, drawing.graph, drawing.buffer, &node);
  return code == CUDA_SUCCESS ? drawing.Instantiate(driver) : code;
}

template <bool repaired>
struct Updated {
  CUdeviceptr buffer = 0;
  CUgraph graph = nullptr;  // what the executable is updated from
  Drop* drop = nullptr;
  bool updated = false;  // the executable may hold what `graph` does

  static CUresult Update(DriverRef driver, CUgraph from) {
    CUgraphExecUpdateResultInfo info = {};
    return driver.GraphExecUpdate(TheDrawing().executable, from, &info);
  }
  CUresult Init(DriverRef driver) {
    const CUresult code = Steps(driver);
    if (code != CUDA_SUCCESS && Teardown(driver) != CUDA_SUCCESS) (void)Teardown(driver);
    return code;
  }
  CUresult Steps(DriverRef driver) {
    CUgraphNode node = nullptr;
    CUuserObject object = nullptr;
    CUresult code = driver.MemAlloc(&buffer, kBufferBytes);
    if (code == CUDA_SUCCESS) code = driver.GraphCreate(&graph, 0);
    if (code == CUDA_SUCCESS) code = TheDrawing().kernel.AddTo(driver, graph, buffer, &node);
    if (code == CUDA_SUCCESS && repaired) {
      Drop* const wanted = Drop::Next();
      code = Attach(driver, graph, wanted, Holder::Graph, &object);
      if (code == CUDA_SUCCESS) drop = wanted;
    }
    if (code != CUDA_SUCCESS) return code;
    code = Update(driver, graph);
    // An update that failed may have been done: who waits for the owner to go must have taken it back.
    updated = repaired || code == CUDA_SUCCESS;
    return code;
  }
  CUresult Work(DriverRef driver) { return driver.GraphLaunch(TheDrawing().executable, TheDrawing().stream); }

  // Back to the arguments of before, while the launch may be under way: the owner is held until it is done. An executable that could not be
  // updated still uses the buffer, so all is kept for another try.
  CUresult Teardown(DriverRef driver) {
    CUresult code = CUDA_SUCCESS;
    if (updated) code = Update(driver, TheDrawing().graph);
    if (code != CUDA_SUCCESS) return code;
    if (std::exchange(updated, false) && !repaired) buffer = 0;  // in the executable's list
    code = driver.StreamSynchronize(TheDrawing().stream);
    if (code != CUDA_SUCCESS) return code;
    if (graph != nullptr) code = driver.GraphDestroy(std::exchange(graph, nullptr));
    Drop* const expected = std::exchange(drop, nullptr);
    if (expected != nullptr && code == CUDA_SUCCESS && !expected->Await()) return CUDA_ERROR_NOT_READY;
    return buffer == 0 ? code : Earlier(code, driver.MemFree(std::exchange(buffer, 0)));
  }
};

template <bool repaired>
Lifecycle InTheExecutable(const char* name) {
  return Lifecycle::Of<Updated<repaired>>(name).WithCurrentContext().Prepare(MakeTheExecutable);
}

TEST(CudaCoreC7, TheOwnersOfFormerArgumentsStay) {
  EXPECT_EQ(Lost(RunCycles(InTheExecutable<false>("cuda_core_c7"), kFourCycles)), "device_memory 3");
}

TEST(CudaCoreC7, RepairedIsSilent) { ExpectSilent(InTheExecutable<true>("cuda_core_c7_repaired")); }

}  // namespace
}  // namespace cuaudit::reducers::cuda_core_c7_update
