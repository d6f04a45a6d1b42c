// expect: local_update.hpp is now braid/parallel/replicated_optimizer.hpp
#include <braid/parallel/local_update.hpp>
int main() {}
