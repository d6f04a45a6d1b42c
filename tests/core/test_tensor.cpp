// Tests of the handle: sharing, words, versions; and the bounds checks of every view.
#include <algorithm>

#include "shorthand.hpp"

namespace braid::test::on_device {

TEST_CASE("tensor: an undefined one answers only that it is", "[tensor][errors]") {
  const Tensor t;
  CHECK_FALSE(t.defined());
  CHECK(t.id() == nullptr);
  using Calls = std::vector<std::function<void()>>;
  for (const std::function<void()>& call : Calls{[&] { (void)t.shape(); },
                                                 [&] { (void)t.dtype(); },
                                                 [&] { (void)t.device(); },
                                                 [&] { (void)t.strides(); },
                                                 [&] { (void)t.numel(); },
                                                 [&] { (void)t.dim(); },
                                                 [&] { (void)t.is_contiguous(); },
                                                 [&] { (void)t.storage(); },
                                                 [&] { (void)t.version(); },
                                                 [&] { (void)t.requires_grad(); },
                                                 [&] { (void)t.requires_grad_(); },
                                                 [&] { (void)t.grad(); },
                                                 [&] { t.set_grad({}); },
                                                 [&] { t.backward(); },
                                                 [&] { (void)t.detach(); },
                                                 [&] { (void)t.to(DType::float64); },
                                                 [&] { (void)t.clone(); },
                                                 [&] { (void)t.contiguous(); },
                                                 [&] { (void)t.zero_(); },
                                                 [&] { (void)t.select(0, 0); },
                                                 [&] { (void)t.reshape({1}); },
                                                 [&] { (void)t.sum(); },
                                                 [&] { (void)t.to_vector<float>(); },
                                                 [&] { (void)t.item<float>(); },
                                                 [&] { (void)t.data<float>(); }})
    CHECK(thrown<ArgumentError>("expected a defined tensor, got an undefined one", call) == "");
  CHECK(str(t) == "undefined");
}

TEST_CASE("tensor: copying the handle shares everything", "[tensor]") {
  const Tensor a = random_tensor({2, 3});
  Tensor b = a;
  CHECK(b.id() == a.id());
  b.fill_(4);
  CHECK_EXACT(a, Array({2, 3}, 4.0));
  CHECK(a.version() == b.version());
  Tensor c = std::move(b);
  // NOLINT(bugprone-use-after-move): what a moved-from handle is, is the point
  CHECK_FALSE(b.defined());
  CHECK(c.id() == a.id());
}

TEST_CASE("tensor: words", "[tensor]") {
  const Tensor t = random_tensor({2, 3, 4}, DType::int32, there());
  CHECK(t.defined());
  CHECK(t.is_contiguous());
  CHECK(t.is_leaf());
  CHECK(t.shape() == Shape{2, 3, 4});
  CHECK(t.strides() == Shape{12, 4, 1});
  CHECK(t.dim() == 3);
  CHECK(t.numel() == 24);
  CHECK(t.size(0) == 2);
  CHECK(t.size(-1) == 4);
  CHECK(t.dtype() == DType::int32);
  CHECK(t.device() == there());
  CHECK(t.storage_offset() == 0);
  CHECK_THROWS_TEXT(IndexError, "size: expected *got *3", t.size(3));
  CHECK_THROWS_TEXT(IndexError, "size: ", t.size(-4));
  CHECK_THROWS_TEXT(IndexError, "size: ", tensor(1.0).size(0));
}

TEST_CASE("tensor: views share storage and version", "[tensor]") {
  const Tensor base = random_tensor({3, 4});
  const std::vector<Tensor> views{base[1],          base.slice(0, 1, 3),    base.slice(1, 0, 4, 2),
                                  base.t(),         base.permute({1, 0}),   base.reshape({4, 3}),
                                  base.view({12}),  base.unsqueeze(1),      base.flatten(),
                                  base.detach(),    base.narrow(1, 1, 2),   base.transpose(0, 1),
                                  base.squeeze(),   base.expand({2, 3, 4}), base.select(1, 2),
                                  base.contiguous()};
  for (std::size_t i = 0; i < views.size(); ++i) {
    INFO("view " << i);
    CHECK(views[i].storage() == base.storage());
    CHECK(views[i].version() == base.version());
  }
  const std::uint64_t before = base.version();
  views[0].zero_();
  for (const Tensor& v : views) CHECK(v.version() > before);
  CHECK(list(base[1]) == List(4, 0));
  CHECK(list(base[0]) != List(4, 0));
  for (const Tensor& copy :
       {base.clone(), base.to(base.device(), base.dtype(), true), base.t().contiguous(),
        base.to(DType::float64), base.t().reshape({12})}) {
    CHECK_FALSE(copy.storage() == base.storage());
    CHECK(copy.is_contiguous());
  }
}

TEST_CASE("tensor: contiguous means dense and row-major", "[tensor]") {
  const Tensor t = random_tensor({2, 3, 4});
  for (const Tensor& dense :
       {t[0], t.slice(0, 1, 2), t.slice(0, 0, 1).slice(1, 0, 2), t.transpose(0, 0),
        t.slice(1, 1, 2).transpose(0, 1).slice(1, 0, 1),  // one row of 4
        t.expand({1, 2, 3, 4}), t.slice(0, 0, 0), tensor(1.0),
        // the stride of a dim of size 1 does not matter
        make_view(t, {1, 4}, {999, 1}, 0)})
    CHECK(dense.is_contiguous());
  for (const Tensor& other : {t.slice(1, 0, 2), t.slice(2, 0, 4, 2), t.transpose(0, 1),
                              t.unsqueeze(0).expand({2, 2, 3, 4})})
    CHECK_FALSE(other.is_contiguous());
  CHECK(t.contiguous().id() == t.id());
}

TEST_CASE("tensor: a view must lie inside its storage, overflow included", "[tensor][errors]") {
  const std::vector<std::int64_t> hostile{
      kMin, -1, 0, 1, 2, 5, std::int64_t{1} << 31, (std::int64_t{1} << 32) + 1, kMax};
  const Tensor base = random_tensor({12});
  const double first = array_of(base)[0];
  int accepted = 0, refused = 0, wrong = 0;
  const auto check = [&](const Sizes& shape, const Sizes& strides, std::int64_t offset) {
    __int128 low = offset, high = offset, elements = 1;
    bool negative = offset < 0, odd = false;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      negative = negative || shape[i] < 0;
      odd = odd || strides[i] < 0;
      // enough to detect 0
      elements *= std::min<std::int64_t>(shape[i], std::int64_t{1} << 40);
      // the sum of two of them still fits
      const __int128 reach = shape[i] <= 0 ? 0 : static_cast<__int128>(shape[i] - 1) * strides[i];
      (reach < 0 ? low : high) += reach;
    }
    const bool inside = !negative && elements != 0 && low >= 0 && high < 12;
    try {
      const Tensor v = make_view(base, Shape(shape), Shape(strides), offset);
      ++accepted;
      wrong += negative || (elements != 0 && !inside);
      if (inside && elements < 1000) wrong += std::isnan(array_of(v)[0]);
    } catch (const ShapeError&) {
      ++refused;
      // Too many elements for any memory may be rejected, even if they all are the same element.
      bool huge = false;
      for (const std::int64_t s : shape) huge = huge || s > 5;
      wrong += inside && !odd && !huge;
    }
  };
  for (const std::int64_t n : hostile)
    for (const std::int64_t s : hostile)
      for (const std::int64_t o : hostile) {
        check({n}, {s}, o);
        for (const std::int64_t n2 : hostile)
          for (const std::int64_t s2 : hostile) check({n, n2}, {s, s2}, o);
      }
  CHECK(wrong == 0);
  CHECK(accepted > 100);
  CHECK(refused > 10000);
  CHECK(array_of(base)[0] == first);
  CHECK_THROWS_TEXT(ShapeError, "expected *12*got *", make_view(base, {13}, {1}, 0));
  CHECK_THROWS_TEXT(ShapeError, "expected *got *", make_view(base, {6}, {1}, 7));
  // strides of another rank
  CHECK_THROWS_TEXT(ShapeError, "expected *got *", make_view(base, {2, 3}, {1}, 0));
  CHECK_THROWS_AS(make_tensor_on(base.storage(), {7}, {1}, 0, DType::float64), ShapeError);
  CHECK(make_tensor_on(base.storage(), {6}, {1}, 0, DType::float64).numel() == 6);
  CHECK(make_tensor_on(base.storage(), {48}, {1}, 0, DType::uint8).numel() == 48);
  CHECK_THROWS_AS(make_tensor_on(base.storage(), {49}, {1}, 0, DType::uint8), ShapeError);
}

TEST_CASE("tensor: index arithmetic holds beyond 2^31 and 2^32 elements", "[tensor]") {
  const Tensor x = tensor({1.0, 2.0, 3.0}).unsqueeze(0);
  for (const std::int64_t n :
       {(std::int64_t{1} << 31) - 1, std::int64_t{1} << 31, (std::int64_t{1} << 31) + 1,
        (std::int64_t{1} << 32) + 1, std::int64_t{1} << 40}) {
    INFO(n);
    const Tensor big = x.expand({n, 3});
    CHECK(big.numel() == 3 * n);
    CHECK(big.size(0) == n);
    check_lists({{big[n - 1], {1, 2, 3}},
                 {big[-n], {1, 2, 3}},
                 {big.slice(0, n - 2, n).sum(), {12}},
                 {big.select(1, 2).slice(0, n - 1, n), {3}}});
    CHECK(big.slice(0, 1, n, 2).size(0) == n / 2);
    CHECK(big.t().shape() == Shape{3, n});
    CHECK(big.slice(0, 0, n, n - 1).shape() == Shape{2, 3});
    CHECK(big.unsqueeze(0).shape() == Shape{1, n, 3});
    if (n % 2 == 0)
      CHECK(list(big.view({n / 2, 2, 3}).select(0, n / 2 - 1)) == List{1, 2, 3, 1, 2, 3});
    CHECK_THROWS_AS(big[n], IndexError);
  }
  // The last element of 2^31 + 3 bytes of address space; no other page is touched.
  const std::int64_t n = cut((std::int64_t{1} << 31) + 3, (std::int64_t{1} << 26) + 3);
  const Tensor bytes = empty({n}, {.dtype = DType::uint8});
  bytes.slice(0, n - 2, n).fill_(7);
  check_lists({{bytes[n - 1], {7}}, {bytes.slice(0, n - 2, n), {7, 7}}});
}

TEST_CASE("tensor: a version grows with every change in place, and with nothing else", "[tensor]") {
  const Tensor t = random_tensor({2, 3});
  CHECK(t.version() == 0);
  (void)(t + t).sum().item<float>();
  (void)t.clone();
  CHECK(t.version() == 0);
  // A change through a view counts too. test_inplace.cpp tests each op.
  for (const Tensor& same : {t, t[0], t.detach()}) {
    const std::uint64_t before = t.version();
    same.fill_(3);
    CHECK(t.version() > before);
  }
}

}  // namespace braid::test::on_device
