// SPDX-License-Identifier: MIT
// kernel_text.h: kernels as PTX text (PTX ISA 8.0), so that the questions need no device compiler, and their registration with the
// runtime.
//
// RegisterKernels makes the registration calls that crt/host_runtime.h declares, as the start of a compiled program does. Call it once.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace cuaudit::cudart {

inline constexpr char kKernels[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .global .align 4 .b8 table[64];\n"
    ".visible .const .align 4 .b8 constants[16];\n"
    ".visible .entry plain()\n{\nret;\n}\n"
    ".visible .entry bounded()\n.maxntid 128, 1, 1\n{\nret;\n}\n"
    ".visible .entry fill(\n.param .u64 target,\n.param .u32 value\n)\n{\n"
    ".reg .b32 %r<3>;\n.reg .b64 %rd<5>;\n"
    "ld.param.u64 %rd1, [target];\nld.param.u32 %r1, [value];\ncvta.to.global.u64 %rd2, %rd1;\n"
    "mov.u32 %r2, %tid.x;\nmul.wide.u32 %rd3, %r2, 4;\nadd.s64 %rd4, %rd2, %rd3;\nst.global.u32 [%rd4], %r1;\nret;\n}\n";

// Host symbols that a compiled program passes to the runtime to name a kernel or a device variable.
extern "C" {
void CuauditPlain();
void CuauditBounded();
void CuauditFill();
void CuauditMissing();  // registered, but the binary has no kernel of its name
void CuauditNever();    // not registered
extern char cuaudit_table[64];
extern char cuaudit_constants[16];
extern char cuaudit_never[4];
}

// The steps of <<<...>>> in a compiled program.
extern "C" {
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes, void* stream);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes, cudaStream_t stream);
}

void RegisterKernels();

}  // namespace cuaudit::cudart
