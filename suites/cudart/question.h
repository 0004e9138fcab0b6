// SPDX-License-Identifier: MIT
// question.h: one question to a CUDA runtime, whoever it is: a short run of calls whose codes and small values are the answer.
//
//   Owns      an Asker its answer; what a question makes goes with the process it is asked in.
//   Threads   one question at a time; a question may start threads and joins them.
//   Errors    a failing preparation shows in the answer as "prepare:CODE".
//   Faults    makes the runtime calls of its questions.
//   Source    CUDA Runtime API 13.0 reference; the expected answers are what a genuine runtime gave (recorded/).
#pragma once

#include <cuda_runtime_api.h>

#include <bit>
#include <span>
#include <string>
#include <vector>

namespace cuaudit::cudart {

// Words are formatted at the end only: cudaGetErrorName belongs to the library that is asked.
class Asker {
 public:
  cudaError_t operator()(cudaError_t result);
  void Value(long long value);
  void Text(const char* text);
  // Silent when it succeeds.
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

// Asked in a process of its own, in which no runtime call was made before.
struct Question {
  const char* name;
  void (*ask)(Asker&);
};

std::span<const Question> ErrorQuestions();
std::span<const Question> NameQuestions();
std::span<const Question> DeviceQuestions();
std::span<const Question> PropertyQuestions();
std::span<const Question> ResetQuestions();
std::span<const Question> StreamQuestions();
std::span<const Question> EventQuestions();
std::span<const Question> MemoryQuestions();
std::span<const Question> PointerQuestions();
std::span<const Question> CopyQuestions();
std::span<const Question> ShapedCopyQuestions();
std::span<const Question> ArrayQuestions();
std::span<const Question> PoolQuestions();
std::span<const Question> GraphQuestions();
std::span<const Question> NodeQuestions();
std::span<const Question> CaptureQuestions();
std::span<const Question> KernelQuestions();
std::span<const Question> RegisteredQuestions();
std::span<const Question> SharingQuestions();
std::vector<Question> AllQuestions();

// A value that the enumeration does not have.
template <typename E>
E Beyond(unsigned value) {
  return std::bit_cast<E>(value);
}

// A handle or an address that nobody gave out. Mapped and zeroed, so that reading through it does not decide the answer.
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

inline void Nothing(void*) {}

}  // namespace cuaudit::cudart
