# SPDX-License-Identifier: MIT
# The allocator alone, as the install component `alloc`: cuaudit::alloc (a static library and its headers, found by find_package(cuaudit_alloc) or
# pkg-config) and the library that PyTorch loads; and the target cuaudit_alloc_wheel, a Python package. Nothing of the harness is in it.
#     cmake --build build/release --target cuaudit_alloc_alone && cmake --install build/release --component alloc --prefix PREFIX
set(alloc_headers)
file(GLOB_RECURSE alloc_sources "${PROJECT_SOURCE_DIR}/allocator/*.h" "${PROJECT_SOURCE_DIR}/faults/driver/*.h")
foreach(source package/alloc.h plugin/memory_resource.h plugin/rmm_resource.h)
  get_filename_component(header ${source} NAME_WE)
  set(staged_header "${package}/include/cuaudit/${header}.h")
  add_custom_command(
    OUTPUT "${staged_header}"
    COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/scripts/flatten_header.py" --header "${PROJECT_SOURCE_DIR}/allocator/${source}"
      --search "${PROJECT_SOURCE_DIR}" --search "${PROJECT_BINARY_DIR}/generated" --cuda-version ${CUAUDIT_CUDA_VERSION}
      --installed faults/driver/driver_ref.h=cuaudit/driver.h --installed allocator/backend.h=cuaudit/alloc.h
      --installed allocator/owned_block.h=cuaudit/alloc.h --out "${staged_header}"
    DEPENDS scripts/flatten_header.py "allocator/${source}" ${alloc_sources}
    COMMENT "Public ${header}.h" VERBATIM)
  list(APPEND alloc_headers "${staged_header}")
endforeach()
add_custom_target(cuaudit_alloc_headers ALL DEPENDS ${alloc_headers})
add_dependencies(cuaudit_alloc_headers cuaudit_public_headers)

add_library(cuaudit_alloc_package STATIC "${package}/empty.cc")
foreach(part cuaudit_alloc cuaudit_alloc_observe cuaudit_plugin_driver cuaudit_driver)
  target_sources(cuaudit_alloc_package PRIVATE $<TARGET_OBJECTS:${part}>)
endforeach()
target_compile_features(cuaudit_alloc_package INTERFACE cxx_std_20)
target_include_directories(cuaudit_alloc_package INTERFACE "$<BUILD_INTERFACE:${package}/include>" "$<INSTALL_INTERFACE:include>")
target_include_directories(cuaudit_alloc_package SYSTEM INTERFACE "$<BUILD_INTERFACE:${CUAUDIT_CUDA_INCLUDE}>")
target_link_libraries(cuaudit_alloc_package INTERFACE ${CMAKE_DL_LIBS})
target_link_options(cuaudit_alloc_package INTERFACE -pthread)
set_target_properties(cuaudit_alloc_package PROPERTIES OUTPUT_NAME cuaudit_alloc EXPORT_NAME alloc ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
add_dependencies(cuaudit_alloc_package cuaudit_alloc_headers)
add_library(cuaudit::alloc ALIAS cuaudit_alloc_package)

string(TOLOWER "${CMAKE_SYSTEM_NAME}_${CMAKE_SYSTEM_PROCESSOR}" alloc_platform)
set(wheel "${PROJECT_BINARY_DIR}/wheel/cuaudit_alloc-${PROJECT_VERSION}-py3-none-${alloc_platform}.whl")
add_custom_command(
  OUTPUT "${wheel}"
  COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/scripts/make_alloc_wheel.py" --source "${PROJECT_SOURCE_DIR}/allocator/python"
    --library "$<TARGET_FILE:cuaudit_allocator>" --version ${PROJECT_VERSION} --platform ${alloc_platform} --out "${PROJECT_BINARY_DIR}/wheel"
  DEPENDS scripts/make_alloc_wheel.py allocator/python/README.md allocator/python/cuaudit_alloc/__init__.py cuaudit_allocator VERBATIM)
add_custom_target(cuaudit_alloc_wheel DEPENDS "${wheel}")
add_custom_target(cuaudit_alloc_alone DEPENDS cuaudit_alloc_package cuaudit_allocator cuaudit_alloc_wheel)

set(alloc_cmake lib/cmake/cuaudit_alloc)
install(TARGETS cuaudit_alloc_package EXPORT cuaudit_allocTargets ARCHIVE DESTINATION lib COMPONENT alloc)
install(TARGETS cuaudit_allocator LIBRARY DESTINATION lib/cuaudit COMPONENT alloc)
install(FILES ${alloc_headers} "${package}/include/cuaudit/driver.h" DESTINATION include/cuaudit COMPONENT alloc)
install(EXPORT cuaudit_allocTargets NAMESPACE cuaudit:: DESTINATION ${alloc_cmake} COMPONENT alloc)
configure_package_config_file(cmake/cuaudit_allocConfig.cmake.in "${package}/cuaudit_allocConfig.cmake" INSTALL_DESTINATION ${alloc_cmake})
write_basic_package_version_file("${package}/cuaudit_allocConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${package}/cuaudit_allocConfig.cmake" "${package}/cuaudit_allocConfigVersion.cmake" DESTINATION ${alloc_cmake} COMPONENT alloc)
configure_file(cmake/cuaudit-alloc.pc.in "${package}/cuaudit-alloc.pc" @ONLY)
install(FILES "${package}/cuaudit-alloc.pc" DESTINATION lib/pkgconfig COMPONENT alloc)
