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
  -Wall -Wextra -Wpedantic
  $<$<NOT:$<BOOL:${CUAUDIT_TIDY}>>:-Wshadow>  # in a group, the file before has names of its own; the build of each file says what shadows
  $<$<COMPILE_LANGUAGE:CXX>:-Wconversion -Wnon-virtual-dtor -Wold-style-cast -Wimplicit-fallthrough>
  $<$<BOOL:${CUAUDIT_WERROR}>:-Werror>)
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # In a unity build every file but the first is a header to GCC, and a header with an anonymous namespace is suspicious.
  target_compile_options(cuaudit_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()

add_library(cuaudit_instrument INTERFACE)
if(CUAUDIT_SANITIZE)
  target_compile_options(cuaudit_instrument INTERFACE -fsanitize=${CUAUDIT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(cuaudit_instrument INTERFACE -fsanitize=${CUAUDIT_SANITIZE})
  if(CUAUDIT_SANITIZE MATCHES "address.*undefined")
    # Each check of UndefinedBehaviorSanitizer has a record with an address in it. Where a program is loaded at a place that differs each time,
    # all of them are written when it starts: 41 MB, a third of the time of a short run of cuaudit.
    target_link_options(cuaudit_instrument INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND NOT CUAUDIT_FUZZ)
      # Functions of headers that are not ours: under AddressSanitizer and the library's assertions alone. Half of an object was their checks. The
      # presets ubsan and fuzz have them.
      target_compile_options(cuaudit_instrument INTERFACE "-fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/cmake/ubsan_ignorelist.txt")
    endif()
  endif()
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

# GCC looks through its memory for what could be reused each time it has grown by a third: up to 1 GiB that costs time and frees little.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1048576>)
endif()

# A debug build by GCC optimises the libraries for debugging: that compiles in less time than -O0, because inline functions of the standard
# library are not written out, and what the tests start runs faster.
add_library(cuaudit_debug_build INTERFACE)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(cuaudit_debug_build INTERFACE $<$<AND:$<CONFIG:Debug>,$<COMPILE_LANGUAGE:CXX>>:-Og>)
endif()

# The rooms below the drop-in library use no C++ runtime: what they define may run inside somebody else's process.
add_library(cuaudit_no_runtime INTERFACE)
target_compile_options(cuaudit_no_runtime INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fno-threadsafe-statics -U_GLIBCXX_ASSERTIONS> -ftls-model=initial-exec)

# Groups the C++ files of a target for a unity build. A file that asks cuda.h for its internal types (__CUDA_API_VERSION_INTERNAL) sees
# other declarations than one that does not, so the two sorts never share a translation unit.
set(CUAUDIT_UNITY_FILES 12 CACHE STRING "C++ files of one target that a unity build compiles together")
function(cuaudit_group_for_unity target)
  if(NOT CMAKE_UNITY_BUILD)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    if(source MATCHES "\\.cc$")
      cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
      file(STRINGS "${path}" internal LIMIT_COUNT 1 REGEX "^#define __CUDA_API_VERSION_INTERNAL")
      if(internal)
        set(sort internal)
      else()
        set(sort public)
      endif()
      math(EXPR files_${sort} "0${files_${sort}} + 1")
      math(EXPR group "(${files_${sort}} - 1) / ${CUAUDIT_UNITY_FILES}")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP ${sort}_${group})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# cuaudit_add_library(name [NO_RUNTIME] [COLD] SOURCES ... [LINK ...])
# COLD libraries spend no time that anybody waits for: in an optimised build GCC compiles them with -Og, in six tenths of the time of -O2, and
# clang, whose -Og is the same, with -O1.
# NO_RUNTIME libraries exist twice: `name` for the tool and the tests, instrumented as the preset says, and `name_dropin`, never
# instrumented, for the libraries that enter other programs.
function(cuaudit_add_library name)
  cmake_parse_arguments(arg "NO_RUNTIME;COLD" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  cuaudit_group_for_unity(${name})
  target_link_libraries(${name} PUBLIC cuaudit_options ${arg_LINK} PRIVATE cuaudit_warnings cuaudit_instrument cuaudit_debug_build)
  if(arg_COLD)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release,RelWithDebInfo>:-Og>)
  endif()
  if(NOT arg_NO_RUNTIME)
    if(TARGET cuaudit_library_headers)
      target_precompile_headers(${name} REUSE_FROM cuaudit_library_headers)
    endif()
    return()
  endif()
  target_link_libraries(${name} PRIVATE cuaudit_no_runtime)
  if(CUAUDIT_SANITIZE OR CUAUDIT_FUZZ OR CUAUDIT_COVERAGE)
    set(linked ${arg_LINK})
    list(TRANSFORM linked APPEND _dropin REGEX "^cuaudit_")
    add_library(${name}_dropin STATIC ${arg_SOURCES})
    cuaudit_group_for_unity(${name}_dropin)
    target_link_libraries(${name}_dropin PUBLIC cuaudit_options ${linked} PRIVATE cuaudit_warnings cuaudit_no_runtime cuaudit_debug_build)
  else()
    add_library(${name}_dropin ALIAS ${name})
  endif()
endfunction()

# For programs that only tests start: a linker that takes a quarter of the time, where there is one, line tables alone as debug information,
# and little optimisation of the test itself, or none (CUAUDIT_UNOPTIMISED; the precompiled header of the tests does not fit such a program). What
# enters other people's processes is linked by the system's linker.
find_program(CUAUDIT_FAST_LINKER NAMES mold ld.lld DOC "Linker for test programs; empty: the compiler's own")
add_library(cuaudit_test_program INTERFACE)
target_compile_options(cuaudit_test_program INTERFACE -g1 $<$<NOT:$<CONFIG:Debug>>:-O$<NOT:$<BOOL:$<TARGET_PROPERTY:CUAUDIT_UNOPTIMISED>>>>)
if(CUAUDIT_FAST_LINKER)
  cmake_path(GET CUAUDIT_FAST_LINKER FILENAME _linker)
  string(REPLACE "ld.lld" "lld" _linker "${_linker}")
  target_link_options(cuaudit_test_program INTERFACE -fuse-ld=${_linker})
endif()

# For code of the suites under ASan+UBSan: AddressSanitizer alone. UndefinedBehaviorSanitizer's checks of the tests cost a quarter of their
# compile time. The sources of what is tested stay under both; not so an inline function of a header that the test compiles as well, since the
# linker takes the first copy, which is the test's. So tests of the rooms with much code in headers (labels allocator and threads) keep both.
# Named after cuaudit_instrument. GCC's precompiled header would have to be compiled the same way.
add_library(cuaudit_address_alone INTERFACE)
if(CUAUDIT_SANITIZE MATCHES "address.*undefined" AND NOT CUAUDIT_FUZZ AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(cuaudit_address_alone INTERFACE -fno-sanitize=undefined)
endif()

# A target that owns a precompiled header: an object library of an empty file.
function(cuaudit_owner_of_headers name)
  file(WRITE "${PROJECT_BINARY_DIR}/precompiled/empty.cc.new" "// Only there to own the precompiled header.\n")
  file(COPY_FILE "${PROJECT_BINARY_DIR}/precompiled/empty.cc.new" "${PROJECT_BINARY_DIR}/precompiled/empty.cc" ONLY_IF_DIFFERENT)
  add_library(${name} OBJECT "${PROJECT_BINARY_DIR}/precompiled/empty.cc")
endfunction()

# What most libraries of reports and harness include, compiled once: by clang a sixth of their compile time. GCC gains nothing from it. No header
# here depends on a definition that only some targets have, as those of fmt do.
function(cuaudit_precompile_library_headers)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    return()
  endif()
  cuaudit_owner_of_headers(cuaudit_library_headers)
  target_link_libraries(cuaudit_library_headers PRIVATE cuaudit_options cuaudit_warnings cuaudit_instrument nlohmann_json::nlohmann_json)
  target_precompile_headers(cuaudit_library_headers PRIVATE <algorithm> <array> <charconv> <filesystem> <fstream> <functional> <iterator> <map>
    <memory> <optional> <set> <span> <sstream> <string> <string_view> <system_error> <tuple> <unordered_map> <utility> <vector>
    <nlohmann/json.hpp>)
endfunction()

# What nearly every test includes, compiled once: a third of a test's compile time. An executable's flags, as the tests are executables. Clang
# instantiates templates in it that many tests use, which is a quarter of what is left where tests read JSON; GCC would do so in each test.
function(cuaudit_precompile_test_headers)
  cuaudit_owner_of_headers(cuaudit_test_headers)
  set_target_properties(cuaudit_test_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(cuaudit_test_headers PRIVATE -fPIE)
  target_link_libraries(cuaudit_test_headers PRIVATE cuaudit_options cuaudit_warnings cuaudit_instrument cuaudit_test_program GTest::gtest GTest::gmock
    nlohmann_json::nlohmann_json)
  target_precompile_headers(cuaudit_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <algorithm> <array> <atomic> <chrono> <cstring>
    <filesystem> <fstream> <functional> <map> <memory> <mutex> <optional> <regex> <set> <sstream> <string> <string_view> <thread> <unordered_map>
    <utility> <vector>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_precompile_headers(cuaudit_test_headers PRIVATE "${PROJECT_SOURCE_DIR}/suites/support/instances.h")
  endif()
endfunction()

# cuaudit_all_targets(variable directory): the targets of a directory and of those below it that a build of everything makes.
function(cuaudit_all_targets variable directory)
  get_property(all DIRECTORY "${directory}" PROPERTY BUILDSYSTEM_TARGETS)
  get_property(below DIRECTORY "${directory}" PROPERTY SUBDIRECTORIES)
  set(found)
  foreach(target IN LISTS all)
    get_target_property(type ${target} TYPE)
    get_target_property(left_out ${target} EXCLUDE_FROM_ALL)
    if(NOT left_out AND NOT type STREQUAL "INTERFACE_LIBRARY")
      list(APPEND found ${target})
    endif()
  endforeach()
  foreach(folder IN LISTS below)
    cuaudit_all_targets(more "${folder}")
    list(APPEND found ${more})
  endforeach()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# The programs of the tests that the tier tsan of scripts/test runs.
add_custom_target(tests_threads)

# The label elsewhere: of scripts/test --all the tier asan runs all of the test, so the optimised one does not. Its sources may leave nothing out
# under a sanitizer. Whether some tier has the test: suites/e2e/users/entry_scripts_test.py.
function(cuaudit_check_elsewhere)
  foreach(source IN LISTS ARGN)
    if(source MATCHES "\\.cc$")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
      file(STRINGS "${source}" left_out LIMIT_COUNT 1 REGEX "CUAUDIT_INSTRUMENTED|__has_feature|__SANITIZE_|GTEST_SKIP.*sanitizer")
      if(left_out)
        message(FATAL_ERROR "${source}: expected nothing that a sanitizer leaves out, as the label is elsewhere: ${left_out}")
      endif()
    endif()
  endforeach()
endfunction()

# cuaudit_add_test(name SOURCES ... LABELS ... [LINK ...] [TIMEOUT seconds] [ENVIRONMENT ...] [SPLIT prefix])
# A GoogleTest executable, one ctest entry per executable so that a suite starts one process, not hundreds; with SPLIT one per file.
function(cuaudit_add_test name)
  cmake_parse_arguments(arg "" "TIMEOUT;SPLIT" "SOURCES;LABELS;LINK;ENVIRONMENT" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  cuaudit_group_for_unity(${name})
  set(less)
  if(NOT arg_LABELS MATCHES "allocator|threads")
    set(less cuaudit_address_alone)
  endif()
  target_link_libraries(${name} PRIVATE ${arg_LINK} cuaudit_options cuaudit_warnings cuaudit_instrument ${less} cuaudit_test_program GTest::gtest
    GTest::gmock GTest::gtest_main)
  if(NOT TARGET cuaudit_test_headers)
    cuaudit_precompile_test_headers()
  endif()
  target_precompile_headers(${name} REUSE_FROM cuaudit_test_headers)
  set(c_sources ${arg_SOURCES})
  list(FILTER c_sources INCLUDE REGEX "\\.c$")
  set_source_files_properties(${c_sources} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  if("threads" IN_LIST arg_LABELS)
    add_dependencies(tests_threads ${name})
  endif()
  if("elsewhere" IN_LIST arg_LABELS)
    set_property(GLOBAL APPEND PROPERTY cuaudit_elsewhere ${name})
    cuaudit_check_elsewhere(${arg_SOURCES})
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)  # a limit for what hangs: machines of one kind differ by two, and four tests run on two cores
  endif()
  if(arg_SPLIT)
    cuaudit_split_test(${name} PREFIX ${arg_SPLIT} SOURCES ${arg_SOURCES} LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT} ENVIRONMENT ${arg_ENVIRONMENT})
    return()
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77
    ENVIRONMENT "${arg_ENVIRONMENT}")
endfunction()

# cuaudit_tests_of(variable file): the tests that a source file names in plain sight, as patterns of a GoogleTest filter.
function(cuaudit_tests_of variable file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  file(STRINGS "${file}" lines REGEX "^TEST(_F|_P)?\\(")
  set(found)
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^TEST(_F|_P)?\\(([A-Za-z0-9_]+), ([A-Za-z0-9_]+)\\).*" "\\2.\\3" test "${line}")
    if(line MATCHES "^TEST_P")
      list(APPEND found "*/${test}/*")
    else()
      list(APPEND found "${test}")
    endif()
  endforeach()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# cuaudit_sample_if_instrumented(n test...)
# A sanitizer looks at our code. These tests take it the same ways for each of many programs, which are not instrumented themselves: a build
# with a sanitizer runs every n-th case of each.
function(cuaudit_sample_if_instrumented n)
  if(CUAUDIT_SANITIZE)
    set_property(TEST ${ARGN} APPEND PROPERTY ENVIRONMENT GTEST_TOTAL_SHARDS=${n} GTEST_SHARD_INDEX=0)
  endif()
endfunction()

# cuaudit_split_test(name SOURCES file... LABELS ... TIMEOUT seconds [PREFIX text] [ENVIRONMENT ...])
# A ctest entry per source file of the GoogleTest executable `name`, so that the parts run side by side. What no file names in plain sight,
# for instance a test made by a macro, runs in a last entry, so that no test is ever left out.
function(cuaudit_split_test name)
  cmake_parse_arguments(arg "" "TIMEOUT;PREFIX" "SOURCES;LABELS;ENVIRONMENT" ${ARGN})
  set(named)
  foreach(source IN LISTS arg_SOURCES)
    cuaudit_tests_of(filter "${source}")
    if(NOT filter)
      continue()
    endif()
    list(APPEND named ${filter})
    list(JOIN filter ":" filter)
    cmake_path(GET source STEM stem)
    add_test(NAME ${arg_PREFIX}${stem} COMMAND ${name} --gtest_filter=${filter})
    list(APPEND entries ${arg_PREFIX}${stem})
  endforeach()
  list(JOIN named ":" named)
  add_test(NAME ${name}_rest COMMAND ${name} --gtest_filter=-${named})
  set_tests_properties(${entries} ${name}_rest PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77
    ENVIRONMENT "${arg_ENVIRONMENT}")
endfunction()

# cuaudit_stand_in_headers(target header names...): `header` also answers to the names of another project's headers, for code that is compiled
# here without that project.
function(cuaudit_stand_in_headers target header)
  set(names "${CMAKE_CURRENT_BINARY_DIR}/${target}_names")
  foreach(name IN LISTS ARGN)
    file(CONFIGURE OUTPUT "${names}/${name}" CONTENT "#include \"${header}\"\n" @ONLY)
  endforeach()
  target_include_directories(${target} SYSTEM PRIVATE "${names}")
endfunction()
