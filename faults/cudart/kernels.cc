// SPDX-License-Identifier: MIT
#include "faults/cudart/kernels.h"

#include <pthread.h>

namespace cuaudit::cudart {
namespace {

struct Loaded {
  CUkernel kernel;
  CUlibrary library;
  Loaded* next;
};

constinit pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
constinit Slots<Loaded> slots;
constinit PointerMap by_kernel;
constinit Loaded* all = nullptr;
constinit bool fork_safe = false;

void Hold() { pthread_mutex_lock(&lock); }
void Drop() { pthread_mutex_unlock(&lock); }

struct Locked {
  Locked() noexcept {
    Hold();
    if (fork_safe) return;  // else a forked child may inherit the lock held by a thread that does not exist there
    pthread_atfork(&Hold, &Drop, &Drop);
    fork_safe = true;
  }
  ~Locked() { Drop(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
};

bool IsLoaded(const void* kernel) noexcept {
  const Locked locked;
  return by_kernel.Find(kernel) != nullptr;
}

Function* Registered(const void* address) noexcept {
  if (Function* const function = FindFunction(address)) return function;
  return IsFunction(address) ? static_cast<Function*>(const_cast<void*>(address)) : nullptr;
}

}  // namespace

cudaError_t ResolveKernel(DriverRef driver, const void* address, CUkernel* kernel) noexcept {
  if (address == nullptr) return cudaErrorInvalidDeviceFunction;
  if (Function* const function = Registered(address)) return KernelOf(driver, function, kernel);
  if (!IsLoaded(address)) return cudaErrorInvalidResourceHandle;  // the genuine runtime takes an unknown address for a handle, too
  *kernel = static_cast<CUkernel>(const_cast<void*>(address));
  return cudaSuccess;
}

cudaError_t ResolveFunction(DriverRef driver, const void* address, CUfunction* function) noexcept {
  CUkernel kernel = nullptr;
  if (const cudaError_t error = ResolveKernel(driver, address, &kernel)) return error;
  return FromDriver(driver.KernelGetFunction(function, kernel));
}

cudaError_t NoteKernel(CUkernel kernel, CUlibrary library) noexcept {
  const Locked locked;
  if (by_kernel.Find(kernel) != nullptr) return cudaSuccess;
  Loaded* const loaded = slots.New();
  if (loaded == nullptr || !by_kernel.Put(kernel, loaded)) return cudaErrorMemoryAllocation;
  *loaded = {kernel, library, all};
  all = loaded;
  return cudaSuccess;
}

void ForgetKernelsOf(CUlibrary library) noexcept {
  const Locked locked;
  for (Loaded** link = &all; *link != nullptr;) {
    Loaded* const loaded = *link;
    if (loaded->library != library) {
      link = &loaded->next;
      continue;
    }
    *link = loaded->next;
    by_kernel.Remove(loaded->kernel);
    slots.Delete(loaded);
  }
}

}  // namespace cuaudit::cudart
