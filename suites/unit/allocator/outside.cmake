# SPDX-License-Identifier: MIT
# What the allocator is seen by, and what it is behind.
add_executable(snapshot_samples snapshot_samples.cc)
set_target_properties(snapshot_samples PROPERTIES ENABLE_EXPORTS ON)  # so that a stack has a name
target_link_libraries(snapshot_samples PRIVATE cuaudit_alloc_observe cuaudit_options cuaudit_warnings cuaudit_instrument)
add_dependencies(tests_allocator snapshot_samples)
add_test(NAME snapshot_format_test COMMAND Python3::Interpreter "${CMAKE_CURRENT_LIST_DIR}/check_snapshot_test.py" "$<TARGET_FILE:snapshot_samples>")
set_tests_properties(snapshot_format_test PROPERTIES LABELS "unit;allocator" TIMEOUT 120)
cuaudit_add_test(allocator_text_test SOURCES options_text_test.cc history_test.cc LABELS unit allocator threads LINK cuaudit_alloc cuaudit_alloc_observe)
cuaudit_add_test(backends_test SOURCES backends_test.cc LABELS unit allocator LINK cuaudit_alloc cuaudit_sim)

find_path(CUAUDIT_CCCL_INCLUDE cuda/memory_resource HINTS "${CUAUDIT_CUDA_INCLUDE}/cccl" "${CUAUDIT_CUDA_INCLUDE}" DOC "Include directory of CCCL 3.0 or newer")
if(CUAUDIT_CCCL_INCLUDE)
  cuaudit_add_test(resource_test SOURCES resource_test.cc LABELS unit allocator LINK cuaudit_alloc cuaudit_sim)
  target_include_directories(resource_test SYSTEM PRIVATE "${CUAUDIT_CCCL_INCLUDE}")
else()
  message(STATUS "no CCCL beside the CUDA headers: resource_test is left out")
endif()

if(TARGET cuaudit_interpose AND NOT CUAUDIT_FUZZ)
  cuaudit_add_test(plugin_test SOURCES plugin_test.cc LABELS unit allocator LINK cuaudit_plugin_driver
    ENVIRONMENT "LD_LIBRARY_PATH=$<TARGET_FILE_DIR:cuaudit_interpose>" "CUAUDIT_OPTIONS=driver=sim\;scope=process" "CUAUDIT_ALLOC_CONF=record_history:all")
  target_compile_definitions(plugin_test PRIVATE CUAUDIT_ALLOCATOR_LIBRARY="$<TARGET_FILE:cuaudit_allocator>" CUAUDIT_PYTHON="${Python3_EXECUTABLE}"
    CUAUDIT_READ_SNAPSHOT="${CMAKE_CURRENT_LIST_DIR}/read_snapshot.py")
  add_dependencies(plugin_test cuaudit_allocator cuaudit_interpose)
endif()

cuaudit_add_test(snapshot_test SOURCES snapshot_test.cc LABELS unit allocator LINK cuaudit_alloc cuaudit_alloc_observe cuaudit_sim)
target_compile_definitions(snapshot_test PRIVATE CUAUDIT_PYTHON="${Python3_EXECUTABLE}" CUAUDIT_READ_SNAPSHOT="${CMAKE_CURRENT_LIST_DIR}/read_snapshot.py")
