// SPDX-License-Identifier: MIT
// call_shape.h: the C++ type of every entry point, and what its parameter types say about the objects that it touches.
//
//   CallType<id>::Function   the type of the exported function; ::Entry has a leading void* self.
//   CallType<id>::kShape     for each parameter, the family of handle that it carries and whether the call writes it.
//
// The types are generated from the headers, so no signature is typed by hand. Include this file only where <cuda.h> may be seen with
// __CUDA_API_VERSION_INTERNAL: the old 32-bit types exist only then.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "call_shape.h needs __CUDA_API_VERSION_INTERNAL defined for the whole translation unit"
#endif

#include <cuda.h>
#include <cudaEGL.h>
#include <cudaGL.h>
#include <cudaProfiler.h>

#include <cstddef>
#include <type_traits>

#include "faults/driver/call_id.h"
#include "faults/driver/driver_ref.h"
#include "faults/driver/shape.h"

namespace cuaudit::driver {

template <typename T>
constexpr Family FamilyOfType() {  // CUdeviceptr is an integer type, see kPointers
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, CUcontext>) return Family::Context;
  if constexpr (std::is_same_v<U, CUstream>) return Family::Stream;
  if constexpr (std::is_same_v<U, CUevent>) return Family::Event;
  if constexpr (std::is_same_v<U, CUmemoryPool>) return Family::MemoryPool;
  if constexpr (std::is_same_v<U, CUarray>) return Family::Array;
  if constexpr (std::is_same_v<U, CUmipmappedArray>) return Family::MipmappedArray;
  if constexpr (std::is_same_v<U, CUmodule>) return Family::Module;
  if constexpr (std::is_same_v<U, CUlibrary>) return Family::Library;
  if constexpr (std::is_same_v<U, CUlinkState>) return Family::LinkState;
  if constexpr (std::is_same_v<U, CUgraph>) return Family::Graph;
  if constexpr (std::is_same_v<U, CUgraphNode>) return Family::GraphNode;
  if constexpr (std::is_same_v<U, CUgraphExec>) return Family::ExecutableGraph;
  if constexpr (std::is_same_v<U, CUuserObject>) return Family::UserObject;
  if constexpr (std::is_same_v<U, CUexternalMemory>) return Family::ExternalMemory;
  if constexpr (std::is_same_v<U, CUexternalSemaphore>) return Family::ExternalSemaphore;
  if constexpr (std::is_same_v<U, CUgreenCtx>) return Family::GreenContext;
  if constexpr (std::is_same_v<U, CUgraphicsResource>) return Family::GraphicsResource;
  if constexpr (std::is_same_v<U, CUtexref>) return Family::TextureReference;
  return Family::None;
}

// True for a handle: a pointer to a structure that the headers declare and do not define.
template <typename T>
constexpr bool IsHandle() {
  using U = std::remove_pointer_t<T>;
  return std::is_pointer_v<T> && std::is_class_v<U> && !requires { sizeof(U); };
}

// True for a pointer through which the call writes one small value: a handle, an address, a size.
template <typename T>
constexpr bool IsOutput() {
  if constexpr (!std::is_pointer_v<T>) {
    return false;
  } else {
    using U = std::remove_pointer_t<T>;
    if constexpr (std::is_const_v<U> || std::is_void_v<U> || std::is_function_v<U>) {
      return false;
    } else if constexpr (!(std::is_pointer_v<U> || std::is_integral_v<U> || std::is_enum_v<U>) || std::is_same_v<U, char>) {
      return false;
    } else {
      return FamilyOfType<T>() == Family::None;  // the handles themselves are pointers
    }
  }
}

template <typename T>
constexpr Parameter ParameterOf() {
  using U = std::remove_pointer_t<T>;
  constexpr bool kHandle = IsHandle<T>() || IsHandle<U>();
  if constexpr (IsOutput<T>()) return {FamilyOfType<U>(), true, sizeof(U), kHandle};
  else return {FamilyOfType<T>(), false, sizeof(T) <= 8 ? sizeof(T) : 0, kHandle};
}

// Bit i describes parameter i. `addresses`: declared as CUdeviceptr or a pointer to one. `arrays`: an array, or an input that looks like
// an output.
struct Pointers {
  unsigned addresses = 0;
  unsigned arrays = 0;
};
template <CallId id>
inline constexpr Pointers kPointers = {};
#define CUAUDIT_POINTERS(id, addresses, arrays) \
  template <>                                   \
  inline constexpr Pointers kPointers<CallId::id> = {addresses, arrays};
#include "driver_pointers.inc"
#undef CUAUDIT_POINTERS

template <CallId id>
struct CallType;

template <CallId id, typename... P>
struct CallTypeOf {
  using Function = CUresult(P...);
  using Entry = CUresult(void*, P...);
  static constexpr Shape kShape = [] {
    Shape shape;
    constexpr Pointers pointers = kPointers<id>;
    const Parameter listed[] = {ParameterOf<P>()..., Parameter{}};
    for (std::size_t i = 0; i < sizeof...(P); ++i) {
      shape.parameter[i] = listed[i];
      if ((pointers.addresses >> i & 1) != 0) shape.parameter[i].family = Family::Pointer;
      if ((pointers.arrays >> i & 1) != 0) shape.parameter[i] = {Family::None, false, 8, listed[i].handle};
    }
    shape.count = sizeof...(P);
    return shape;
  }();
};

namespace detail {
template <CallId id, typename F>
struct FromFunction;
template <CallId id, typename... P>
struct FromFunction<id, CUresult(P...)> : CallTypeOf<id, P...> {};
}  // namespace detail

#define CUAUDIT_PARAMS(id, parameters, arguments) \
  template <>                                     \
  struct CallType<CallId::id> : detail::FromFunction<CallId::id, CUresult parameters> {};
#include "driver_params.inc"
#undef CUAUDIT_PARAMS

}  // namespace cuaudit::driver
