// SPDX-License-Identifier: MIT
#include "faults/cudart/registry.h"

#include <pthread.h>
#include <string.h>

namespace cuaudit::cudart {
namespace {

constexpr int kWrapperMagic = 0x466243b1;

// The record that nvcc emits for each object file, or for a whole program linked with -rdc=true (version 2).
struct Wrapper {
  int magic;
  int version;
  const void* fatbin;
  const void* file_or_list;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
constinit bool fork_safe = false;
constinit Slots<Binary> binary_slots;
constinit Slots<Function> function_slots;
constinit Slots<Variable> variable_slots;
constinit PointerMap by_host;   // by host stub
constinit PointerMap by_token;  // by address of the Function record
constinit PointerMap variables_by_host;
constinit Binary* binaries = nullptr;
constinit unsigned long changes = 0;  // counts changes of the list and of its binaries' contents

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

}  // namespace

Binary* RegisterBinary(const void* wrapper) noexcept {
  Wrapper record;
  memcpy(&record, wrapper, sizeof(record));
  const Locked locked;
  Binary* const binary = binary_slots.New();
  if (binary == nullptr) return nullptr;
  binary->image = record.magic == kWrapperMagic ? record.fatbin : wrapper;
  binary->next = binaries;
  binaries = binary;
  ++changes;
  return binary;
}

void RegisterFunction(Binary* binary, const void* host, const char* name) noexcept {
  const Locked locked;
  Function* const function = function_slots.New();
  if (function == nullptr) return;
  function->binary = binary;
  function->host = host;
  function->name = name;
  if (!by_host.Put(host, function) || !by_token.Put(function, function)) return;
  function->next = binary->functions;
  binary->functions = function;
  ++changes;
}

void RegisterVariable(Binary* binary, const void* host, const char* name, size_t bytes, void** managed) noexcept {
  const Locked locked;
  Variable* const variable = variable_slots.New();
  if (variable == nullptr) return;
  variable->binary = binary;
  variable->host = host;
  variable->name = name;
  variable->bytes = bytes;
  variable->managed = managed;
  if (!variables_by_host.Put(host, variable)) return;
  variable->next = binary->variables;
  binary->variables = variable;
}

void UnregisterBinary(Binary* binary) noexcept {
  CUlibrary library = nullptr;
  {
    const Locked locked;
    Binary** link = &binaries;
    while (*link != nullptr && *link != binary) link = &(*link)->next;
    if (*link == nullptr) return;
    *link = binary->next;
    ++changes;
    library = binary->library.exchange(nullptr, std::memory_order_acq_rel);
    for (Function* function = binary->functions; function != nullptr;) {
      Function* const next = function->next;
      if (by_host.Find(function->host) == function) by_host.Remove(function->host);
      by_token.Remove(function);
      function_slots.Delete(function);
      function = next;
    }
    for (Variable* variable = binary->variables; variable != nullptr;) {
      Variable* const next = variable->next;
      if (variables_by_host.Find(variable->host) == variable) variables_by_host.Remove(variable->host);
      variable_slots.Delete(variable);
      variable = next;
    }
    binary_slots.Delete(binary);
  }
  const DriverRef driver = RunningDriver();
  if (library != nullptr && driver.table != nullptr) (void)driver.LibraryUnload(library);
}

bool AnyBinary() noexcept {
  const Locked locked;
  return binaries != nullptr;
}

Function* FindFunction(const void* host) noexcept {
  const Locked locked;
  return static_cast<Function*>(by_host.Find(host));
}

Variable* FindVariable(const void* host) noexcept {
  const Locked locked;
  if (void* const found = variables_by_host.Find(host)) return static_cast<Variable*>(found);
  // Host code that names a __managed__ variable passes the address of the variable's memory.
  for (const Binary* binary = binaries; binary != nullptr; binary = binary->next) {
    for (Variable* variable = binary->variables; variable != nullptr; variable = variable->next) {
      if (variable->managed != nullptr && host != nullptr && *variable->managed == host) return variable;
    }
  }
  return nullptr;
}

const void* HostOf(DriverRef driver, CUkernel kernel, CUfunction function) noexcept {
  // The lock is not held across driver calls: another thread may hold a lock of the driver's and want this one.
  struct Candidate {
    const void* host;
    CUkernel kernel;
  };
  constexpr unsigned kAtOnce = 64;
  Candidate candidates[kAtOnce];
  unsigned long seen = 0;
  for (unsigned long asked = 0;;) {
    unsigned count = 0;
    {
      const Locked locked;
      if (seen != changes) asked = 0;  // the list changed: start again
      seen = changes;
      unsigned long place = 0;
      for (const Binary* binary = binaries; binary != nullptr; binary = binary->next) {
        for (const Function* known = binary->functions; known != nullptr && count < kAtOnce; known = known->next) {
          if (place++ < asked) continue;
          candidates[count++] = {known->host, known->kernel.load(std::memory_order_acquire)};
        }
      }
    }
    for (unsigned i = 0; i < count; ++i) {
      const CUkernel loaded = candidates[i].kernel;
      if (loaded == nullptr) continue;
      if (loaded == kernel || loaded == reinterpret_cast<CUkernel>(function))
        return candidates[i].host;  // a CUkernel may stand for its function
      CUfunction of_kernel = nullptr;
      if (kernel == nullptr && driver.KernelGetFunction(&of_kernel, loaded) == CUDA_SUCCESS && of_kernel == function) {
        return candidates[i].host;
      }
    }
    if (count < kAtOnce) return nullptr;
    asked += count;
  }
}

bool IsFunction(const void* token) noexcept {
  const Locked locked;
  return by_token.Find(token) != nullptr;
}

cudaError_t LibraryOf(DriverRef driver, Binary* binary, CUlibrary* library) noexcept {
  *library = binary->library.load(std::memory_order_acquire);
  if (*library != nullptr) return cudaSuccess;
  const CUresult result = driver.LibraryLoadData(library, binary->image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (result != CUDA_SUCCESS) return FromDriver(result);
  CUlibrary first = nullptr;
  if (!binary->library.compare_exchange_strong(first, *library, std::memory_order_acq_rel)) {
    (void)driver.LibraryUnload(*library);
    *library = first;
  }
  return cudaSuccess;
}

cudaError_t KernelOf(DriverRef driver, Function* function, CUkernel* kernel) noexcept {
  *kernel = function->kernel.load(std::memory_order_acquire);
  if (*kernel != nullptr) return cudaSuccess;
  CUlibrary library = nullptr;
  if (const cudaError_t error = LibraryOf(driver, function->binary, &library)) return error;
  const CUresult result = driver.LibraryGetKernel(kernel, library, function->name);
  if (result == CUDA_SUCCESS) function->kernel.store(*kernel, std::memory_order_release);
  return FromDriver(result);
}

cudaError_t AddressOf(DriverRef driver, Variable* variable, CUdeviceptr* address, size_t* bytes) noexcept {
  CUlibrary library = nullptr;
  if (const cudaError_t error = LibraryOf(driver, variable->binary, &library)) return error;
  const CUresult result = variable->managed != nullptr ? driver.LibraryGetManaged(address, bytes, library, variable->name)
                                                       : driver.LibraryGetGlobal(address, bytes, library, variable->name);
  return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : FromDriver(result);
}

cudaError_t InitialiseManaged(DriverRef driver, Binary* binary) noexcept {
  for (Variable* variable = binary->variables; variable != nullptr; variable = variable->next) {
    if (variable->managed == nullptr) continue;
    CUlibrary library = nullptr;
    CUmodule module = nullptr;
    CUdeviceptr address = 0;
    size_t bytes = 0;
    // Managed memory exists once the library is loaded into a context.
    if (const cudaError_t error = LibraryOf(driver, binary, &library)) return error;
    if (const CUresult result = driver.LibraryGetModule(&module, library)) return FromDriver(result);
    if (const cudaError_t error = AddressOf(driver, variable, &address, &bytes)) return error;
    *variable->managed = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
  }
  return cudaSuccess;
}

namespace {

struct Loaded {
  CUkernel kernel;
  CUlibrary library;
  Loaded* next;
};

constinit Slots<Loaded> loaded_slots;
constinit PointerMap by_kernel;
constinit Loaded* all_loaded = nullptr;

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
  Loaded* const loaded = loaded_slots.New();
  if (loaded == nullptr || !by_kernel.Put(kernel, loaded)) return cudaErrorMemoryAllocation;
  *loaded = {kernel, library, all_loaded};
  all_loaded = loaded;
  return cudaSuccess;
}

void ForgetKernelsOf(CUlibrary library) noexcept {
  const Locked locked;
  for (Loaded** link = &all_loaded; *link != nullptr;) {
    Loaded* const loaded = *link;
    if (loaded->library != library) {
      link = &loaded->next;
      continue;
    }
    *link = loaded->next;
    by_kernel.Remove(loaded->kernel);
    loaded_slots.Delete(loaded);
  }
}

cudaError_t Locate(DriverRef driver, const void* symbol, size_t offset, size_t count, CUdeviceptr* address) noexcept {
  Variable* const variable = FindVariable(symbol);
  if (variable == nullptr) return cudaErrorInvalidSymbol;
  size_t bytes = 0;
  if (const cudaError_t error = AddressOf(driver, variable, address, &bytes)) return error;
  if (offset > bytes || count > bytes - offset) return cudaErrorInvalidValue;
  *address += offset;
  return cudaSuccess;
}

}  // namespace cuaudit::cudart
