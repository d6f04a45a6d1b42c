#pragma once
// The small network of the tests of captured steps, and its batches.
#include <braid/braid.hpp>

#include "support/on_device.hpp"

namespace braid::test::on_device {

struct Net : nn::Module {
  nn::Linear fc1, fc2, fc3;
  nn::Dropout dropout{0.25};
  Net()
      : fc1(6, 16, {.device = here()}),
        fc2(16, 16, {.device = here()}),
        fc3(16, 3, {.device = here()}) {}
  Tensor operator()(const Tensor& x) const {
    return fc3(dropout(relu(fc2(dropout(relu(fc1(x)))))));
  }
  BRAID_FIELDS(fc1, fc2, fc3, dropout)
};

struct Batch {
  Tensor x, y;
  BRAID_FIELDS(x, y)
};

inline Batch batch_of(std::int64_t i, std::int64_t rows = 5) {
  const auto seed = static_cast<std::uint64_t>(100 + i);
  return {randn({rows, 6}, {.device = here(), .seed = seed}),
          randint(0, 3, {rows}, {.device = here(), .seed = seed})};
}

}  // namespace braid::test::on_device
