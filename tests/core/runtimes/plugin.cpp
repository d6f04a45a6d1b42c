// A shared library with a Braid of its own, as its users may build one: see CMakeLists.txt.
#include <braid/core/autograd.hpp>

extern "C" bool plugin_grad_enabled() { return braid::grad_enabled(); }
