// Checks the gradient and the second gradient of every op of the table.
#include <braid/core/autograd.hpp>
#include <braid/core/ops/elementwise.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "op_cases.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
namespace {

/// BRAID_TEST_SEEDS: the number of random points. If it is set, layouts compare gradients only,
/// without differences. For runs that repeat what another run has checked completely.
bool brief() { return std::getenv("BRAID_TEST_SEEDS") != nullptr; }
std::uint64_t seeds() {
  const char* text = std::getenv("BRAID_TEST_SEEDS");
  return text != nullptr ? std::strtoull(text, nullptr, 10)
                         : static_cast<std::uint64_t>(cut(20, 1));
}

std::vector<Tensor> point(const OpCase& c, DType dtype, const std::vector<Layout>& layout,
                          std::uint64_t seed) {
  const std::vector<Tensor> inputs = inputs_of(c, dtype, layout, here(), seed);
  for (const Tensor& t : inputs)
    if (is_floating(t.dtype())) t.requires_grad_();
  return inputs;
}

std::vector<Tensor> leaves_of(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> leaves;
  for (const Tensor& t : inputs)
    if (t.requires_grad()) leaves.push_back(t);
  return leaves;
}

/// Computes the gradients of every result by every input, and the gradients of these by inputs and
/// incoming gradients, without differences, for fixed random directions.
std::vector<Tensor> two_gradients(const OpCase& c, const std::vector<Tensor>& inputs,
                                  Device device) {
  const std::vector<Tensor> leaves = leaves_of(inputs);
  std::vector<Tensor> roots, incoming;
  for (const Tensor& y : c.call(inputs)) {
    if (!y.requires_grad()) continue;
    roots.push_back(y);
    incoming.push_back(
        random_tensor(sizes_of(y.shape()), y.dtype(), {}, 4, 0.5, 1).to(device).requires_grad_());
  }
  std::vector<Tensor> with_incoming = leaves;
  with_incoming.insert(with_incoming.end(), incoming.begin(), incoming.end());
  std::vector<Tensor> all = grad(roots, leaves, incoming, true, true, true), second, directions;
  for (const Tensor& g : all) {
    if (!g.defined() || !g.requires_grad()) continue;
    second.push_back(g);
    directions.push_back(random_tensor(sizes_of(g.shape()), g.dtype(), {}, 6, 0.5, 1).to(device));
  }
  if (second.empty()) return all;
  const std::vector<Tensor> more = grad(second, with_incoming, directions, false, false, true);
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// The checks at a point, with counters.
struct Checks {
  std::int64_t gradients = 0, second = 0, as_cpu = 0;
  /// Checks that both gradients equal those of contiguous tensors on the CPU, which differences
  /// confirm. This is fast enough for every layout on an emulated device or in a brief run.
  void against_cpu(const OpCase& c, const std::vector<Tensor>& inputs, const std::string& where) {
    std::vector<Tensor> copies;
    for (const Tensor& t : inputs)
      copies.push_back(test::tensor_of(array_of(t), t.dtype()).requires_grad_(t.requires_grad()));
    const std::vector<Tensor> got = two_gradients(c, inputs, here()),
                              want = two_gradients(c, copies, Device("cpu:0"));
    INFO(c.name() << ", " << where << ", against the CPU");
    REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO("gradient " << i << " of " << got.size());
      REQUIRE(got[i].defined() == want[i].defined());
      if (got[i].defined()) CHECK_CLOSE(got[i].detach(), want[i].detach(), (Tolerance{1e-9, 1e-9}));
    }
    ++as_cpu;
  }
  void at(const OpCase& c, const std::vector<Tensor>& inputs, const std::string& where,
          bool incoming_layouts) {
    const GradientDifferenceOptions options{.incoming_layouts = incoming_layouts,
                                            .directions = emulated() ? 2 : 0};
    INFO(c.name() << ", " << where);
    CHECK(gradient_difference(c.call, inputs, options) == "");
    CHECK(second_gradient_difference(c.call, inputs, options) == "");
    ++gradients, ++second;
  }
};

/// Runs both checks for every differentiable case whose number is in this share. Emulated devices
/// compare with the CPU, where the whole Jacobian is checked. They divide among them the layouts
/// and the differences, which they take along two random directions.
void check_share(std::size_t share, std::size_t of) {
  std::size_t number = 0, cases = 0;
  Checks checks;
  for (const OpCase& c : op_cases()) {
    if (!c.differentiable || number++ % of != share) continue;
    ++cases;
    const auto check = [&](const std::vector<Tensor>& inputs, const std::string& where) {
      if (emulated() || brief()) {
        checks.against_cpu(c, inputs, where);
      } else {
        checks.at(c, inputs, where, false);
      }
    };
    if (emulated()) checks.against_cpu(c, point(c, DType::float64, dense(c), 1), "dense");
    if (!mine(number)) continue;
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed)
      checks.at(c, point(c, DType::float64, dense(c), seed), str("seed ", seed), seed == 1);
    // Every layout of every input, with the others contiguous.
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      for (const Layout& l : layouts(c.inputs[i].shape)) {
        // not differentiable at equal elements
        if (l.name == "contiguous" || (c.kinks && l.repeats)) continue;
        std::vector<Layout> layout = dense(c);
        layout[i] = l;
        check(point(c, DType::float64, layout, 9), str("input ", i, " ", l.name));
      }
    }
    // Only one of the inputs requires a gradient.
    for (std::size_t i = 0; c.inputs.size() > 1 && i < c.inputs.size(); ++i) {
      std::vector<Tensor> inputs = point(c, DType::float64, dense(c), 5);
      if (!inputs[i].requires_grad()) continue;
      for (std::size_t j = 0; j < inputs.size(); ++j)
        if (j != i && inputs[j].requires_grad()) inputs[j].requires_grad_(false);
      check(inputs, str("only input ", i));
    }
  }
  std::cout << "SHOWS: gradients on " << here() << " (" << share + 1 << " of " << of
            << "): " << cases << " cases, " << checks.gradients << " gradchecks, " << checks.second
            << " gradgradchecks (eps 1e-6, atol 1e-5, rtol 1e-3, nondet_tol 0), " << checks.as_cpu
            << " points as on the CPU" << std::endl;
}

}  // namespace

TEST_CASE("gradients: every op agrees with central differences (1 of 4)", "[ops][gradients]") {
  check_share(0, 4);
}
TEST_CASE("gradients: every op agrees with central differences (2 of 4)", "[ops][gradients]") {
  check_share(1, 4);
}
TEST_CASE("gradients: every op agrees with central differences (3 of 4)", "[ops][gradients]") {
  check_share(2, 4);
}
TEST_CASE("gradients: every op agrees with central differences (4 of 4)", "[ops][gradients]") {
  check_share(3, 4);
}

TEST_CASE("gradients: of float32, float16 and bfloat16 agree with float64", "[ops][gradients]") {
  for (const OpCase& c : op_cases()) {
    if (!c.differentiable) continue;
    for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
      if (std::find(c.dtypes.begin(), c.dtypes.end(), dtype) == c.dtypes.end()) continue;
      const std::vector<Tensor> narrow = point(c, dtype, dense(c), 3);
      std::vector<Tensor> wide, seeds, wide_seeds;
      for (const Tensor& t : narrow) {
        wide.push_back(tensor_of(array_of(t), is_floating(t.dtype()) ? DType::float64 : t.dtype()));
        if (t.requires_grad()) wide.back().requires_grad_();
      }
      const std::vector<Tensor> y = c.call(narrow), exact = c.call(wide);
      for (const Tensor& t : y) {
        seeds.push_back(random_tensor(sizes_of(t.shape()), dtype, {}, 4, 0.5, 1));
        wide_seeds.push_back(tensor_of(array_of(seeds.back()), DType::float64));
      }
      const std::vector<Tensor> got = grad(y, leaves_of(narrow), seeds, false, false, true),
                                want = grad(exact, leaves_of(wide), wide_seeds, false, false, true);
      for (std::size_t i = 0; i < got.size(); ++i) {
        INFO(c.name() << ", " << dtype << ", input " << i);
        REQUIRE(got[i].defined() == want[i].defined());
        if (!got[i].defined()) continue;
        CHECK(got[i].dtype() == dtype);
        const Tolerance t = tolerance(dtype);
        CHECK_CLOSE(got[i], want[i], (Tolerance{4 * t.rtol, 4 * t.atol}));
      }
    }
  }
}

TEST_CASE("gradients: a wrong gradient is found", "[ops][gradients]") {
  // Tests the check itself: an op whose gradient is off by one part in 500, one whose gradients are
  // swapped, and one that ignores an input.
  const Tensor x = random_tensor({2, 3}, DType::float64).requires_grad_(),
               y = random_tensor({2, 3}, DType::float64, {}, 2).requires_grad_();
  const auto product = [](double of_a, double of_b, bool swapped) {
    return function_of([=](const Tensor& a, const Tensor& b) {
      const Tensor out = mul(a.detach(), b.detach());
      if (!needs_grad({a, b})) return out;
      return record("product", {a, b}, out, [=](const Tensor& dy) -> Grads {
        Grads grads;
        grads.push_back(mul(mul(dy, swapped ? a : b), of_a).detach());
        grads.push_back(mul(mul(dy, swapped ? b : a), of_b).detach());
        return grads;
      });
    });
  };
  const GradientDifferenceOptions whole{}, along{.directions = 2};
  for (const GradientDifferenceOptions& options : {whole, along}) {
    const double off = options.directions == 0 ? 1.002 : 1.02;
    CHECK(gradient_difference(product(1, 1, false), {x, y}, options) == "");
    CHECK(gradient_difference(product(off, 1, false), {x, y}, options) != "");
    CHECK(gradient_difference(product(1, 0, false), {x, y}, options) != "");
    CHECK(gradient_difference(product(1, 1, true), {x, y}, options) != "");
  }
}

}  // namespace braid::test::on_device
