# SPDX-License-Identifier: MIT
# What a project that tests with cuaudit calls. Included by find_package(cuaudit) and by FetchContent alike.

# cuaudit_add_sweep(NAME name COMMAND program [argument...] [OPTIONS option...] [LABELS label...] [TIMEOUT seconds] [GPUS n])
# A ctest that makes every driver call of a program fail in turn: `cuaudit sweep OPTIONS -- program argument...`. The program may be a
# target. The test passes when nothing is found, and fails when nothing was tried. With GPUS, ctest --resource-spec-file FILE reserves n
# resources called gpus for it (property RESOURCE_GROUPS), and the program sees only these.
function(cuaudit_add_sweep)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TIMEOUT;GPUS" "COMMAND;OPTIONS;LABELS")
  if(NOT arg_NAME OR NOT arg_COMMAND OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "cuaudit_add_sweep(${ARGV}): expected NAME name COMMAND program [argument...] [OPTIONS ...] [LABELS ...] [TIMEOUT ...] [GPUS ...]")
  endif()
  list(POP_FRONT arg_COMMAND program)
  if(TARGET "${program}")
    set(program "$<TARGET_FILE:${program}>")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  add_test(NAME "${arg_NAME}" COMMAND cuaudit::tool sweep ${arg_OPTIONS} -- "${program}" ${arg_COMMAND})
  set_tests_properties("${arg_NAME}" PROPERTIES TIMEOUT "${arg_TIMEOUT}" LABELS "${arg_LABELS}")
  cuaudit_reserve_gpus("${arg_NAME}" "${arg_GPUS}")
endfunction()

function(cuaudit_reserve_gpus test count)
  if(count STREQUAL "")
    return()
  endif()
  if(NOT count MATCHES "^[1-9][0-9]*$")
    message(FATAL_ERROR "${test}: GPUS ${count}: expected a number from 1")
  endif()
  set_tests_properties("${test}" PROPERTIES RESOURCE_GROUPS "${count},gpus:1")
endfunction()

# cuaudit_add_audit([NAME name] [CONFIG file] [CASES case...] [TAGS tag...] [OUT directory] [OPTIONS option...] [LABELS label...]
#                   [TIMEOUT seconds] [GPUS n])
# A ctest, named cuaudit_audit by default, that audits cases of a project file, by default all of cuaudit.toml beside this CMakeLists.txt:
# `cuaudit audit case... --tag tag... --config file --out directory`. A file that ends in .in may name what CMake knows, as
# command = ["$<TARGET_FILE:pool_test>", "2"]: file(GENERATE) writes it, and its cases run, in the binary directory. The result directory is
# name.audit there by default. GPUS as above.
function(cuaudit_add_audit)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;CONFIG;OUT;TIMEOUT;GPUS" "CASES;TAGS;OPTIONS;LABELS")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "cuaudit_add_audit(${ARGV}): expected [NAME name] [CONFIG file] [CASES case...] [TAGS tag...] [OUT directory] [OPTIONS ...] "
      "[LABELS ...] [TIMEOUT ...] [GPUS ...]")
  endif()
  if(NOT arg_NAME)
    set(arg_NAME cuaudit_audit)
  endif()
  if(NOT arg_CONFIG)
    set(arg_CONFIG cuaudit.toml)
  endif()
  cmake_path(ABSOLUTE_PATH arg_CONFIG BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
  if(NOT EXISTS "${arg_CONFIG}")
    message(FATAL_ERROR "cuaudit_add_audit: CONFIG ${arg_CONFIG}: not found")
  endif()
  if(arg_CONFIG MATCHES "\\.in$")
    set(template "${arg_CONFIG}")
    cmake_path(GET template STEM LAST_ONLY arg_CONFIG)
    string(PREPEND arg_CONFIG "${CMAKE_CURRENT_BINARY_DIR}/")
    file(GENERATE OUTPUT "${arg_CONFIG}" INPUT "${template}")
  endif()
  if(NOT arg_OUT)
    set(arg_OUT "${arg_NAME}.audit")
  endif()
  cmake_path(ABSOLUTE_PATH arg_OUT BASE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}" NORMALIZE)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 1500)
  endif()
  list(TRANSFORM arg_TAGS PREPEND "--tag=")
  add_test(NAME "${arg_NAME}" COMMAND cuaudit::tool audit ${arg_CASES} ${arg_TAGS} "--config=${arg_CONFIG}" "--out=${arg_OUT}" ${arg_OPTIONS})
  set_tests_properties("${arg_NAME}" PROPERTIES TIMEOUT "${arg_TIMEOUT}" LABELS "${arg_LABELS}")
  cuaudit_reserve_gpus("${arg_NAME}" "${arg_GPUS}")
endfunction()

# cuaudit_check_neutrality(target [TOLERATE kind...] [WARM_UP_ITERATIONS n] [MAY_BE_IDLE] [MOST_RECORDS n])
# Every GoogleTest of that program fails when it leaves driver objects behind (cuaudit/neutrality_listener.h). The program is linked with
# the drop-in library instead of libcuda; neither its tests nor its main are touched. A test that makes more than MOST_RECORDS (4194304)
# records of driver calls fails. A run of the whole program in which no test called the driver fails, unless MAY_BE_IDLE; of one shard or
# filter, as gtest_discover_tests runs each test, it passes and says so. There
#   gtest_discover_tests(target PROPERTIES SKIP_REGULAR_EXPRESSION "cuaudit  . nothing was checked")
# shows such tests as skipped.
set(CUAUDIT_NEUTRALITY_SOURCE "${CMAKE_CURRENT_LIST_DIR}/neutrality.cc" CACHE INTERNAL "")
function(cuaudit_check_neutrality target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "MAY_BE_IDLE" "WARM_UP_ITERATIONS;MOST_RECORDS" "TOLERATE")
  if(NOT TARGET "${target}" OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "cuaudit_check_neutrality(${ARGV}): expected a target [TOLERATE kind...] [WARM_UP_ITERATIONS n] [MAY_BE_IDLE] [MOST_RECORDS n]")
  endif()
  if(NOT arg_WARM_UP_ITERATIONS)
    set(arg_WARM_UP_ITERATIONS 0)
  endif()
  if(NOT arg_MOST_RECORDS)
    set(arg_MOST_RECORDS 0)
  endif()
  list(JOIN arg_TOLERATE "," tolerate)
  target_sources("${target}" PRIVATE "${CUAUDIT_NEUTRALITY_SOURCE}")
  target_compile_definitions("${target}" PRIVATE CUAUDIT_TOLERATE="${tolerate}" CUAUDIT_WARM_UP_ITERATIONS=${arg_WARM_UP_ITERATIONS}
    CUAUDIT_MAY_BE_IDLE=$<BOOL:${arg_MAY_BE_IDLE}> CUAUDIT_MOST_RECORDS=${arg_MOST_RECORDS})
  target_link_libraries("${target}" PRIVATE cuaudit::cuaudit cuaudit::dropin)
endfunction()
