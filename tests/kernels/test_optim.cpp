// Checks SGD and AdamW against plain loops. The calls of every kernel also cover all dtypes, sizes
// and options of all optimizers.
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
  Items(DType t, const Sizes& sizes, std::int64_t shift) {
    std::uint32_t seed = 1;
    for (const std::int64_t n : sizes) {
      for (std::vector<Buffer>* buffers : {&p, &g, &m, &v})
        buffers->emplace_back(t, n, shift).pattern(seed++);
      for (std::int64_t i = 0; i < n; ++i) v.back().put(i, std::fabs(v.back()[i]));
      list.push_back({p.back().data(), g.back().data(), m.back().data(), v.back().data(), n});
    }
  }
  template <class Args> void run(void (*kernel)(const Args&, braid::Stream&), Args args) {
    args.dtype = p.empty() ? DType::float32 : p[0].dtype();
    args.items = list.data(), args.count = static_cast<std::int64_t>(list.size());
    kernel(args, stream());
  }
};

const std::vector<Sizes>& size_lists() {
  static const std::vector<Sizes> lists{
      {1},
      {7, 8, 15},
      {16, 17, 0, 31, 33, 63, 64, 65},
      {1023, 1024, 1025},
      on_cuda() ? Sizes{20003, 1, 5, 8193} : Sizes{100003, 1, 20000, 5, 8192, 8193},
      {}};
  return lists;
}

/// Within the rounding of a few operations on numbers of the given magnitude, and of 16-bit dtypes.
bool near(DType t, double got, double expected, double size) {
  return std::fabs(got - expected) <=
         16 * unit(t) * (size + std::fabs(expected)) + half_ulp(t, expected);
}

}  // namespace

TEST_CASE("sgd: every dtype, size and variant agrees with a plain loop", "[kernels][optim]") {
  NEEDS_DEVICE;
  for (const DType t : kFloats)
    for (const Sizes& sizes : size_lists())
      for (int variant = 0; variant < 32; ++variant) {
        if (sizes.size() != 8 && variant % 7 != 3) continue;  // all variants for one list only
        const bool momentum = (variant & 1) != 0, maximize = (variant & 4) != 0;
        SgdArgs args{};
        args.lr = 0.1, args.momentum = momentum ? 0.9 : 0, args.dampening = 0.25;
        args.nesterov = (variant & 2) != 0, args.maximize = maximize;
        args.first = (variant & 8) != 0, args.weight_decay = (variant & 16) != 0 ? 0.01 : 0;
        Items before(t, sizes, variant % 2), after(t, sizes, variant % 2);
        after.run(kernels().sgd, args);
        std::int64_t wrong = 0;
        for (std::size_t k = 0; k < sizes.size(); ++k)
          for (std::int64_t i = 0; i < sizes[k]; ++i) {
            const double p = before.p[k][i];
            double g = (maximize ? -1 : 1) * before.g[k][i] + args.weight_decay * p,
                   m = before.m[k][i];
            if (momentum) m = args.first ? g : 0.9 * m + 0.75 * g;
            if (momentum) g = args.nesterov ? g + 0.9 * m : m;
            wrong += momentum ? !near(t, after.m[k][i], m, 4) : after.m[k][i] != m;
            wrong += !near(t, after.p[k][i], p - 0.1 * g, 4);
            wrong += after.g[k][i] != before.g[k][i];
          }
        INFO(braid::name_of(t) << " variant " << variant << " items " << sizes.size());
        CHECK(wrong == 0);
      }
}

TEST_CASE("adamw: every dtype and size agrees with a plain loop, early and late",
          "[kernels][optim]") {
  NEEDS_DEVICE;
  for (const DType t : kFloats)
    for (const Sizes& sizes : size_lists())
      for (const std::int64_t step : {1, 2, 1000000}) {
        AdamArgs args{};
        args.lr = 0.01, args.beta1 = 0.9, args.beta2 = 0.999, args.eps = 1e-3;
        args.weight_decay = 0.1, args.step = step;
        // even steps are aligned, so they use vectors
        Items before(t, sizes, step % 2), after(t, sizes, step % 2);
        after.run(kernels().adam, args);
        const double at = static_cast<double>(step), bias1 = 1 - std::pow(0.9, at),
                     bias2 = 1 - std::pow(0.999, at);
        std::int64_t wrong = 0;
        for (std::size_t k = 0; k < sizes.size(); ++k)
          for (std::int64_t i = 0; i < sizes[k]; ++i) {
            const double g = before.g[k][i], m = 0.9 * before.m[k][i] + 0.1 * g,
                         v = 0.999 * before.v[k][i] + 0.001 * g * g;
            const double scale = 0.01 / bias1 / (std::sqrt(v) / std::sqrt(bias2) + 1e-3);
            wrong += !near(t, after.m[k][i], m, 2) || !near(t, after.v[k][i], v, 2);
            wrong += !near(t, after.p[k][i], before.p[k][i] * (1 - 0.001) - scale * m,
                           2 + 4 * std::fabs(scale * m) + 10 * scale);
          }
        INFO(braid::name_of(t) << " step " << step << " items " << sizes.size());
        CHECK(wrong == 0);
      }
}

TEST_CASE("optim: threads change no bit", "[kernels][optim]") {
  if (on_cuda()) return;
  for (const DType t : {DType::float32, DType::bfloat16})
    for (const bool adam : {false, true}) {
      Buffer all(t, 136394);  // the parameters after a step, concatenated
      check_threads(all, [&] {
        Items items(t, size_lists()[4], 0);
        if (adam) {
          AdamArgs args{};
          args.lr = 0.01, args.beta1 = 0.9, args.beta2 = 0.999, args.eps = 1e-8;
          args.weight_decay = 0.1, args.step = 3;
          items.run(kernels().adam, args);
        } else {
          SgdArgs args{};
          args.lr = 0.1, args.momentum = 0.9, args.weight_decay = 0.1, args.nesterov = true;
          items.run(kernels().sgd, args);
        }
        auto* to = static_cast<unsigned char*>(all.host());
        for (const Buffer& p : items.p)
          for (const unsigned char byte : p.bytes()) *to++ = byte;
      });
    }
}

TEST_CASE("sgd: without momentum no state is needed", "[kernels][optim]") {
  NEEDS_DEVICE;
  Items items(DType::float32, {20}, 0);
  const double expected = rounded(DType::float32, items.p[0][19] - 0.1 * items.g[0][19]);
  items.list[0].m = items.list[0].v = nullptr;
  SgdArgs args{};
  args.lr = 0.1;
  items.run(kernels().sgd, args);
  CHECK(items.p[0][19] == expected);
}

TEST_CASE("optim: integers are refused by name", "[kernels][optim]") {
  NEEDS_DEVICE;
  const auto refused = [](const char* name, auto kernel, auto args, DType t) {
    args.dtype = t;
    CHECK_THROWS_AS(kernel(args, stream()), braid::DTypeError);
    CHECK_THROWS_WITH(kernel(args, stream()),
                      braid::str(name, ": expected a floating-point dtype, got ", t));
  };
  refused("sgd", kernels().sgd, SgdArgs{}, DType::int64);
  refused("adam", kernels().adam, braid::AdamArgs{}, DType::bool_);
  refused("rmsprop", kernels().rmsprop, braid::RmspropArgs{}, DType::int32);
  refused("adagrad", kernels().adagrad, braid::AdagradArgs{}, DType::uint8);
  refused("lion", kernels().lion, braid::LionArgs{}, DType::int64);
}

TEST_CASE("optim: state that an optimizer does not keep is not touched, and need not be there",
          "[kernels][optim]") {
  NEEDS_DEVICE;
  for (const DType t : kFloats) {
    const auto check = [t](auto args, auto kernel, bool without_m, bool without_v) {
      Items items(t, {33, 100}, 1);
      const auto m = items.m[1].bytes(), v = items.v[1].bytes(), p = items.p[1].bytes();
      for (OptimItem& item : items.list) {
        if (without_m) item.m = nullptr;
        if (without_v) item.v = nullptr;
      }
      args.lr = 0.1;
      items.run(kernel, args);
      CHECK(items.p[1].bytes() != p);
      if (without_m) CHECK(items.m[1].bytes() == m);
      if (without_v) CHECK(items.v[1].bytes() == v);
    };
    check(braid::LionArgs{}, kernels().lion, false, true);
    check(braid::RmspropArgs{}, kernels().rmsprop, true, false);
    check(braid::AdagradArgs{}, kernels().adagrad, true, false);
  }
}
