// SPDX-License-Identifier: Apache-2.0
// Compiles Boost.JSON's definitions into one translation unit of the program.
#include <boost/json/src.hpp>
