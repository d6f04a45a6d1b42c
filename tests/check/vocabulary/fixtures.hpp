#pragma once
// What the lines of the tables use without declaring it. No line runs: the check is of types only,
// so the shapes do not matter.
#include <braid/braid.hpp>

#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <numbers>
#include <random>

namespace torch = braid;

extern torch::Tensor x, y, i, m;  // floating point twice, int64 indices, a bool mask
extern std::vector<torch::Tensor> list;
extern float* numbers;

struct Net : braid::nn::Module {
  braid::nn::Linear fc{2, 3};
  braid::Tensor operator()(const braid::Tensor& input) const { return fc(input); }
  BRAID_FIELDS(fc)
};
extern Net net;

struct Rows {
  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] std::pair<braid::Tensor, std::int64_t> get(std::int64_t index) const;
};
extern Rows rows;
