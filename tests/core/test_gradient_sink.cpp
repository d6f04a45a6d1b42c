// Tests of GradientSink: gradients of leaves that leave the backward early.
#include <memory>

#include <braid/core/internal/gradient_sink.hpp>

#include "shorthand.hpp"

namespace braid::test::on_device {

namespace {

Tensor leaf(const Literal& numbers) { return on_device::tensor(numbers, {.requires_grad = true}); }

/// Writes down its calls, and keeps the gradients to itself.
struct Sink final : GradientSink {
  std::string calls;
  std::vector<List> received;
  std::vector<Tensor> leaves;
  double factor = 1;
  bool takes = true, fails = false;

  bool begin(std::span<const std::size_t> numbers) override {
    calls += "begin";
    for (const std::size_t n : numbers) calls += str(" ", n);
    return takes;
  }
  [[nodiscard]] double seed_factor() const noexcept override { return factor; }
  void receive(std::size_t n, Tensor gradient) override {
    calls += str(" receive ", n);
    received.push_back(gradient.defined() ? list(gradient) : List{});
  }
  void finish() override {
    calls += " finish";
    if (fails) throw ArgumentError("not finished");
  }
  void commit() noexcept override {
    calls += " commit";
    leaves[0].set_grad(full({1}, 42.0));
  }
  void fail(const std::exception_ptr& error) noexcept override {
    calls += " fail " + exception_message(error);
  }
  void abandon() noexcept override { calls += " abandon"; }
};

std::shared_ptr<Sink> sink_of(const std::vector<Tensor>& leaves) {
  auto sink = std::make_shared<Sink>();
  sink->leaves = leaves;
  for (std::size_t n = 0; n < leaves.size(); ++n) set_gradient_sink(leaves[n], sink, n);
  return sink;
}

/// An identity whose backward calls f.
template <class F> Tensor watched(const Tensor& x, F f) {
  return record("watched", {x}, x.detach().clone(), [f](const Tensor& dy) -> Grads {
    f();
    return {dy};
  });
}

}  // namespace

TEST_CASE("gradient sink: a gradient is passed on as soon as it is complete", "[autograd][hooks]") {
  const Tensor a = leaf({1.0}), b = leaf({2.0}), c = leaf({3.0}), other = leaf({4.0});
  const auto sink = sink_of({a, b, c});
  // b is used twice: by the last op, and by one before a's
  const Tensor y = watched(a * 2.0 * b, [&] { sink->calls += " early"; }) * b + other;
  a.register_hook([](T g) { return g * 10.0; });
  y.sum().backward();
  CHECK(sink->calls == "begin 1 0 early receive 1 receive 0 finish commit");
  CHECK(sink->received == std::vector<List>{{8}, {80}});
  CHECK(list(a.grad()) == List{42});
  CHECK_FALSE(b.grad().defined());
  CHECK(list(other.grad()) == List{1});
  sink->calls.clear();
  (void)grad((a * b).sum(), {a});
  CHECK(sink->calls.empty());
  sink->takes = false;  // as if there were none
  (b * 3.0).sum().backward();
  CHECK(sink->calls == "begin 1");
  CHECK(list(b.grad()) == List{3});
  set_gradient_sink(b, nullptr);
  sink->calls.clear();
  (b * 3.0).sum().backward();
  CHECK(sink->calls.empty());
}

TEST_CASE("gradient sink: a leaf that is the loss; a sink that has gone", "[autograd][hooks]") {
  const Tensor a = leaf({1.0}), b = leaf({2.0});
  auto sink = sink_of({a});
  backward(std::vector<Tensor>{a, b * 2.0});
  CHECK(sink->calls == "begin 0 receive 0 finish commit");
  CHECK(sink->received == std::vector<List>{{1}});
  sink.reset();
  a.set_grad({});
  (a * 5.0).backward();
  CHECK(list(a.grad()) == List{5});
}

TEST_CASE("gradient sink: no leaf changes after a failure", "[autograd][hooks][errors]") {
  const Tensor a = leaf({1.0}), other = leaf({4.0});
  const auto sink = sink_of({a});
  const auto fails = [] { throw ArgumentError("asked to fail"); };
  CHECK_THROWS_TEXT(ArgumentError, "asked to fail", (watched(a, fails) * other).sum().backward());
  CHECK(sink->calls == "begin 0 fail asked to fail");
  CHECK_FALSE(other.grad().defined());
  sink->calls.clear();
  sink->fails = true;
  CHECK_THROWS_TEXT(ArgumentError, "not finished", (a * other).sum().backward());
  CHECK(sink->calls == "begin 0 receive 0 finish");  // it knows that it has failed
  CHECK_FALSE(other.grad().defined());
  CHECK_FALSE(a.grad().defined());
  // of several, one that has finished is told
  const Tensor b = leaf({2.0}), c = leaf({3.0});
  const auto others = {sink_of({b}), sink_of({c})};
  sink->calls.clear();
  CHECK_THROWS_TEXT(ArgumentError, "not finished", (a * b * c).sum().backward());
  CHECK(sink->calls == "begin 0 receive 0 finish");
  for (const auto& s : others)
    CHECK((s->calls == "begin 0 receive 0 finish abandon" ||
           s->calls == "begin 0 receive 0 fail not finished"));
  for (const Tensor& t : {a, b, c}) CHECK_FALSE(t.grad().defined());
  // only the owner removes a sink
  remove_gradient_sink(b, sink.get());
  CHECK(gradient_sink(b) == *others.begin());
  remove_gradient_sink(b, others.begin()->get());
  CHECK(gradient_sink(b) == nullptr);
  CHECK_THROWS_TEXT(AutogradError, "set_gradient_sink: expected a leaf*",
                    set_gradient_sink(a * 2.0, sink));
}

TEST_CASE("gradient sink: a factor of the first gradients", "[autograd][hooks]") {
  const Tensor a = leaf({1.0}), other = leaf({4.0});
  const auto sink = sink_of({a});
  sink->factor = 8;
  (a * other).sum().backward();
  CHECK(sink->received == std::vector<List>{{32}});
  CHECK(list(other.grad()) == List{1});
  const Tensor b = leaf({1.0});
  const auto second = sink_of({b});
  CHECK_THROWS_TEXT(AutogradError, "*sinks with the same factor*", (a * b).sum().backward());
  CHECK(second->calls.find("fail") != std::string::npos);
  CHECK(sink->calls.find("fail") != std::string::npos);
}

}  // namespace braid::test::on_device
