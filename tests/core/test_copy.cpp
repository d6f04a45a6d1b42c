// to(), clone(), contiguous(): between all types and devices, from every layout; with their
// gradients.
#include <braid/core/autograd.hpp>
#include <braid/core/memory.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "support/errors.hpp"
#include "support/gradcheck.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
namespace {

/// What x becomes in another type: truncated to integers, != 0 as bool, rounded to floating point.
double converted(double x, DType to) {
  if (to == DType::bool_) return static_cast<double>(x != 0);
  return is_floating(to) ? reference::round_to(x, format_of(to)) : std::trunc(x);
}

/// All devices of the run, and with a CUDA device another one and the host.
std::vector<Device> places() {
  return on_cpu() ? test_devices() : std::vector<Device>{here(), there(), Device()};
}

}  // namespace

TEST_CASE("copy: between all types, from every layout, on and between devices", "[copy]") {
  for (const DType from : all_dtypes())
    for (const DType to : all_dtypes())
      for (const Device source : places())
        for (const Device target : places())
          for (const Sizes& shape : std::vector<Sizes>{{}, {2, 3, 4}, {2, 0}, {17}})
            for (const Layout& layout : layouts(shape)) {
              Numbers numbers(11);
              const Tensor x = strided(shape, layout.strides, layout.offset, from, source,
                                       [&] { return numbers.of(from, 0, 100); });
              const Array before = array_of(x);
              const Tensor y = x.to(target, to);
              std::string problem = exact(y, reference::generate(shape, [&](const Sizes& i) {
                                            return converted(reference::value(before, i), to);
                                          }));
              if (y.dtype() != to || y.device() != target) problem = "type or device";
              if (from != to || source != target) {
                if (!y.is_contiguous() || y.storage() == x.storage()) problem = "not a dense copy";
              } else if (y.id() != x.id()) {
                problem = "not the same handle";
              }
              if (array_of(x).data != before.data || x.version() != 0)
                problem = "the source changed";
              if (!problem.empty())
                FAIL_CHECK(from << " on " << source << " to " << to << " on " << target << ", "
                                << Shape(shape) << " " << layout.name << ": " << problem);
            }
}

TEST_CASE("copy: conversions of negative numbers, of edges and of what is not finite", "[copy]") {
  const Tensor x = tensor({-2.75, -0.25, 0.0, 0.999, 1e-30, 3.5});
  CHECK(x.to(DType::int64).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{-2, 0, 0, 0, 0, 3});
  CHECK(x.to(DType::int32).to_vector<int>() == std::vector<int>{-2, 0, 0, 0, 0, 3});
  CHECK(x.to(DType::bool_).to_vector<bool>() ==
        std::vector<bool>{true, true, false, true, true, true});
  const Tensor odd = tensor({std::nan(""), INFINITY, -INFINITY, -0.0});
  CHECK(odd.to(DType::bool_).to_vector<bool>() == std::vector<bool>{true, true, true, false});
  for (const DType t : floating_dtypes()) {
    const Array y = array_of(odd.to(t));
    INFO(t);
    CHECK(std::isnan(y[0]));
    CHECK(y[1] == INFINITY);
    CHECK(y[2] == -INFINITY);
    CHECK((y[3] == 0 && std::signbit(y[3])));
  }
  // some number, no trap
  for (const DType t : {DType::uint8, DType::int32, DType::int64}) CHECK_NOTHROW(odd.to(t));
  CHECK(tensor({1e30, -1e30}).to(DType::int32).numel() == 2);
  CHECK(array_of(tensor({1e30, -1e30}).to(DType::float16)).data ==
        std::vector<double>{INFINITY, -INFINITY});
  // ties to even
  CHECK_EXACT(tensor({1.0 + 0x1p-11, 1.0 + 3 * 0x1p-11}).to(DType::float16),
              Array({2}, std::vector<double>{1, 1 + 0x1p-9}));
  constexpr std::int64_t kBig = (std::int64_t{1} << 53) + 1;
  CHECK(tensor({kBig}).to(DType::float64).item<double>() == 0x1p53);
  CHECK(tensor({kBig}).to(DType::float32).to(DType::int64).item<std::int64_t>() == std::int64_t{1}
                                                                                       << 53);
  CHECK(tensor({kBig}).to(DType::int64, true).item<std::int64_t>() == kBig);
  CHECK(tensor({-1}).to(DType::uint8).item<int>() == 255);
  CHECK(tensor({300}).to(DType::uint8).item<int>() == 44);
  CHECK(tensor({(std::int64_t{1} << 32) + 5}).to(DType::int32).item<int>() == 5);
  CHECK(tensor({true, false}).to(DType::float32).to_vector<float>() == std::vector<float>{1, 0});
}

TEST_CASE("copy: to gives the same handle if nothing changes, unless a copy is asked for",
          "[copy]") {
  const Tensor x = random_tensor({2, 3});
  CHECK(x.to(here()).id() == x.id());
  CHECK(x.to(here(), DType::float32).id() == x.id());
  CHECK(x.to(DType::float32).id() == x.id());
  for (const Tensor& y : {x.to(here(), {}, true), x.to(DType::float32, true), x.clone()}) {
    CHECK_SAME_BITS(x, y);
    y.zero_();
    CHECK(array_of(x)[0] != 0);
  }
  CHECK_FALSE(x.t().to(DType::float32, true).storage() == x.storage());
  CHECK(x.t().clone().is_contiguous());
  CHECK(x.t().contiguous().strides() == Shape{2, 1});
}

TEST_CASE("copy: clone and contiguous stay on the device", "[copy]") {
  for (const Device d : test_devices()) {
    const Tensor x = random_tensor({3, 4}, DType::float32, d).t();
    CHECK(x.clone().device() == d);
    CHECK_SAME_BITS(x.clone(), x);
    CHECK_SAME_BITS(x.contiguous(), x);
  }
}

TEST_CASE("copy: large ones are exact on every number of threads", "[copy]") {
  const int before = num_threads();
  for (const std::int64_t n :
       std::vector<std::int64_t>{1,  2,  7,  8,  9,   15,  16,  17,   31,   32,
                                 33, 63, 64, 65, 127, 128, 129, 1000, 1025, cut(300007, 20011)}) {
    const Tensor x = random_tensor({n, 2}, DType::float32);
    const Array a = array_of(x);
    for (const int threads : thread_counts({1, 2, 3})) {
      set_num_threads(threads);
      INFO(n << " rows, " << threads << " threads");
      CHECK_EXACT(x.clone(), a);
      CHECK_EXACT(x.to(there()), a);
      CHECK_EXACT(x.to(DType::bfloat16), a);
      CHECK_EXACT(x.t().contiguous().t(), a);
    }
  }
  set_num_threads(before);
}

TEST_CASE("copy: gradients go back to the type and device they came from", "[copy][gradients]") {
  const Tensor x = random_tensor({2, 3}, DType::float64).requires_grad_();
  CHECK_GRAD([](const Tensor& t) { return t.to(there()) * 3.0; }, x);
  CHECK_GRAD([](const Tensor& t) { return t.to(there()).to(here()); }, x);
  CHECK_GRAD([](const Tensor& t) { return t.t().contiguous(); }, x);
  CHECK_GRAD([](const Tensor& t) { return t.clone() * t; }, x);
  CHECK_GRAD([](const Tensor& t) { return t.to(DType::float64, true); }, x);
  const Tensor y = random_tensor({2, 3}, DType::float32).requires_grad_();
  const Tensor z = y.to(there(), DType::bfloat16) * 2.0;
  CHECK(z.dtype() == DType::bfloat16);
  z.sum().backward();
  CHECK(y.grad().dtype() == DType::float32);
  CHECK(y.grad().device() == here());
  CHECK_EXACT(y.grad(), Array({2, 3}, 2.0));
  // To integers and back there is no gradient.
  CHECK_FALSE(y.to(DType::int64).requires_grad());
  CHECK_FALSE(y.to(DType::int64).to(DType::float32).requires_grad());
  // A gradient that arrives strided.
  const Tensor w = y.to(DType::float64);
  w.backward(random_tensor({3, 2}, DType::float64).t());
  CHECK(y.grad().defined());
}

TEST_CASE("copy: a device that does not exist is refused", "[copy][errors]") {
  const Tensor x = random_tensor({2});
  CHECK_THROWS_TEXT(DeviceError, "expected one of cpu:0, *got cpu:60", x.to(Device("cpu:60")));
  CHECK_THROWS_TEXT(DeviceError, "got cpu:60", zeros({0}).to(Device("cpu:60")));
}

}  // namespace braid::test::on_device
