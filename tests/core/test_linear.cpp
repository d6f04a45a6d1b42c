// Tests of linear(): sizes, layouts, bias, empty tensors, errors.
#include "reference/matmul.hpp"
#include "reference/reduce.hpp"
#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

std::string check(const Tensor& x, const Tensor& w, const Tensor& b) {
  const Array ax = array_of(x), aw = array_of(w), ab = b.defined() ? array_of(b) : Array(Sizes{0});
  const double k = static_cast<double>(aw.shape.back()),
               u = x.dtype() == DType::float64 ? 0x1p-53 : 0x1p-24;
  const Array sums = reference::linear(reference::abs(ax), reference::abs(aw), reference::abs(ab));
  const Tensor y = linear(x, w, b);
  return within_bound(y, reference::linear(ax, aw, ab),
                      reference::map(sums, [=](double s) { return (k + 3) * u * s; }));
}

}  // namespace

TEST_CASE("linear: sizes that break tilings, with and without bias", "[linear]") {
  const std::vector<std::array<std::int64_t, 3>> sizes{
      {30, 5, 2},   {1, 1, 1},    {7, 9, 8},    {64, 64, 64},  {17, 65, 33},
      {65, 33, 10}, {2, 784, 10}, {129, 31, 1}, {1, 127, 128}, {1000, 3, 2}};
  for (const auto& [rows, in, out] : sizes)
    for (const DType t : floating_dtypes()) {
      INFO(t << " " << rows << " rows, " << in << " to " << out);
      const Tensor x = random_tensor({rows, in}, t, {}, 1), w = random_tensor({out, in}, t, {}, 2),
                   b = random_tensor({out}, t, {}, 3);
      CHECK(check(x, w, b) == "");
      CHECK(check(x, w, {}) == "");
      CHECK(check(x.reshape({1, rows, in}), w, b) == "");
    }
}

TEST_CASE("linear: every layout", "[linear]") {
  const Sizes sx{2, 3, 5}, sw{4, 5}, sb{4};
  for (const DType t : {DType::float32, DType::float64})
    for (const Layout& lx : layouts(sx))
      for (const Layout& lw : layouts(sw))
        for (const Layout& lb : layouts(sb)) {
          if (lx.offset > 2 || lw.offset > 2 || lb.offset > 2) continue;
          Numbers numbers(6);
          const auto make = [&](const Sizes& s, const Layout& l) {
            return strided(s, l.strides, l.offset, t, here(), [&] { return numbers.of(t); });
          };
          const std::string problem = check(make(sx, lx), make(sw, lw), make(sb, lb));
          if (!problem.empty())
            FAIL_CHECK(t << " x " << lx.name << ", weight " << lw.name << ", bias " << lb.name
                         << ": " << problem);
        }
}

TEST_CASE("linear: empty ones", "[linear]") {
  const Tensor b = tensor({1.0, 2.0});
  check_shapes({{linear(zeros({0, 3}), zeros({2, 3}), b), {0, 2}},
                {linear(zeros({2, 3}), zeros({0, 3}), zeros({0})), {2, 0}},
                {linear(zeros({3, 0, 4}), zeros({2, 4}), b), {3, 0, 2}}});
  check_lists({{linear(zeros({2, 0}), zeros({2, 0}), b), {1, 2, 1, 2}},
               {linear(zeros({2, 0}), zeros({3, 0})), {0, 0, 0, 0, 0, 0}}});
  const Tensor x = zeros({0, 3}, {.requires_grad = true}),
               w = ones({2, 3}, {.requires_grad = true}), c = ones({2}, {.requires_grad = true});
  linear(x, w, c).sum().backward();
  CHECK(x.grad().shape() == Shape{0, 3});
  CHECK_EXACT(w.grad(), Array({2, 3}, 0.0));
  CHECK_EXACT(c.grad(), Array({2}, 0.0));
}

TEST_CASE("linear: gradients of many rows; leading dims are rows", "[linear][gradients]") {
  const Tensor x = random_tensor({33, 17}, DType::float64, {}, 1).requires_grad_(),
               w = random_tensor({9, 17}, DType::float64, {}, 2).requires_grad_(),
               b = random_tensor({9}, DType::float64, {}, 3).requires_grad_(),
               dy = random_tensor({33, 9}, DType::float64, {}, 4),
               cube = x.detach().reshape({3, 11, 17}).requires_grad_();
  const std::vector<Array> want{reference::matmul(array_of(dy), array_of(w)),
                                reference::matmul(reference::transposed(array_of(dy)), array_of(x)),
                                reference::sum(array_of(dy), {0})};
  const std::vector<Tensor> g = pulled(linear(x, w, b), {x, w, b}, dy),
                            h = pulled(linear(cube, w, b), {cube, w, b}, dy.reshape({3, 11, 9}));
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK_CLOSE(g[i], want[i], tolerance(DType::float64));
    CHECK_CLOSE(h[i].reshape(g[i].shape()), want[i], tolerance(DType::float64));
  }
  CHECK(h[0].shape() == cube.shape());
}

TEST_CASE("linear: the gradient of x with frozen weights does not need x", "[linear][gradients]") {
  for (const Sizes& sizes : {Sizes{4, 3}, {2, 2, 3}}) {
    const Tensor x = random_tensor(sizes, DType::float64).requires_grad_(),
                 w = random_tensor({5, 3}, DType::float64);
    const Tensor y = linear(x, w), z = linear_relu(x, w);
    {
      const NoGrad guard;
      x.add_(1);
    }
    y.sum().backward();
    CHECK_CLOSE(x.grad(), w.sum({0}).expand(x.shape()), tolerance(DType::float64));
    CHECK_NOTHROW(z.sum().backward());
  }
}

TEST_CASE("linear: copies x only where its rows have no common stride", "[linear]") {
  const Tensor wide = random_tensor({4, 6, 3, 40}), w = random_tensor({16, 40});
  const auto allocations = [&](const Tensor& x) {
    const Tensor weight = w.narrow(1, 0, x.size(-1));
    const std::uint64_t before = memory_stats(here()).allocations;
    const Tensor y = linear(x, weight);
    const std::uint64_t made = memory_stats(here()).allocations - before;
    CHECK_CLOSE(y, linear(x.contiguous(), weight), tolerance(DType::float32));
    return made;
  };
  CHECK(allocations(wide) == 1);
  CHECK(allocations(wide.narrow(-1, 8, 24)) == 1);  // as queries, keys and values of one product
  CHECK(allocations(wide.select(1, 2)) == 2);
  CHECK(allocations(wide.narrow(1, 2, 1)) == 2);
  CHECK(allocations(wide.narrow(0, 1, 1).narrow(1, 2, 1)) == 1);  // dims of 1 do not count
  CHECK(allocations(wide.transpose(0, 1)) == 2);
}

TEST_CASE("linear: weight and bias gradients from one pass can be differentiated again",
          "[linear][gradients]") {
  // With fixed p, q: s = <p, dw> + <q, db> where dw = dyᵀ x and db = Σ_rows dy, so ds/d(dy) = x pᵀ
  // + q and ds/dx = dy p.
  const Tensor x = random_tensor({7, 4}, DType::float64, {}, 1).requires_grad_(),
               w = random_tensor({3, 4}, DType::float64, {}, 2).requires_grad_(),
               b = random_tensor({3}, DType::float64, {}, 3).requires_grad_(),
               dy = random_tensor({7, 3}, DType::float64, {}, 4).requires_grad_();
  const Tensor p = random_tensor({3, 4}, DType::float64, {}, 5),
               q = random_tensor({3}, DType::float64, {}, 6);
  for (const bool both : {true, false}) {
    const std::vector<Tensor> g = pulled(linear(x, w, b), {w, b}, dy, true);
    const Tensor s = both ? (p * g[0]).sum() + (q * g[1]).sum() : (q * g[1]).sum();
    const std::vector<Tensor> h =
        grad(std::vector<Tensor>{s}, std::vector<Tensor>{dy, x}, {}, false, false, true);
    CHECK_CLOSE(h[0],
                both ? reference::linear(array_of(x), array_of(p), array_of(q))
                     : array_of(zeros({7, 3}, {.dtype = DType::float64}) + q),
                tolerance(DType::float64));
    if (both)
      CHECK_CLOSE(h[1], reference::matmul(array_of(dy), array_of(p)), tolerance(DType::float64));
    else CHECK(!h[1].defined());
  }
}

TEST_CASE("linear: the number of threads does not change a bit", "[linear]") {
  const KeepThreads keep;
  const Tensor x = random_tensor({64, 200}),
               w = random_tensor({100, 200}, DType::float32, {}, 2).requires_grad_(),
               b = random_tensor({100}, DType::float32, {}, 3).requires_grad_();
  set_num_threads(1);
  const Tensor y = linear(x, w, b);
  const std::vector<Tensor> g = grad(y.sum(), {w, b}, true);
  for (const int threads : thread_counts({2, 3, 4})) {
    set_num_threads(threads);
    const Tensor z = linear(x, w, b);
    CHECK_SAME_BITS(z.detach(), y.detach());
    const std::vector<Tensor> h = grad(z.sum(), {w, b});
    CHECK_SAME_BITS(h[0], g[0]);
    CHECK_SAME_BITS(h[1], g[1]);
  }
}

TEST_CASE("linear_relu: relu of linear to the bit, its gradients too", "[linear][relu]") {
  const std::vector<std::array<std::int64_t, 3>> sizes{
      {30, 5, 2}, {1, 1, 1}, {17, 65, 33}, {65, 33, 130}, {129, 600, 3}, {3, 0, 2}, {0, 3, 2}};
  for (const Device device : test_devices())
    for (const auto& [rows, in, out] : sizes)
      for (const DType t : floating_dtypes()) {
        INFO(device << " " << t << " " << rows << " rows, " << in << " to " << out);
        const auto leaf = [&, device = device](const Sizes& shape, std::uint64_t seed) {
          Tensor made = random_tensor(shape, t, device, seed);
          made.requires_grad_();
          return made;
        };
        const Tensor x = leaf(Sizes{rows, in}, 1), w = leaf(Sizes{out, in}, 2),
                     b = leaf(Sizes{out}, 3);
        const Tensor fused = linear_relu(x, w, b), plain = relu(linear(x, w, b));
        CHECK(equal(fused, plain));
        CHECK(equal(linear_relu(x.detach(), w.detach()), relu(linear(x.detach(), w.detach()))));
        const auto one = grad(fused.sum(), {x, w, b}), two = grad(plain.sum(), {x, w, b});
        for (std::size_t i = 0; i < one.size(); ++i) CHECK(equal(one[i], two[i]));
      }
}

}  // namespace braid::test::on_device
