// SPDX-License-Identifier: MIT
#include "faults/sim/image/image.h"

#include <elf.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "suites/support/sim_world.h"

namespace cuaudit::sim::image_test {
namespace {

constexpr const char* kText =
    "// header .entry none(\n.version 8.0\n.target sm_90 /* .entry none */\n.address_size 64\n"
    ".global .align 8 .b8 table[256];\n.visible .const .f32 scale = 1;\n"
    ".func helper(.param .b32 x) { ret; }\n"
    ".visible .entry first(.param .u32 a, .param .u64 b, .param .align 16 .b8 c[20])\n.maxntid 128, 1, 1\n"
    "{ .shared .align 4 .b8 buffer[512]; { ret; } }\n.entry second() { ret; }\n";

class Books {
 public:
  Books() : storage_(kBytes) { arena.Adopt(storage_.data(), kBytes); }
  Arena arena;

 private:
  static constexpr std::size_t kBytes = 1 << 20;
  std::vector<char> storage_;
};

// The exact bytes in a heap block of their own, so that a sanitizer sees a read beyond them.
CUresult ParseExactly(Arena& arena, const std::string& bytes, Image** image) {
  const auto copy = std::make_unique<char[]>(bytes.size() + 1);
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  const auto exact = std::make_unique<char[]>(bytes.size() == 0 ? 1 : bytes.size());
  std::memcpy(exact.get(), bytes.data(), bytes.size());
  return ParseImage(arena, exact.get(), bytes.size(), image);
}

std::string Linked() {
  Simulated sim;
  CUlinkState state = nullptr;
  void* cubin = nullptr;
  std::size_t bytes = 0;
  std::string text = kText;
  EXPECT_OK(sim.d.LinkCreate(0, nullptr, nullptr, &state));
  EXPECT_OK(sim.d.LinkAddData(state, CU_JIT_INPUT_PTX, text.data(), text.size() + 1, "text", 0, nullptr, nullptr));
  EXPECT_OK(sim.d.LinkComplete(state, &cubin, &bytes));
  return {static_cast<char*>(cubin), bytes};
}

template <typename T>
void Put(std::string* out, std::size_t at, T value) {
  std::memcpy(out->data() + at, &value, sizeof(value));
}

std::string Fatbin(const std::string& body, std::uint16_t kind, std::uint64_t flags) {
  std::string out(16 + 64, '\0');
  Put(&out, 0, std::uint32_t{0xba55ed50});
  Put(&out, 4, std::uint16_t{1});
  Put(&out, 6, std::uint16_t{16});
  Put(&out, 8, std::uint64_t{64 + body.size()});
  Put(&out, 16, kind);
  Put(&out, 20, std::uint32_t{64});
  Put(&out, 24, std::uint64_t{body.size()});
  Put(&out, 56, flags);
  return out + body;
}

TEST(Image, PtxTellsWhichGlobalsAreManaged) {
  Books books;
  Image* image = nullptr;
  ASSERT_EQ(ParseExactly(books.arena,
                         ".version 8.0\n.target sm_90\n.visible .global .attribute(.managed) .align 4 .b8 shared[64];\n"
                         ".global .attribute(.managed, .unified(1, 2)) .u32 other;\n.global .u32 own;\n",
                         &image),
            CUDA_SUCCESS);
  ASSERT_EQ(image->symbols.size(), 3U);
  EXPECT_TRUE(image->symbols[0]->managed);
  EXPECT_EQ(image->symbols[0]->bytes, 64U);
  EXPECT_TRUE(image->symbols[1]->managed);
  EXPECT_STREQ(image->symbols[1]->name, "other");
  EXPECT_FALSE(image->symbols[2]->managed);
  DropImage(books.arena, image);
}

TEST(Image, PtxTellsKernelsParametersAndGlobals) {
  Books books;
  Image* image = nullptr;
  ASSERT_EQ(ParseExactly(books.arena, kText, &image), CUDA_SUCCESS);
  const Symbol* const first = FindSymbol(books.arena, image, "first", true);
  ASSERT_NE(first, nullptr);
  ASSERT_EQ(first->parameters.size(), 3U);
  EXPECT_EQ(first->parameters[1].offset, 8U);
  EXPECT_EQ(first->parameters[2].offset, 16U);
  EXPECT_EQ(first->parameters[2].size, 20U);
  EXPECT_EQ(first->max_threads, 128U);
  EXPECT_EQ(first->shared_bytes, 512U);
  EXPECT_NE(FindSymbol(books.arena, image, "second", true), nullptr);
  EXPECT_EQ(FindSymbol(books.arena, image, "none", true), nullptr);
  EXPECT_EQ(FindSymbol(books.arena, image, "helper", true), nullptr);
  const Symbol* const table = FindSymbol(books.arena, image, "table", false);
  const Symbol* const scale = FindSymbol(books.arena, image, "scale", false);
  ASSERT_NE(table, nullptr);
  ASSERT_NE(scale, nullptr);
  EXPECT_EQ(table->bytes, 256U);
  EXPECT_EQ(scale->bytes, 4U);
}

TEST(Image, CubinTellsKernels) {
  Books books;
  Image* image = nullptr;
  ASSERT_EQ(ParseExactly(books.arena, Linked(), &image), CUDA_SUCCESS);
  EXPECT_NE(FindSymbol(books.arena, image, "first", true), nullptr);
  EXPECT_EQ(FindSymbol(books.arena, image, "absent", true), nullptr);
}

TEST(Image, FatbinTellsKernelsUnlessCompressed) {
  Books books;
  Image* image = nullptr;
  ASSERT_EQ(ParseExactly(books.arena, Fatbin(kText, 1, 0), &image), CUDA_SUCCESS);
  EXPECT_NE(FindSymbol(books.arena, image, "second", true), nullptr);
  EXPECT_EQ(FindSymbol(books.arena, image, "absent", true), nullptr);
  ASSERT_EQ(ParseExactly(books.arena, Fatbin("compressed", 1, 0x2000), &image), CUDA_SUCCESS);
  EXPECT_NE(FindSymbol(books.arena, image, "anything", true), nullptr);
  EXPECT_EQ(ParseExactly(books.arena, Fatbin("", 77, 0), &image), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

TEST(Image, CutAnywhereIsAnErrorOrAnImageAndNeverACrash) {
  for (const std::string& whole : {std::string(kText), Linked(), Fatbin(kText, 1, 0), Fatbin(Linked(), 2, 0)}) {
    std::size_t refused = 0;
    for (std::size_t length = 0; length < whole.size(); ++length) {
      Books books;
      Image* image = nullptr;
      refused += ParseExactly(books.arena, whole.substr(0, length), &image) != CUDA_SUCCESS ? 1U : 0U;
    }
    EXPECT_GT(refused, whole.size() / 2);
  }
}

TEST(Image, AnyByteChangedIsNeverACrash) {
  const std::string whole = Linked();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char value : {'\0', '\1', '\177', '\377'}) {
      Books books;
      Image* image = nullptr;
      std::string bent = whole;
      bent[at] = value;
      const CUresult result = ParseExactly(books.arena, bent, &image);
      EXPECT_TRUE(result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_INVALID_PTX ||
                  result == CUDA_ERROR_OUT_OF_MEMORY)
          << at;
    }
  }
}

}  // namespace
}  // namespace cuaudit::sim::image_test
