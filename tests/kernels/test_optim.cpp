#include <braid/core/kernel_args/optim.hpp>

#include "kernels/kernel_support.hpp"

using namespace kernel_test;
using braid::AdamArgs;
using braid::OptimItem;
using braid::SgdArgs;

namespace {

// Parameters of several sizes, with gradients and two state buffers each.
struct Items {
  std::vector<Buffer> p, g, m, v;
  std::vector<OptimItem> list;
  Items(DType t, const std::vector<std::int64_t>& sizes, std::int64_t shift) {
    std::uint32_t seed = 1;
    for (const std::int64_t n : sizes) {
      p.emplace_back(t, n, shift).pattern(seed++);
      g.emplace_back(t, n, shift).pattern(seed++);
      m.emplace_back(t, n, shift).pattern(seed++);
      v.emplace_back(t, n, shift).pattern(seed++);
      for (std::int64_t i = 0; i < n; ++i) v.back().put(i, std::fabs(v.back()[i]));
    }
    for (std::size_t k = 0; k < sizes.size(); ++k)
      list.push_back({p[k].data(), g[k].data(), m[k].data(), v[k].data(), sizes[k]});
  }
};

const std::vector<std::vector<std::int64_t>> kSizeLists{{1},
                                                        {7, 8, 15},
                                                        {16, 17, 0, 31, 33, 63, 64, 65},
                                                        {1023, 1024, 1025},
                                                        {100003, 1, 20000, 5, 8192, 8193},
                                                        {}};

// Rounding of a few operations on numbers of the given size, and of 16-bit types.
bool near(DType t, double got, double expected, double size) {
  const double u = t == DType::float64 ? 0x1p-53 : 0x1p-24;
  return std::fabs(got - expected) <=
         16 * u * (size + std::fabs(expected)) +
             (t == DType::float16 || t == DType::bfloat16 ? 0.51 * ulp(t, expected) : 0);
}

}  // namespace

TEST_CASE("sgd: every dtype and variant", "[kernels][optim]") {
  for (const DType t : kFloats)
    for (const auto& sizes : kSizeLists)
      for (int variant = 0; variant < 32; ++variant) {
        if (sizes.size() != 8 && variant % 7 != 3) continue;  // all variants at one list of sizes
        const bool momentum = (variant & 1) != 0, nesterov = (variant & 2) != 0,
                   maximize = (variant & 4) != 0, first = (variant & 8) != 0,
                   decay = (variant & 16) != 0;
        INFO(braid::name_of(t) << " variant " << variant << " items " << sizes.size());
        Items before(t, sizes, variant % 2), after(t, sizes, variant % 2);
        SgdArgs args{};
        args.dtype = t, args.items = after.list.data(),
        args.count = static_cast<std::int64_t>(sizes.size());
        args.lr = 0.1, args.momentum = momentum ? 0.9 : 0, args.dampening = 0.25,
        args.weight_decay = decay ? 0.01 : 0;
        args.nesterov = nesterov, args.maximize = maximize, args.first = first;
        kernels().sgd(args, stream());
        std::int64_t wrong = 0;
        for (std::size_t k = 0; k < sizes.size(); ++k) {
          for (std::int64_t i = 0; i < sizes[k]; ++i) {
            double g = (maximize ? -1 : 1) * before.g[k][i] + args.weight_decay * before.p[k][i],
                   m = before.m[k][i];
            if (momentum) {
              m = first ? g : 0.9 * m + 0.75 * g;
              wrong += !near(t, after.m[k][i], m, 4);
              g = nesterov ? g + 0.9 * m : m;
            } else {
              wrong += after.m[k][i] != m;  // untouched
            }
            wrong += !near(t, after.p[k][i], before.p[k][i] - 0.1 * g, 4);
          }
          wrong += !after.p[k].guards_intact() || !after.m[k].guards_intact() ||
                   after.g[k].bytes() != before.g[k].bytes();
        }
        CHECK(wrong == 0);
      }
}

TEST_CASE("sgd: without momentum no state is needed", "[kernels][optim]") {
  Buffer p(DType::float32, 20), g(DType::float32, 20);
  p.pattern(1), g.pattern(2);
  const double before = p[19];
  const OptimItem item{p.data(), g.data(), nullptr, nullptr, 20};
  SgdArgs args{};
  args.dtype = DType::float32, args.items = &item, args.count = 1, args.lr = 0.5;
  kernels().sgd(args, stream());
  CHECK(p[19] == rounded(DType::float32, before - 0.5 * g[19]));
}

TEST_CASE("adamw: every dtype and size, early and late steps", "[kernels][optim]") {
  for (const DType t : kFloats)
    for (const auto& sizes : kSizeLists)
      for (const std::int64_t step : {1, 2, 1000000}) {
        INFO(braid::name_of(t) << " step " << step << " items " << sizes.size());
        Items before(t, sizes, 1), after(t, sizes, 1);
        AdamArgs args{};
        args.dtype = t, args.items = after.list.data(),
        args.count = static_cast<std::int64_t>(sizes.size());
        args.lr = 0.01, args.beta1 = 0.9, args.beta2 = 0.999, args.eps = 1e-3,
        args.weight_decay = 0.1, args.step = step;
        kernels().adam(args, stream());
        const double bias1 = 1 - std::pow(0.9, static_cast<double>(step)),
                     bias2 = 1 - std::pow(0.999, static_cast<double>(step));
        std::int64_t wrong = 0;
        for (std::size_t k = 0; k < sizes.size(); ++k) {
          for (std::int64_t i = 0; i < sizes[k]; ++i) {
            const double g = before.g[k][i], m = 0.9 * before.m[k][i] + 0.1 * g,
                         v = 0.999 * before.v[k][i] + 0.001 * g * g;
            const double update = 0.01 / bias1 * m / (std::sqrt(v) / std::sqrt(bias2) + 1e-3);
            wrong += !near(t, after.m[k][i], m, 2) || !near(t, after.v[k][i], v, 2);
            wrong += !near(
                t, after.p[k][i], before.p[k][i] * (1 - 0.001) - update,
                2 + 4 * std::fabs(update) + 0.1 / bias1 / (std::sqrt(v) / std::sqrt(bias2) + 1e-3));
          }
          wrong += !after.p[k].guards_intact() || !after.m[k].guards_intact() ||
                   !after.v[k].guards_intact() || after.g[k].bytes() != before.g[k].bytes();
        }
        CHECK(wrong == 0);
      }
}

TEST_CASE("optim: threads change no bit", "[kernels][optim]") {
  for (const DType t : {DType::float32, DType::bfloat16}) {
    const Items start(t, kSizeLists[4], 0);
    Buffer all(t, 136394);
    const auto run = [&](bool adam) {
      Items items(t, kSizeLists[4], 0);
      if (adam) {
        AdamArgs args{};
        args.dtype = t, args.items = items.list.data(), args.count = 6, args.lr = 0.01,
        args.beta1 = 0.9, args.beta2 = 0.999, args.eps = 1e-8, args.weight_decay = 0.1,
        args.step = 3;
        kernels().adam(args, stream());
      } else {
        SgdArgs args{};
        args.dtype = t, args.items = items.list.data(), args.count = 6, args.lr = 0.1,
        args.momentum = 0.9, args.weight_decay = 0.1, args.nesterov = true;
        kernels().sgd(args, stream());
      }
      std::size_t at = 0;
      for (Buffer& p : items.p) {
        const auto bytes = p.bytes();
        std::memcpy(static_cast<unsigned char*>(all.data()) + at, bytes.data(), bytes.size());
        at += bytes.size();
      }
    };
    check_threads(all, [&] { run(false); });
    check_threads(all, [&] { run(true); });
  }
}

TEST_CASE("optim: integers are refused by name", "[kernels][optim]") {
  SgdArgs sgd{};
  sgd.dtype = DType::int64;
  CHECK_THROWS_AS(kernels().sgd(sgd, stream()), braid::DTypeError);
  CHECK_THROWS_WITH(kernels().sgd(sgd, stream()),
                    "sgd: expected a floating-point dtype, got int64");
  AdamArgs adamw{};
  adamw.dtype = DType::bool_;
  CHECK_THROWS_WITH(kernels().adam(adamw, stream()),
                    "adam: expected a floating-point dtype, got bool");
  braid::RmspropArgs rmsprop{};
  rmsprop.dtype = DType::int32;
  CHECK_THROWS_WITH(kernels().rmsprop(rmsprop, stream()),
                    "rmsprop: expected a floating-point dtype, got int32");
  braid::AdagradArgs adagrad{};
  adagrad.dtype = DType::uint8;
  CHECK_THROWS_WITH(kernels().adagrad(adagrad, stream()),
                    "adagrad: expected a floating-point dtype, got uint8");
  braid::LionArgs lion{};
  lion.dtype = DType::int64;
  CHECK_THROWS_WITH(kernels().lion(lion, stream()),
                    "lion: expected a floating-point dtype, got int64");
}

TEST_CASE("optim: state that an optimizer does not keep is not touched, and need not be there",
          "[kernels][optim]") {
  for (const DType t : kFloats) {
    const auto check = [t](auto args, auto kernel, bool without_m, bool without_v) {
      Items items(t, {33, 100}, 1);
      const auto m = items.m[1].bytes(), v = items.v[1].bytes(), p = items.p[1].bytes();
      for (OptimItem& item : items.list) {
        if (without_m) item.m = nullptr;
        if (without_v) item.v = nullptr;
      }
      args.dtype = t, args.items = items.list.data(), args.count = 2, args.lr = 0.1;
      kernel(args, stream());
      CHECK(items.p[1].guards_intact());
      CHECK(items.p[1].bytes() != p);
      if (without_m) CHECK(items.m[1].bytes() == m);
      if (without_v) CHECK(items.v[1].bytes() == v);
    };
    check(braid::LionArgs{}, kernels().lion, false, true);
    check(braid::RmspropArgs{}, kernels().rmsprop, true, false);
    check(braid::AdagradArgs{}, kernels().adagrad, true, false);
  }
}
