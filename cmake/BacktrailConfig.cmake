# SPDX-License-Identifier: Apache-2.0
# For find_package(Backtrail).
include("${CMAKE_CURRENT_LIST_DIR}/../../backtrail/cmake/Backtrail.cmake")
