// Tests of to(), clone() and contiguous(): between all dtypes and devices, from every layout, with
// gradients.
#include "shorthand.hpp"
#include "support/gradcheck.hpp"

namespace braid::test::on_device {
namespace {

/// Returns x converted to a dtype: truncated to integers, != 0 as bool, rounded to floating point.
double converted(double x, DType to) {
  if (to == DType::bool_) return static_cast<double>(x != 0);
  return is_floating(to) ? reference::round_to(x, format_of(to)) : std::trunc(x);
}

/// Returns all devices of the run. On a CUDA device: that one, another one and the host.
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
  const Tensor x = tensor({-2.75, -0.25, 0.0, 0.999, 1e-30, 3.5}),
               odd = tensor({kNan, kInf, -kInf, -0.0}), huge = tensor({1e30, -1e30});
  constexpr std::int64_t kBig = (std::int64_t{1} << 53) + 1;
  check_lists({{x.to(DType::int64), {-2, 0, 0, 0, 0, 3}},
               {x.to(DType::int32), {-2, 0, 0, 0, 0, 3}},
               {x.to(DType::bool_), {1, 1, 0, 1, 1, 1}},
               {odd.to(DType::bool_), {1, 1, 1, 0}},
               {huge.to(DType::float16), {kInf, -kInf}},
               // ties to even
               {tensor({1.0 + 0x1p-11, 1.0 + 3 * 0x1p-11}).to(DType::float16), {1, 1 + 0x1p-9}},
               {tensor({kBig}).to(DType::float64), {0x1p53}},
               {tensor({-1}).to(DType::uint8), {255}},
               {tensor({300}).to(DType::uint8), {44}},
               {tensor({(std::int64_t{1} << 32) + 5}).to(DType::int32), {5}},
               {tensor({true, false}).to(DType::float32), {1, 0}}});
  check_whole({{tensor({kBig}).to(DType::float32).to(DType::int64), {kBig - 1}},
               {tensor({kBig}).to(DType::int64, true), {kBig}}});
  for (const DType t : floating_dtypes()) check_same(odd.to(t), {kNan, kInf, -kInf, -0.0});
  // an unspecified number, but no trap
  for (const DType t : {DType::uint8, DType::int32, DType::int64}) {
    CHECK_NOTHROW(odd.to(t));
    CHECK_NOTHROW(huge.to(t));
  }
}

TEST_CASE("copy: to gives the same handle if nothing changes, unless a copy is asked for",
          "[copy]") {
  for (const Device d : test_devices()) {
    const Tensor x = random_tensor({2, 3}, DType::float32, d), turned = x.t();
    for (const Tensor& same : {x.to(d), x.to(d, DType::float32), x.to(DType::float32)})
      CHECK(same.id() == x.id());
    for (const auto& [from, y] :
         {std::pair(x, x.to(d, {}, true)), std::pair(x, x.to(DType::float32, true)),
          std::pair(x, x.clone()), std::pair(turned, turned.to(d, {}, true)),
          std::pair(turned, turned.to(DType::float32, true)), std::pair(turned, turned.clone()),
          std::pair(turned, turned.contiguous())}) {
      CHECK_SAME_BITS(from, y);
      CHECK(y.device() == d);
      CHECK(y.is_contiguous());
      y.zero_();
      CHECK(array_of(x)[0] != 0);
    }
    CHECK(turned.contiguous().strides() == Shape{2, 1});
  }
}

TEST_CASE("copy: large ones are exact on every number of threads", "[copy]") {
  const KeepThreads keep;
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
}

TEST_CASE("copy: gradients go back to the type and device they came from", "[copy][gradients]") {
  const Tensor x = random_tensor({2, 3}, DType::float64).requires_grad_();
  CHECK_GRAD([](T t) { return t.to(there()) * 3.0; }, x);
  CHECK_GRAD([](T t) { return t.to(there()).to(here()); }, x);
  CHECK_GRAD([](T t) { return t.clone() * t; }, x);
  CHECK_GRAD([](T t) { return t.to(DType::float64, true); }, x);
  const Tensor y = random_tensor({2, 3}, DType::float32).requires_grad_();
  const Tensor z = y.to(there(), DType::bfloat16) * 2.0;
  CHECK(z.dtype() == DType::bfloat16);
  z.sum().backward();
  CHECK(y.grad().dtype() == DType::float32);
  CHECK(y.grad().device() == here());
  CHECK_EXACT(y.grad(), Array({2, 3}, 2.0));
  // A conversion to integers passes no gradient.
  CHECK_FALSE(y.to(DType::int64).requires_grad());
  CHECK_FALSE(y.to(DType::int64).to(DType::float32).requires_grad());
  // A strided incoming gradient.
  y.to(DType::float64).backward(random_tensor({3, 2}, DType::float64).t());
  CHECK(y.grad().defined());
}

}  // namespace braid::test::on_device
