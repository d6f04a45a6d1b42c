// Optimizers: what a step must not do.
#include <limits>
#include <vector>

#include <braid/braid.hpp>
#include <braid/core/body.hpp>

#include "optim_cases.hpp"
#include "support/errors.hpp"

namespace braid::test::on_device {

TEST_CASE("optimizers: a step bumps versions, so that a stale backward is noticed", "[nn][optim]") {
  nn::Linear layer(2, 2, {.device = here()});
  optim::SGD sgd(parameters(layer), {.lr = 0.1});
  const Tensor x = ones({1, 2}, {.requires_grad = true});
  const Tensor y = layer(x).sum();
  y.backward({}, true);
  const std::uint64_t version = layer.weight.version();
  sgd.step();
  CHECK(layer.weight.version() > version);
  CHECK_THROWS_AS(y.backward(), AutogradError);
}

TEST_CASE("optimizers: a step that cannot be taken changes nothing", "[nn][optim][errors]") {
  for (const Case& c : cases()) {
    INFO(c.name);
    const Tensor a = leaf({300}, DType::float32, here(), 1),
                 b = leaf({300}, DType::float32, here(), 2);
    const auto optimizer = c.make({a, b});
    const Numbers before = a.to_vector<double>();
    const auto fails = [&](auto check) {
      check();
      CHECK(a.to_vector<double>() == before);
      CHECK(optimizer->steps(0) == 0);
    };
    a.set_grad(ones({300}));
    // set_grad refuses these; a gradient can go stale all the same, by what happens to the
    // parameter.
    b.set_grad(ones({300}));
    b.impl()->grad = ones({3}).impl();
    fails([&] {
      CHECK_THROWS_TEXT(ShapeError,
                        ": expected the gradient of parameter 1 to have its shape [300], got [3]",
                        optimizer->step());
    });
    b.impl()->grad = ones({300}, {.dtype = DType::float64}).impl();
    fails([&] {
      CHECK_THROWS_TEXT(DTypeError,
                        ": expected the gradient of parameter 1 to be float32, got float64",
                        optimizer->step());
    });
    b.impl()->grad = ones({300}, {.device = there()}).impl();
    fails([&] {
      CHECK_THROWS_TEXT(DeviceError,
                        here(": expected the gradient of parameter 1 on cpu:0, got cpu:1"),
                        optimizer->step());
    });
    const Tensor wide = zeros({1}).expand({300});  // given its place by a move of the model
    const Tensor own = b.detach();
    b.set_grad(ones({300}));
    detail::replace_body(b, wide);
    fails([&] {
      CHECK_THROWS_TEXT(LayoutError,
                        ": expected parameters whose elements each have their own memory, got an "
                        "expanded one at position 1",
                        optimizer->step());
    });
    detail::replace_body(b, own);
    // Every allocation of a step, each failing in turn: a strided gradient needs a copy, and the
    // state is made.
    b.set_grad(ones({600}).slice(0, 0, 600, 2));
    const std::uint64_t start = memory_stats(here()).allocations;
    {
      const Tensor pa = a.detach().clone().requires_grad_(),
                   pb = b.detach().clone().requires_grad_();
      pa.set_grad(a.grad());
      pb.set_grad(b.grad());
      const std::uint64_t made = memory_stats(here()).allocations;
      c.make({pa, pb})->step();
      const std::uint64_t needed = memory_stats(here()).allocations - made;
      CHECK(made > start);
      // the probe made its counts of steps, on the CPU
      const std::uint64_t of_step = needed - (on_cpu() ? 1 : 0);
      REQUIRE(of_step >= 1);  // the dense copy
      for (std::uint64_t k = 1; k <= of_step; ++k) {
        fail_allocation(here(), k);
        try {
          const NoGrad guard;
          optimizer->step();
          CHECK(k > 1);  // the state of an earlier failure exists already: then fewer are needed
          fail_allocation(here(), 0);
          break;
        } catch (const OutOfMemoryError&) {
          fail_allocation(here(), 0);
          CHECK(a.to_vector<double>() == before);
          CHECK(optimizer->steps(0) == 0);
        }
      }
    }
    if (optimizer->steps(0) == 0) optimizer->step();
    CHECK(optimizer->steps(0) == 1);
    CHECK(optimizer->steps(1) == 1);
  }
}

TEST_CASE("optimizers: the second half of a step does nothing without the first",
          "[nn][optim][errors]") {
  for (const Case& c : cases()) {
    INFO(c.name);
    const Tensor a = leaf({300}, DType::float32, here(), 1),
                 b = leaf({300}, DType::float32, here(), 2);
    const auto optimizer = c.make({a, b});
    a.set_grad(ones({600}).slice(0, 0, 600, 2));  // a dense copy of it lives as long as the step
    b.set_grad(ones({300}));
    optimizer->prepare_step();
    optimizer->finish_step();
    const Numbers after = a.to_vector<double>();
    optimizer->finish_step();
    CHECK(a.to_vector<double>() == after);
    CHECK(optimizer->steps(0) == 1);
    b.impl()->grad = ones({3}).impl();  // stale: parameter 0 has been prepared when it is seen
    CHECK_THROWS_AS(optimizer->prepare_step(), ShapeError);
    optimizer->finish_step();
    CHECK(a.to_vector<double>() == after);
    CHECK(optimizer->steps(0) == 1);
  }
}

TEST_CASE("optimizers: allocate nothing once the state exists", "[nn][optim]") {
  for (const Case& c : cases()) {
    INFO(c.name);
    const Tensor a = leaf({5, 2}, DType::float32, here(), 1),
                 b = leaf({5}, DType::float32, here(), 2);
    const auto optimizer = c.make({a, b});
    a.set_grad(ones({5, 2}));
    b.set_grad(ones({5}));
    optimizer->step();
    const std::uint64_t before = memory_stats(here()).allocations;
    for (int i = 0; i < 10; ++i) optimizer->step();
    CHECK(memory_stats(here()).allocations == before);
  }
}

}  // namespace braid::test::on_device
