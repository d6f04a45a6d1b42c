// The number of kernels that an optimizer's step launches, clipping included.
#include <braid/braid.hpp>

#include "child.hpp"
#include "simt/stats.hpp"
#include "support/check.hpp"

using namespace braid;

TEST_CASE("launches: the gradients of a whole model are clipped in three launches", "[optim]") {
  const std::string text = test::in_child(1, [] {
    const Device device("cuda:0");
    std::vector<Tensor> parameters;
    for (std::int64_t i = 0; i < 148; ++i) {  // as many as GPT-2 has
      parameters.push_back(ones({i % 5 + 1}, {.device = device}).requires_grad_());
      parameters.back().set_grad(full({i % 5 + 1}, 3.0, {.device = device}));
    }
    optim::AdamW optimizer(parameters);
    optimizer.step();  // allocates the state
    const auto launches = [&](auto f) {
      synchronize(device);
      const auto before = simt::stats().grids;
      f();
      synchronize(device);
      return std::to_string(simt::stats().grids - before) + " ";
    };
    const std::string clipped = launches([&] { optim::clip_grad_norm_(parameters, 1e-3); });
    const std::string step = launches([&] { optimizer.step(); });
    const std::string fused =
        launches([&] { optimizer.step(optim::clip_grad_norm(parameters, 1e-3).factor); });
    return clipped + step + fused;
  });
  CHECK(text == "3 1 3 ");
}
