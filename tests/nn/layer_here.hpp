#pragma once
#include <braid/nn/linear.hpp>

#include "support/on_device.hpp"

namespace braid::test::on_device {

/// A linear layer made on the device that the tests run on.
inline nn::Linear layer(std::int64_t in, std::int64_t out, nn::LinearOptions options = {}) {
  options.device = here();
  return {in, out, options};
}

}  // namespace braid::test::on_device
