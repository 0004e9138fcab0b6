// SPDX-License-Identifier: MIT
// proc_address_check.cc: asks a genuine driver for every symbol of the table at its own version, one below it, and the newest, with each
// flag, and compares what it hands out with what ResolveProcAddress says. Usage: proc_address_check /path/to/libcuda.so. Exit 1: a
// difference.
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>

#include "faults/driver/proc_address.h"

using namespace cuaudit::driver;

int main(int argc, char** argv) {
  void* driver = argc == 2 ? dlopen(argv[1], RTLD_NOW) : nullptr;
  if (driver == nullptr) return 2;
  using Ask = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  const Ask ask = reinterpret_cast<Ask>(dlsym(driver, "cuGetProcAddress_v2"));
  if (ask == nullptr) return 2;
  int equal = 0;
  int different = 0;
  int absent = 0;
  for (const CallRow& row : kCalls) {
    if (row.version == 0) continue;
    for (const int version : {static_cast<int>(row.version) - 1, static_cast<int>(row.version), 13000}) {
      for (const cuuint64_t flags : {cuuint64_t{0}, cuuint64_t{1}, cuuint64_t{2}}) {
        const ProcAddress expected = ResolveProcAddress(Name(row.base), version, flags);
        void* wanted = expected.status == ProcStatus::Found ? dlsym(driver, Name(expected.id).data()) : nullptr;
        if (expected.status == ProcStatus::Found && wanted == nullptr) {
          ++absent;  // this driver does not export it
          continue;
        }
        void* got = nullptr;
        CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
        const CUresult result = ask(Name(row.base).data(), &got, version, flags, &status);
        if (result == CUDA_SUCCESS && got == wanted) {
          ++equal;
          continue;
        }
        ++different;
        printf("different: %s @ %d flags %d: result %d status %d, expected %s\n", Name(row.base).data(), version, static_cast<int>(flags),
               result, status, wanted != nullptr ? Name(expected.id).data() : "none");
      }
    }
  }
  printf("{\"equal\": %d, \"different\": %d, \"absent\": %d}\n", equal, different, absent);
  return different != 0;
}
