// SPDX-License-Identifier: MIT
// cuda_core_holding.cc: the buffer of a graph goes before the graph does: who holds it.
#include "suites/reducers/owner.h"
#include "suites/reducers/vectors.h"

// A kernel node, and the owner of the buffer that it was given the address of.
//
// Story   C1, first half: adding a kernel node copies raw argument values. The buffer's owner goes when its scope ends, and the graph runs.
//         Second half: the owner is attached to the graph without moving the reference, and the caller's own is never released: user object
//         and buffer stay after the graph and its executables are gone.
// Source  https://github.com/NVIDIA/cuda-python/issues/2039 and pull request 2041; written anew from the facts.
namespace cuaudit::reducers::cuda_core_c1_plain {
namespace {

enum class Form { Repaired, NotAttached, NeverLetGo };

template <Form form>
struct Plain {
  Drawing drawing;

  CUresult Init(DriverRef driver) {
    CUgraphNode node = nullptr;
    CUresult code = drawing.Open(driver);
    if (code == CUDA_SUCCESS) code = drawing.kernel.AddTo(driver, drawing.graph, drawing.buffer, &node);
    if (code == CUDA_SUCCESS && form == Form::Repaired) code = drawing.Hold(driver, drawing.graph);
    if (code == CUDA_SUCCESS && form == Form::NeverLetGo) {
      CUuserObject object = nullptr;
      code = Attach(driver, drawing.graph, Drop::Next(), Holder::GraphAndCaller, &object);
      if (code == CUDA_SUCCESS) drawing.buffer = 0;  // the user object's from here on
    }
    if (code == CUDA_SUCCESS) code = drawing.Instantiate(driver);
    if (code == CUDA_SUCCESS && form == Form::NotAttached) code = drawing.FreeBuffer(driver);
    if (code != CUDA_SUCCESS) (void)drawing.Close(driver);
    return code;
  }
  CUresult Work(DriverRef driver) { return drawing.Launch(driver); }
  CUresult Teardown(DriverRef driver) { return drawing.Close(driver); }
};

TEST(CudaCoreC1, TheLaunchUsesWhatNobodyHolds) {
  EXPECT_EQ(Lost(RunCycles(Lifecycle::Of<Plain<Form::NotAttached>>("cuda_core_c1").WithCurrentContext(), kFourCycles)),
            "use_after_release device_memory");
}

TEST(CudaCoreC1, TheOwnerIsNeverLetGo) {
  EXPECT_EQ(Lost(RunCycles(Lifecycle::Of<Plain<Form::NeverLetGo>>("cuda_core_c1_never_let_go").WithCurrentContext(), kFourCycles)),
            "device_memory 3, user_object 3");
}

TEST(CudaCoreC1, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<Plain<Form::Repaired>>("cuda_core_c1_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::cuda_core_c1_plain

// The clone of a graph outlives the original, and so must the buffer.
//
// Story   C2: the owner is held beside the original, by a list of the caller's that dies with it. Only user objects travel to the clone.
// Source  https://github.com/NVIDIA/cuda-python/issues/2039 and pull request 2041; written anew from the facts.
namespace cuaudit::reducers::cuda_core_c2_clone {
namespace {

template <bool repaired>
struct Clone {
  Drawing drawing;

  CUresult Init(DriverRef driver) {
    const CUresult code = Steps(driver);
    if (code != CUDA_SUCCESS) (void)drawing.Close(driver);
    return code;
  }
  CUresult Steps(DriverRef driver) {
    CUgraphNode node = nullptr;
    CUgraph clone = nullptr;
    CUresult code = drawing.Open(driver);
    if (code == CUDA_SUCCESS) code = drawing.kernel.AddTo(driver, drawing.graph, drawing.buffer, &node);
    if (code == CUDA_SUCCESS && repaired) code = drawing.Hold(driver, drawing.graph);
    if (code != CUDA_SUCCESS) return code;
    code = driver.GraphClone(&clone, drawing.graph);
    if (code != CUDA_SUCCESS) {
      drawing.drop = nullptr;  // a clone may have been made all the same, which nobody can launch and which holds on for ever
      return code;
    }
    code = driver.GraphDestroy(std::exchange(drawing.graph, clone));
    if (code != CUDA_SUCCESS) {
      drawing.drop = nullptr;  // the original holds on for ever
      return code;
    }
    if (!repaired) code = drawing.FreeBuffer(driver);
    return code == CUDA_SUCCESS ? drawing.Instantiate(driver) : code;
  }
  CUresult Work(DriverRef driver) { return drawing.Launch(driver); }
  CUresult Teardown(DriverRef driver) { return drawing.Close(driver); }
};

TEST(CudaCoreC2, TheCloneUsesWhatWentWithTheOriginal) {
  EXPECT_EQ(Lost(RunCycles(Lifecycle::Of<Clone<false>>("cuda_core_c2").WithCurrentContext(), kFourCycles)),
            "use_after_release device_memory");
}

TEST(CudaCoreC2, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<Clone<true>>("cuda_core_c2_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::cuda_core_c2_clone

// A kernel that is launched into a stream capture.
//
// Story   C3: a launch keeps its arguments alive until it is queued. Under a capture it is queued when the graph runs, later: the
//         captured node has no owner. Repaired: the captured graph is given the owner as a user object.
// Source  https://github.com/NVIDIA/cuda-python/issues/2039 and pull request 2041; written anew from the facts.
namespace cuaudit::reducers::cuda_core_c3_capture {
namespace {

template <bool repaired>
struct Capture {
  Drawing drawing;  // its graph is the captured one

  CUresult Init(DriverRef driver) {
    const CUresult code = Steps(driver);
    if (code != CUDA_SUCCESS) (void)drawing.Close(driver);
    return code;
  }
  CUresult Steps(DriverRef driver) {
    CUresult code = drawing.kernel.Load(driver);
    if (code == CUDA_SUCCESS) code = driver.StreamCreate(&drawing.stream, CU_STREAM_NON_BLOCKING);
    if (code == CUDA_SUCCESS) code = driver.MemAlloc(&drawing.buffer, kBufferBytes);
    if (code == CUDA_SUCCESS) code = driver.StreamBeginCapture(drawing.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (code != CUDA_SUCCESS) return code;
    code = drawing.kernel.With(drawing.buffer, [&](const CUDA_KERNEL_NODE_PARAMS& one) {
      return driver.LaunchKernel(one.func, 1, 1, 1, 1, 1, 1, 0, drawing.stream, one.kernelParams, nullptr);
    });
    const CUresult ended = End(driver);
    code = Earlier(code, ended);
    if (code == CUDA_SUCCESS && repaired) code = drawing.Hold(driver, drawing.graph);
    if (code == CUDA_SUCCESS) code = drawing.Instantiate(driver);
    return code == CUDA_SUCCESS && !repaired ? drawing.FreeBuffer(driver) : code;
  }
  // A capture that stays open would take the stream with it: the end that was refused once is tried again.
  CUresult End(DriverRef driver) {
    const CUresult code = driver.StreamEndCapture(drawing.stream, &drawing.graph);
    if (code != CUDA_SUCCESS) (void)driver.StreamEndCapture(drawing.stream, &drawing.graph);
    return code;
  }
  CUresult Work(DriverRef driver) { return drawing.Launch(driver); }
  CUresult Teardown(DriverRef driver) { return drawing.Close(driver); }
};

TEST(CudaCoreC3, TheCapturedNodeHasNoOwner) {
  EXPECT_EQ(Lost(RunCycles(Lifecycle::Of<Capture<false>>("cuda_core_c3").WithCurrentContext(), kFourCycles)),
            "use_after_release device_memory");
}

TEST(CudaCoreC3, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<Capture<true>>("cuda_core_c3_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::cuda_core_c3_capture

// A buffer that its user closes by hand while a graph that needs it lives.
//
// Story   C4: the graph holds the object around the buffer, and closing that object frees the memory under it. Repaired: the graph holds a
//         share of the memory itself; closing gives the user's share back, and the last share frees.
// Source  https://github.com/NVIDIA/cuda-python/issues/2039 and pull request 2041; written anew from the facts.
namespace cuaudit::reducers::cuda_core_c4_explicit_release {
namespace {

template <bool repaired>
struct ExplicitRelease {
  Drawing drawing;

  CUresult Init(DriverRef driver) {
    CUgraphNode node = nullptr;
    CUresult code = drawing.Open(driver);
    if (code == CUDA_SUCCESS) code = drawing.kernel.AddTo(driver, drawing.graph, drawing.buffer, &node);
    if (code == CUDA_SUCCESS) code = drawing.Hold(driver, drawing.graph);
    if (code == CUDA_SUCCESS) code = drawing.Instantiate(driver);
    if (code != CUDA_SUCCESS) (void)drawing.Close(driver);
    return code;
  }
  CUresult CloseBuffer(DriverRef driver) { return repaired && drawing.drop != nullptr ? CUDA_SUCCESS : drawing.FreeBuffer(driver); }
  CUresult Work(DriverRef driver) {
    const CUresult code = CloseBuffer(driver);
    return code == CUDA_SUCCESS ? drawing.Launch(driver) : code;
  }
  CUresult Teardown(DriverRef driver) { return drawing.Close(driver); }
};

TEST(CudaCoreC4, ClosingTheBufferFreesItUnderTheGraph) {
  EXPECT_EQ(Lost(RunCycles(Lifecycle::Of<ExplicitRelease<false>>("cuda_core_c4").WithCurrentContext(), kFourCycles)),
            "use_after_release device_memory");
}

TEST(CudaCoreC4, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<ExplicitRelease<true>>("cuda_core_c4_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::cuda_core_c4_explicit_release
