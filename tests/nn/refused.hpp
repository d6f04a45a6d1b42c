#pragma once
// Tables of calls that must throw.
#include <functional>
#include <initializer_list>

#include "support/errors.hpp"

namespace braid::test {

struct Refused {
  std::string text;
  std::function<void()> call;
};

/// refuses<E>(start)({…}): checks that each call throws exactly an E. The error's message must
/// contain the pieces of `start` + `text` (separated by *) in this order.
template <class E> auto refuses(const char* start) {
  return [start](std::initializer_list<Refused> calls) {
    for (const Refused& r : calls) CHECK(thrown<E>(start + r.text, r.call) == "");
  };
}

}  // namespace braid::test
