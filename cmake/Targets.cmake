# SPDX-License-Identifier: MIT
# The INTERFACE targets that every library links, and the functions that declare libraries and tests.
add_library(cuaudit_options INTERFACE)
target_compile_features(cuaudit_options INTERFACE cxx_std_20)
target_include_directories(cuaudit_options INTERFACE "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/generated")
target_include_directories(cuaudit_options SYSTEM INTERFACE
  "${CUAUDIT_CUDA_INCLUDE}" "${PROJECT_SOURCE_DIR}/faults/driver/graphics_types")
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

add_library(cuaudit_warnings INTERFACE)
target_compile_options(cuaudit_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow
  $<$<COMPILE_LANGUAGE:CXX>:-Wconversion -Wnon-virtual-dtor -Wold-style-cast -Wimplicit-fallthrough>
  $<$<BOOL:${CUAUDIT_WERROR}>:-Werror>)

add_library(cuaudit_instrument INTERFACE)
if(CUAUDIT_SANITIZE)
  target_compile_options(cuaudit_instrument INTERFACE -fsanitize=${CUAUDIT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(cuaudit_instrument INTERFACE -fsanitize=${CUAUDIT_SANITIZE})
endif()
if(CUAUDIT_SANITIZE OR CUAUDIT_FUZZ)
  # Also where the flags come from outside (OSS-Fuzz). Clients of a C interface may hand in any number where a header says enumeration, and
  # answering that is the point.
  target_compile_options(cuaudit_instrument INTERFACE -fno-sanitize=enum)
endif()
if(CUAUDIT_FUZZ)
  target_compile_options(cuaudit_instrument INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(CUAUDIT_COVERAGE)
  target_compile_options(cuaudit_instrument INTERFACE -fprofile-instr-generate -fcoverage-mapping)
  target_link_options(cuaudit_instrument INTERFACE -fprofile-instr-generate)
endif()

# The rooms below the drop-in library use no C++ runtime: what they define may run inside somebody else's process.
add_library(cuaudit_no_runtime INTERFACE)
target_compile_options(cuaudit_no_runtime INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fno-threadsafe-statics -U_GLIBCXX_ASSERTIONS> -ftls-model=initial-exec)

# cuaudit_add_library(name [NO_RUNTIME] SOURCES ... [LINK ...])
# NO_RUNTIME libraries exist twice: `name` for the tool and the tests, instrumented as the preset says, and `name_dropin`, never
# instrumented, for the libraries that enter other programs.
function(cuaudit_add_library name)
  cmake_parse_arguments(arg "NO_RUNTIME" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC cuaudit_options ${arg_LINK} PRIVATE cuaudit_warnings cuaudit_instrument)
  if(NOT arg_NO_RUNTIME)
    return()
  endif()
  target_link_libraries(${name} PRIVATE cuaudit_no_runtime)
  if(CUAUDIT_SANITIZE OR CUAUDIT_FUZZ OR CUAUDIT_COVERAGE)
    set(linked ${arg_LINK})
    list(TRANSFORM linked APPEND _dropin REGEX "^cuaudit_")
    add_library(${name}_dropin STATIC ${arg_SOURCES})
    target_link_libraries(${name}_dropin PUBLIC cuaudit_options ${linked} PRIVATE cuaudit_warnings cuaudit_no_runtime)
  else()
    add_library(${name}_dropin ALIAS ${name})
  endif()
endfunction()

# What nearly every test includes, compiled once: a third of a test's compile time. An executable's flags, as the tests are executables.
function(cuaudit_precompile_test_headers)
  file(WRITE "${PROJECT_BINARY_DIR}/precompiled/empty.cc.new" "// Only there to own the precompiled header.\n")
  file(COPY_FILE "${PROJECT_BINARY_DIR}/precompiled/empty.cc.new" "${PROJECT_BINARY_DIR}/precompiled/empty.cc" ONLY_IF_DIFFERENT)
  add_library(cuaudit_test_headers OBJECT "${PROJECT_BINARY_DIR}/precompiled/empty.cc")
  set_target_properties(cuaudit_test_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(cuaudit_test_headers PRIVATE -fPIE)
  target_link_libraries(cuaudit_test_headers PRIVATE cuaudit_options cuaudit_warnings cuaudit_instrument GTest::gtest GTest::gmock)
  target_precompile_headers(cuaudit_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <algorithm> <array> <atomic> <chrono> <cstring>
    <filesystem> <fstream> <functional> <map> <memory> <mutex> <optional> <regex> <set> <sstream> <string> <string_view> <thread> <unordered_map>
    <utility> <vector>)
endfunction()

# cuaudit_add_test(name SOURCES ... LABELS ... [LINK ...] [TIMEOUT seconds] [ENVIRONMENT ...])
# A GoogleTest executable, one ctest entry per executable so that a suite starts one process, not hundreds.
function(cuaudit_add_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LABELS;LINK;ENVIRONMENT" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK} cuaudit_options cuaudit_warnings cuaudit_instrument GTest::gtest GTest::gmock GTest::gtest_main)
  if(NOT TARGET cuaudit_test_headers)
    cuaudit_precompile_test_headers()
  endif()
  target_precompile_headers(${name} REUSE_FROM cuaudit_test_headers)
  set(c_sources ${arg_SOURCES})
  list(FILTER c_sources INCLUDE REGEX "\\.c$")
  set_source_files_properties(${c_sources} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77
    ENVIRONMENT "${arg_ENVIRONMENT}")
endfunction()
