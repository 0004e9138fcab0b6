// SPDX-License-Identifier: MIT
// Misuse that the driver accepts, and work that the CPU waits for without a driver call.
#include "suites/support/sim_world.h"

namespace cuaudit::sim::accepted_test {
namespace {

// Misuse that the driver accepts: it is answered alike, and what the world keeps stays whole. And how long user objects are held.

using driver::Kind;

struct Shared : Simulated {
  Shared() {
    EXPECT_OK(d.UserObjectCreate(
        &object, &died, [](void* count) { ++*static_cast<int*>(count); }, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    EXPECT_OK(d.GraphCreate(&graph, 0));
  }
  int died = 0;
  CUuserObject object = nullptr;
  CUgraph graph = nullptr;
};

TEST(Accepted, MoreReferencesThanThereAreEndTheObjectOnce) {
  Shared s;
  EXPECT_OK(s.d.UserObjectRelease(s.object, 3));
  EXPECT_EQ(s.died, 1);
  EXPECT_OK(s.d.UserObjectRelease(s.object, 1));
  EXPECT_EQ(s.died, 1);
  EXPECT_EQ(s.Live(Kind::UserObject), 0U);
  EXPECT_EQ(s.d.UserObjectRetain(s.object, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST(Accepted, WhoGivesBackAGraphsReferencesEndsTheObjectUnderIt) {
  Shared s;
  CUgraphExec executable = nullptr;
  CUgraph clone = nullptr;
  EXPECT_OK(s.d.GraphRetainUserObject(s.graph, s.object, 2, 0));
  EXPECT_OK(s.d.GraphInstantiateWithFlags(&executable, s.graph, 0));
  EXPECT_OK(s.d.UserObjectRelease(s.object, 5));
  EXPECT_EQ(s.died, 1);
  // Those that held it go on without it.
  EXPECT_OK(s.d.GraphClone(&clone, s.graph));
  EXPECT_OK(s.d.GraphExecDestroy(executable));
  EXPECT_OK(s.d.GraphDestroy(clone));
  EXPECT_OK(s.d.GraphDestroy(s.graph));
  EXPECT_EQ(s.died, 1);
}

TEST(Accepted, AGraphGivesBackNoMoreThanItHolds) {
  Shared s;
  EXPECT_OK(s.d.GraphReleaseUserObject(s.graph, s.object, 1));
  EXPECT_EQ(s.died, 0);
  EXPECT_OK(s.d.GraphRetainUserObject(s.graph, s.object, 1, 0));
  EXPECT_OK(s.d.GraphReleaseUserObject(s.graph, s.object, 2));
  EXPECT_EQ(s.died, 0);
  EXPECT_OK(s.d.UserObjectRelease(s.object, 1));
  EXPECT_EQ(s.died, 1);
}

// As the programming guide has it: what an update would let go of is held until the launches under way are done.
TEST(UserObject, IsHeldByALaunchUnderWayBeyondTheUpdate) {
  Shared s;
  CUgraph other = nullptr;
  CUgraphExec executable = nullptr;
  CUstream stream = nullptr;
  CUgraphExecUpdateResultInfo info{};
  EXPECT_OK(s.d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(s.d.GraphCreate(&other, 0));
  for (const CUgraph graph : {s.graph, other}) {
    CUgraphNode node = nullptr;
    EXPECT_OK(s.d.GraphAddEmptyNode(&node, graph, nullptr, 0));
  }
  EXPECT_OK(s.d.GraphRetainUserObject(s.graph, s.object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  EXPECT_OK(s.d.GraphInstantiateWithFlags(&executable, s.graph, 0));
  EXPECT_OK(s.d.GraphDestroy(s.graph));
  EXPECT_OK(s.d.GraphLaunch(executable, stream));
  EXPECT_OK(s.d.GraphLaunch(executable, stream));
  EXPECT_OK(s.d.GraphExecUpdate(executable, other, &info));
  EXPECT_EQ(s.died, 0);
  EXPECT_OK(s.d.StreamSynchronize(stream));
  EXPECT_EQ(s.died, 1);
  EXPECT_OK(s.d.GraphExecDestroy(executable));
  EXPECT_OK(s.d.GraphDestroy(other));
  EXPECT_OK(s.d.StreamDestroy(stream));
  EXPECT_EQ(s.died, 1);
  EXPECT_EQ(s.Live(Kind::UserObject), 0U);
}

TEST(UserObject, IsLetGoByTheUpdateWhenNothingIsUnderWay) {
  Shared s;
  CUgraph other = nullptr;
  CUgraphExec executable = nullptr;
  CUgraphExecUpdateResultInfo info{};
  EXPECT_OK(s.d.GraphCreate(&other, 0));
  EXPECT_OK(s.d.GraphRetainUserObject(s.graph, s.object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  EXPECT_OK(s.d.GraphInstantiateWithFlags(&executable, s.graph, 0));
  EXPECT_OK(s.d.GraphDestroy(s.graph));
  EXPECT_OK(s.d.GraphExecUpdate(executable, other, &info));
  EXPECT_EQ(s.died, 1);
  EXPECT_OK(s.d.GraphExecDestroy(executable));
  EXPECT_OK(s.d.GraphDestroy(other));
}

TEST(Accepted, ALevelDestroyedAloneStays) {
  const Simulated sim;
  CUmipmappedArray levels = nullptr;
  CUarray level = nullptr;
  CUarray again = nullptr;
  CUDA_ARRAY_DESCRIPTOR shape{};
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{16, 16, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
  EXPECT_OK(sim.d.MipmappedArrayCreate(&levels, &descriptor, 3));
  EXPECT_OK(sim.d.MipmappedArrayGetLevel(&level, levels, 1));
  EXPECT_OK(sim.d.ArrayDestroy(level));
  EXPECT_OK(sim.d.ArrayDestroy(level));
  EXPECT_OK(sim.d.ArrayGetDescriptor(&shape, level));
  EXPECT_EQ(shape.Width, 8U);
  EXPECT_OK(sim.d.MipmappedArrayGetLevel(&again, levels, 1));
  EXPECT_EQ(again, level);
  EXPECT_OK(sim.d.MipmappedArrayDestroy(levels));
  EXPECT_EQ(sim.d.ArrayDestroy(level), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(sim.Live(Kind::Array), 0U);
  EXPECT_EQ(sim.Live(Kind::MipmappedArray), 0U);
}

TEST(Accepted, AStaleTextureIsDestroyedOnceAndAnInventedOneIsNone) {
  const Simulated sim;
  CUdeviceptr p = 0;
  CUtexObject texture = 0;
  EXPECT_OK(sim.d.MemAlloc(&p, 4096));
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear = {p, CU_AD_FORMAT_FLOAT, 1, 4096};
  const CUDA_TEXTURE_DESC how{};
  EXPECT_OK(sim.d.TexObjectCreate(&texture, &resource, &how, nullptr));
  EXPECT_OK(sim.d.TexObjectDestroy(texture));
  EXPECT_OK(sim.d.TexObjectDestroy(texture));
  EXPECT_EQ(sim.d.TexObjectGetResourceDesc(&resource, texture), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(sim.d.TexObjectDestroy(4711), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(sim.Live(Kind::TextureObject), 0U);
}

TEST(Accepted, ACaptureEndedIntoNothingLeavesNothing) {
  Shared s;
  CUstream stream = nullptr;
  EXPECT_OK(s.d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(s.d.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_OK(s.d.LaunchHostFunc(
      stream, [](void* count) { ++*static_cast<int*>(count); }, &s.died));
  EXPECT_OK(s.d.StreamEndCapture(stream, nullptr));
  EXPECT_EQ(s.Live(Kind::Graph), 1U);  // the one of the constructor
  EXPECT_EQ(s.Live(Kind::GraphNode), 0U);
  EXPECT_OK(s.d.StreamSynchronize(stream));
  EXPECT_EQ(s.died, 0);
}

TEST(Accepted, ATextThatIsNoProgramFailsWhenSomethingOfItIsAskedFor) {
  const Simulated sim;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUmodule module = nullptr;
  unsigned count = 0;
  EXPECT_OK(sim.d.LibraryLoadData(&library, "this is no program", nullptr, nullptr, 0, nullptr, nullptr, 0));
  EXPECT_EQ(sim.d.LibraryGetKernel(&kernel, library, "f"), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(sim.d.LibraryGetModule(&module, library), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(sim.d.LibraryGetKernelCount(&count, library), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_OK(sim.d.LibraryUnload(library));
  EXPECT_EQ(sim.Live(Kind::Library), 0U);
  // A cubin is looked at when it is loaded.
  const char cubin[128] = "\177ELF";
  EXPECT_EQ(sim.d.LibraryLoadData(&library, cubin, nullptr, nullptr, 0, nullptr, nullptr, 0), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(sim.Live(Kind::Library), 0U);
}

// Who runs what the CPU waits for without a driver call: RunUnattended, called here as the drop-in's thread calls it.

struct Attended {
  int asked = 0;
  bool agrees = true;
};

WorldOptions With(Schedule schedule, Attended* attended) {
  WorldOptions options = {.device_bytes = std::uint64_t{256} << 20, .schedule = schedule, .observer = attended};
  options.on_awaited = [](void* observer) {
    Attended* const at = static_cast<Attended*>(observer);
    ++at->asked;
    return at->agrees;
  };
  return options;
}

void Bump(void* argument) { ++*static_cast<int*>(argument); }

struct Queue {
  explicit Queue(const Simulated& sim) {
    EXPECT_OK(sim.d.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT_OK(sim.d.MemAlloc(&memory, 4096));
  }
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
};

TEST(Attendance, AskedForOnceAndOnlyForWhatTheCpuSees) {
  Attended attended;
  Simulated sim(With(Schedule::Lazy, &attended));
  const Queue queue(sim);
  void* pinned = nullptr;
  EXPECT_OK(sim.d.MemAllocHost(&pinned, 4096));
  EXPECT_OK(sim.d.MemsetD8Async(queue.memory, 1, 4096, queue.stream));
  EXPECT_OK(sim.d.MemcpyHtoDAsync(queue.memory, pinned, 4096, queue.stream));
  EXPECT_EQ(attended.asked, 0);
  EXPECT_OK(sim.d.MemcpyDtoHAsync(pinned, queue.memory, 4096, queue.stream));
  EXPECT_EQ(attended.asked, 1);
  int count = 0;
  EXPECT_OK(sim.d.LaunchHostFunc(queue.stream, Bump, &count));
  EXPECT_EQ(attended.asked, 1);
}

TEST(Attendance, StepsInAfterAWholeIntervalWithoutACall) {
  for (const Schedule schedule : {Schedule::Lazy, Schedule::Fifo, Schedule::Random, Schedule::Adversarial}) {
    Attended attended;
    Simulated sim(With(schedule, &attended));
    const Queue queue(sim);
    int count = 0;
    EXPECT_OK(sim.d.LaunchHostFunc(queue.stream, Bump, &count));
    EXPECT_OK(sim.d.MemsetD8Async(queue.memory, 1, 4096, queue.stream));
    EXPECT_EQ(count, 0) << "the caller may hold what the function takes";
    Attendance attendance;
    EXPECT_EQ(RunUnattended(sim.world, &attendance), 0U) << "queued less than an interval ago";
    EXPECT_EQ(RunUnattended(sim.world, &attendance), 1U) << "and no more than what the CPU may wait for";
    EXPECT_EQ(count, 1);
    EXPECT_EQ(RunUnattended(sim.world, &attendance), 0U);
  }
}

TEST(Attendance, CallsPutItOffButNotForEver) {
  Attended attended;
  Simulated sim(With(Schedule::Lazy, &attended));
  const Queue queue(sim);
  int count = 0;
  EXPECT_OK(sim.d.LaunchHostFunc(queue.stream, Bump, &count));
  Attendance attendance;
  EXPECT_EQ(RunUnattended(sim.world, &attendance), 0U);
  int rounds = 0;
  for (; count == 0 && rounds < 100; ++rounds) {
    CUcontext current = nullptr;
    EXPECT_OK(sim.d.CtxGetCurrent(&current));
    EXPECT_EQ(RunUnattended(sim.world, &attendance), rounds == 9 ? 1U : 0U);
  }
  EXPECT_EQ(rounds, 10);
}

TEST(Attendance, AWaitRunsTheFunctionItselfAndOthersLast) {
  Attended attended;
  Simulated sim(With(Schedule::Fifo, &attended));
  const Queue queue(sim);
  const Queue other(sim);
  int count = 0;
  EXPECT_OK(sim.d.LaunchHostFunc(queue.stream, Bump, &count));
  EXPECT_OK(sim.d.MemsetD8Async(other.memory, 1, 4096, other.stream));
  EXPECT_OK(sim.d.StreamSynchronize(other.stream));
  EXPECT_EQ(count, 0);
  EXPECT_OK(sim.d.StreamSynchronize(queue.stream));
  EXPECT_EQ(count, 1);
}

TEST(Attendance, NobodyThereLeavesEverythingAsItWas) {
  Attended attended{0, false};
  Simulated sim(With(Schedule::Fifo, &attended));
  const Queue queue(sim);
  int count = 0;
  EXPECT_OK(sim.d.LaunchHostFunc(queue.stream, Bump, &count));
  EXPECT_EQ(count, 1);
  EXPECT_EQ(attended.asked, 1);
}

TEST(Attendance, AValueThatNobodyWroteYetIsWaitedFor) {
  Attended attended;
  Simulated sim(With(Schedule::Lazy, &attended));
  const Queue queue(sim);
  void* pinned = nullptr;
  EXPECT_OK(sim.d.MemAllocHost(&pinned, 4096));
  *static_cast<volatile unsigned*>(pinned) = 0;
  CUdeviceptr flag = 0;
  EXPECT_OK(sim.d.MemHostGetDevicePointer(&flag, pinned, 0));
  int count = 0;
  EXPECT_OK(sim.d.StreamWaitValue32(queue.stream, flag, 1, CU_STREAM_WAIT_VALUE_GEQ));
  EXPECT_OK(sim.d.LaunchHostFunc(queue.stream, Bump, &count));
  Attendance attendance;
  for (int i = 0; i < 30; ++i) EXPECT_EQ(RunUnattended(sim.world, &attendance), 0U);
  *static_cast<volatile unsigned*>(pinned) = 1;
  EXPECT_EQ(RunUnattended(sim.world, &attendance), 2U);
  EXPECT_EQ(count, 1);
  EXPECT_OK(sim.d.StreamSynchronize(queue.stream));
}

}  // namespace
}  // namespace cuaudit::sim::accepted_test
