// set_float32_precision: what it says, and the precision of products and convolutions, with their
// gradients.
#include "shorthand.hpp"
#include "support/precision.hpp"

namespace braid::test::on_device {
namespace {

/// A result of f and the gradients of its arguments, as float64 on the CPU.
std::vector<Tensor> results(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                            const std::vector<Tensor>& args) {
  std::vector<Tensor> leaves;
  for (const Tensor& x : args) leaves.push_back(x.detach().requires_grad_());
  const Tensor y = f(leaves);
  (y * y).sum().backward();
  std::vector<Tensor> list{y};
  for (const Tensor& x : leaves) list.push_back(x.grad());
  for (Tensor& x : list) x = x.detach().to(Device()).to(DType::float64);
  return list;
}
/// ‖got − want‖ / ‖want‖, the largest of the results.
double error_of(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  double most = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    most = std::max(most, (norm(got[i] - want[i]) / norm(want[i])).item<double>());
  return most;
}

}  // namespace

TEST_CASE("precision: the setting, and PyTorch's names of it", "[precision]") {
  const PrecisionGuard guard(Float32Precision::exact);
  CHECK(float32_precision() == Float32Precision::exact);
  CHECK(get_float32_matmul_precision() == "highest");
  set_float32_matmul_precision("high");
  CHECK(float32_precision() == Float32Precision::tf32);
  CHECK(get_float32_matmul_precision() == "high");
  set_float32_precision(Float32Precision::tf32x3);
  CHECK(get_float32_matmul_precision() == "highest");
  set_float32_matmul_precision("medium");
  CHECK(float32_precision() == Float32Precision::tf32);
  CHECK_THROWS_TEXT(ArgumentError,
                    "set_float32_matmul_precision: expected highest, high or medium, got low",
                    set_float32_matmul_precision("low"));
  CHECK_THROWS_TEXT(ArgumentError, "set_float32_precision: expected exact, tf32x3 or tf32, got 7",
                    set_float32_precision(static_cast<Float32Precision>(7)));
  CHECK(float32_precision() == Float32Precision::tf32);
  set_float32_matmul_precision("highest");
  CHECK(float32_precision() == Float32Precision::exact);
}

TEST_CASE("precision: of products and convolutions, and of their gradients", "[precision]") {
  struct Op {
    const char* name;
    std::vector<std::vector<std::int64_t>> shapes;
    std::function<Tensor(const std::vector<Tensor>&)> call;
  };
  const std::vector<Op> ops{
      {"matmul", {{40, 50}, {50, 60}}, [](const auto& a) { return matmul(a[0], a[1]); }},
      {"bmm", {{3, 40, 50}, {3, 50, 40}}, [](const auto& a) { return bmm(a[0], a[1]); }},
      {"linear",
       {{50, 60}, {70, 60}, {70}},
       [](const auto& a) { return linear(a[0], a[1], a[2]); }},
      {"linear_relu",
       {{50, 60}, {70, 60}, {70}},
       [](const auto& a) { return linear_relu(a[0], a[1], a[2]); }},
      {"linear_gelu",
       {{50, 60}, {70, 60}, {70}},
       [](const auto& a) { return linear_gelu(a[0], a[1], a[2]); }},
      {"linear_add",
       {{50, 60}, {70, 60}, {70}, {50, 70}},
       [](const auto& a) { return linear_add(a[0], a[1], a[2], a[3]); }},
      {"conv2d",
       {{2, 8, 9, 7}, {12, 8, 3, 3}, {12}},
       [](const auto& a) { return conv2d(a[0], a[1], a[2]); }},
      {"conv2d of three channels",
       {{2, 3, 9, 9}, {10, 3, 4, 4}, {10}},
       [](const auto& a) { return conv2d(a[0], a[1], a[2]); }},
      {"conv_transpose2d",
       {{2, 8, 5, 5}, {8, 6, 3, 3}, {6}},
       [](const auto& a) { return conv_transpose2d(a[0], a[1], a[2]); }},
  };
  for (const Op& op : ops) {
    std::vector<Tensor> args, wide;
    for (std::size_t i = 0; i < op.shapes.size(); ++i) {
      args.push_back(random_tensor(op.shapes[i], DType::float32, here(), 3 + i, -1, 1));
      wide.push_back(args.back().to(Device()).to(DType::float64));
    }
    const std::vector<Tensor> want = results(op.call, wide);
    const auto error = [&](Float32Precision precision) {
      const PrecisionGuard guard(precision);
      return error_of(results(op.call, args), want);
    };
    const double exact = error(Float32Precision::exact), split = error(Float32Precision::tf32x3),
                 tf32 = error(Float32Precision::tf32);
    INFO(op.name << ": exact " << exact << ", tf32x3 " << split << ", tf32 " << tf32);
    CHECK(exact < 1e-6);
    if (here().type() == DeviceType::cuda) {
      CHECK(split <= 2 * exact);
      CHECK(tf32 < 1e-3);
      CHECK(tf32 > 1e-5);  // it is used
    } else {
      CHECK(split == exact);
      CHECK(tf32 == exact);
    }
  }
}

}  // namespace braid::test::on_device
