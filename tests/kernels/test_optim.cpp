// Every dtype, size and option is among the calls of every kernel.
#include <braid/core/kernel_args/optim.hpp>

#include "kernels/kernel_support.hpp"

using namespace kernel_test;
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

}  // namespace

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
