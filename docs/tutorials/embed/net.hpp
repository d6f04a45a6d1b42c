#pragma once
// The network, for the two files that know it.
#include <braid/braid.hpp>

struct Net : braid::nn::Module {
  braid::nn::Linear fc1{784, 128}, fc2{128, 10};
  braid::Tensor operator()(const braid::Tensor& x) const { return fc2(relu(fc1(x))); }
  BRAID_FIELDS(fc1, fc2)
};

inline const std::pair<std::string, std::string> kFormat{"format", "digit reader 1"};
