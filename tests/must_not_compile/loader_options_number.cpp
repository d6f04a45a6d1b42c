// expect: the options of a DataLoader have names: write \{\.batch_size = 64\}
// lines: 10
#include <braid/braid.hpp>
using namespace braid;
int main() { data::DataLoader loader(data::Mnist(), 64); }
