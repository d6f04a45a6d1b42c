// Calls of the optimizers.
#include <algorithm>
#include <array>

#include <braid/core/internal/kernel_args/optim.hpp>

#include "kernels/calls.hpp"

namespace agreement {

namespace {

/// The sizes of the parameters of each call. Each parameter has five operands: p, the gradient g,
/// and the states m, v, s.
const std::vector<Sizes>& size_lists() {
  static const std::vector<Sizes> lists = [] {
    Sizes many;  // more than two short lists of a CUDA launch
    for (std::int64_t i = 0; i < 130; ++i) many.push_back(i % 7 == 3 ? 0 : 1 + i % 5);
    return std::vector<Sizes>{
        {1},
        {33, 31, 0, 129},
        {7, 8, 15},
        {16, 17, 0, 31, 33, 63, 64, 65},
        {1023, 1024, 1025, 127},
        {2047, 2048, 2049},
        on_cuda() ? Sizes{10003, 1, 5000} : Sizes{100003, 1, 20000, 5, 8192, 8193},
        many,
        {}};
  }();
  return lists;
}
/// Few or small parameters run with all options of an optimizer, the other lists with one in five.
bool skips(const Sizes& sizes, int options) {
  return options % 5 != 0 && (sizes.size() > 8 || (!sizes.empty() && sizes[0] > 1000));
}

using Items = std::vector<braid::OptimItem>;
/// Calls the kernel with the items, their count and the gradient's factor on the device, or null.
using Step = std::function<void(const Place& p, const braid::OptimItem* items, std::int64_t count,
                                const void* factor)>;
/// Returns the errors of p, m, v, s, in roundings, from p, g, m, v, s before the step.
using OfItem = std::function<std::array<double, 4>(double, double, double, double, double)>;

/// With a shift the gradient has a factor, whose product is exact.
Call optimizer(std::string name, const Sizes& sizes, std::int64_t shift, Step step,
               OfItem of_item) {
  Call call;
  call.name = braid::str(name, ", ", sizes.size(), " parameters");
  std::uint64_t seed = 1;
  for (const std::int64_t n : sizes) {
    call.operands.push_back(out(random(n, seed++), shift));
    call.operands.push_back(in(random(n, seed++), shift));
    call.operands.push_back(out(random(n, seed++), shift));
    call.operands.push_back(out(random(n, seed++, 0.01, 2), shift));
    // small, so that s² stays below v
    call.operands.push_back(out(random(n, seed++, -0.05, 0.05), shift));
  }
  call.operands.push_back(in(Numbers{0.5}, 0, statistics));
  call.run = [sizes, shift, step = std::move(step)](const Place& p) {
    Items items;
    for (std::size_t k = 0; k < sizes.size(); ++k)
      items.push_back({p[5 * k], p[5 * k + 1], p[5 * k + 2], p[5 * k + 3], sizes[k], p[5 * k + 4]});
    step(p, items.data(), static_cast<std::int64_t>(items.size()),
         shift == 0 ? nullptr : p[5 * sizes.size()]);
  };
  call.bound = [before = call.operands, shift, of_item = std::move(of_item)](DType t,
                                                                             const Values& v) {
    Values bounds;
    for (std::size_t k = 0; k + 1 < v.size(); k += 5) {
      const std::int64_t n = v[k].size();
      Values of(4, Numbers(n));
      constexpr std::size_t outputs[] = {0, 2, 3, 4};
      for (std::int64_t i = 0; i < n; ++i) {
        const auto at = [&](std::size_t operand) {  // as the kernel reads it
          return rounded(t, before[k + operand].numbers[i]);
        };
        const auto roundings = of_item(at(0), at(1) * (shift == 0 ? 1 : 0.5), at(2), at(3), at(4));
        for (std::size_t j = 0; j < 4; ++j)
          of[j][i] = rounding(t) * roundings[j] + last(t, v[k + outputs[j]][i]);
      }
      bounds.insert(bounds.end(), of.begin(), of.end());
    }
    return bounds;
  };
  return call;
}

}  // namespace

std::vector<Call> calls_of_sgd(DType) {
  std::vector<Call> list;
  for (const Sizes& sizes : size_lists())
    for (int options = 0; options < 16; ++options) {
      if (skips(sizes, options)) continue;
      const bool momentum = (options & 1) != 0, first = (options & 2) != 0,
                 nesterov = momentum && (options & 4) != 0, maximize = (options & 8) != 0;
      list.push_back(optimizer(
          braid::str("sgd, options ", options), sizes, options % 2,
          [=](const Place& p, const braid::OptimItem* items, std::int64_t count,
              const void* factor) {
            p.table.sgd({p.t, items, count, 0.1, momentum ? 0.9 : 0, nesterov ? 0 : 0.25, 0.125,
                         nesterov, maximize, first, factor},
                        p.stream);
          },
          [=](double p, double g, double m, double, double) {
            const double d = std::fabs(g) + 0.125 * std::fabs(p),
                         state = momentum ? 0.9 * std::fabs(m) + d : 0;
            return std::array<double, 4>{8 * (std::fabs(p) + 0.1 * (d + state)), 6 * state, 0, 0};
          }));
    }
  return list;
}

std::vector<Call> calls_of_adam(DType) {
  std::vector<Call> list;
  for (const Sizes& sizes : size_lists())
    for (const std::int64_t step : {1, 2, 7, 1000000})
      for (int options = 0; options < (sizes.size() == 4 || sizes.size() == 8 ? 8 : 1); ++options) {
        const bool coupled = (options & 1) != 0, amsgrad = (options & 2) != 0,
                   maximize = (options & 4) != 0;
        list.push_back(optimizer(
            braid::str("adam, step ", step, ", options ", options), sizes, step == 7,
            [=](const Place& p, const braid::OptimItem* items, std::int64_t count,
                const void* factor) {
              p.table.adam({p.t, items, count, 0.01, 0.9, 0.75, 1e-4, 0.125, step, coupled, amsgrad,
                            maximize, factor},
                           p.stream);
            },
            [=](double p, double g, double m, double v, double s) {
              const double d = std::fabs(g) + (coupled ? 0.125 * std::fabs(p) : 0),
                           used = (maximize ? -g : g) + (coupled ? 0.125 * p : 0);
              const double size = 0.9 * std::fabs(m) + 0.1 * d,
                           square = 0.75 * v + 0.25 * used * used, slack = 0.75 * v + 0.25 * d * d;
              const double bias1 = 1 - std::pow(0.9, step), bias2 = 1 - std::pow(0.75, step);
              const double change = 0.01 / bias1 * size /
                                    (std::sqrt(square) / std::sqrt(bias2) + 1e-4) *
                                    (1 + slack / square);
              return std::array<double, 4>{4 * std::fabs(p) + 16 * change, 5 * size, 6 * slack,
                                           amsgrad ? 6 * slack + std::fabs(s) : 0};
            }));
      }
  return list;
}

std::vector<Call> calls_of_rmsprop(DType) {
  std::vector<Call> list;
  for (const Sizes& sizes : size_lists())
    for (int options = 0; options < 8; ++options) {
      if (skips(sizes, options)) continue;
      const bool momentum = (options & 1) != 0, centered = (options & 2) != 0,
                 maximize = (options & 4) != 0;
      list.push_back(optimizer(
          braid::str("rmsprop, options ", options), sizes, options % 2,
          [=](const Place& p, const braid::OptimItem* items, std::int64_t count,
              const void* factor) {
            const double eps = 0.5;  // large compared with the cancellation in v - s²
            p.table.rmsprop({p.t, items, count, 0.01, 0.75, eps, 0.125, momentum ? 0.9 : 0,
                             centered, maximize, factor},
                            p.stream);
          },
          [=](double p, double g, double m, double v, double s) {
            const double d = std::fabs(g) + 0.125 * std::fabs(p),
                         used = (maximize ? -g : g) + 0.125 * p;
            const double square = 0.75 * v + 0.25 * used * used, slack = 0.75 * v + 0.25 * d * d,
                         mean = 0.75 * std::fabs(s) + 0.25 * d;
            const double of_s = 0.75 * s + 0.25 * used,
                         variance = centered ? square - of_s * of_s : square;
            // The error of the root of a small number is at most the error of the variance divided
            // by the root.
            const double root = std::sqrt(variance), below = root + 0.5,
                         of_root = (6 * slack + 8 * mean * mean) / std::max(root, 1e-3) + 2 * root;
            const double step = d / below, error = step * (6 + of_root / below),
                         state = momentum ? 0.9 * std::fabs(m) + step : step;
            return std::array<double, 4>{2 * std::fabs(p) + 0.01 * (error + 6 * state),
                                         momentum ? error + 4 * state : 0, 6 * slack,
                                         centered ? 5 * mean : 0};
          }));
    }
  return list;
}

std::vector<Call> calls_of_adagrad(DType) {
  std::vector<Call> list;
  for (const Sizes& sizes : size_lists())
    for (const bool maximize : {false, true})
      list.push_back(optimizer(
          braid::str("adagrad, maximize ", maximize), sizes, maximize,
          [=](const Place& p, const braid::OptimItem* items, std::int64_t count,
              const void* factor) {
            p.table.adagrad({p.t, items, count, 0.1, 1e-4, 0.125, maximize, factor}, p.stream);
          },
          [=](double p, double g, double, double v, double) {
            const double d = std::fabs(g) + 0.125 * std::fabs(p),
                         used = (maximize ? -g : g) + 0.125 * p, sum = v + used * used,
                         slack = v + d * d;
            return std::array<double, 4>{
                2 * std::fabs(p) + 0.1 * d / (std::sqrt(sum) + 1e-4) * (8 + 6 * slack / sum), 0,
                6 * slack, 0};
          }));
  return list;
}

std::vector<Call> calls_of_lion(DType) {
  std::vector<Call> list;
  for (const Sizes& sizes : size_lists())
    for (const bool maximize : {false, true}) {
      list.push_back(optimizer(
          braid::str("lion, maximize ", maximize), sizes, maximize,
          [=](const Place& p, const braid::OptimItem* items, std::int64_t count,
              const void* factor) {
            p.table.lion({p.t, items, count, 0.01, 0.9, 0.75, 0.125, maximize, factor}, p.stream);
          },
          [=](double p, double g, double m, double, double) {
            const double used = maximize ? -g : g, way = 0.9 * m + 0.1 * used,
                         size = 0.9 * std::fabs(m) + 0.1 * std::fabs(g);
            // If rounding decides the sign, either sign is correct.
            const double either = std::fabs(way) <= 0x1p-20 * size ? 0.02 * 0x1p24 : 0;
            return std::array<double, 4>{4 * std::fabs(p) + 0.02 + either,
                                         4 * (0.75 * std::fabs(m) + 0.25 * std::fabs(g)), 0, 0};
          }));
    }
  return list;
}

std::vector<Call> calls_of_total_norm(DType) {
  std::vector<Call> list;
  for (const Sizes& sizes : size_lists())
    for (const double order : {2.0, 1.0, kInf, 0.0, 3.0, 0.5}) {
      const bool with_factor = order != 1, shifted = order == kInf || order == 2;
      Call call;
      call.name = braid::str("total norm of order ", order, ", ", sizes.size(), " parameters");
      call.operands.push_back(out(Numbers{7}, 0, statistics));
      call.operands.push_back(out(Numbers{7}, 0, statistics));
      std::uint64_t seed = 1;
      std::int64_t all = 0;
      for (const std::int64_t n : sizes) {
        Numbers values = random(n, seed++);
        for (std::int64_t i = 0; i < n; i += 3) values[i] = 0;
        call.operands.push_back(in(std::move(values), shifted ? 1 : 0)), all += n;
      }
      const double max_norm = sizes.size() == 4 ? 1e9 : 0.5;
      call.run = [=](const Place& p) {
        Items items;
        for (std::size_t k = 0; k < sizes.size(); ++k)
          items.push_back({p[k + 2], nullptr, nullptr, nullptr, sizes[k]});
        p.table.total_norm({p.t, items.data(), static_cast<std::int64_t>(items.size()), order, p[0],
                            max_norm, with_factor ? p[1] : nullptr},
                           p.stream);
      };
      call.bound = [=](DType t, const Values& v) {
        // the relative error of a term (pow: 4 ULP) and of the sum, then the root
        const double of_sum = rounding(t) * (log2_up(all) + 12),
                     of_norm = (order == 0.5 ? 2 : 1) * of_sum + 8 * rounding(t);
        return Values{Numbers{of_norm * v[0][0]}, Numbers{(of_norm + 4 * rounding(t)) * v[1][0]}};
      };
      list.push_back(std::move(call));
    }
  return list;
}

std::vector<Call> calls_of_scale_list(DType) {
  std::vector<Call> list;
  for (const Sizes& sizes : size_lists())
    for (const double factor : {0.3, 1.0}) {
      Call call;
      call.name = braid::str("scale by ", factor, ", ", sizes.size(), " parameters");
      call.operands.push_back(in(Numbers{factor}, 0, statistics));
      std::uint64_t seed = 1;
      for (const std::int64_t n : sizes)
        call.operands.push_back(out(random(n, seed++), factor == 1 ? 1 : 0));
      call.run = [=](const Place& p) {
        Items items;
        for (std::size_t k = 0; k < sizes.size(); ++k)
          items.push_back({p[k + 1], nullptr, nullptr, nullptr, sizes[k]});
        p.table.scale_list({p.t, items.data(), static_cast<std::int64_t>(items.size()), p[0]},
                           p.stream);
      };
      call.bound = [](DType t, const Values& v) {
        Values bounds;
        for (std::size_t k = 1; k < v.size(); ++k) {
          Numbers& bound = bounds.emplace_back(v[k].size());
          for (std::int64_t i = 0; i < bound.size(); ++i)
            bound[i] = 3 * rounding(t) * std::fabs(v[k][i]) + last(t, v[k][i]);
        }
        return bounds;
      };
      list.push_back(std::move(call));
    }
  return list;
}

}  // namespace agreement
