// SPDX-License-Identifier: MIT
// vmaf_b2_picture.cc: one picture, allocated in nine steps.
//
// Story   B2: an event, a record, a plane or the final pop fails; the error is returned, and what the earlier steps made stays.
// Source  https://github.com/lusoris/vmaf, docs/adr/0982, review round 26; written anew from the facts.
#include "suites/reducers/picture.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::vmaf_b2_picture {
namespace {

template <bool repaired>
Lifecycle OnePicture(const char* name) {
  struct State {
    Picture<repaired> picture;
    CUresult Init(DriverRef driver) { return picture.Allocate(driver); }
    CUresult Teardown(DriverRef driver) { return picture.Free(driver); }
  };
  return Lifecycle::Of<State>(name).Prepare(MakeTheContext);
}

TEST(VmafB2, LosesWhatTheEarlierStepsMade) {
  ExpectVectors(OnePicture<false>("vmaf_b2"), {
                                                  {"cuEventCreate#1=OUT_OF_MEMORY,refuse", "stream 1"},
                                                  {"cuEventCreate#2=OUT_OF_MEMORY,refuse", "event 1, stream 1"},
                                                  {"cuEventRecord#1=INVALID_CONTEXT,refuse", "event 2, stream 1"},
                                                  {"cuMemAllocPitch#1=OUT_OF_MEMORY,refuse", "event 2, stream 1"},
                                                  {"cuMemAllocPitch#2=OUT_OF_MEMORY,refuse", "device_memory 1, event 2, stream 1"},
                                                  {"cuMemAllocPitch#3=OUT_OF_MEMORY,refuse", "device_memory 2, event 2, stream 1"},
                                                  {"cuCtxPopCurrent#1=UNKNOWN,refuse", "device_memory 3, event 2, stream 1"},
                                              });
}

TEST(VmafB2, RepairedIsSilent) { ExpectSilent(OnePicture<true>("vmaf_b2_repaired")); }

}  // namespace
}  // namespace cuaudit::reducers::vmaf_b2_picture
