#include <memory>

#include <braid/core/kernel_args/optim.hpp>

#include "cuda_kernels/cuda_kernel_support.hpp"

using namespace kernel_test;
using braid::AdamArgs;
using braid::OptimItem;
using braid::SgdArgs;

namespace {

// Parameters of several sizes, with gradients and two state buffers each, and their twins.
struct Items {
  std::vector<Buffer> p, g, m, v;
  std::vector<std::unique_ptr<Twin>> twins;
  std::vector<OptimItem> list;
  Items(DType t, const std::vector<std::int64_t>& sizes, std::int64_t shift) {
    std::uint32_t seed = 1;
    for (const std::int64_t n : sizes) {
      p.emplace_back(t, n).pattern(seed++);
      g.emplace_back(t, n).pattern(seed++);
      m.emplace_back(t, n).pattern(seed++);
      v.emplace_back(t, n).pattern(seed++);
      for (std::int64_t i = 0; i < n; ++i) v.back().put(i, std::fabs(v.back()[i]));
    }
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      for (Buffer* b : {&p[k], &g[k], &m[k], &v[k]})
        twins.push_back(std::make_unique<Twin>(*b, shift));
      list.push_back({twins[4 * k]->data(), twins[4 * k + 1]->data(), twins[4 * k + 2]->data(),
                      twins[4 * k + 3]->data(), sizes[k]});
    }
  }
  void fetch() {
    for (auto& twin : twins) twin->fetch();
  }
};

std::vector<std::int64_t> many() {
  std::vector<std::int64_t> sizes;
  // more than two lists of a launch
  for (std::int64_t i = 0; i < 130; ++i) sizes.push_back(i % 7 == 3 ? 0 : 1 + i % 5);
  return sizes;
}
const std::vector<std::vector<std::int64_t>> kSizeLists{
    {1}, {16, 17, 0, 31, 33, 65}, {2047, 2048, 2049}, {10003, 1, 5000}, many(), {}};

bool near(DType t, double got, double expected, double size) {
  return std::fabs(got - expected) <=
         16 * unit(t) * (size + std::fabs(expected)) + half_ulp(t, expected);
}

}  // namespace

TEST_CASE("cuda sgd: every dtype, size and option", "[cuda_kernels][optim]") {
  NEEDS_GPU;
  for (const DType t : kFloats)
    for (const auto& sizes : kSizeLists)
      for (int options = 0; options < 16; options += sizes.size() > 100 ? 5 : 1) {
        const bool momentum = (options & 1) != 0, first = (options & 2) != 0,
                   nesterov = (options & 4) != 0, maximize = (options & 8) != 0;
        INFO(braid::name_of(t) << " items " << sizes.size() << " options " << options);
        Items before(t, sizes, 0), after(t, sizes, 1);
        SgdArgs args{};
        args.dtype = t, args.items = after.list.data(),
        args.count = static_cast<std::int64_t>(sizes.size());
        args.lr = 0.1, args.momentum = momentum ? 0.9 : 0, args.dampening = 0.2,
        args.weight_decay = maximize ? 0 : 0.01;
        args.first = first, args.nesterov = nesterov, args.maximize = maximize;
        gpu().sgd(args, gpu_stream());
        after.fetch();
        std::int64_t wrong = 0;
        for (std::size_t k = 0; k < sizes.size(); ++k) {
          for (std::int64_t i = 0; i < sizes[k]; ++i) {
            double g = (maximize ? -1 : 1) * before.g[k][i] + args.weight_decay * before.p[k][i];
            if (momentum) {
              const double m = first ? g : 0.9 * before.m[k][i] + 0.8 * g;
              wrong += !near(t, after.m[k][i], m, 4);
              g = nesterov ? g + 0.9 * m : m;
            } else {
              wrong += after.m[k][i] != before.m[k][i];
            }
            wrong += !near(t, after.p[k][i], before.p[k][i] - 0.1 * g, 4);
          }
          wrong += after.g[k].bytes() != before.g[k].bytes();
        }
        CHECK(wrong == 0);
      }
}

TEST_CASE("cuda sgd: without momentum no state is needed", "[cuda_kernels][optim]") {
  NEEDS_GPU;
  Buffer p(DType::float32, 20), g(DType::float32, 20);
  p.pattern(1), g.pattern(2);
  const double before = p[19];
  Twin gp(p), gg(g);
  const OptimItem item{gp.data(), gg.data(), nullptr, nullptr, 20};
  SgdArgs args{};
  args.dtype = DType::float32, args.items = &item, args.count = 1, args.lr = 0.5;
  gpu().sgd(args, gpu_stream());
  gp.fetch();
  CHECK(p[19] == rounded(DType::float32, before - 0.5 * g[19]));
}

TEST_CASE("cuda adamw: every dtype and size, early and late steps", "[cuda_kernels][optim]") {
  NEEDS_GPU;
  for (const DType t : kFloats)
    for (const auto& sizes : kSizeLists)
      for (const std::int64_t step : {1, 2, 1000000}) {
        INFO(braid::name_of(t) << " step " << step << " items " << sizes.size());
        Items before(t, sizes, 0), after(t, sizes, 1);
        AdamArgs args{};
        args.dtype = t, args.items = after.list.data(),
        args.count = static_cast<std::int64_t>(sizes.size());
        args.lr = 0.01, args.beta1 = 0.9, args.beta2 = 0.999, args.eps = 1e-3,
        args.weight_decay = 0.1, args.step = step;
        gpu().adam(args, gpu_stream());
        after.fetch();
        const double bias1 = 1 - std::pow(0.9, static_cast<double>(step)),
                     bias2 = 1 - std::pow(0.999, static_cast<double>(step));
        std::int64_t wrong = 0;
        for (std::size_t k = 0; k < sizes.size(); ++k) {
          for (std::int64_t i = 0; i < sizes[k]; ++i) {
            const double g = before.g[k][i], m = 0.9 * before.m[k][i] + 0.1 * g,
                         v = 0.999 * before.v[k][i] + 0.001 * g * g;
            const double denominator = std::sqrt(v) / std::sqrt(bias2) + 1e-3,
                         update = 0.01 / bias1 * m / denominator;
            wrong += !near(t, after.m[k][i], m, 2) || !near(t, after.v[k][i], v, 2);
            wrong += !near(t, after.p[k][i], before.p[k][i] * (1 - 0.001) - update,
                           2 + 4 * std::fabs(update) + 0.1 / bias1 / denominator);
          }
          wrong += after.g[k].bytes() != before.g[k].bytes();
        }
        CHECK(wrong == 0);
      }
}

TEST_CASE("cuda optim: integers are refused by name", "[cuda_kernels][optim]") {
  NEEDS_GPU;
  SgdArgs sgd{};
  sgd.dtype = DType::int64;
  CHECK_THROWS_WITH(gpu().sgd(sgd, gpu_stream()),
                    "sgd: expected a floating-point dtype, got int64");
  AdamArgs adamw{};
  adamw.dtype = DType::bool_;
  CHECK_THROWS_WITH(gpu().adam(adamw, gpu_stream()),
                    "adam: expected a floating-point dtype, got bool");
}
