// SPDX-License-Identifier: MIT
// question.h: one question to a CUDA runtime: a short run of calls whose codes and small values are the answer.
//
// The expected answers are those of a genuine runtime (measurements/h200_580.159.04/cudart.tsv). A question may start threads and joins
// them; what it makes goes with the process in which it is asked. A preparation that fails shows in the answer as "prepare:CODE".
#pragma once

#include <cuda_runtime_api.h>

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cuaudit::cudart {

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

inline void Nothing(void*) {}

}  // namespace cuaudit::cudart
