// expect: trace::Record::replica is now rank
#include <braid/braid.hpp>
using namespace braid;
int main() {
  const trace::Record record{};
  return record.replica;
}
