/* SPDX-License-Identifier: MIT
 * kernel.h: lets host functions stand in for kernels on cuaudit's simulated driver. Header-only C and C++, nothing to link.
 *
 * C++: void Add(cuaudit::Launch launch, cuaudit::Device<const float> a, cuaudit::Device<float> c, int n) {
 *        const float* in = a.Read(launch, n);
 *        float* out = c.Write(launch, n);
 *        if (in == nullptr || out == nullptr) return;
 *        for (int i = 0; i < n; ++i) out[i] = in[i] + 1;
 *      }
 *      static cuaudit::HostKernel<Add> add("_Z3addPKfPfi");
 *
 * C: static void add(cuaudit_launch* launch) {
 *      const float* a = cuaudit_read(launch, cuaudit_address(launch, 0), n * sizeof(float)); ...
 *    }
 *    static cuaudit_kernel kernel = {sizeof(kernel), 4, "_Z3addPKfS0_Pfi", add, parameters, NULL, NULL};
 *    __attribute__((constructor)) static void set_up(void) { cuaudit_kernel_add(&kernel); }
 *
 * Link the functions into the program, or build a library of them (`g++ -shared -fPIC ...`) and run `cuaudit run --kernels=FILE`.
 * The drop-in library defines the weak symbol. Registering does nothing without cuaudit and on a GPU.
 *
 * Lifetime: a registered cuaudit_kernel, its name and its parameters must live until the process ends.
 * Threads: register from any thread, best from a constructor. The function runs once for the whole grid, in stream order, on a thread
 * that is inside a driver call. Kernels of different streams run at the same time when different threads wait for them.
 * Errors: a range outside live device memory yields NULL, and the context is lost with CUDA_ERROR_ILLEGAL_ADDRESS, as with a kernel:
 * return at once. A driver call inside the function returns CUDA_ERROR_NOT_PERMITTED. A function whose parameters differ in number or
 * size from those in the kernel image is not run, and the report counts the launch.
 */
#ifndef CUAUDIT_KERNEL_H
#define CUAUDIT_KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a kernel accesses the memory that a parameter points to. */
enum { CUAUDIT_VALUE = 0, CUAUDIT_READS = 1, CUAUDIT_WRITES = 2, CUAUDIT_READS_AND_WRITES = 3 };

typedef struct cuaudit_parameter {
  uint32_t bytes;      /* size of the parameter itself */
  uint32_t access;     /* used to check the order between streams when the extent is known */
  uint32_t count_from; /* 1 + index of the integer parameter that counts the elements; 0: the extent is unknown */
  uint32_t element;    /* size of one element in bytes */
} cuaudit_parameter;

typedef struct cuaudit_launch cuaudit_launch;

typedef struct cuaudit_kernel {
  uint32_t struct_bytes; /* sizeof(cuaudit_kernel) */
  uint32_t parameter_count;
  const char* name; /* as spelled in the kernel image: mangled, or the plain name of an extern "C" kernel */
  void (*run)(cuaudit_launch*);
  const cuaudit_parameter* parameters; /* NULL: use the parameters that the image declares */
  void* user;
  struct cuaudit_kernel* next; /* reserved for the registry */
} cuaudit_kernel;

struct cuaudit_launch {
  uint32_t struct_bytes;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes; /* dynamic shared memory */
  uint32_t parameter_count;
  const void* const* parameters; /* copies made when the kernel was launched */
  const cuaudit_kernel* kernel;
  void* (*translate)(cuaudit_launch*, uint64_t address, uint64_t bytes, uint32_t access);
  int (*set_conditional)(cuaudit_launch*, uint64_t handle, uint32_t value);
};

/* Returns 1 when cuaudit accepts the kernel. The newest registration of a name wins. */
int cuaudit_register_kernel(cuaudit_kernel* kernel) __attribute__((weak));

static inline int cuaudit_kernel_add(cuaudit_kernel* kernel) { return cuaudit_register_kernel ? cuaudit_register_kernel(kernel) : 0; }
/* The value of a pointer parameter. */
static inline uint64_t cuaudit_address(const cuaudit_launch* launch, uint32_t parameter) {
  uint64_t address = 0;
  if (parameter < launch->parameter_count) memcpy(&address, launch->parameters[parameter], sizeof(address));
  return address;
}
/* Host address of those bytes of simulated device memory, or NULL (see Errors above). */
static inline const void* cuaudit_read(cuaudit_launch* launch, uint64_t address, uint64_t bytes) {
  return launch->translate(launch, address, bytes, CUAUDIT_READS);
}
static inline void* cuaudit_write(cuaudit_launch* launch, uint64_t address, uint64_t bytes) {
  return launch->translate(launch, address, bytes, CUAUDIT_READS_AND_WRITES);
}
/* Does what cudaGraphSetConditional does in device code. Returns 0 when this graph has no such handle. */
static inline int cuaudit_set_conditional(cuaudit_launch* launch, uint64_t handle, uint32_t value) {
  return launch->set_conditional(launch, handle, value);
}

#ifdef __cplusplus
}

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace cuaudit {

class Launch {
 public:
  explicit Launch(cuaudit_launch* launch) : launch_(launch) {}
  const std::uint32_t* grid() const { return launch_->grid; }
  const std::uint32_t* block() const { return launch_->block; }
  std::uint32_t shared_bytes() const { return launch_->shared_bytes; }
  cuaudit_launch* get() const { return launch_; }
  // Calls f(block index, thread index) for a one-dimensional grid, block by block.
  template <typename F>
  void ForEachThread(F f) const {
    for (std::uint32_t b = 0; b < launch_->grid[0]; ++b) {
      for (std::uint32_t t = 0; t < launch_->block[0]; ++t) f(b, t);
    }
  }

 private:
  cuaudit_launch* launch_;
};

// A device pointer. `Count` is the index of the parameter that counts its elements; -1: none does.
template <typename T, int Count = -1>
struct Device {
  std::uint64_t address;
  const T* Read(Launch launch, std::uint64_t count) const {
    return static_cast<const T*>(cuaudit_read(launch.get(), address, count * sizeof(T)));
  }
  T* Write(Launch launch, std::uint64_t count) const {
    static_assert(!std::is_const_v<T>, "a Device<const T> is only read");
    return static_cast<T*>(cuaudit_write(launch.get(), address, count * sizeof(T)));
  }
};

namespace detail {

template <typename P>
struct ParameterOf {
  static_assert(std::is_trivially_copyable_v<P> && !std::is_pointer_v<P>, "take device pointers as cuaudit::Device<T>");
  static constexpr cuaudit_parameter kRow{sizeof(P), CUAUDIT_VALUE, 0, 0};
};
template <typename T, int Count>
struct ParameterOf<Device<T, Count>> {
  static constexpr cuaudit_parameter kRow{sizeof(std::uint64_t), std::is_const_v<T> ? CUAUDIT_READS : CUAUDIT_READS_AND_WRITES,
                                          static_cast<std::uint32_t>(Count + 1), sizeof(T)};
};

template <auto function, typename F = decltype(function)>
struct Adapter;
template <auto function, typename... P>
struct Adapter<function, void (*)(Launch, P...)> {
  static constexpr std::uint32_t kCount = sizeof...(P);
  static constexpr cuaudit_parameter kRows[sizeof...(P) + 1] = {ParameterOf<P>::kRow..., {}};
  template <typename T>
  static T Get(const cuaudit_launch* launch, std::size_t i) {
    T value;
    memcpy(&value, launch->parameters[i], sizeof(value));
    return value;
  }
  template <std::size_t... i>
  static void Call(cuaudit_launch* launch, std::index_sequence<i...>) {
    function(Launch(launch), Get<P>(launch, i)...);
  }
  static void Run(cuaudit_launch* launch) { Call(launch, std::index_sequence_for<P...>()); }
};

}  // namespace detail

// Registers `function`, a void (cuaudit::Launch, parameters...), under the kernel's name. Give the object static storage duration.
template <auto function>
class HostKernel {
 public:
  explicit HostKernel(const char* name)
      : kernel{sizeof(cuaudit_kernel), Adapter::kCount, name, Adapter::Run, Adapter::kRows, nullptr, nullptr},
        registered(cuaudit_kernel_add(&kernel) != 0) {}
  HostKernel(const HostKernel&) = delete;
  HostKernel& operator=(const HostKernel&) = delete;

 private:
  using Adapter = detail::Adapter<function>;

 public:
  cuaudit_kernel kernel;
  bool registered;
};

}  // namespace cuaudit
#endif
#endif
