// SPDX-License-Identifier: MIT
// Kernel images: PTX, cubin, fatbin. What is read must be found again by its name, and what is given back leaves nothing in the books.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "faults/sim/image/image.h"
#include "include/cuaudit/fuzz_input.h"
#include "suites/fuzz/require.h"

namespace cuaudit::fuzz {
namespace {

using namespace cuaudit::sim;

constexpr std::size_t kBooks = std::size_t{1} << 20;

// An arena over memory that is zero again afterwards.
class Books {
 public:
  Books() : bytes_(Memory()) { arena.Adopt(bytes_, kBooks); }
  ~Books() { std::memset(bytes_, 0, static_cast<std::size_t>(arena.end_of_used() - bytes_)); }
  Books(const Books&) = delete;
  Books& operator=(const Books&) = delete;
  Arena arena;

 private:
  static char* Memory() {
    alignas(64) static char bytes[kBooks];
    return bytes;
  }
  char* bytes_;
};

void Try(std::string_view bytes) {
  // The wrapper of a fatbin holds an address, which the driver believes.
  constexpr std::uint32_t kWrapper = 0x466243b1;
  std::uint32_t magic = 0;
  if (bytes.size() >= sizeof(magic)) std::memcpy(&magic, bytes.data(), sizeof(magic));
  if (magic == kWrapper) return;
  Books books;
  Image* image = nullptr;
  const CUresult result = ParseImage(books.arena, bytes.data(), bytes.size(), &image);
  Require((result == CUDA_SUCCESS) == (image != nullptr), "an image, or a code that says why there is none");
  if (image == nullptr) return;
  for (const Symbol* const symbol : image->symbols) {
    Require(FindSymbol(books.arena, image, symbol->name, symbol->kernel) == symbol, "a symbol is found by its name", symbol->name);
  }
  const Symbol* const unknown = FindSymbol(books.arena, image, "no such kernel", true);
  Require(unknown == nullptr || image->any_kernel, "a name that nobody gave is found only where names are unreadable");
  DropImage(books.arena, image);
}

}  // namespace
}  // namespace cuaudit::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cuaudit::fuzz::Try({reinterpret_cast<const char*>(data), size});
  return 0;
}
