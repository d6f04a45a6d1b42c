#include <braid/core/internal/kernel_args/random.hpp>

#include "kernels/calls.hpp"

namespace agreement {

std::vector<Call> calls_of_random(DType) {
  std::vector<Call> list;
  constexpr const char* names[] = {"uniform", "normal", "integers"};
  for (const auto kind :
       {braid::RandomKind::uniform, braid::RandomKind::normal, braid::RandomKind::integers})
    for (const std::int64_t n : {0, 1, 2, 3, 4, 5, 17, 31, 33, 127, 129, 1025, 10003})
      for (const auto& range :
           {std::pair{-1.0, 2.5}, {0.0, 1.0}, {-1.0, 0.0}, {0.1, 0.7}, {1e4, 1.0001e4}, {3.0, 2.0}})
        for (const std::int64_t shift : {0, 1})
          list.push_back({braid::str("random ", names[static_cast<int>(kind)], " ", n, " of ",
                                     range.first, " to ", range.second, ", offset ", shift),
                          {out(random(n, 1), shift)},
                          [=](const Place& p) {
                            p.table.random({kind, p.t, p[0], n, 77, static_cast<std::uint64_t>(n),
                                            range.first, range.second, -3, 99},
                                           p.stream);
                          }});
  return list;
}

}  // namespace agreement
