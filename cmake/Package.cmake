# SPDX-License-Identifier: MIT
# What others use: cuaudit::cuaudit (the library behind cuaudit/lifecycle.h), cuaudit::dropin (libcuda.so.1 for programs that call the driver
# by name), cuaudit::host (libcuaudit_host.so: what lifecycles take of the host, by call stack), cuaudit::tool (the program); and how they are
# installed. The tool finds the drop-in libraries in ../lib/cuaudit.
include(CMakePackageConfigHelpers)
include(CuauditTesting)

# The public headers as they are installed: driver.h with all that it includes written out, so that no path of this tree is part of it.
set(package "${PROJECT_BINARY_DIR}/package")
set(public_headers block.h fuzz.h fuzz_input.h gtest.h kernel.h lifecycle.h mark.h neutrality_listener.h semaphore.h watch.h)
set(staged "${package}/include/cuaudit/driver.h")
add_custom_command(
  OUTPUT "${package}/include/cuaudit/driver.h"
  COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/scripts/flatten_header.py" --header "${PROJECT_SOURCE_DIR}/include/cuaudit/driver.h"
    --search "${PROJECT_SOURCE_DIR}" --search "${PROJECT_BINARY_DIR}/generated" --cuda-version ${CUAUDIT_CUDA_VERSION}
    --out "${package}/include/cuaudit/driver.h"
  DEPENDS scripts/flatten_header.py include/cuaudit/driver.h faults/driver/driver_ref.h faults/driver/call_id.h
    "${PROJECT_BINARY_DIR}/generated/driver_tables.stamp"
  COMMENT "Public driver.h" VERBATIM)
foreach(header IN LISTS public_headers)
  add_custom_command(
    OUTPUT "${package}/include/cuaudit/${header}"
    COMMAND "${CMAKE_COMMAND}" -E copy "${PROJECT_SOURCE_DIR}/include/cuaudit/${header}" "${package}/include/cuaudit/${header}"
    DEPENDS "include/cuaudit/${header}" VERBATIM)
  list(APPEND staged "${package}/include/cuaudit/${header}")
endforeach()
add_custom_target(cuaudit_public_headers ALL DEPENDS ${staged})
add_dependencies(cuaudit_public_headers cuaudit_driver_tables)

# What shells complete, from the tables that the program itself prints.
set(completions "${package}/completions")
add_custom_command(
  OUTPUT "${completions}/cuaudit" "${completions}/_cuaudit" "${completions}/cuaudit.fish"
  COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/scripts/gen_completions.py" --cuaudit "$<TARGET_FILE:cuaudit>" --out "${completions}"
  DEPENDS scripts/gen_completions.py cuaudit
  COMMENT "Completion for bash, zsh and fish" VERBATIM)
add_custom_target(cuaudit_completions ALL DEPENDS "${completions}/cuaudit")
add_dependencies(cuaudit_complete cuaudit_completions)

# One shared library with everything inside: who links it needs none of our rooms, nor what they link.
file(WRITE "${package}/empty.cc.new" "// Everything comes from cuaudit_lifecycle.\n")
file(COPY_FILE "${package}/empty.cc.new" "${package}/empty.cc" ONLY_IF_DIFFERENT)
add_library(cuaudit_package SHARED "${package}/empty.cc")
target_link_libraries(cuaudit_package PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,cuaudit_lifecycle> cuaudit_instrument)
target_link_options(cuaudit_package PRIVATE -Wl,--exclude-libs,libdw.a)
target_compile_features(cuaudit_package INTERFACE cxx_std_20)
target_include_directories(cuaudit_package INTERFACE "$<BUILD_INTERFACE:${package}/include>" "$<INSTALL_INTERFACE:include>")
target_include_directories(cuaudit_package SYSTEM INTERFACE "$<BUILD_INTERFACE:${CUAUDIT_CUDA_INCLUDE}>")
add_dependencies(cuaudit_package cuaudit_public_headers)
set_target_properties(cuaudit_package PROPERTIES OUTPUT_NAME cuaudit EXPORT_NAME cuaudit
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
target_include_directories(cuaudit_interpose SYSTEM INTERFACE "$<BUILD_INTERFACE:${CUAUDIT_CUDA_INCLUDE}>")
set_target_properties(cuaudit_interpose PROPERTIES EXPORT_NAME dropin)
# An RPATH is searched before LD_LIBRARY_PATH, a RUNPATH after it: there the genuine driver may be named.
target_link_options(cuaudit_interpose INTERFACE LINKER:--disable-new-dtags)
# Whoever links cuaudit::cuaudit has the host drop-in too, before the C library, since its malloc is to be found first. A program that brings
# an allocator of its own sets the property CUAUDIT_NO_HOST, and its audits say what they do not see.
set_target_properties(cuaudit_host PROPERTIES EXPORT_NAME host)
# Compilers that link with --as-needed drop a library that nobody asks for by name.
target_link_options(cuaudit_host INTERFACE LINKER:--no-as-needed)
target_link_libraries(cuaudit_package INTERFACE "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:CUAUDIT_NO_HOST>>>:cuaudit::host>")
set_target_properties(cuaudit PROPERTIES EXPORT_NAME tool)
add_library(cuaudit::cuaudit ALIAS cuaudit_package)
add_library(cuaudit::dropin ALIAS cuaudit_interpose)
add_library(cuaudit::host ALIAS cuaudit_host)
add_executable(cuaudit::tool ALIAS cuaudit)

# Component sim: the simulated driver and the program, all that `cuaudit env` needs. Component audit: the rest.
install(TARGETS cuaudit EXPORT cuauditTargets RUNTIME DESTINATION bin COMPONENT sim)
install(TARGETS cuaudit_interpose EXPORT cuauditTargets LIBRARY DESTINATION lib/cuaudit COMPONENT sim)
if(TARGET cuaudit_cudart_13)
  install(TARGETS cuaudit_cudart_12 cuaudit_cudart_13 cuaudit_cudart_static LIBRARY DESTINATION lib/cuaudit/cudart COMPONENT sim
    ARCHIVE DESTINATION lib/cuaudit/cudart COMPONENT sim)
  install(FILES "${CUAUDIT_CUDART_DIRECTORY}/libcudart.so" DESTINATION lib/cuaudit/cudart COMPONENT sim)
endif()
install(FILES docs/cuaudit.1 DESTINATION share/man/man1 COMPONENT sim)
install(FILES "${completions}/cuaudit" DESTINATION share/bash-completion/completions COMPONENT sim)
install(FILES "${completions}/_cuaudit" DESTINATION share/zsh/site-functions COMPONENT sim)
install(FILES "${completions}/_cuaudit" DESTINATION share/zsh/vendor-completions COMPONENT sim)  # where Debian's zsh looks below /usr
install(FILES "${completions}/cuaudit.fish" DESTINATION share/fish/vendor_completions.d COMPONENT sim)
install(FILES LICENSE DESTINATION share/doc/cuaudit-sim RENAME copyright COMPONENT sim)

install(TARGETS cuaudit_package EXPORT cuauditTargets LIBRARY DESTINATION lib COMPONENT audit)
install(TARGETS cuaudit_host cuaudit_host_basic EXPORT cuauditTargets LIBRARY DESTINATION lib/cuaudit COMPONENT audit)
install(TARGETS empty_lifecycle RUNTIME DESTINATION lib/cuaudit COMPONENT audit)
install(TARGETS cuaudit_allocator LIBRARY DESTINATION lib/cuaudit COMPONENT audit OPTIONAL)  # where it was built
install(FILES ${staged} DESTINATION include/cuaudit COMPONENT audit)
install(EXPORT cuauditTargets NAMESPACE cuaudit:: DESTINATION lib/cmake/cuaudit COMPONENT audit)
install(FILES LICENSE DESTINATION share/doc/cuaudit RENAME copyright COMPONENT audit)
install(DIRECTORY examples DESTINATION share/doc/cuaudit COMPONENT audit PATTERN __pycache__ EXCLUDE)
install(DIRECTORY reports/schema DESTINATION share/cuaudit COMPONENT audit)
configure_package_config_file(cmake/cuauditConfig.cmake.in "${package}/cuauditConfig.cmake" INSTALL_DESTINATION lib/cmake/cuaudit)
write_basic_package_version_file("${package}/cuauditConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${package}/cuauditConfig.cmake" "${package}/cuauditConfigVersion.cmake" cmake/CuauditTesting.cmake cmake/neutrality.cc
  DESTINATION lib/cmake/cuaudit COMPONENT audit)
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

# `cpack` in the build directory makes a tarball of the installation, which runs wherever it is unpacked, and two Debian packages: cuaudit-sim
# (the simulated driver, and the program, of which `cuaudit env` is a command) and cuaudit (all the rest).
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_PACKAGE_NAME cuaudit)
set(CPACK_PACKAGE_VENDOR cuaudit)
set(CPACK_PACKAGE_CONTACT "cuaudit authors <noreply@cuaudit.invalid>")
set(CPACK_PACKAGE_FILE_NAME "cuaudit-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 1)

set(CPACK_COMPONENTS_ALL sim audit)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_SIM_PACKAGE_NAME cuaudit-sim)
set(CPACK_DEBIAN_AUDIT_PACKAGE_NAME cuaudit)
set(CPACK_DEBIAN_AUDIT_PACKAGE_DEPENDS "cuaudit-sim (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_SIM_DESCRIPTION "simulated CUDA driver for tests without a GPU
Runs test suites of CUDA programs, in any language, on a simulated driver:
eval \"$(cuaudit env --driver=sim)\". Has a CUDA runtime 12 and 13 of its own for
programs of the shared runtime.")
set(CPACK_COMPONENT_AUDIT_DESCRIPTION "lifecycle leak audit for GPU code
Makes every CUDA driver call of a program fail in turn and says which objects and
host resources the program does not release on the way out. With the headers, the
library and the CMake package for tests in C++.")
include(CPack)
