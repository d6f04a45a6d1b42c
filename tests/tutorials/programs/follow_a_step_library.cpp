// The parts of the library in which docs/guides/follow_a_step.md stops. The tutorial follow_a_step
// compiles them a second time, without optimisation and with debug information; the linker then
// does not take them from the library. One file, because the headers take most of the time.
#include "autograd/backward.cpp"
#include "autograd/engine.cpp"
#include "call.cpp"
#include "layers/linear.cpp"
#include "loader/loader.cpp"
#include "ops/linear.cpp"
#include "ops/matmul.cpp"
#include "primitives/broadcast.cpp"
#include "primitives/gather.cpp"
#include "primitives/parallel_apply.cpp"
#include "primitives/pieces.cpp"
#include "primitives/replicate.cpp"
#include "primitives/scatter.cpp"
#include "tensor/worker.cpp"
