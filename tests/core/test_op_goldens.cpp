// Ops and their gradients against PyTorch (goldens/ops.txt), float32 and float64.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/join.hpp>
#include <braid/core/ops/linear.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/core/ops/softmax.hpp>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {

using braid::testing::difference;
using braid::testing::Goldens;

namespace {

// One case of the file in one dtype: hands out its inputs as leaves and remembers them.
class Case {
 public:
  Case(const Goldens& goldens, std::string name, DType dtype)
      : goldens_(&goldens), name_(std::move(name)), dtype_(dtype) {}

  [[nodiscard]] bool has(const std::string& key) const { return goldens_->has(name_ + "." + key); }
  [[nodiscard]] bool named(const std::string& part) const {
    return name_.find(part) != std::string::npos;
  }
  Tensor in(const std::string& key) {
    return leaves_.emplace(key, constant(key).to(dtype_).requires_grad_()).first->second;
  }
  [[nodiscard]] Tensor constant(const std::string& key) const {
    return goldens_->tensor(name_ + "." + key);
  }
  [[nodiscard]] Shape dims() const { return Shape(constant("dims").to_vector<std::int64_t>()); }
  [[nodiscard]] bool keepdim() const { return constant("keepdim").item<std::int64_t>() != 0; }
  [[nodiscard]] std::int64_t softmax_dim() const {
    return named(".dim0") ? 0 : named(".dim1") || named(".extreme") ? 1 : -1;
  }
  [[nodiscard]] Reduction reduction() const {
    return named(".sum") ? Reduction::sum : Reduction::mean;
  }

  // Every gradient that the file has must have been asked for and must agree.
  void check(const Tensor& y) const {
    const std::string typed = name_ + "." + std::string(name_of(dtype_)) + ".";
    CHECK(difference(y, goldens_->tensor(typed + "y")) == "");
    y.backward(constant("dy").to(dtype_));
    for (const auto& [key, leaf] : leaves_) {
      INFO("gradient of " << key);
      CHECK(difference(leaf.grad(), goldens_->tensor(typed + "d" + key)) == "");
    }
    std::size_t gradients = 0;
    for (const auto& entry : goldens_->tensors())
      gradients += entry.first.rfind(typed + "d", 0) == 0;
    CHECK(gradients == leaves_.size());
  }

 private:
  const Goldens* goldens_;
  std::string name_;
  DType dtype_;
  std::map<std::string, Tensor> leaves_;
};

using Op = std::function<Tensor(Case&)>;
template <class F> Op unary(F f) {
  return [f](Case& c) { return f(c.in("x")); };
}
template <class F> Op binary(F f) {
  return [f](Case& c) { return f(c.in("a"), c.in("b")); };
}

const std::map<std::string, Op>& ops() {
  using T = const Tensor&;
  static const std::map<std::string, Op> table = {
      {"linear",
       [](Case& c) {
         return linear(c.in("x"), c.in("weight"), c.has("bias") ? c.in("bias") : Tensor());
       }},
      {"linear_relu", [](Case& c) { return linear_relu(c.in("x"), c.in("weight"), c.in("bias")); }},
      {"matmul", [](Case& c) { return matmul(c.in("input"), c.in("other")); }},
      {"relu", unary([](T x) { return relu(x); })},
      {"softmax", [](Case& c) { return softmax(c.in("x"), c.softmax_dim()); }},
      {"log_softmax", [](Case& c) { return log_softmax(c.in("x"), c.softmax_dim()); }},
      {"cross_entropy",
       [](Case& c) { return cross_entropy(c.in("x"), c.constant("labels"), c.reduction()); }},
      {"mse_loss", [](Case& c) { return mse_loss(c.in("a"), c.in("b"), c.reduction()); }},
      {"sum", [](Case& c) { return sum(c.in("x"), c.dims(), c.keepdim()); }},
      {"mean", [](Case& c) { return mean(c.in("x"), c.dims(), c.keepdim()); }},
      {"embedding", [](Case& c) { return embedding(c.in("weight"), c.constant("index")); }},
      {"add", binary([](T a, T b) { return a + b; })},
      {"sub", binary([](T a, T b) { return a - b; })},
      {"mul", binary([](T a, T b) { return a * b; })},
      {"div", binary([](T a, T b) { return a / b; })},
      {"maximum", binary([](T a, T b) { return maximum(a, b); })},
      {"minimum", binary([](T a, T b) { return minimum(a, b); })},
      {"exp", unary([](T x) { return exp(x); })},
      {"tanh", unary([](T x) { return tanh(x); })},
      {"sigmoid", unary([](T x) { return sigmoid(x); })},
      {"abs", unary([](T x) { return abs(x); })},
      {"square", unary([](T x) { return square(x); })},
      {"sin", unary([](T x) { return sin(x); })},
      {"cos", unary([](T x) { return cos(x); })},
      {"log", unary([](T x) { return log(x); })},
      {"sqrt", unary([](T x) { return sqrt(x); })},
      {"rsqrt", unary([](T x) { return rsqrt(x); })},
      {"reciprocal", unary([](T x) { return reciprocal(x); })},
      {"pow", [](Case& c) { return pow(c.in("x"), c.named(".cube") ? 3.0 : 0.5); }},
  };
  return table;
}

}  // namespace

TEST_CASE("ops: values and gradients agree with PyTorch", "[core][ops][goldens]") {
  const Goldens goldens("ops.txt", here());
  std::set<std::string> cases, covered;
  for (const auto& entry : goldens.tensors())
    if (const std::size_t at = entry.first.find(".float64.y"); at != std::string::npos)
      cases.insert(entry.first.substr(0, at));
  REQUIRE(cases.size() >= 60);
  for (const std::string& name : cases) {
    const std::string op = name.substr(0, name.find('.'));
    INFO(name);
    REQUIRE(ops().count(op) == 1);  // a case nobody runs would be a case that cannot fail
    covered.insert(op);
    for (DType dtype : {DType::float32, DType::float64}) {
      INFO(dtype);
      Case c(goldens, name, dtype);
      const Tensor y = ops().at(op)(c);
      c.check(y);
    }
  }
  CHECK(covered.size() == ops().size());
}

}  // namespace braid::test::on_device
