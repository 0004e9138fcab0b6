// SPDX-License-Identifier: MIT
#include "faults/driver/foreign_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "faults/driver/runtime_file.h"

namespace cuaudit::driver::foreign_runtime_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Explain(const char* object, const char* own_directory = "/opt/lib/cudart") {
  char text[1024];
  ExplainForeignRuntime(object, own_directory, text, sizeof(text));
  return text;
}

TEST(ForeignRuntime, IsKnownByTheTablesItRequires) {
  const unsigned char required[16] = {0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1, 0xf2};
  EXPECT_TRUE(IsRuntimeTable(required));
  unsigned char other[16] = {};
  EXPECT_FALSE(IsRuntimeTable(other));
  EXPECT_FALSE(IsRuntimeTable(nullptr));
}

TEST(ForeignRuntime, AStaticOneIsToBeLinkedAgain) {
  EXPECT_THAT(Explain("/home/me/program"), AllOf(HasSubstr("/home/me/program"), HasSubstr("-cudart shared"), HasSubstr("-L/opt/lib/cudart"),
                                                 HasSubstr("--driver=real"), Not(HasSubstr("LD_PRELOAD"))));
}

TEST(ForeignRuntime, ASharedOneFoundByRPathIsToBePreceded) {
  EXPECT_THAT(Explain("/usr/local/cuda/lib64/libcudart.so.12"),
              AllOf(HasSubstr("LD_PRELOAD=/opt/lib/cudart/libcudart.so.12"), Not(HasSubstr("statically"))));
  EXPECT_THAT(Explain("libcudart.so.13.0.96"), HasSubstr("LD_PRELOAD=/opt/lib/cudart/libcudart.so.13,"));
}

TEST(ForeignRuntime, ACopyInAPythonWheelIsAShared) {
  EXPECT_THAT(Explain("/venv/wheel.libs/libcudart-1a2b3c4d.so.13.0.96"),
              AllOf(HasSubstr("LD_PRELOAD=/opt/lib/cudart/libcudart.so.13,"), Not(HasSubstr("statically"))));
}

TEST(RuntimeFile, IsKnownByNvidiasNamesAndByThoseInWheels) {
  for (const char* const path : {"libcudart.so", "libcudart.so.13", "/usr/local/cuda/lib64/libcudart.so.12.8.90",
                                 "libcudart-1a2b3c4d.so.13.0.96", "/venv/wheel.libs/libcudart-a7b20f20.so.11.0", "libcudart-0.so"}) {
    EXPECT_TRUE(RuntimeFileOf(path).shared) << path;
  }
  for (const char* const path : {"", "libcudart", "libcudartist.so", "libcudart_static.a", "libcudart-.so.13", "libcudart-mine.so.13",
                                 "libcudart.sock", "libcudart.so.13/prog", "xlibcudart.so.13", "libcuda.so.1", "libcudart-1a2b3c4d"}) {
    EXPECT_FALSE(RuntimeFileOf(path).shared) << path;
  }
}

TEST(RuntimeFile, HasItsMajorVersion) {
  EXPECT_EQ(RuntimeFileOf("libcudart.so.13").major, 13);
  EXPECT_EQ(RuntimeFileOf("/x/libcudart-12345678.so.12.8.90").major, 12);
  EXPECT_EQ(RuntimeFileOf("libcudart.so").major, 0);
  EXPECT_EQ(RuntimeFileOf("libcudart.so.99999999999999999999").major, 9999);
}

TEST(ForeignRuntime, AnOlderOneHasNoStandIn) {
  EXPECT_THAT(Explain("/usr/lib/libcudart.so.11.0"), AllOf(HasSubstr("libcudart.so.12 and libcudart.so.13"), Not(HasSubstr("LD_PRELOAD"))));
}

TEST(ForeignRuntime, WithoutOneOfOurOwnNoPathIsNamed) {
  for (const char* const object : {"/home/me/program", "/usr/local/cuda/lib64/libcudart.so.12"}) {
    EXPECT_THAT(Explain(object, ""), AllOf(HasSubstr("was not built"), HasSubstr("cuaudit doctor"), HasSubstr("--driver=real"),
                                           Not(HasSubstr("LD_PRELOAD")), Not(HasSubstr("-L"))));
  }
}

TEST(ForeignRuntime, ALongPathIsCut) {
  char text[32];
  ExplainForeignRuntime(std::string(500, 'x').c_str(), "/d", text, sizeof(text));
  EXPECT_EQ(std::string(text).size(), sizeof(text) - 1);
}

}  // namespace
}  // namespace cuaudit::driver::foreign_runtime_test
