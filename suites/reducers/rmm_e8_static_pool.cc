// SPDX-License-Identifier: MIT
// rmm_e8_static_pool.cc: E8 of further_memory.cc as a program that leaves: the pool is emptied by an exit handler, as a static
// object's destructor is.
//
// Story   E8: when the handler runs, the context is gone: it waits for its event and frees its segments in a context that is no more. The
//         repair empties the pool while the context lives.
// Source  https://github.com/rapidsai/rmm/issues/2366; written anew from the facts.
// Usage   rmm_e8_static_pool defective|repaired
#ifdef CUAUDIT_SUBJECT
#include "suites/reducers/subject.h"

namespace cuaudit::reducers {
namespace {

struct Pool {
  CUevent freed;
  CUdeviceptr segment[2];
};
Pool pool;

int Empty() {
  int status = 0;
  if (pool.freed != nullptr && cuEventSynchronize(pool.freed) != CUDA_SUCCESS) status = Failed("wait");
  if (pool.freed != nullptr && cuEventDestroy(pool.freed) != CUDA_SUCCESS) status = Failed("event destroy");
  pool.freed = nullptr;
  for (CUdeviceptr& one : pool.segment) {
    if (one != 0 && cuMemFree(one) != CUDA_SUCCESS) status = Failed("free");
    one = 0;
  }
  return status;
}

void AtExit() { (void)Empty(); }

int Fill() {
  if (cuEventCreate(&pool.freed, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return Failed("event");
  for (CUdeviceptr& one : pool.segment) {
    if (cuMemAlloc(&one, 1 << 20) != CUDA_SUCCESS) return Failed("segment");
  }
  return cuEventRecord(pool.freed, nullptr) == CUDA_SUCCESS ? 0 : Failed("record");
}

int Run(bool at_exit) {
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS) return Failed("init");
  if (CreateContext(&context) != CUDA_SUCCESS) return Failed("context");
  if (at_exit) (void)atexit(AtExit);
  int status = Fill();
  if (!at_exit) status |= Empty();
  return cuCtxDestroy(context) == CUDA_SUCCESS ? status : Failed("context destroy");
}

}  // namespace
}  // namespace cuaudit::reducers

int main(int argc, char** argv) { return cuaudit::reducers::Run(cuaudit::reducers::IsDefective(argc, argv)); }
#else
#include "suites/reducers/program_vectors.h"

namespace cuaudit::reducers::rmm_e8_static_pool {
namespace {

constexpr const char* kProgram = "rmm_e8_static_pool";

// Waited for and destroyed; the two segments are freed one after the other.
TEST(RmmE8Program, FreesInAContextThatIsGone) {
  EXPECT_EQ(InOneRun(kProgram, "defective"),
            "use_after_release event, use_after_release event, use_after_release device_memory, use_after_release device_memory");
}

TEST(RmmE8Program, RepairedIsSilent) {
  EXPECT_EQ(InOneRun(kProgram, "repaired"), "");
  ExpectUnwindsCleanly(kProgram, "repaired");
}

}  // namespace
}  // namespace cuaudit::reducers::rmm_e8_static_pool
#endif
