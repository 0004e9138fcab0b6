// SPDX-License-Identifier: MIT
// Texture and surface references of modules.
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"
#include "faults/sim/kernel/module.h"
#include "faults/sim/memory/array.h"

namespace cuaudit::sim {
namespace {

constexpr int kDimensions = 3;
constexpr std::uint64_t kOffsetUnit = 512;  // what CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT says
constexpr unsigned kReferenceFlags = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                                     CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;

bool IsFilter(CUfilter_mode mode) { return mode == CU_TR_FILTER_MODE_POINT || mode == CU_TR_FILTER_MODE_LINEAR; }

TextureReference* Find(Call& call, CUtexref handle, CUresult* result) {
  TextureReference* const found = call.Follow<TextureReference>(handle);
  if (found == nullptr) *result = CUDA_ERROR_INVALID_HANDLE;
  return found;
}

// Calls `set` with a live reference.
template <typename F>
CUresult With(Call& call, CUtexref handle, F set) {
  CUresult result = CUDA_SUCCESS;
  TextureReference* const reference = Find(call, handle, &result);
  return reference == nullptr ? result : set(*reference);
}

template <typename T>
CUresult Answer(Call& call, CUtexref handle, T* out, T TextureReference::*member) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return With(call, handle, [&](const TextureReference& reference) {
    *out = reference.*member;
    return CUDA_SUCCESS;
  });
}

void Unbind(TextureReference& reference) {
  reference.address = 0;
  reference.array = 0;
  reference.levels = 0;
}

}  // namespace

CUresult api::TexRefCreate(Call& call, CUtexref* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  TextureReference* const reference = call.world.Make<TextureReference>(call.context);
  if (reference == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = ToHandle<CUtexref>(reference);
  return CUDA_SUCCESS;
}

CUresult api::ModuleGetTexRef(Call& call, CUtexref* out, CUmodule handle, const char* name) {
  if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* const module = call.world.Find<Module>(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const Symbol* const symbol = FindSymbol(call.world.arena, module->image, name, false);
  if (symbol == nullptr || !symbol->texture) return CUDA_ERROR_NOT_FOUND;
  for (const TextureReference* const each : module->textures) {
    if (each->symbol != symbol) continue;
    *out = ToHandle<CUtexref>(each);
    return CUDA_SUCCESS;
  }
  TextureReference* const made = call.world.Make<TextureReference>(module->owner, false);
  if (made == nullptr || !module->textures.Push(call.world.arena, made)) {
    if (made != nullptr) call.world.Destroy(made);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  made->module = module;
  made->symbol = symbol;
  *out = ToHandle<CUtexref>(made);
  return CUDA_SUCCESS;
}

CUresult api::ModuleGetSurfRef(Call& call, CUsurfref* out, CUmodule handle, const char* name) {
  if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* const module = call.world.Find<Module>(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const Symbol* const symbol = FindSymbol(call.world.arena, module->image, name, false);
  if (symbol == nullptr || !symbol->surface) return CUDA_ERROR_NOT_FOUND;
  for (const SurfaceReference* const each : module->surfaces) {
    if (each->symbol != symbol) continue;
    *out = ToHandle<CUsurfref>(each);
    return CUDA_SUCCESS;
  }
  SurfaceReference* const made = call.world.Make<SurfaceReference>(nullptr, false);
  if (made == nullptr || !module->surfaces.Push(call.world.arena, made)) {
    if (made != nullptr) call.world.Destroy(made);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  made->symbol = symbol;
  *out = ToHandle<CUsurfref>(made);
  return CUDA_SUCCESS;
}

CUresult api::SurfRefSetArray(Call& call, CUsurfref handle, CUarray array_handle, unsigned int flags) {
  SurfaceReference* const reference = call.world.Find<SurfaceReference>(handle);
  const Array* const array = call.Follow<Array>(array_handle);
  if (reference == nullptr || array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  reference->array = array->handle;
  return CUDA_SUCCESS;
}

CUresult api::SurfRefGetArray(Call& call, CUarray* out, CUsurfref handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const SurfaceReference* const reference = call.world.Find<SurfaceReference>(handle);
  if (reference == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const Array* const array = call.world.Find<Array>(reference->array);
  if (array == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = ToHandle<CUarray>(array);
  return CUDA_SUCCESS;
}

CUresult api::TexRefDestroy(Call& call, CUtexref handle) {
  return With(call, handle, [&](TextureReference& reference) {
    if (reference.module != nullptr) reference.module->textures.EraseValue(&reference);
    call.world.Destroy(&reference);
    return CUDA_SUCCESS;
  });
}

CUresult api::TexRefSetAddress(Call& call, std::size_t* offset, CUtexref handle, CUdeviceptr address, std::size_t bytes) {
  return With(call, handle, [&](TextureReference& reference) {
    const Range* const range = call.world.ranges.Find(address);
    if (range == nullptr || bytes > range->base + range->size - address) return CUDA_ERROR_INVALID_VALUE;
    const std::uint64_t beyond = address % kOffsetUnit;
    if (beyond != 0 && offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (offset != nullptr) *offset = beyond;
    Unbind(reference);
    reference.address = address - beyond;
    return CUDA_SUCCESS;
  });
}

CUresult api::TexRefSetAddress2D(Call& call, CUtexref handle, const CUDA_ARRAY_DESCRIPTOR* descriptor, CUdeviceptr address,
                                 std::size_t pitch) {
  return With(call, handle, [&](TextureReference& reference) {
    if (descriptor == nullptr || address % kOffsetUnit != 0) return CUDA_ERROR_INVALID_VALUE;
    const Range* const range = call.world.ranges.Find(address);
    if (range == nullptr || pitch * descriptor->Height > range->base + range->size - address) return CUDA_ERROR_INVALID_VALUE;
    Unbind(reference);
    reference.address = address;
    reference.format = descriptor->Format;
    reference.channels = static_cast<int>(descriptor->NumChannels);
    return CUDA_SUCCESS;
  });
}

CUresult api::TexRefGetAddress(Call& call, CUdeviceptr* address, CUtexref handle) {
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return With(call, handle, [&](const TextureReference& reference) {
    if (reference.address == 0) return CUDA_ERROR_INVALID_VALUE;
    *address = reference.address;
    return CUDA_SUCCESS;
  });
}

CUresult api::TexRefSetArray(Call& call, CUtexref handle, CUarray array_handle, unsigned int flags) {
  return With(call, handle, [&](TextureReference& reference) {
    const Array* const array = call.Follow<Array>(array_handle);
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if ((flags & ~unsigned{CU_TRSA_OVERRIDE_FORMAT}) != 0) return CUDA_ERROR_INVALID_VALUE;
    Unbind(reference);
    reference.array = array->handle;
    if (flags == 0) return CUDA_SUCCESS;
    reference.format = array->descriptor.Format;
    reference.channels = static_cast<int>(array->descriptor.NumChannels);
    return CUDA_SUCCESS;
  });
}

CUresult api::TexRefGetArray(Call& call, CUarray* out, CUtexref handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return With(call, handle, [&](const TextureReference& reference) {
    const Array* const array = call.world.Find<Array>(reference.array);
    if (array == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = ToHandle<CUarray>(array);
    return CUDA_SUCCESS;
  });
}

CUresult api::TexRefSetMipmappedArray(Call& call, CUtexref handle, CUmipmappedArray levels_handle, unsigned int flags) {
  return With(call, handle, [&](TextureReference& reference) {
    const MipmappedArray* const levels = FindLevels(call, levels_handle);
    if (levels == nullptr) return RefuseLevels(call, levels_handle);
    if (flags != CU_TRSA_OVERRIDE_FORMAT) return CUDA_ERROR_INVALID_VALUE;
    Unbind(reference);
    reference.levels = levels->handle;
    reference.format = levels->descriptor.Format;
    reference.channels = static_cast<int>(levels->descriptor.NumChannels);
    return CUDA_SUCCESS;
  });
}

CUresult api::TexRefGetMipmappedArray(Call& call, CUmipmappedArray* out, CUtexref handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return With(call, handle, [&](const TextureReference& reference) {
    const MipmappedArray* const levels = call.world.Find<MipmappedArray>(reference.levels);
    if (levels == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = ToHandle<CUmipmappedArray>(levels);
    return CUDA_SUCCESS;
  });
}

CUresult api::TexRefSetFormat(Call& call, CUtexref handle, CUarray_format format, int channels) {
  return With(call, handle, [&](TextureReference& reference) {
    if (channels != 1 && channels != 2 && channels != 4) return CUDA_ERROR_INVALID_VALUE;
    reference.format = format;
    reference.channels = channels;
    return CUDA_SUCCESS;
  });
}

CUresult api::TexRefGetFormat(Call& call, CUarray_format* format, int* channels, CUtexref handle) {
  return With(call, handle, [&](const TextureReference& reference) {
    if (format != nullptr) *format = reference.format;
    if (channels != nullptr) *channels = reference.channels;
    return CUDA_SUCCESS;
  });
}

CUresult api::TexRefSetAddressMode(Call& call, CUtexref handle, int dimension, CUaddress_mode mode) {
  return With(call, handle, [&](TextureReference& reference) {
    if (dimension < 0 || dimension >= kDimensions || mode < CU_TR_ADDRESS_MODE_WRAP || mode > CU_TR_ADDRESS_MODE_BORDER)
      return CUDA_ERROR_INVALID_VALUE;
    reference.address_mode[dimension] = mode;
    return CUDA_SUCCESS;
  });
}

CUresult api::TexRefGetAddressMode(Call& call, CUaddress_mode* mode, CUtexref handle, int dimension) {
  return With(call, handle, [&](const TextureReference& reference) {
    if (mode == nullptr || dimension < 0 || dimension >= kDimensions) return CUDA_ERROR_INVALID_VALUE;
    *mode = reference.address_mode[dimension];
    return CUDA_SUCCESS;
  });
}

CUresult api::TexRefSetFilterMode(Call& call, CUtexref handle, CUfilter_mode mode) {
  return With(call, handle, [&](TextureReference& reference) {
    if (!IsFilter(mode)) return CUDA_ERROR_INVALID_VALUE;
    reference.filter = mode;
    return CUDA_SUCCESS;
  });
}

CUresult api::TexRefGetFilterMode(Call& call, CUfilter_mode* mode, CUtexref handle) {
  return Answer(call, handle, mode, &TextureReference::filter);
}

CUresult api::TexRefSetMipmapFilterMode(Call& call, CUtexref handle, CUfilter_mode mode) {
  return With(call, handle, [&](TextureReference& reference) {
    if (!IsFilter(mode)) return CUDA_ERROR_INVALID_VALUE;
    reference.level_filter = mode;
    return CUDA_SUCCESS;
  });
}

CUresult api::TexRefGetMipmapFilterMode(Call& call, CUfilter_mode* mode, CUtexref handle) {
  return Answer(call, handle, mode, &TextureReference::level_filter);
}

CUresult api::TexRefSetMipmapLevelBias(Call& call, CUtexref handle, float bias) {
  return With(call, handle, [&](TextureReference& reference) {
    reference.level_bias = bias;
    return CUDA_SUCCESS;
  });
}

CUresult api::TexRefGetMipmapLevelBias(Call& call, float* bias, CUtexref handle) {
  return Answer(call, handle, bias, &TextureReference::level_bias);
}

CUresult api::TexRefSetMipmapLevelClamp(Call& call, CUtexref handle, float least, float most) {
  return With(call, handle, [&](TextureReference& reference) {
    reference.least_level = least;
    reference.most_level = most;
    return CUDA_SUCCESS;
  });
}

CUresult api::TexRefGetMipmapLevelClamp(Call& call, float* least, float* most, CUtexref handle) {
  return With(call, handle, [&](const TextureReference& reference) {
    if (least == nullptr || most == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *least = reference.least_level;
    *most = reference.most_level;
    return CUDA_SUCCESS;
  });
}

CUresult api::TexRefSetMaxAnisotropy(Call& call, CUtexref handle, unsigned int most) {
  return With(call, handle, [&](TextureReference& reference) {
    reference.anisotropy = static_cast<int>(most);
    return CUDA_SUCCESS;
  });
}

CUresult api::TexRefGetMaxAnisotropy(Call& call, int* most, CUtexref handle) {
  return Answer(call, handle, most, &TextureReference::anisotropy);
}

CUresult api::TexRefSetBorderColor(Call& call, CUtexref handle, float* color) {
  return With(call, handle, [&](TextureReference& reference) {
    if (color == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < 4; ++i) reference.border[i] = color[i];
    return CUDA_SUCCESS;
  });
}

CUresult api::TexRefGetBorderColor(Call& call, float* color, CUtexref handle) {
  return With(call, handle, [&](const TextureReference& reference) {
    if (color == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < 4; ++i) color[i] = reference.border[i];
    return CUDA_SUCCESS;
  });
}

CUresult api::TexRefSetFlags(Call& call, CUtexref handle, unsigned int flags) {
  return With(call, handle, [&](TextureReference& reference) {
    if ((flags & ~kReferenceFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    reference.flags = flags;
    return CUDA_SUCCESS;
  });
}

CUresult api::TexRefGetFlags(Call& call, unsigned int* flags, CUtexref handle) {
  return Answer(call, handle, flags, &TextureReference::flags);
}

}  // namespace cuaudit::sim
