// SPDX-License-Identifier: MIT
// What the runtime's structures say comes back unchanged from the driver's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "faults/cudart/array_plan.h"
#include "faults/cudart/node_plan.h"

namespace cuaudit::cudart::plans_test {
namespace {

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

}  // namespace
}  // namespace cuaudit::cudart::plans_test
