// SPDX-License-Identifier: MIT
// vmaf_b11_pinned_private.cc: a pinned buffer with private data beside it.
//
// Story   B11: the private data is host memory, and there is none. One form returns the error and forgets the pinned buffer, the other
//         does not look and writes through null.
// Source  https://github.com/lusoris/vmaf, docs/adr/0960 and its neighbours; written anew from the facts.
// Usage   vmaf_b11_pinned_private defective|defective_writes|repaired
#ifdef CUAUDIT_SUBJECT
#include "suites/reducers/subject.h"

namespace cuaudit::reducers {
namespace {

enum class Form { Repaired, Forgets, Writes };

struct Private {
  void* pinned;
};

Private* PinnedAlloc(Form form) {
  void* pinned = nullptr;
  if (cuMemHostAlloc(&pinned, 4096, 0) != CUDA_SUCCESS) return nullptr;
  Private* const volatile data = static_cast<Private*>(malloc(sizeof(Private)));
  if (data == nullptr && form != Form::Writes) {
    if (form == Form::Repaired) (void)cuMemFreeHost(pinned);
    return nullptr;
  }
  data->pinned = pinned;
  return data;
}

int Run(Form form) {
  Private* const data = PinnedAlloc(form);
  if (data == nullptr) return Failed("pinned");
  const CUresult code = cuMemFreeHost(data->pinned);
  free(data);
  return code == CUDA_SUCCESS ? 0 : Failed("pinned free");
}

}  // namespace
}  // namespace cuaudit::reducers

int main(int argc, char** argv) {
  using namespace cuaudit::reducers;
  const char* const form = argc > 1 ? argv[1] : "repaired";
  if (Enter() != 0) return 1;
  const int status = Run(strcmp(form, "defective") == 0          ? Form::Forgets
                         : strcmp(form, "defective_writes") == 0 ? Form::Writes
                                                                 : Form::Repaired);
  return Leave() != 0 || status != 0 ? 1 : 0;
}
#else
#include "suites/reducers/program_vectors.h"

namespace cuaudit::reducers::vmaf_b11_pinned_private {
namespace {

constexpr const char* kProgram = "vmaf_b11_pinned_private";

TEST(VmafB11, ThePinnedBufferStays) { EXPECT_EQ(Replayed("malloc#1=host_oom", kProgram, "defective"), "pinned_memory 1"); }

TEST(VmafB11, WritesThroughNull) { EXPECT_EQ(Replayed("malloc#1=host_oom", kProgram, "defective_writes"), "crash"); }

TEST(VmafB11, RepairedIsSilent) { ExpectNothingLost(kProgram, "repaired", "host_oom", 1); }

}  // namespace
}  // namespace cuaudit::reducers::vmaf_b11_pinned_private
#endif
