// SPDX-License-Identifier: MIT
#include "suites/contract/question.h"

namespace cuaudit::contract::array_questions {
namespace {

struct Levels {
  explicit Levels(Asker& a) {
    const CUDA_ARRAY3D_DESCRIPTOR shape{16, 16, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    a.Prepare(a.d.MipmappedArrayCreate(&all, &shape, 3));
    a.Prepare(a.d.MipmappedArrayGetLevel(&one, all, 1));
  }
  CUmipmappedArray all = nullptr;
  CUarray one = nullptr;
};

// An array for surfaces in a context of its own.
struct Elsewhere {
  explicit Elsewhere(Asker& a) {
    const CUDA_ARRAY3D_DESCRIPTOR shape{16, 4, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_SURFACE_LDST};
    a.Prepare(a.d.CtxCreate(&context, nullptr, 0, 0));
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    a.Prepare(a.d.Array3DCreate(&resource.res.array.hArray, &shape));
  }
  CUcontext context = nullptr;
  CUDA_RESOURCE_DESC resource{};
};

}  // namespace

void List(Questions& ask) {
  ask.Plain("array.create_destroy", "SUCCESS SUCCESS", [](Ready& a) {
    CUarray array = nullptr;
    CUDA_ARRAY_DESCRIPTOR shape{16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    a(a.d.ArrayCreate(&array, &shape));
    a(a.d.ArrayDestroy(array));
  });
  ask.Risky("array.destroy_twice", "SUCCESS crash", [](Ready& a) {
    CUDA_ARRAY_DESCRIPTOR shape{16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    const CUarray array = a.ArrayCreate(shape);
    a(a.d.ArrayDestroy(array));
    a(a.d.ArrayDestroy(array));
  });
  // What is copied is nothing; the handle is one that was released.
  ask.Risky("array.copy_of_nothing_after_destroy", "SUCCESS x3", [](Ready& a) {
    CUDA_ARRAY_DESCRIPTOR shape{16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    unsigned char bytes[16] = {};
    const CUarray array = a.ArrayCreate(shape);
    a.Prepare(a.d.ArrayDestroy(array));
    a(a.d.MemcpyHtoA(array, 0, bytes, 0));
    a(a.d.MemcpyAtoH(bytes, array, 0, 0));
    a(a.d.MemcpyAtoA(array, 0, array, 0, 0));
  });
  ask.Risky("array.copy_of_no_rows_after_destroy", "SUCCESS", [](Ready& a) {
    CUDA_ARRAY_DESCRIPTOR shape{16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    unsigned char bytes[16] = {};
    const CUarray array = a.ArrayCreate(shape);
    a.Prepare(a.d.ArrayDestroy(array));
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = bytes;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = array;
    copy.WidthInBytes = sizeof(bytes);
    a(a.d.Memcpy2D(&copy));
  });
  ask.Plain("array.bad_channels", "INVALID_VALUE", [](Ready& a) {
    CUarray array = nullptr;
    CUDA_ARRAY_DESCRIPTOR shape{16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    shape.NumChannels = 3;
    a(a.d.ArrayCreate(&array, &shape));
  });
  ask.Plain("array.zero_width", "INVALID_VALUE", [](Ready& a) {
    CUarray array = nullptr;
    CUDA_ARRAY_DESCRIPTOR shape{16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    shape.Width = 0;
    a(a.d.ArrayCreate(&array, &shape));
  });
  ask.Plain("array.descriptor", "SUCCESS 16 4 1", [](Ready& a) {
    CUDA_ARRAY_DESCRIPTOR shape{16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    const CUarray array = a.ArrayCreate(shape);
    shape = {};
    a(a.d.ArrayGetDescriptor(&shape, array), shape.Width, shape.Height, shape.NumChannels);
  });
  ask.Plain("array.copies", "SUCCESS SUCCESS 77", [](Ready& a) {
    CUDA_ARRAY_DESCRIPTOR shape{16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    unsigned char in[16] = {}, out[16] = {};
    in[9] = 77;
    const CUarray array = a.ArrayCreate(shape);
    a(a.d.MemcpyHtoA(array, 0, in, sizeof(in)));
    a(a.d.MemcpyAtoH(out, array, 0, sizeof(out)), out[9]);
  });
  ask.Plain("mipmapped.levels", "SUCCESS SUCCESS 8 INVALID_VALUE SUCCESS", [](Ready& a) {
    CUmipmappedArray array = nullptr;
    CUarray level = nullptr;
    CUDA_ARRAY3D_DESCRIPTOR shape{16, 16, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    CUDA_ARRAY_DESCRIPTOR seen{};
    a(a.d.MipmappedArrayCreate(&array, &shape, 3));
    a(a.d.MipmappedArrayGetLevel(&level, array, 1));
    a.Values(a.d.ArrayGetDescriptor(&seen, level), seen.Width);
    a(a.d.MipmappedArrayGetLevel(&level, array, 3));
    a(a.d.MipmappedArrayDestroy(array));
  });
  ask.Risky("mipmapped.level_destroyed", "SUCCESS SUCCESS", [](Ready& a, const Levels& levels) {
    a(a.d.ArrayDestroy(levels.one));
    a(a.d.MipmappedArrayDestroy(levels.all));
  });
  ask.Risky("mipmapped.level_destroyed_twice", "SUCCESS SUCCESS", [](Ready& a, const Levels& levels) {
    a(a.d.ArrayDestroy(levels.one));
    a(a.d.ArrayDestroy(levels.one));
  });
  ask.Risky("mipmapped.level_after_its_destroy", "SUCCESS SUCCESS 1", [](Ready& a, const Levels& levels) {
    CUarray again = nullptr;
    a(a.d.ArrayDestroy(levels.one));
    if (a(a.d.MipmappedArrayGetLevel(&again, levels.all, 1)) == CUDA_SUCCESS) a.Value(again == levels.one);
  });
  ask.Risky("mipmapped.level_used_after_its_destroy", "SUCCESS SUCCESS", [](Ready& a, const Levels& levels) {
    a(a.d.ArrayDestroy(levels.one));
    a(a.d.ArrayGetDescriptor(kIgnored, levels.one));
  });
  ask.Risky("mipmapped.destroyed_then_its_level", "SUCCESS crash", [](Ready& a, const Levels& levels) {
    a(a.d.MipmappedArrayDestroy(levels.all));
    a(a.d.ArrayDestroy(levels.one));
  });
  ask.Plain("texture.create_destroy", "SUCCESS SUCCESS", [](Ready& a) {
    CUDA_ARRAY_DESCRIPTOR shape{16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    CUtexObject texture = 0;
    CUDA_RESOURCE_DESC resource{};
    const CUarray array = a.ArrayCreate(shape);
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    const CUDA_TEXTURE_DESC how{};
    a(a.d.TexObjectCreate(&texture, &resource, &how, nullptr));
    a(a.d.TexObjectDestroy(texture));
  });
  // Of a context that has gone, asked and destroyed from another.
  ask.Fresh("texture.of_destroyed_context", "INVALID_VALUE SUCCESS", [](Ready& a, Elsewhere& there) {
    CUtexObject texture = 0;
    const CUDA_TEXTURE_DESC how{};
    a.Prepare(a.d.TexObjectCreate(&texture, &there.resource, &how, nullptr));
    a.Prepare(a.d.CtxDestroy(there.context));
    a(a.d.TexObjectGetResourceDesc(&there.resource, texture));
    a(a.d.TexObjectDestroy(texture));
  });
  ask.Fresh("surface.of_destroyed_context", "INVALID_VALUE SUCCESS", [](Ready& a, Elsewhere& there) {
    CUsurfObject surface = 0;
    a.Prepare(a.d.SurfObjectCreate(&surface, &there.resource));
    a.Prepare(a.d.CtxDestroy(there.context));
    a(a.d.SurfObjectGetResourceDesc(&there.resource, surface));
    a(a.d.SurfObjectDestroy(surface));
  });
  ask.Plain("surface.needs_flag", "SUCCESS", [](Ready& a) {
    CUDA_ARRAY_DESCRIPTOR shape{16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    CUsurfObject surface = 0;
    CUDA_RESOURCE_DESC resource{};
    const CUarray array = a.ArrayCreate(shape);
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    a(a.d.SurfObjectCreate(&surface, &resource));
  });
}

}  // namespace cuaudit::contract::array_questions
