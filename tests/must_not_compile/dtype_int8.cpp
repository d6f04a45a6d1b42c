// expect: braid_has_no_int8_use_kInt32_or_kUInt8
#include <braid/braid.hpp>
namespace torch = braid;
int main() { return torch::zeros({2}, torch::kInt8).dim(); }
