// SPDX-License-Identifier: MIT
// Arrays of every shape, and the texture and surface objects over them.
#include "suites/contract/question.h"

namespace cuaudit::contract::texture_questions {
namespace {

CUDA_ARRAY3D_DESCRIPTOR Shape(std::size_t width, std::size_t height, std::size_t depth = 0, unsigned flags = 0,
                              CUarray_format format = CU_AD_FORMAT_UNSIGNED_INT8, unsigned channels = 1) {
  return {width, height, depth, format, channels, flags};
}

// Creates and destroys.
void TryShape(Asker& a, const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  CUarray array = nullptr;
  if (a(a.d.Array3DCreate(&array, &shape)) == CUDA_SUCCESS) (void)a.d.ArrayDestroy(array);
}

void TryTexture(Asker& a, const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& how, const CUDA_RESOURCE_VIEW_DESC* view = nullptr) {
  CUtexObject texture = 0;
  if (a(a.d.TexObjectCreate(&texture, &resource, &how, view)) == CUDA_SUCCESS) (void)a.d.TexObjectDestroy(texture);
}

CUDA_RESOURCE_DESC Linear(CUdeviceptr p, std::size_t bytes) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear.devPtr = p;
  resource.res.linear.format = CU_AD_FORMAT_FLOAT;
  resource.res.linear.numChannels = 1;
  resource.res.linear.sizeInBytes = bytes;
  return resource;
}

CUDA_RESOURCE_DESC Pitched(CUdeviceptr p, std::size_t pitch) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_PITCH2D;
  resource.res.pitch2D.devPtr = p;
  resource.res.pitch2D.format = CU_AD_FORMAT_FLOAT;
  resource.res.pitch2D.numChannels = 1;
  resource.res.pitch2D.width = 16;
  resource.res.pitch2D.height = 4;
  resource.res.pitch2D.pitchInBytes = pitch;
  return resource;
}

CUDA_RESOURCE_DESC OfArray(CUarray array) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  return resource;
}

struct Sixteen {
  explicit Sixteen(Asker& a) {
    const CUDA_ARRAY3D_DESCRIPTOR shape = Shape(16, 4);
    a.Prepare(a.d.Array3DCreate(&array, &shape));
  }
  CUarray array = nullptr;
};

}  // namespace

void List(Questions& ask) {
  ask.Risky("array.shapes", "SUCCESS x3 INVALID_VALUE x3", [](Ready& a) {
    TryShape(a, Shape(64, 0));
    TryShape(a, Shape(64, 8));
    TryShape(a, Shape(8, 8, 8));
    TryShape(a, Shape(8, 0, 8));
    TryShape(a, Shape(0, 8));
    TryShape(a, Shape(std::size_t{1} << 20, 0));
  });
  ask.Risky("array.flags", "SUCCESS x3 INVALID_VALUE INVALID_VALUE SUCCESS SUCCESS INVALID_VALUE", [](Ready& a) {
    TryShape(a, Shape(16, 16, 3, CUDA_ARRAY3D_LAYERED));
    TryShape(a, Shape(16, 0, 3, CUDA_ARRAY3D_LAYERED));
    TryShape(a, Shape(16, 16, 6, CUDA_ARRAY3D_CUBEMAP));
    TryShape(a, Shape(16, 16, 5, CUDA_ARRAY3D_CUBEMAP));
    TryShape(a, Shape(16, 8, 6, CUDA_ARRAY3D_CUBEMAP));
    TryShape(a, Shape(16, 16, 0, CUDA_ARRAY3D_SURFACE_LDST));
    TryShape(a, Shape(16, 16, 0, CUDA_ARRAY3D_TEXTURE_GATHER));
    TryShape(a, Shape(16, 16, 0, 0x4000));
  });
  ask.Risky("array.formats", "SUCCESS x4 INVALID_VALUE x4", [](Ready& a) {
    TryShape(a, Shape(16, 16, 0, 0, CU_AD_FORMAT_HALF, 4));
    TryShape(a, Shape(16, 16, 0, 0, CU_AD_FORMAT_UNORM_INT8X4, 4));
    TryShape(a, Shape(16, 16, 0, 0, CU_AD_FORMAT_BC1_UNORM, 4));
    TryShape(a, Shape(16, 16, 0, 0, CU_AD_FORMAT_BC7_UNORM, 4));
    TryShape(a, Shape(16, 16, 0, 0, CU_AD_FORMAT_NV12, 3));
    TryShape(a, Shape(16, 16, 0, 0, CU_AD_FORMAT_UNORM_INT8X4, 2));
    TryShape(a, Shape(16, 16, 0, 0, Beyond<CUarray_format>(0x77), 1));
    TryShape(a, Shape(16, 16, 0, 0, CU_AD_FORMAT_FLOAT, 0));
  });
  ask.Plain("array.descriptor_3d", "SUCCESS 8 4 2 4 1", [](Ready& a) {
    CUarray array = nullptr;
    CUDA_ARRAY3D_DESCRIPTOR shape = Shape(8, 4, 2, CUDA_ARRAY3D_LAYERED, CU_AD_FORMAT_FLOAT, 4);
    a.Prepare(a.d.Array3DCreate(&array, &shape));
    shape = {};
    a(a.d.Array3DGetDescriptor(&shape, array), shape.Width, shape.Height, shape.Depth, shape.NumChannels, shape.Flags);
    (void)a.d.ArrayDestroy(array);
  });
  ask.Risky("array.null", "INVALID_HANDLE INVALID_VALUE x3", [](Ready& a, const Sixteen& sixteen) {
    CUarray array = nullptr;
    a(a.d.ArrayDestroy(nullptr));
    a(a.d.ArrayGetDescriptor(nullptr, sixteen.array));
    a(a.d.Array3DCreate(&array, nullptr));
    const CUDA_ARRAY3D_DESCRIPTOR shape = Shape(16, 4);
    a(a.d.Array3DCreate(nullptr, &shape));
  });
  ask.Risky("array.copy_beyond", "INVALID_VALUE INVALID_VALUE SUCCESS", [](Ready& a, const Sixteen& sixteen) {
    unsigned char bytes[64] = {};
    a(a.d.MemcpyHtoA(sixteen.array, 0, bytes, 17));
    a(a.d.MemcpyAtoH(bytes, sixteen.array, 8, 9));
    a(a.d.MemcpyAtoH(bytes, sixteen.array, 8, 8));
  });
  ask.Plain("array.volume", "SUCCESS SUCCESS 33", [](Ready& a) {
    CUarray array = nullptr;
    const CUDA_ARRAY3D_DESCRIPTOR shape = Shape(4, 3, 2);
    unsigned char in[24] = {}, out[24] = {};
    in[23] = 33;
    a.Prepare(a.d.Array3DCreate(&array, &shape));
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = in;
    copy.srcPitch = 4;
    copy.srcHeight = 3;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = array;
    copy.WidthInBytes = 4;
    copy.Height = 3;
    copy.Depth = 2;
    a(a.d.Memcpy3D(&copy));
    CUDA_MEMCPY3D back{};
    back.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    back.srcArray = array;
    back.dstMemoryType = CU_MEMORYTYPE_HOST;
    back.dstHost = out;
    back.dstPitch = 4;
    back.dstHeight = 3;
    back.WidthInBytes = 4;
    back.Height = 3;
    back.Depth = 2;
    a(a.d.Memcpy3D(&back));
    a.Value(out[23]);
    (void)a.d.ArrayDestroy(array);
  });
  ask.Risky("array.plane", "INVALID_VALUE", [](Ready& a, const Sixteen& sixteen) {
    CUarray array = nullptr, plane = nullptr;
    const CUDA_ARRAY3D_DESCRIPTOR shape = Shape(16, 16, 0, 0, CU_AD_FORMAT_NV12, 3);
    if (a(a.d.Array3DCreate(&array, &shape)) != CUDA_SUCCESS) return;
    for (const unsigned index : {0U, 1U, 2U}) {
      if (a(a.d.ArrayGetPlane(&plane, array, index)) != CUDA_SUCCESS) continue;
      CUDA_ARRAY_DESCRIPTOR seen{};
      a.Values(a.d.ArrayGetDescriptor(&seen, plane), seen.Width, seen.Height, seen.NumChannels);
    }
    a(a.d.ArrayGetPlane(&plane, sixteen.array, 0));
  });
  ask.Risky("array.requirements", "INVALID_VALUE INVALID_VALUE SUCCESS 1 1 SUCCESS", [](Ready& a, const Sixteen& sixteen) {
    CUarray array = nullptr;
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs{};
    a(a.d.ArrayGetMemoryRequirements(&needs, sixteen.array, 0));
    a(a.d.ArrayGetSparseProperties(kIgnored, sixteen.array));
    const CUDA_ARRAY3D_DESCRIPTOR shape = Shape(64, 64, 0, CUDA_ARRAY3D_DEFERRED_MAPPING);
    if (a.Prepare(a.d.Array3DCreate(&array, &shape))) {
      a(a.d.ArrayGetMemoryRequirements(&needs, array, 0));
      a.Value(needs.size >= 4096);
      a.Value(needs.alignment >= 4096 && needs.size % needs.alignment == 0);
      a(a.d.ArrayDestroy(array));
    }
  });
  ask.Risky("array.sparse", "SUCCESS SUCCESS 64 64 1 0 0 SUCCESS", [](Ready& a) {
    CUarray array = nullptr;
    CUDA_ARRAY_SPARSE_PROPERTIES tiles{};
    const CUDA_ARRAY3D_DESCRIPTOR shape = Shape(1024, 1024, 0, CUDA_ARRAY3D_SPARSE, CU_AD_FORMAT_FLOAT, 4);
    if (a(a.d.Array3DCreate(&array, &shape)) != CUDA_SUCCESS) return;
    a(a.d.ArrayGetSparseProperties(&tiles, array), tiles.tileExtent.width, tiles.tileExtent.height, tiles.tileExtent.depth,
      tiles.miptailFirstLevel, tiles.flags);
    a(a.d.ArrayDestroy(array));
  });
  ask.Risky("mipmapped.too_many", "SUCCESS x3", [](Ready& a) {
    for (const unsigned levels : {5U, 6U, 0U}) {
      CUmipmappedArray array = nullptr;
      const CUDA_ARRAY3D_DESCRIPTOR shape = Shape(16, 16);
      if (a(a.d.MipmappedArrayCreate(&array, &shape, levels)) == CUDA_SUCCESS) (void)a.d.MipmappedArrayDestroy(array);
    }
  });
  ask.Risky("mipmapped.destroy_level", "SUCCESS SUCCESS", [](Ready& a) {
    CUmipmappedArray array = nullptr;
    CUarray level = nullptr;
    const CUDA_ARRAY3D_DESCRIPTOR shape = Shape(16, 16);
    a.Prepare(a.d.MipmappedArrayCreate(&array, &shape, 3));
    a.Prepare(a.d.MipmappedArrayGetLevel(&level, array, 1));
    a(a.d.ArrayDestroy(level));
    a(a.d.MipmappedArrayDestroy(array));
  });
  ask.Risky("mipmapped.null", "INVALID_HANDLE INVALID_HANDLE", [](Ready& a) {
    a(a.d.MipmappedArrayDestroy(nullptr));
    a(a.d.MipmappedArrayGetLevel(kIgnored, nullptr, 0));
  });
  ask.Risky("texture.linear", "SUCCESS INVALID_VALUE SUCCESS SUCCESS INVALID_VALUE", [](Ready& a) {
    const CUDA_TEXTURE_DESC how{};
    const CUdeviceptr p = a.MemAlloc(4096);
    TryTexture(a, Linear(p, 4096), how);
    TryTexture(a, Linear(p + 4, 256), how);
    TryTexture(a, Linear(p, 0), how);
    TryTexture(a, Linear(p, 1 << 20), how);
    (void)a.d.MemFree(p);
    TryTexture(a, Linear(0, 4096), how);
  });
  ask.Risky("texture.pitched", "SUCCESS INVALID_VALUE SUCCESS", [](Ready& a) {
    const CUDA_TEXTURE_DESC how{};
    const CUdeviceptr p = a.MemAlloc(4096);
    TryTexture(a, Pitched(p, 512), how);
    TryTexture(a, Pitched(p, 68), how);
    TryTexture(a, Pitched(p, 32), how);
  });
  ask.Risky("texture.bad", "INVALID_VALUE x6", [](Ready& a, const Sixteen& sixteen) {
    CUtexObject texture = 0;
    CUDA_TEXTURE_DESC how{};
    CUDA_RESOURCE_DESC resource = OfArray(sixteen.array);
    a(a.d.TexObjectCreate(nullptr, &resource, &how, nullptr));
    a(a.d.TexObjectCreate(&texture, nullptr, &how, nullptr));
    a(a.d.TexObjectCreate(&texture, &resource, nullptr, nullptr));
    how.addressMode[0] = Beyond<CUaddress_mode>(9);
    TryTexture(a, resource, how);
    how = {};
    resource.flags = 1;
    TryTexture(a, resource, how);
    resource = {};
    resource.resType = Beyond<CUresourcetype>(9);
    TryTexture(a, resource, how);
  });
  ask.Risky("texture.descriptors", "SUCCESS 0 1 SUCCESS 1 SUCCESS", [](Ready& a, const Sixteen& sixteen) {
    CUtexObject texture = 0;
    CUDA_TEXTURE_DESC how{};
    how.addressMode[0] = CU_TR_ADDRESS_MODE_CLAMP;
    CUDA_RESOURCE_DESC resource = OfArray(sixteen.array);
    a.Prepare(a.d.TexObjectCreate(&texture, &resource, &how, nullptr));
    resource = {};
    a(a.d.TexObjectGetResourceDesc(&resource, texture), resource.resType);
    a.Value(resource.res.array.hArray == sixteen.array);
    how = {};
    a(a.d.TexObjectGetTextureDesc(&how, texture), how.addressMode[0]);
    a(a.d.TexObjectGetResourceViewDesc(kIgnored, texture));
  });
  ask.Risky("texture.of_destroyed_array", "SUCCESS x3", [](Ready& a) {
    CUarray array = nullptr;
    const CUDA_ARRAY3D_DESCRIPTOR shape = Shape(16, 4);
    a.Prepare(a.d.Array3DCreate(&array, &shape));
    CUtexObject texture = 0;
    const CUDA_TEXTURE_DESC how{};
    CUDA_RESOURCE_DESC resource = OfArray(array);
    a.Prepare(a.d.TexObjectCreate(&texture, &resource, &how, nullptr));
    a(a.d.ArrayDestroy(array));
    a(a.d.TexObjectGetResourceDesc(&resource, texture));
    a(a.d.TexObjectDestroy(texture));
  });
  // A launch that names a texture among its words can be told from one that passes a small number.
  ask.Risky("texture.handles_are_no_small_numbers", "0 0", [](Ready& a, const Sixteen& sixteen) {
    CUtexObject texture = 0;
    CUsurfObject surface = 0;
    const CUDA_TEXTURE_DESC how{};
    const CUDA_RESOURCE_DESC resource = OfArray(sixteen.array);
    a.Prepare(a.d.TexObjectCreate(&texture, &resource, &how, nullptr));
    a.Prepare(a.d.SurfObjectCreate(&surface, &resource));
    a.Value(texture > 0xffff);
    a.Value(surface > 0xffff);
  });
  ask.Risky("texture.destroy_null", "SUCCESS", [](Ready& a) { a(a.d.TexObjectDestroy(0)); });
  ask.Risky("texture.destroy_twice", "SUCCESS SUCCESS", [](Ready& a, const Sixteen& sixteen) {
    CUtexObject texture = 0;
    const CUDA_TEXTURE_DESC how{};
    const CUDA_RESOURCE_DESC resource = OfArray(sixteen.array);
    a.Prepare(a.d.TexObjectCreate(&texture, &resource, &how, nullptr));
    a(a.d.TexObjectDestroy(texture));
    a(a.d.TexObjectDestroy(texture));
  });
  ask.Risky("surface.destroy_twice", "SUCCESS SUCCESS", [](Ready& a, const Sixteen& sixteen) {
    CUsurfObject surface = 0;
    const CUDA_RESOURCE_DESC resource = OfArray(sixteen.array);
    a.Prepare(a.d.SurfObjectCreate(&surface, &resource));
    a(a.d.SurfObjectDestroy(surface));
    a(a.d.SurfObjectDestroy(surface));
  });
  ask.Risky("surface.bad", "INVALID_VALUE x3 SUCCESS", [](Ready& a) {
    CUsurfObject surface = 0;
    const CUdeviceptr p = a.MemAlloc(4096);
    const CUDA_RESOURCE_DESC linear = Linear(p, 4096), nothing = OfArray(nullptr);
    a(a.d.SurfObjectCreate(&surface, &linear));
    a(a.d.SurfObjectCreate(&surface, &nothing));
    a(a.d.SurfObjectCreate(&surface, nullptr));
    a(a.d.SurfObjectDestroy(0));
  });
}

}  // namespace cuaudit::contract::texture_questions
