// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/kernel/launch.h"

#include "faults/sim/device/profile.h"
#include "faults/sim/kernel/module.h"
#include "faults/sim/memory/pool.h"

namespace cuaudit::sim {
namespace {

std::size_t Aligned(std::size_t bytes) { return (bytes + 15U) / 16U * 16U; }

// Where the parameters lie: as the image says, or one behind the other as the host kernel declares them.
class Layout {
 public:
  Layout(const Symbol* symbol, const cuaudit_kernel* host)
      : symbol_(symbol != nullptr && symbol->parameters_known ? symbol : nullptr),
        host_(symbol_ == nullptr && host != nullptr && host->parameters != nullptr ? host : nullptr) {}
  bool known() const { return symbol_ != nullptr || host_ != nullptr; }
  bool packed() const { return symbol_ != nullptr; }
  std::size_t count() const { return symbol_ != nullptr ? symbol_->parameters.size() : host_ != nullptr ? host_->parameter_count : 0; }
  std::size_t size(std::size_t i) const { return symbol_ != nullptr ? symbol_->parameters[i].size : host_->parameters[i].bytes; }
  std::size_t offset(std::size_t i) const {
    if (symbol_ != nullptr) return symbol_->parameters[i].offset;
    std::size_t at = 0;
    for (std::size_t k = 0; k < i; ++k) at += Aligned(host_->parameters[k].bytes);
    return at;
  }
  std::size_t bytes() const { return count() == 0 ? 0 : offset(count() - 1) + size(count() - 1); }

 private:
  const Symbol* symbol_;
  const cuaudit_kernel* host_;
};

void PlaceValues(Arguments* arguments, const Layout& layout) {
  arguments->pointers = reinterpret_cast<void**>(reinterpret_cast<char*>(arguments) + Aligned(sizeof(Arguments)));
  for (std::size_t i = 0; i < arguments->count; ++i) arguments->pointers[i] = arguments->values + layout.offset(i);
}

void TakeParameters(Arguments* arguments, const Layout& layout, void** given) {
  PlaceValues(arguments, layout);
  for (std::size_t i = 0; i < arguments->count; ++i) {
    if (given[i] != nullptr) std::memcpy(arguments->pointers[i], given[i], layout.size(i));
  }
}

void TakeBuffer(Arguments* arguments, const Layout& layout, const char* buffer) {
  std::memcpy(arguments->values, buffer, arguments->bytes);
  if (arguments->count != 0) PlaceValues(arguments, layout);
  void* const packed[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, arguments->values, CU_LAUNCH_PARAM_BUFFER_SIZE, &arguments->bytes,
                          CU_LAUNCH_PARAM_END};
  std::memcpy(arguments->packed, packed, sizeof(packed));
}

}  // namespace

Arguments* MakeArguments(World& world, std::size_t count, std::size_t bytes) noexcept {
  const std::size_t head = Aligned(sizeof(Arguments)) + Aligned(count * sizeof(void*));
  char* const block = static_cast<char*>(world.arena.Allocate(head + Aligned(bytes)));
  if (block == nullptr) return nullptr;
  Arguments* const arguments = ::new (block) Arguments();
  arguments->count = static_cast<std::uint32_t>(count);
  arguments->storage = head + Aligned(bytes);
  arguments->bytes = bytes;
  arguments->values = block + head;
  return arguments;
}

const Symbol* KernelSymbol(const World& world, const CUDA_KERNEL_NODE_PARAMS& kernel) noexcept {
  if (const Function* const function = world.Find<Function>(kernel.func); function != nullptr) return function->symbol;
  if (const Kernel* const named = world.Find<Kernel>(kernel.func); named != nullptr) return named->symbol;
  const Kernel* const given = world.Find<Kernel>(kernel.kern);
  return given == nullptr ? nullptr : given->symbol;
}

CUresult ReadExtra(void* const* extra, const char** buffer, std::size_t* bytes) noexcept {
  const std::size_t* size = nullptr;
  *buffer = nullptr;
  for (std::size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      *buffer = static_cast<const char*>(extra[i + 1]);
    } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size = static_cast<const std::size_t*>(extra[i + 1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (size == nullptr || (*buffer == nullptr && *size != 0)) return CUDA_ERROR_INVALID_VALUE;
  *bytes = *size;
  return CUDA_SUCCESS;
}

bool CopyArguments(World& world, const Symbol* symbol, Work* work) noexcept {
  if (work->arguments != nullptr) return true;
  CUDA_KERNEL_NODE_PARAMS& kernel = work->kernel;
  void** const given = kernel.kernelParams;
  const cuaudit_kernel* const host = symbol == nullptr ? nullptr : FindHostKernel(world, symbol->name);
  const Layout layout(symbol, host);
  const char* buffer = nullptr;
  std::size_t bytes = layout.bytes();
  if (given == nullptr && kernel.extra != nullptr && ReadExtra(kernel.extra, &buffer, &bytes) != CUDA_SUCCESS) bytes = 0;
  kernel.kernelParams = nullptr;
  kernel.extra = nullptr;
  const bool placed = given != nullptr    ? layout.known()
                      : buffer != nullptr ? layout.packed() && bytes >= layout.bytes()
                                          : layout.count() == 0;
  const std::size_t count = placed ? layout.count() : 0;
  if (given == nullptr && buffer == nullptr) bytes = 0;
  if (host == nullptr && bytes == 0) return true;
  Arguments* const arguments = MakeArguments(world, count, bytes);
  if (arguments == nullptr) return false;
  arguments->mismatch = host != nullptr && (!placed || !Agrees(*host, *symbol));
  arguments->host = arguments->mismatch ? nullptr : host;
  arguments->by_host = count != 0 && !layout.packed();
  if (given != nullptr && placed) TakeParameters(arguments, layout, given);
  if (buffer != nullptr) TakeBuffer(arguments, layout, buffer);
  work->arguments = arguments;
  if (count != 0) {
    kernel.kernelParams = arguments->pointers;
  } else if (buffer != nullptr) {
    kernel.extra = arguments->packed;
  }
  return true;
}

void ShareArguments(const Work& work) noexcept {
  if (work.arguments != nullptr) ++work.arguments->references;
  if (work.memory != nullptr) ++work.memory->references;
}

void DropArguments(World& world, const Work& work) noexcept {
  if (work.memory != nullptr) DropGraphMemory(world, work.memory);
  if (work.arguments == nullptr || --work.arguments->references != 0) return;
  world.arena.Free(work.arguments, work.arguments->storage);
}

namespace {

const cuaudit_kernel* Newest(const cuaudit_kernel* first, const char* name) {
  for (const cuaudit_kernel* kernel = first; kernel != nullptr; kernel = kernel->next) {
    if (std::strcmp(kernel->name, name) == 0) return kernel;
  }
  return nullptr;
}

}  // namespace

const cuaudit_kernel* FindHostKernel(const World& world, const char* name) noexcept {
  for (std::size_t i = world.host_kernels.size(); i > 0; --i) {
    if (std::strcmp(world.host_kernels[i - 1]->name, name) == 0) return world.host_kernels[i - 1];
  }
  return world.process_kernels == nullptr ? nullptr : Newest(world.process_kernels->load(std::memory_order_acquire), name);
}

bool Agrees(const cuaudit_kernel& kernel, const Symbol& symbol) noexcept {
  if (kernel.parameters == nullptr) return symbol.parameters_known;
  if (!symbol.parameters_known) return true;
  if (kernel.parameter_count != symbol.parameters.size()) return false;
  for (std::uint32_t i = 0; i < kernel.parameter_count; ++i) {
    if (kernel.parameters[i].bytes != symbol.parameters[i].size) return false;
  }
  return true;
}

namespace {

constexpr std::uint64_t kMaxGridX = 2147483647;
constexpr std::uint64_t kMaxGridYZ = 65535;
constexpr std::uint64_t kMaxBlock = 1024;
constexpr std::uint64_t kMaxBlockZ = 64;
constexpr std::uint64_t kStaticShared = 49152;

std::uint64_t Threads(const CUDA_KERNEL_NODE_PARAMS& kernel) {
  return std::uint64_t{kernel.blockDimX} * kernel.blockDimY * kernel.blockDimZ;
}

CUfunction HandleOf(const CUDA_KERNEL_NODE_PARAMS& kernel) {
  return kernel.func != nullptr ? kernel.func : reinterpret_cast<CUfunction>(kernel.kern);
}

bool GoodShape(const CUDA_KERNEL_NODE_PARAMS& kernel, const Symbol& symbol) {
  if (kernel.gridDimX == 0 || kernel.gridDimY == 0 || kernel.gridDimZ == 0) return false;
  if (kernel.blockDimX == 0 || kernel.blockDimY == 0 || kernel.blockDimZ == 0) return false;
  if (kernel.gridDimX > kMaxGridX || kernel.gridDimY > kMaxGridYZ || kernel.gridDimZ > kMaxGridYZ) return false;
  if (kernel.blockDimX > kMaxBlock || kernel.blockDimY > kMaxBlock || kernel.blockDimZ > kMaxBlockZ) return false;
  const unsigned block[] = {kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ};
  for (int i = 0; i < 3; ++i) {
    if (symbol.required_block[0] != 0 && block[i] != symbol.required_block[i]) return false;
  }
  return Threads(kernel) <= kMaxBlock && Threads(kernel) <= symbol.max_threads;
}

CUresult CheckParameters(const CUDA_KERNEL_NODE_PARAMS& kernel, const Symbol& symbol) {
  if (kernel.kernelParams != nullptr && kernel.extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!symbol.parameters_known) return CUDA_SUCCESS;
  const std::size_t count = symbol.parameters.size();
  if (kernel.extra != nullptr) {
    const char* buffer = nullptr;
    std::size_t bytes = 0;
    const CUresult result = ReadExtra(kernel.extra, &buffer, &bytes);
    if (result != CUDA_SUCCESS) return result;
    const std::size_t taken = count == 0 ? 0 : std::size_t{symbol.parameters[count - 1].offset} + symbol.parameters[count - 1].size;
    return bytes > taken ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES : CUDA_SUCCESS;
  }
  if (count != 0 && kernel.kernelParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    if (kernel.kernelParams[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult CheckKernel(Call& call, const CUDA_KERNEL_NODE_PARAMS& kernel, const Context* context) noexcept {
  CUresult result = CUDA_SUCCESS;
  Function* const function = FindLaunched(call, HandleOf(kernel), &result);
  if (function == nullptr) return result;
  function->loaded = true;
  if (context != nullptr && function->module->owner != context) return CUDA_ERROR_INVALID_HANDLE;
  if (!GoodShape(kernel, *function->symbol)) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t allowed = function->dynamic_shared >= 0 ? static_cast<std::uint64_t>(function->dynamic_shared) : kStaticShared;
  if (kernel.sharedMemBytes > allowed) return CUDA_ERROR_INVALID_VALUE;
  return CheckParameters(kernel, *function->symbol);
}

CUresult CheckCooperative(Call& call, const CUDA_KERNEL_NODE_PARAMS& kernel) noexcept {
  CUresult result = CUDA_SUCCESS;
  const Function* const function = FindLaunched(call, HandleOf(kernel), &result);
  if (function == nullptr) return result;
  const Profile& profile = *call.world.profile;
  const KernelNeeds needs{kRegisters, function->symbol->shared_bytes};
  const int blocks = BlocksPerMultiprocessor(profile, needs, static_cast<unsigned>(Threads(kernel)), kernel.sharedMemBytes);
  const std::uint64_t room =
      static_cast<std::uint64_t>(blocks) * static_cast<std::uint64_t>(profile.Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  const std::uint64_t asked = std::uint64_t{kernel.gridDimX} * kernel.gridDimY * kernel.gridDimZ;
  return asked > room ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

CUresult CheckCluster(Call& call, const CUDA_KERNEL_NODE_PARAMS& kernel, const CUlaunchAttributeValue& value) noexcept {
  if (call.world.profile->Attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 0) return CUDA_ERROR_NOT_SUPPORTED;
  const unsigned x = value.clusterDim.x;
  const unsigned y = value.clusterDim.y;
  const unsigned z = value.clusterDim.z;
  if (x == 0 || y == 0 || z == 0) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  const bool fits = kernel.gridDimX % x == 0 && kernel.gridDimY % y == 0 && kernel.gridDimZ % z == 0;
  return fits && std::uint64_t{x} * y * z <= kPortableCluster ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

}  // namespace cuaudit::sim
