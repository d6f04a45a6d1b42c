// expect: huber_loss_sum\(.*\) is now huber_loss\(sum_and_count
#include <braid/braid.hpp>
using namespace braid;
int main() { return nn::huber_loss_sum(ones({2}), zeros({2})).sum.dim(); }
