// A shared library with its own copy of Braid, as a user may build one: see CMakeLists.txt.
#include <braid/core/autograd.hpp>

extern "C" bool plugin_grad_enabled() { return braid::grad_enabled(); }
