#pragma once
#include <braid/nn/nn.hpp>

#include "support/on_device.hpp"

namespace braid::test::on_device {

/// Returns a linear layer on the device that the tests run on.
inline nn::Linear layer(std::int64_t in, std::int64_t out, nn::LinearOptions options = {}) {
  options.device = here();
  return {in, out, options};
}

/// Two layers that share one weight.
struct Tied : nn::Module {
  nn::Linear a = layer(3, 3), b = layer(3, 3);
  Tied() { nn::tie(a.weight, b.weight); }
  BRAID_FIELDS(a, b)
};

}  // namespace braid::test::on_device
