// expect: a number \(or what holds one\) in a struct, list or map cannot become a batch
#include <braid/braid.hpp>
using namespace braid;
struct Item {
  Tensor image;
  int64_t label;
  BRAID_FIELDS(image, label)
};
int main() { return collate(std::vector<Item>(3)).label != 0; }
