// Boost.JSON's definitions, once in the program.
#include <boost/json/src.hpp>
