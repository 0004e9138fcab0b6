// SPDX-License-Identifier: MIT
// Arrays, mipmapped arrays, texture and surface objects.
#include "suites/cudart/question.h"

namespace cuaudit::cudart::array_questions {
namespace {

cudaChannelFormatDesc Floats() { return cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat); }

cudaArray_t NewArray(Asker& a, unsigned flags = 0) {
  const cudaChannelFormatDesc format = Floats();
  cudaArray_t array = nullptr;
  a.Prepare(cudaMallocArray(&array, &format, 16, 8, flags));
  return array;
}

cudaResourceDesc Of(cudaArray_t array) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  return resource;
}

constexpr Question kQuestions[] = {
    {"array.create_and_free",
     [](Asker& a) {
       const cudaChannelFormatDesc format = Floats();
       cudaArray_t array = nullptr;
       a(cudaMallocArray(&array, &format, 16, 8, 0));
       a(cudaFreeArray(array));
       a(cudaMallocArray(&array, &format, 16, 0, 0));
       a(cudaFreeArray(array));
       a(cudaFreeArray(nullptr));
     }},
    {"array.create_bad",
     [](Asker& a) {
       const cudaChannelFormatDesc format = Floats();
       const cudaChannelFormatDesc odd = cudaCreateChannelDesc(7, 0, 0, 0, cudaChannelFormatKindFloat);
       const cudaChannelFormatDesc three = cudaCreateChannelDesc(8, 8, 8, 0, cudaChannelFormatKindUnsigned);
       cudaArray_t array = nullptr;
       a(cudaMallocArray(nullptr, &format, 16, 8, 0));
       a(cudaMallocArray(&array, nullptr, 16, 8, 0));
       a(cudaMallocArray(&array, &odd, 16, 8, 0));
       a(cudaMallocArray(&array, &three, 16, 8, 0));
       a(cudaMallocArray(&array, &format, 0, 8, 0));
       a(cudaMallocArray(&array, &format, 1 << 30, 8, 0));
       a(cudaMallocArray(&array, &format, 16, 8, 0x10000));
     }},
    {"array.free_twice",
     [](Asker& a) {
       const cudaArray_t array = NewArray(a);
       a(cudaFreeArray(array));
       a(cudaFreeArray(array));
     }},
    {"array.free_as_memory",
     [](Asker& a) {
       const cudaArray_t array = NewArray(a);
       a(cudaFree(array));
       a(cudaFreeArray(array));
     }},
    {"array.info",
     [](Asker& a) {
       const cudaArray_t array = NewArray(a, cudaArraySurfaceLoadStore);
       cudaChannelFormatDesc format{};
       cudaExtent extent{};
       unsigned flags = 77;
       a(cudaArrayGetInfo(&format, &extent, &flags, array));
       a.Value(format.x);
       a.Value(format.f);
       a.Value(static_cast<long long>(extent.width));
       a.Value(static_cast<long long>(extent.height));
       a.Value(static_cast<long long>(extent.depth));
       a.Value(flags);
       a(cudaArrayGetInfo(nullptr, nullptr, nullptr, array));
       a(cudaGetChannelDesc(&format, array));
       a(cudaGetChannelDesc(nullptr, array));
     }},
    {"array.info_null",
     [](Asker& a) {
       cudaChannelFormatDesc format{};
       a.Prepare(cudaFree(nullptr));
       a(cudaArrayGetInfo(&format, nullptr, nullptr, nullptr));
       a(cudaGetChannelDesc(&format, nullptr));
     }},
    {"array.three_dimensions",
     [](Asker& a) {
       const cudaChannelFormatDesc format = Floats();
       for (const unsigned flags : {0U, unsigned{cudaArrayLayered}, unsigned{cudaArrayCubemap}, unsigned{cudaArraySurfaceLoadStore},
                                    unsigned{cudaArrayTextureGather}}) {
         cudaArray_t array = nullptr;
         if (a(cudaMalloc3DArray(&array, &format, cudaExtent{8, 8, 6}, flags)) != cudaSuccess) continue;
         cudaExtent extent{};
         unsigned seen = 77;
         a(cudaArrayGetInfo(nullptr, &extent, &seen, array));
         a.Value(static_cast<long long>(extent.depth));
         a.Value(seen);
       }
     }},
    {"array.requirements",
     [](Asker& a) {
       const cudaArray_t array = NewArray(a);
       cudaArrayMemoryRequirements wanted{};
       a(cudaArrayGetMemoryRequirements(&wanted, array, 0));
       a(cudaArrayGetMemoryRequirements(nullptr, array, 0));
       cudaArraySparseProperties sparse{};
       a(cudaArrayGetSparseProperties(&sparse, array));
       cudaArray_t plane = nullptr;
       a(cudaArrayGetPlane(&plane, array, 0));
     }},
    {"mipmap.levels",
     [](Asker& a) {
       const cudaChannelFormatDesc format = Floats();
       cudaMipmappedArray_t mipmap = nullptr;
       a(cudaMallocMipmappedArray(&mipmap, &format, cudaExtent{16, 8, 0}, 3, 0));
       for (const unsigned level : {0U, 1U, 2U}) {
         cudaArray_t array = nullptr;
         cudaExtent extent{};
         a(cudaGetMipmappedArrayLevel(&array, mipmap, level));
         a(cudaArrayGetInfo(nullptr, &extent, nullptr, array));
         a.Value(static_cast<long long>(extent.width));
       }
       cudaArray_t array = nullptr;
       a(cudaGetMipmappedArrayLevel(&array, mipmap, 3));
       a(cudaGetMipmappedArrayLevel(nullptr, mipmap, 0));
       a(cudaFreeMipmappedArray(mipmap));
       a(cudaFreeMipmappedArray(nullptr));
     }},
    {"mipmap.too_many_levels",
     [](Asker& a) {
       const cudaChannelFormatDesc format = Floats();
       cudaMipmappedArray_t mipmap = nullptr;
       a(cudaMallocMipmappedArray(&mipmap, &format, cudaExtent{16, 8, 0}, 30, 0));
       if (mipmap != nullptr) {
         cudaArray_t array = nullptr;
         a(cudaGetMipmappedArrayLevel(&array, mipmap, 4));
         a(cudaGetMipmappedArrayLevel(&array, mipmap, 5));
       }
       a(cudaMallocMipmappedArray(&mipmap, &format, cudaExtent{16, 8, 0}, 0, 0));
     }},
    {"mipmap.free_twice",
     [](Asker& a) {
       const cudaChannelFormatDesc format = Floats();
       cudaMipmappedArray_t mipmap = nullptr;
       a(cudaMallocMipmappedArray(&mipmap, &format, cudaExtent{16, 8, 0}, 2, 0));
       a(cudaFreeMipmappedArray(mipmap));
       a(cudaFreeMipmappedArray(mipmap));
     }},
    {"mipmap.free_a_level",
     [](Asker& a) {
       const cudaChannelFormatDesc format = Floats();
       cudaMipmappedArray_t mipmap = nullptr;
       cudaArray_t array = nullptr;
       a(cudaMallocMipmappedArray(&mipmap, &format, cudaExtent{16, 8, 0}, 2, 0));
       a(cudaGetMipmappedArrayLevel(&array, mipmap, 0));
       a(cudaFreeArray(array));
     }},
    {"texture.of_array",
     [](Asker& a) {
       const cudaResourceDesc resource = Of(NewArray(a));
       cudaTextureDesc texture{};
       texture.addressMode[0] = cudaAddressModeClamp;
       texture.filterMode = cudaFilterModeLinear;
       texture.normalizedCoords = 1;
       cudaTextureObject_t object = 0;
       a(cudaCreateTextureObject(&object, &resource, &texture, nullptr));
       a.Value(object != 0);
       cudaResourceDesc seen{};
       cudaTextureDesc how{};
       a(cudaGetTextureObjectResourceDesc(&seen, object));
       a.Value(seen.resType);
       a.Value(seen.res.array.array == resource.res.array.array);
       a(cudaGetTextureObjectTextureDesc(&how, object));
       a.Value(how.addressMode[0]);
       a.Value(how.filterMode);
       a.Value(how.normalizedCoords);
       a.Value(how.readMode);
       cudaResourceViewDesc view{};
       a(cudaGetTextureObjectResourceViewDesc(&view, object));
       a(cudaDestroyTextureObject(object));
     }},
    {"texture.of_memory",
     [](Asker& a) {
       cudaResourceDesc resource{};
       resource.resType = cudaResourceTypeLinear;
       resource.res.linear.devPtr = NewBlock(a);
       resource.res.linear.desc = Floats();
       resource.res.linear.sizeInBytes = 4096;
       const cudaTextureDesc texture{};
       cudaTextureObject_t object = 0;
       a(cudaCreateTextureObject(&object, &resource, &texture, nullptr));
       cudaResourceDesc seen{};
       a(cudaGetTextureObjectResourceDesc(&seen, object));
       a.Value(seen.res.linear.desc.x);
       a.Value(seen.res.linear.desc.f);
       a.Value(static_cast<long long>(seen.res.linear.sizeInBytes));
       a(cudaDestroyTextureObject(object));
       resource.res.linear.devPtr = nullptr;
       a(cudaCreateTextureObject(&object, &resource, &texture, nullptr));
     }},
    {"texture.of_pitched_memory",
     [](Asker& a) {
       cudaResourceDesc resource{};
       resource.resType = cudaResourceTypePitch2D;
       resource.res.pitch2D = {NewBlock(a), Floats(), 16, 8, 512};
       const cudaTextureDesc texture{};
       cudaTextureObject_t object = 0;
       a(cudaCreateTextureObject(&object, &resource, &texture, nullptr));
       a(cudaDestroyTextureObject(object));
       resource.res.pitch2D.pitchInBytes = 100;
       a(cudaCreateTextureObject(&object, &resource, &texture, nullptr));
     }},
    {"texture.bad",
     [](Asker& a) {
       const cudaResourceDesc resource = Of(NewArray(a));
       const cudaResourceDesc nothing = Of(nullptr);
       const cudaTextureDesc texture{};
       cudaTextureObject_t object = 0;
       a(cudaCreateTextureObject(nullptr, &resource, &texture, nullptr));
       a(cudaCreateTextureObject(&object, nullptr, &texture, nullptr));
       a(cudaCreateTextureObject(&object, &resource, nullptr, nullptr));
       a(cudaCreateTextureObject(&object, &nothing, &texture, nullptr));
     }},
    {"texture.destroy_zero",
     [](Asker& a) {
       a(cudaDestroyTextureObject(0));
       a(cudaDestroySurfaceObject(0));
     }},
    {"texture.destroy_twice",
     [](Asker& a) {
       const cudaResourceDesc resource = Of(NewArray(a));
       const cudaTextureDesc texture{};
       cudaTextureObject_t object = 0;
       a(cudaCreateTextureObject(&object, &resource, &texture, nullptr));
       a(cudaDestroyTextureObject(object));
       a(cudaDestroyTextureObject(object));
     }},
    {"texture.with_view",
     [](Asker& a) {
       const cudaResourceDesc resource = Of(NewArray(a));
       const cudaTextureDesc texture{};
       cudaResourceViewDesc view{};
       view.format = cudaResViewFormatFloat1;
       view.width = 16;
       view.height = 8;
       cudaTextureObject_t object = 0;
       a(cudaCreateTextureObject(&object, &resource, &texture, &view));
       cudaResourceViewDesc seen{};
       a(cudaGetTextureObjectResourceViewDesc(&seen, object));
       a.Value(seen.format);
       a.Value(static_cast<long long>(seen.width));
     }},
    {"surface.of_array",
     [](Asker& a) {
       const cudaResourceDesc good = Of(NewArray(a, cudaArraySurfaceLoadStore));
       const cudaResourceDesc plain = Of(NewArray(a));
       cudaSurfaceObject_t object = 0;
       a(cudaCreateSurfaceObject(&object, &good));
       cudaResourceDesc seen{};
       a(cudaGetSurfaceObjectResourceDesc(&seen, object));
       a.Value(seen.resType);
       a(cudaDestroySurfaceObject(object));
       a(cudaCreateSurfaceObject(&object, &plain));
       a(cudaCreateSurfaceObject(nullptr, &good));
       a(cudaCreateSurfaceObject(&object, nullptr));
     }},
    {"texture.array_freed_first",
     [](Asker& a) {
       const cudaResourceDesc resource = Of(NewArray(a));
       const cudaTextureDesc texture{};
       cudaTextureObject_t object = 0;
       a(cudaCreateTextureObject(&object, &resource, &texture, nullptr));
       a(cudaFreeArray(resource.res.array.array));
       a(cudaDestroyTextureObject(object));
     }},
};

}  // namespace
}  // namespace cuaudit::cudart::array_questions

namespace cuaudit::cudart {
std::span<const Question> ArrayQuestions() { return array_questions::kQuestions; }
}  // namespace cuaudit::cudart
