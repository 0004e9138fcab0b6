// SPDX-License-Identifier: MIT
// Parts of cuaudit's CUDA runtime, without a driver: its structures beside the driver's, its errors, its tables.
#include <cuda.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>

#include "faults/cudart/arena.h"
#include "faults/cudart/calls.h"
#include "faults/cudart/descriptions.h"

namespace cuaudit::cudart::cudart_test {
namespace {

// What the runtime's structures say comes back unchanged from the driver's.

bool operator==(const cudaChannelFormatDesc& a, const cudaChannelFormatDesc& b) {
  return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w && a.f == b.f;
}

TEST(ArrayPlan, EveryPlainFormatComesBack) {
  for (const int bits : {8, 16, 32}) {
    for (const cudaChannelFormatKind kind : {cudaChannelFormatKindSigned, cudaChannelFormatKindUnsigned, cudaChannelFormatKindFloat}) {
      if (kind == cudaChannelFormatKindFloat && bits == 8) continue;
      for (const int channels : {1, 2, 4}) {
        const cudaChannelFormatDesc asked{bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 2 ? bits : 0, kind};
        Format format{};
        ASSERT_EQ(FormatOf(asked, &format), cudaSuccess);
        EXPECT_EQ(format.channels, static_cast<unsigned>(channels));
        EXPECT_TRUE(DescriptionOf(format) == asked) << bits << ' ' << kind << ' ' << channels;
      }
    }
  }
}

TEST(ArrayPlan, EveryFormatOfItsOwnComesBackAsItsKind) {
  for (int kind = cudaChannelFormatKindNV12; kind <= cudaChannelFormatKindUnsignedBlockCompressed7SRGB; ++kind) {
    const cudaChannelFormatDesc asked{8, 8, 8, 8, static_cast<cudaChannelFormatKind>(kind)};
    Format format{};
    ASSERT_EQ(FormatOf(asked, &format), cudaSuccess) << kind;
    EXPECT_EQ(DescriptionOf(format).f, asked.f) << kind;
  }
}

TEST(ArrayPlan, WhatNoArrayCanHaveIsRefused) {
  Format format{};
  for (const cudaChannelFormatDesc& asked :
       {cudaChannelFormatDesc{8, 8, 8, 0, cudaChannelFormatKindUnsigned}, cudaChannelFormatDesc{8, 0, 8, 0, cudaChannelFormatKindUnsigned},
        cudaChannelFormatDesc{8, 16, 0, 0, cudaChannelFormatKindUnsigned}, cudaChannelFormatDesc{8, 0, 0, 0, cudaChannelFormatKindFloat},
        cudaChannelFormatDesc{0, 0, 0, 0, cudaChannelFormatKindUnsigned}, cudaChannelFormatDesc{32, 0, 0, 0, cudaChannelFormatKindNone}}) {
    EXPECT_EQ(FormatOf(asked, &format), cudaErrorInvalidChannelDescriptor);
  }
}

TEST(ArrayPlan, ATextureDescriptionComesBack) {
  for (int bit = 0; bit < 6; ++bit) {
    cudaTextureDesc asked{};
    asked.addressMode[1] = cudaAddressModeMirror;
    asked.filterMode = cudaFilterModeLinear;
    asked.readMode = bit == 0 ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
    asked.normalizedCoords = bit == 1;
    asked.sRGB = bit == 2;
    asked.disableTrilinearOptimization = bit == 3;
    asked.seamlessCubemap = bit == 4;
    asked.maxAnisotropy = 4;
    asked.mipmapFilterMode = cudaFilterModeLinear;
    asked.mipmapLevelBias = 0.5F;
    asked.minMipmapLevelClamp = 1;
    asked.maxMipmapLevelClamp = 2;
    asked.borderColor[3] = 0.25F;
    const cudaTextureDesc seen = TextureOf(PlanTexture(asked));
    EXPECT_EQ(std::memcmp(&seen, &asked, sizeof(asked)), 0) << bit;
  }
}

TEST(ArrayPlan, AResourceDescriptionComesBack) {
  cudaResourceDesc asked{};
  asked.resType = cudaResourceTypePitch2D;
  asked.res.pitch2D = {&asked, cudaCreateChannelDesc(16, 16, 0, 0, cudaChannelFormatKindFloat), 5, 6, 512};
  CUDA_RESOURCE_DESC plan;
  ASSERT_EQ(PlanResource(asked, &plan), cudaSuccess);
  const cudaResourceDesc seen = ResourceOf(plan);
  EXPECT_EQ(seen.resType, asked.resType);
  EXPECT_EQ(seen.res.pitch2D.devPtr, &asked);
  EXPECT_TRUE(seen.res.pitch2D.desc == asked.res.pitch2D.desc);
  EXPECT_EQ(seen.res.pitch2D.pitchInBytes, 512U);
}

TEST(NodePlan, ARowOfBytesComesBackWithItsKind) {
  char here[8] = {};
  for (const cudaMemcpyKind kind :
       {cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault}) {
    CUDA_MEMCPY3D plan;
    ASSERT_EQ(PlanLinearCopy(here, here + 4, 4, kind, &plan), cudaSuccess);
    cudaMemcpy3DParms seen;
    ASSERT_EQ(CopyParameters(DriverRef{}, plan, &seen), cudaSuccess);
    EXPECT_EQ(seen.kind, kind);
    EXPECT_EQ(seen.dstPtr.ptr, here);
    EXPECT_EQ(seen.srcPtr.ptr, here + 4);
    EXPECT_EQ(seen.extent.width, 4U);
    EXPECT_EQ(seen.extent.height, 1U);
    EXPECT_EQ(seen.extent.depth, 1U);
  }
  CUDA_MEMCPY3D plan;
  EXPECT_EQ(PlanLinearCopy(here, here, 4, static_cast<cudaMemcpyKind>(7), &plan), cudaErrorInvalidMemcpyDirection);
}

struct Result {
  CUresult code;
  const char* name;
};

constexpr Result kResults[] = {
#define CUAUDIT_RESULT(name, value) {name, #name},
#include "driver_results.inc"
#undef CUAUDIT_RESULT
};

// What FromDriver relies on: a code of the driver is the runtime's code of the same number, wherever the runtime has a name for it.
TEST(FromDriver, KeepsNumbersThatTheRuntimeKnows) {
  EXPECT_EQ(FromDriver(CUDA_ERROR_INVALID_VALUE), cudaErrorInvalidValue);
  EXPECT_EQ(FromDriver(CUDA_ERROR_OUT_OF_MEMORY), cudaErrorMemoryAllocation);
  EXPECT_EQ(FromDriver(CUDA_ERROR_DEINITIALIZED), cudaErrorCudartUnloading);
  EXPECT_EQ(FromDriver(CUDA_ERROR_INVALID_CONTEXT), cudaErrorDeviceUninitialized);
  EXPECT_EQ(FromDriver(CUDA_ERROR_NOT_READY), cudaErrorNotReady);
  EXPECT_EQ(FromDriver(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT), cudaErrorStreamCaptureImplicit);
  for (const Result& result : kResults) {
    const std::string name = GetErrorName(FromDriver(result.code));
    EXPECT_TRUE(name.starts_with("cuda")) << result.name << " becomes " << name;
    const std::string own = GetErrorName(static_cast<cudaError_t>(result.code));
    EXPECT_EQ(name, own.starts_with("cuda") ? own : "cudaErrorUnknown") << result.name;
  }
}

TEST(ErrorTexts, AreThoseOfTheGenuineRuntime) {
  void* const genuine = dlopen(CUAUDIT_GENUINE_CUDART, RTLD_NOW | RTLD_LOCAL);
  if (genuine == nullptr) GTEST_SKIP() << "no " << CUAUDIT_GENUINE_CUDART;
  using Text = const char* (*)(cudaError_t);
  const Text name = reinterpret_cast<Text>(dlsym(genuine, "cudaGetErrorName"));
  const Text text = reinterpret_cast<Text>(dlsym(genuine, "cudaGetErrorString"));
  ASSERT_NE(name, nullptr);
  ASSERT_NE(text, nullptr);
  for (int code = -1; code <= 10001; ++code) {
    const cudaError_t error = static_cast<cudaError_t>(code);
    EXPECT_STREQ(GetErrorName(error), name(error)) << code;
    EXPECT_STREQ(GetErrorString(error), text(error)) << code;
  }
}

TEST(Slots, ReusesWhatWasGivenBack) {
  struct Five {
    std::uint64_t words[5];
  };
  Slots<Five> slots;
  std::set<void*> seen;
  for (int i = 0; i < 5000; ++i) EXPECT_TRUE(seen.insert(slots.New()).second);
  void* const one = *seen.begin();
  slots.Delete(static_cast<Five*>(one));
  EXPECT_EQ(static_cast<void*>(slots.New()), one);
}

// The map beside std::map under a random sequence: removals leave no hole that ends a search early.
TEST(PointerMap, AgreesWithAnOrdinaryMap) {
  PointerMap map;
  std::map<std::uintptr_t, std::uintptr_t> expected;
  std::mt19937_64 random(4);
  for (int step = 0; step < 200000; ++step) {
    const std::uintptr_t key = 16 * (1 + random() % 3000);
    void* const pointer = reinterpret_cast<void*>(key);
    if (random() % 2 == 0) {
      const std::uintptr_t value = random() | 1;
      ASSERT_TRUE(map.Put(pointer, reinterpret_cast<void*>(value)));
      expected[key] = value;
    } else {
      map.Remove(pointer);
      expected.erase(key);
    }
    const std::uintptr_t asked = 16 * (1 + random() % 3000);
    const auto at = expected.find(asked);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(map.Find(reinterpret_cast<void*>(asked))), at == expected.end() ? 0 : at->second);
  }
  for (const auto& [key, value] : expected) ASSERT_EQ(reinterpret_cast<std::uintptr_t>(map.Find(reinterpret_cast<void*>(key))), value);
}

TEST(PointerMap, HasNothingUnderNull) {
  PointerMap map;
  EXPECT_EQ(map.Find(nullptr), nullptr);
  EXPECT_FALSE(map.Put(nullptr, &map));
  map.Remove(nullptr);
}

}  // namespace
}  // namespace cuaudit::cudart::cudart_test
