// SPDX-License-Identifier: MIT
// vmaf_a2_function_table.cc: the driver, loaded by name into a table of functions.
//
// Story   A2: release forgets the table: its block of 752 bytes and the reference of the library, a cycle.
// Source  https://github.com/Netflix/vmaf/issues/1300, docs/adr/0157, fix fd1b22c2; written anew from the facts.
// Usage   vmaf_a2_function_table defective|repaired CYCLES
#ifdef CUAUDIT_SUBJECT
#include <dlfcn.h>

#include "suites/reducers/subject.h"

namespace cuaudit::reducers {
namespace {

struct Table {
  void* library;
  CUresult (*stream_create)(CUstream*, unsigned);
  CUresult (*stream_destroy)(CUstream);
  void* rest[91];
};
static_assert(sizeof(Table) == 752);

Table* Load() {
  Table* const table = static_cast<Table*>(calloc(1, sizeof(Table)));
  if (table == nullptr) return nullptr;
  table->library = dlopen("libcuda.so.1", RTLD_NOW);
  if (table->library != nullptr) {
    table->stream_create = reinterpret_cast<CUresult (*)(CUstream*, unsigned)>(dlsym(table->library, "cuStreamCreate"));
    table->stream_destroy = reinterpret_cast<CUresult (*)(CUstream)>(dlsym(table->library, "cuStreamDestroy_v2"));
    if (table->stream_create != nullptr && table->stream_destroy != nullptr) return table;
    dlclose(table->library);
  }
  free(table);
  return nullptr;
}

void Unload(Table* table) {
  dlclose(table->library);
  free(table);
}

int Cycle(bool repaired) {
  if (Enter() != 0) return 1;
  CUstream stream = nullptr;
  Table* const table = Load();
  int status = table == nullptr ? Failed("table") : 0;
  if (table != nullptr) {
    if (table->stream_create(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
      status = Failed("stream");
    } else if (table->stream_destroy(stream) != CUDA_SUCCESS) {
      status = Failed("stream");
    }
    if (repaired) Unload(table);
  }
  return Leave() != 0 ? 1 : status;
}

}  // namespace
}  // namespace cuaudit::reducers

int main(int argc, char** argv) { return cuaudit::reducers::Cycles(argc, argv, cuaudit::reducers::Cycle); }
#else
#include "suites/reducers/program_vectors.h"

namespace cuaudit::reducers::vmaf_a2_function_table {
namespace {

constexpr const char* kProgram = "vmaf_a2_function_table";

TEST(VmafA2, TheTableStays) { EXPECT_EQ(PerCycle(kProgram, "defective"), "dlopen_reference 1, host_heap 1 (752 bytes)"); }

TEST(VmafA2, RepairedIsSilent) {
  EXPECT_EQ(PerCycle(kProgram, "repaired"), "");
  ExpectNothingLost(kProgram, "repaired", "host_oom", 1);
}

}  // namespace
}  // namespace cuaudit::reducers::vmaf_a2_function_table
#endif
