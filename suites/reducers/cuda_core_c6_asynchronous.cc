// SPDX-License-Identifier: MIT
// cuda_core_c6_asynchronous.cc: a graph and its executable are destroyed while a launch of it is under way.
//
// Story   C6: the driver lets go of the owner when the launch has finished, later than the destruction returns. Who looks at once sees
//         an owner that is still held: to take that for the end of it loses the buffer, to report it would be a false alarm. Repaired:
//         wait for the work, then for the owner, with a bound. No step here sleeps; a simulated driver has let go when the work is done.
// Source  https://github.com/NVIDIA/cuda-python/pull/2041, its tests poll; written anew from the facts.
#include "suites/reducers/owner.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::cuda_core_c6_asynchronous {
namespace {

template <bool repaired>
struct Asynchronous {
  Drawing drawing;
  Drop* gate = nullptr;  // what the launch waits for, so that it is under way for as long as it must be

  CUresult Init(DriverRef driver) {
    CUgraphNode node = nullptr;
    CUresult code = drawing.Open(driver);
    if (code == CUDA_SUCCESS) code = drawing.kernel.AddTo(driver, drawing.graph, drawing.buffer, &node);
    if (code == CUDA_SUCCESS) code = drawing.Hold(driver, drawing.graph);
    if (code == CUDA_SUCCESS) code = drawing.Instantiate(driver);
    if (code != CUDA_SUCCESS) (void)drawing.Close(driver);
    return code;
  }
  static void CUDA_CB WaitForGate(void* gate) { (void)static_cast<Drop*>(gate)->Await(); }

  CUresult Work(DriverRef driver) {
    gate = Drop::Next();
    CUresult code = driver.LaunchHostFunc(drawing.stream, WaitForGate, gate);
    if (code == CUDA_SUCCESS) code = driver.GraphLaunch(drawing.executable, drawing.stream);
    drawing.under_way = code == CUDA_SUCCESS;
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult code = drawing.DestroyGraphs(driver);
    if (!repaired && !drawing.drop->Seen()) drawing.buffer = 0;  // somebody else must be holding it
    if (gate != nullptr) Drop::Call(gate);
    if (code != CUDA_SUCCESS || !repaired) drawing.drop = nullptr;
    return Earlier(code, drawing.Close(driver));
  }
};

TEST(CudaCoreC6, WhoLooksAtOnceLosesTheBuffer) {
  EXPECT_EQ(Lost(RunCycles(Lifecycle::Of<Asynchronous<false>>("cuda_core_c6").WithCurrentContext(), kFourCycles)), "device_memory 3");
}

TEST(CudaCoreC6, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<Asynchronous<true>>("cuda_core_c6_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::cuda_core_c6_asynchronous
