// Tests of activations beyond the table of test_ops.cpp: every size, and numbers far from 0.
#include "reference/activation.hpp"
#include "reference/elementwise.hpp"
#include "shorthand.hpp"

namespace braid::test::on_device {

TEST_CASE("activations: every size, and numbers far from 0", "[activations]") {
  struct Case {
    const char* name;
    std::function<Tensor(T)> call;
    std::function<double(double)> expected;
  };
  const std::vector<Case> cases{
      {"gelu", [](T x) { return gelu(x); }, reference::gelu},
      {"gelu tanh", [](T x) { return gelu(x, "tanh"); }, reference::gelu_tanh},
      {"silu", silu, reference::silu},
      {"softplus", [](T x) { return softplus(x); },
       [](double x) { return reference::softplus(x); }},
      {"elu", [](T x) { return elu(x); }, [](double x) { return reference::elu(x, 1); }},
      {"hardswish", hardswish, reference::hardswish},
      {"mish", mish, reference::mish},
      {"logsigmoid", logsigmoid, reference::logsigmoid},
      {"softsign", softsign, reference::softsign}};
  for (const Case& c : cases) {
    for (const DType t : floating_dtypes())
      for (const std::int64_t n :
           {1, 7, 8, 16, 17, 33, 511, 513, static_cast<int>(cut(40000, 1025))}) {
        const Tensor x = random_tensor({n}, t, here(), static_cast<std::uint64_t>(n), -9, 9);
        INFO(c.name << " of " << n << ' ' << t);
        CHECK(close(c.call(x), reference::map(array_of(x), c.expected), tolerance(t)) == "");
      }
    CHECK(std::isnan(list(c.call(tensor({kNan, kInf})))[0]));
  }
  const Tensor far = tensor({80.0, -80.0, 200.0, -200.0});
  for (const Tensor& y : {silu(far), softplus(far), mish(far), gelu(far)})
    check_same(y.slice(0, 0, 3, 2), {80, 200});
  CHECK(silu(far)[1].item<double>() == Approx(reference::silu(-80)).epsilon(1e-6));
  CHECK(softplus(far)[1].item<double>() == Approx(reference::softplus(-80)).epsilon(1e-6));
  check_same(logsigmoid(far).slice(0, 1, 4, 2), {-80, -200});
}

}  // namespace braid::test::on_device
