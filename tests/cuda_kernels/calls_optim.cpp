// Calls of the optimizers.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "cuda_kernels/every_kernel.hpp"

namespace agreement {

namespace {

/// Parameters with gradients and three states: operands p, g, m, v, s of each.
const std::vector<std::vector<std::int64_t>> kItems{{1}, {33, 31, 0, 129}, {1025, 127}, {}};

std::vector<Operand> operands(const std::vector<std::int64_t>& sizes, std::int64_t shift) {
  std::vector<Operand> list;
  std::uint64_t seed = 1;
  for (const std::int64_t n : sizes) {
    list.push_back(out(random(n, seed++), shift));
    list.push_back(in(random(n, seed++), shift));
    list.push_back(out(random(n, seed++), shift));
    list.push_back(out(random(n, seed++, 0.01, 2), shift));
    list.push_back(out(random(n, seed++, -0.05, 0.05), shift));  // whose square stays below v
  }
  return list;
}
std::shared_ptr<std::vector<braid::OptimItem>> items(const std::vector<std::int64_t>& sizes,
                                                     const std::vector<void*>& at) {
  auto list = std::make_shared<std::vector<braid::OptimItem>>();
  for (std::size_t k = 0; k < sizes.size(); ++k)
    list->push_back(
        {at[5 * k], at[5 * k + 1], at[5 * k + 2], at[5 * k + 3], sizes[k], at[5 * k + 4]});
  return list;
}

/// Bounds of p, m, v, s by f(p, g, m, v, s before the step) in roundings, one for each.
template <class F> auto of_items(std::vector<Operand> before, F f) {
  return [before = std::move(before), f](DType t, const std::vector<Numbers>& v) {
    std::vector<Numbers> bounds;
    for (std::size_t k = 0; k < v.size(); k += 5) {
      const std::size_t n = v[k].size();
      Numbers p(n), m(n), q(n), s(n);
      for (std::size_t i = 0; i < n; ++i) {
        const std::array<double, 4> of =
            f(before[k].numbers[i], before[k + 1].numbers[i], before[k + 2].numbers[i],
              before[k + 3].numbers[i], before[k + 4].numbers[i]);
        p[i] = rounding(t) * of[0] + last(t, v[k][i]);
        m[i] = rounding(t) * of[1] + last(t, v[k + 2][i]);
        q[i] = rounding(t) * of[2] + last(t, v[k + 3][i]);
        s[i] = rounding(t) * of[3] + last(t, v[k + 4][i]);
      }
      bounds.insert(bounds.end(), {p, m, q, s});
    }
    return bounds;
  };
}

}  // namespace

std::vector<Call<braid::SgdArgs>> calls_of(Of<braid::SgdArgs>, DType) {
  std::vector<Call<braid::SgdArgs>> list;
  for (const auto& sizes : kItems)
    for (int options = 0; options < 16; ++options) {
      const bool momentum = (options & 1) != 0, first = (options & 2) != 0,
                 nesterov = momentum && (options & 4) != 0, maximize = (options & 8) != 0;
      Call<braid::SgdArgs> call;
      call.name = braid::str("sgd of ", sizes.size(), " parameters, options ", options);
      call.operands = operands(sizes, options % 2);
      // the list lives until the next call
      auto kept = std::make_shared<std::shared_ptr<std::vector<braid::OptimItem>>>();
      call.args = [=](DType t, const std::vector<void*>& at) {
        *kept = items(sizes, at);
        return braid::SgdArgs{.dtype = t,
                              .items = (*kept)->data(),
                              .count = static_cast<std::int64_t>(sizes.size()),
                              .lr = 0.1,
                              .momentum = momentum ? 0.9 : 0,
                              .dampening = nesterov ? 0 : 0.25,
                              .weight_decay = 0.125,
                              .nesterov = nesterov,
                              .maximize = maximize,
                              .first = first};
      };
      call.bound = of_items(call.operands, [=](double p, double g, double m, double, double) {
        const double d = std::fabs(g) + 0.125 * std::fabs(p),
                     state = momentum ? 0.9 * std::fabs(m) + d : 0;
        return std::array<double, 4>{8 * (std::fabs(p) + 0.1 * (d + state)), 6 * state, 0, 0};
      });
      list.push_back(call);
    }
  return list;
}

std::vector<Call<braid::AdamArgs>> calls_of(Of<braid::AdamArgs>, DType) {
  std::vector<Call<braid::AdamArgs>> list;
  for (const auto& sizes : kItems)
    for (const std::int64_t step : {1, 7})
      for (int options = 0; options < 8; ++options) {
        if (options > 0 && sizes.size() != 4) continue;
        const bool coupled = (options & 1) != 0, amsgrad = (options & 2) != 0,
                   maximize = (options & 4) != 0;
        Call<braid::AdamArgs> call;
        call.name =
            braid::str("adam of ", sizes.size(), " parameters, step ", step, ", options ", options);
        call.operands = operands(sizes, step == 7);
        auto kept = std::make_shared<std::shared_ptr<std::vector<braid::OptimItem>>>();
        call.args = [=](DType t, const std::vector<void*>& at) {
          *kept = items(sizes, at);
          return braid::AdamArgs{.dtype = t,
                                 .items = (*kept)->data(),
                                 .count = static_cast<std::int64_t>(sizes.size()),
                                 .lr = 0.01,
                                 .beta1 = 0.9,
                                 .beta2 = 0.75,
                                 .eps = 1e-4,
                                 .weight_decay = 0.125,
                                 .step = step,
                                 .coupled = coupled,
                                 .amsgrad = amsgrad,
                                 .maximize = maximize};
        };
        call.bound = of_items(call.operands, [=](double p, double g, double m, double v, double s) {
          const double d = std::fabs(g) + (coupled ? 0.125 * std::fabs(p) : 0),
                       used = (maximize ? -g : g) + (coupled ? 0.125 * p : 0);
          const double size = 0.9 * std::fabs(m) + 0.1 * d, square = 0.75 * v + 0.25 * used * used,
                       slack = 0.75 * v + 0.25 * d * d;
          const double bias1 = 1 - std::pow(0.9, step), bias2 = 1 - std::pow(0.75, step);
          const double change = 0.01 / bias1 * size /
                                (std::sqrt(square) / std::sqrt(bias2) + 1e-4) *
                                (1 + slack / square);
          return std::array<double, 4>{4 * std::fabs(p) + 16 * change, 5 * size, 6 * slack,
                                       amsgrad ? 6 * slack + std::fabs(s) : 0};
        });
        list.push_back(call);
      }
  return list;
}

std::vector<Call<braid::RmspropArgs>> calls_of(Of<braid::RmspropArgs>, DType) {
  std::vector<Call<braid::RmspropArgs>> list;
  for (const auto& sizes : kItems)
    for (int options = 0; options < 8; ++options) {
      const bool momentum = (options & 1) != 0, centered = (options & 2) != 0,
                 maximize = (options & 4) != 0;
      Call<braid::RmspropArgs> call;
      call.name = braid::str("rmsprop of ", sizes.size(), " parameters, options ", options);
      call.operands = operands(sizes, options % 2);
      auto kept = std::make_shared<std::shared_ptr<std::vector<braid::OptimItem>>>();
      call.args = [=](DType t, const std::vector<void*>& at) {
        *kept = items(sizes, at);
        return braid::RmspropArgs{.dtype = t,
                                  .items = (*kept)->data(),
                                  .count = static_cast<std::int64_t>(sizes.size()),
                                  .lr = 0.01,
                                  .alpha = 0.75,
                                  .eps = 0.5,  // large beside what is lost in v - s²
                                  .weight_decay = 0.125,
                                  .momentum = momentum ? 0.9 : 0,
                                  .centered = centered,
                                  .maximize = maximize};
      };
      call.bound = of_items(call.operands, [=](double p, double g, double m, double v, double s) {
        const double d = std::fabs(g) + 0.125 * std::fabs(p),
                     used = (maximize ? -g : g) + 0.125 * p;
        const double square = 0.75 * v + 0.25 * used * used, slack = 0.75 * v + 0.25 * d * d,
                     mean = 0.75 * std::fabs(s) + 0.25 * d;
        const double of_s = 0.75 * s + 0.25 * used,
                     variance = centered ? square - of_s * of_s : square;
        // The root of what may be small: its error is at most that of the variance over the root.
        const double root = std::sqrt(variance), below = root + 0.5,
                     of_root = (6 * slack + 8 * mean * mean) / std::max(root, 1e-3) + 2 * root;
        const double step = d / below, error = step * (6 + of_root / below),
                     state = momentum ? 0.9 * std::fabs(m) + step : step;
        return std::array<double, 4>{2 * std::fabs(p) + 0.01 * (error + 6 * state),
                                     momentum ? error + 4 * state : 0, 6 * slack,
                                     centered ? 5 * mean : 0};
      });
      list.push_back(call);
    }
  return list;
}

std::vector<Call<braid::AdagradArgs>> calls_of(Of<braid::AdagradArgs>, DType) {
  std::vector<Call<braid::AdagradArgs>> list;
  for (const auto& sizes : kItems)
    for (const bool maximize : {false, true}) {
      Call<braid::AdagradArgs> call;
      call.name = braid::str("adagrad of ", sizes.size(), " parameters, maximize ", maximize);
      call.operands = operands(sizes, maximize);
      auto kept = std::make_shared<std::shared_ptr<std::vector<braid::OptimItem>>>();
      call.args = [=](DType t, const std::vector<void*>& at) {
        *kept = items(sizes, at);
        return braid::AdagradArgs{.dtype = t,
                                  .items = (*kept)->data(),
                                  .count = static_cast<std::int64_t>(sizes.size()),
                                  .lr = 0.1,
                                  .eps = 1e-4,
                                  .weight_decay = 0.125,
                                  .maximize = maximize};
      };
      call.bound = of_items(call.operands, [=](double p, double g, double, double v, double) {
        const double d = std::fabs(g) + 0.125 * std::fabs(p),
                     used = (maximize ? -g : g) + 0.125 * p, sum = v + used * used,
                     slack = v + d * d;
        return std::array<double, 4>{
            2 * std::fabs(p) + 0.1 * d / (std::sqrt(sum) + 1e-4) * (8 + 6 * slack / sum), 0,
            6 * slack, 0};
      });
      list.push_back(call);
    }
  return list;
}

std::vector<Call<braid::LionArgs>> calls_of(Of<braid::LionArgs>, DType) {
  std::vector<Call<braid::LionArgs>> list;
  for (const auto& sizes : kItems)
    for (const bool maximize : {false, true}) {
      Call<braid::LionArgs> call;
      call.name = braid::str("lion of ", sizes.size(), " parameters, maximize ", maximize);
      call.operands = operands(sizes, maximize);
      auto kept = std::make_shared<std::shared_ptr<std::vector<braid::OptimItem>>>();
      call.args = [=](DType t, const std::vector<void*>& at) {
        *kept = items(sizes, at);
        return braid::LionArgs{.dtype = t,
                               .items = (*kept)->data(),
                               .count = static_cast<std::int64_t>(sizes.size()),
                               .lr = 0.01,
                               .beta1 = 0.9,
                               .beta2 = 0.75,
                               .weight_decay = 0.125,
                               .maximize = maximize};
      };
      call.bound = of_items(call.operands, [=](double p, double g, double m, double, double) {
        const double used = maximize ? -g : g, way = 0.9 * m + 0.1 * used,
                     size = 0.9 * std::fabs(m) + 0.1 * std::fabs(g);
        // Where the sign is a matter of rounding, either is right.
        const double either = std::fabs(way) <= 0x1p-20 * size ? 0.02 * 0x1p24 : 0;
        return std::array<double, 4>{4 * std::fabs(p) + 0.02 + either,
                                     4 * (0.75 * std::fabs(m) + 0.25 * std::fabs(g)), 0, 0};
      });
      list.push_back(call);
    }
  return list;
}

}  // namespace agreement
