// SPDX-License-Identifier: MIT
// question.h: questions for a CUDA runtime, and kernels as text that they launch.
#pragma once

#include <cuda_runtime_api.h>

#include <bit>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace cuaudit::cudart {

// One question to a CUDA runtime: a short run of calls whose codes and small values are the answer.
//
// The expected answers are those of a genuine runtime (measurements/h200_580.159.04/cudart.tsv). A question may start threads and joins
// them; what it makes goes with the process in which it is asked. A preparation that fails shows in the answer as "prepare:CODE".

// Formats its words only at the end, because cudaGetErrorName belongs to the library under question.
class Asker {
 public:
  cudaError_t operator()(cudaError_t result);
  void Value(long long value);
  void Text(const char* text);
  // Adds nothing to the answer when `result` is success.
  bool Prepare(cudaError_t result);
  std::string Answer() const;

 private:
  struct Word {
    std::string text;
    bool code;
    cudaError_t result;
  };
  std::vector<Word> words_;
};

// A question is asked in a new process, in which no runtime call was made before.
struct Question {
  const char* name;
  void (*ask)(Asker&);
};

std::span<const Question> ErrorQuestions();
std::span<const Question> DeviceQuestions();
std::span<const Question> PropertyQuestions();
std::span<const Question> ResetQuestions();
std::span<const Question> StreamQuestions();
std::span<const Question> MemoryQuestions();
std::span<const Question> CopyQuestions();
std::span<const Question> ArrayQuestions();
std::span<const Question> PoolQuestions();
std::span<const Question> GraphQuestions();
std::span<const Question> NodeQuestions();
std::span<const Question> CaptureQuestions();
std::span<const Question> KernelQuestions();
std::span<const Question> RegisteredQuestions();
std::span<const Question> SharingQuestions();
std::vector<Question> AllQuestions();

// Makes a value that the enumeration does not have.
template <typename E>
E Beyond(unsigned value) {
  return std::bit_cast<E>(value);
}

// A handle or address that the runtime did not give out. Its memory is mapped and zeroed, so that reading through it does not crash.
void* Invented();

inline cudaStream_t NewStream(Asker& a, unsigned flags = cudaStreamNonBlocking) {
  cudaStream_t stream = nullptr;
  a.Prepare(cudaStreamCreateWithFlags(&stream, flags));
  return stream;
}

inline cudaEvent_t NewEvent(Asker& a, unsigned flags = cudaEventDefault) {
  cudaEvent_t event = nullptr;
  a.Prepare(cudaEventCreateWithFlags(&event, flags));
  return event;
}

inline char* NewBlock(Asker& a, std::size_t bytes = 4096) {
  void* block = nullptr;
  a.Prepare(cudaMalloc(&block, bytes));
  return static_cast<char*>(block);
}

inline cudaGraph_t NewGraph(Asker& a) {
  cudaGraph_t graph = nullptr;
  a.Prepare(cudaGraphCreate(&graph, 0));
  return graph;
}

// Asked, as what a() is given.
inline cudaGraph_t Captured(Asker& a, cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  a(cudaStreamEndCapture(stream, &graph));
  return graph;
}

inline cudaGraphExec_t Instantiated(Asker& a, cudaGraph_t graph) {
  cudaGraphExec_t exec = nullptr;
  a(cudaGraphInstantiate(&exec, graph, 0));
  return exec;
}

inline void Nothing(void*) {}

// Kernels as PTX text (PTX ISA 8.0), so that the questions need no device compiler, and their registration with the
// runtime.
//
// RegisterKernels makes the registration calls that crt/host_runtime.h declares, as the start of a compiled program does. Call it once.

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
