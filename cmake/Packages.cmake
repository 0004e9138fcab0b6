# SPDX-License-Identifier: MIT
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
