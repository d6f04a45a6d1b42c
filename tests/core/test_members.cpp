// Tests of Tensor's members that are functions (internal/members.def). Each member is called with
// several arguments, and must do what the function does: the same bits, or the same error. For at
// least one of them it must succeed. A member with a _ must write that result into the tensor.
#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

/// What the parameters of a call get: the tensors, numbers and lists in turn.
class Arguments {
 public:
  Arguments(std::vector<Tensor> tensors, Shape shape)
      : tensors_(std::move(tensors)), shape_(shape) {}
  template <class A> [[nodiscard]] A draw() {
    if constexpr (std::is_same_v<A, Tensor>) return tensors_.at(next_tensor_++ % tensors_.size());
    else if constexpr (std::is_same_v<A, Scalar>) return 2;
    else if constexpr (std::is_same_v<A, std::optional<Scalar>>) return Scalar(1);
    else if constexpr (std::is_same_v<A, double>) return next_real_++ % 2 == 0 ? 0.25 : 0.5;
    else if constexpr (std::is_same_v<A, bool>) return true;
    else if constexpr (std::is_same_v<A, std::int64_t>) return next_number_++ % 2 == 0 ? 1 : 0;
    else if constexpr (std::is_same_v<A, IntList>) return next_number_++ % 2 == 0 ? 1 : 0;
    else if constexpr (std::is_same_v<A, Shape>) return shape_;
    else if constexpr (std::is_same_v<A, std::string_view>) return "trunc";
    else if constexpr (std::is_same_v<A, DType>) return DType::float64;
    else return A();  // an optional
  }

 private:
  std::vector<Tensor> tensors_;
  Shape shape_;
  std::size_t next_tensor_ = 0, next_number_ = 0, next_real_ = 0;
};

/// Results, or the text of an error.
struct Outcome {
  std::vector<Tensor> results;
  std::string error;
};
std::vector<Tensor> results_of(const Tensor& t) { return {t}; }
std::vector<Tensor> results_of(const std::vector<Tensor>& list) { return list; }
std::vector<Tensor> results_of(const ValuesIndices& y) { return {y.values, y.indices}; }
std::vector<Tensor> results_of(bool on) { return {full({}, on)}; }

/// Waits for the device, and takes an error that a kernel has reported.
void settle() {
  try {
    synchronize(here());
  } catch (const Error&) {}
}

/// Calls f of `object` with arguments that are drawn for its parameters.
template <class S, class R, class... P>
Outcome called(const S& object, R (S::*f)(P...) const, Arguments arguments) {
  manual_seed(1);  // for random members
  const std::tuple<std::remove_cvref_t<P>...> values{
      arguments.draw<std::remove_cvref_t<P>>()...};  // braces: from left to right
  try {
    Outcome outcome{
        std::apply([&](const auto&... a) { return results_of((object.*f)(a...)); }, values), ""};
    synchronize(here());  // a kernel's error comes here, too
    return outcome;
  } catch (const Error& e) {
    settle();
    return {{}, e.what()};
  }
}

struct Member {
  const char* name;
  Outcome (*of_function)(T self, const Arguments& arguments);
  Outcome (*of_member)(T self, const Arguments& arguments);
};

// The parameters and arguments of a line are those of a function of a struct that has `self`.
#define CALLED(Result, parameters, ...)                      \
  [](T x, const Arguments& drawn) {                          \
    struct Call {                                            \
      const Tensor& self;                                    \
      [[nodiscard]] Result call parameters const __VA_ARGS__ \
    };                                                       \
    return called(Call{x}, &Call::call, drawn);              \
  }
#define ROW(Result, name, member, parameters, arguments)                                         \
  {#member, CALLED(Result, parameters, { return braid::name arguments; }),                       \
   CALLED(Result, parameters, {                                                                  \
     return                                                                                      \
         [](T x, const auto&... rest) -> decltype(auto) { return x.member(rest...); } arguments; \
   })},

const Member kMembers[] = {
#define BRAID_MEMBER(Result, name, parameters, arguments) \
  ROW(Result, name, name, parameters, arguments)
#include <braid/core/internal/members.def>
};
const Member kInPlace[] = {
#define BRAID_IN_PLACE(name, parameters, arguments) \
  ROW(Tensor, name, name##_, parameters, arguments)
#include <braid/core/internal/members.def>
};
#undef CALLED
#undef ROW

/// A tensor, and what the other parameters get.
struct Sample {
  Tensor self;
  Arguments arguments;
};
/// Numbers in (0, 1), which are in the domain of most functions.
Tensor fractions(const Shape& shape) {
  return (counting(shape) + 1) / static_cast<double>(shape.numel() + 1);
}
std::vector<Sample> samples() {
  const Tensor x = fractions({3, 3}), vector = fractions({3}), three = fractions({2, 3, 3}),
               index = zeros({3, 3}, kInt64), whole = counting({3, 3}, kInt64) + 1,
               indices = arange(3), mask = fractions({3, 3}) > 0.5;
  std::vector<Sample> list;
  for (const Tensor& self :
       {x, whole, mask, vector, three, x.t(), fractions({1, 1}), zeros({0, 3})})
    for (const std::vector<Tensor>& others :
         std::vector<std::vector<Tensor>>{{x, fractions({3, 3}) + 0.25},
                                          {index, x},
                                          {indices, x},
                                          {mask, x},
                                          {mask, ones({})},
                                          {vector},
                                          {fractions({2})},
                                          {three},
                                          {x, vector},
                                          {whole},
                                          {zeros({0, 3})}})
      for (const Shape& shape : {Shape{3, 1}, Shape{2, 3, 3}})
        list.push_back({self, {others, shape}});
  return list;
}

constexpr std::size_t npos = std::string::npos;

/// "" if both did the same, else the difference.
std::string difference(const Outcome& got, const Outcome& want) {
  if (got.error != want.error) return "got error " + got.error + ", expected " + want.error;
  if (got.results.size() != want.results.size()) return "another number of results";
  std::string text;
  for (std::size_t i = 0; i < got.results.size(); ++i)
    text += same_bits(got.results[i], want.results[i]);
  return text;
}

/// Whether a tensor of the dtype `to` may be overwritten with one of the dtype `from`.
bool holds(DType to, DType from) {
  return (is_floating(to) || !is_floating(from)) && (to != DType::bool_ || from == to);
}

}  // namespace

TEST_CASE("members: each is the function of its name", "[members]") {
  const std::vector<Sample> all = samples();
  for (const Member& m : kMembers) {
    INFO(m.name);
    int succeeded = 0;
    for (const Sample& s : all) {
      const Outcome want = m.of_function(s.self, s.arguments);
      CHECK(difference(m.of_member(s.self, s.arguments), want) == "");
      succeeded += want.error.empty();
    }
    // these would need a step above 0, and two dims; "parts" in test_composed.cpp tests them
    const std::string name = m.name;
    CHECK((succeeded > 0 || name == "slice_scatter" || name == "rot90"));
  }
  CHECK(std::size(kMembers) > 150);
}

TEST_CASE("members: those with a _ write the function's result into the tensor", "[members]") {
  const std::vector<Sample> all = samples();
  for (const Member& m : kInPlace) {
    INFO(m.name);
    int succeeded = 0;
    for (const Sample& s : all) {
      const Outcome want = m.of_function(s.self, s.arguments);
      const Tensor x = s.self.clone();
      const std::uint64_t version = x.version();
      const Outcome got = m.of_member(x, s.arguments);
      // What a kernel finds on a GPU is an error at the next wait: after other errors, and after
      // the tensor was written.
      const bool late = want.error.find(": expected integer divisors other than 0") != npos ||
                        want.error.find(": expected indices in [") != npos;
      if (!on_cpu() && !emulated() && late) {
        CHECK(got.error != "");
        continue;
      }
      if (!want.error.empty()) {
        CHECK(got.error == want.error);
      } else if (const Tensor& y = want.results[0]; y.shape() != x.shape()) {
        CHECK(got.error.find(": expected a result of shape ") != std::string::npos);
      } else if (!holds(x.dtype(), y.dtype())) {
        CHECK(got.error.find(": expected a result that ") != std::string::npos);
      } else {
        CHECK(got.error == "");
        CHECK(same_bits(x, y.to(x.dtype())) == "");
        CHECK((got.results[0].id() == x.id() &&
               (x.version() > version || x.numel() == 0 || y.id() == s.self.id())));
        ++succeeded;
        continue;
      }
      CHECK(same_bits(x, s.self.clone()) == "");  // nothing was changed
    }
    CHECK(succeeded > 0);
  }
  CHECK(std::size(kInPlace) > 80);
}

TEST_CASE("members: those with a _ are recorded, and refused for leaves", "[members][gradients]") {
  int recorded = 0;
  for (const Member& m : kInPlace)
    for (const Sample& s : samples()) {
      if (!is_floating(s.self.dtype())) continue;
      const Tensor w = s.self.clone().requires_grad_(), v = s.self.clone().requires_grad_();
      const Outcome want = m.of_function(w * 1, s.arguments);
      if (!want.error.empty() || want.results[0].shape() != w.shape()) continue;
      INFO(m.name);
      CHECK(m.of_member(w, s.arguments)
                .error.find(std::string(m.name) + ": expected a tensor that is not a leaf") == 0);
      const Tensor y = v * 1;
      REQUIRE(m.of_member(y, s.arguments).error == "");
      const Tensor& z = want.results[0];
      CHECK(y.requires_grad());
      y.sum().backward();
      if (!z.requires_grad()) {  // not a function of the old values: the gradient is 0
        CHECK(same_bits(v.grad(), zeros_like(v.detach())) == "");
        continue;
      }
      z.sum().backward();
      CHECK(same_bits(v.grad(), w.grad()) == "");
      ++recorded;
    }
  CHECK(recorded > 100);
}

TEST_CASE("members: in place on a temporary", "[members]") {
  check_lists({{zeros({2}).exp_().neg_(), {-1, -1}}, {zeros({2}).add_(3).pow_(2), {9, 9}}});
  const Tensor x = counting({2, 2});
  x[1].neg_();
  CHECK(list(x) == List{0, 1, -2, -3});
  CHECK_THROWS_AS(x.t().reshape({4}).neg_(), LayoutError);
}

}  // namespace braid::test::on_device
