// Tests of the functions of ops/composed.hpp, of in-place members that need no function, and of
// LibTorch's names of properties and conversions.
#include <algorithm>

#include "shorthand.hpp"

namespace braid::test::on_device {

TEST_CASE("composed: elementwise", "[composed]") {
  const Tensor x = tensor({-2.0, -0.25, 0.0, 0.25, 2.0}),
               special = tensor({kNan, kInf, -kInf, 1.0});
  check_lists(
      {{deg2rad(tensor({180.0})), {3.1415927410125732}},
       {rad2deg(deg2rad(tensor({90.0}))), {90}},
       {rsub(tensor({1.0}), tensor({5.0}), 2), {3}},
       {hypot(tensor({3.0, 0.0, 3e38}), tensor({4.0, 0.0, 0.0})), {5, 0, 3.0000000054977558e38}},
       {hypot(tensor({kInf}), tensor({1.0})), {kInf}},
       {ldexp(tensor({3.0}), tensor({4.0})), {48}},
       {logaddexp(tensor({0.0, -kInf, kInf}), tensor({0.0, -kInf, 1.0})),
        {0.69314718246459961, -kInf, kInf}},
       {float_power(tensor({3}), 2), {9}},
       {xlogy(tensor({0.0, 1.0}), 1), {0, 0}},
       {nan_to_num(special, 7, 8, 9), {7, 8, 9, 1}},
       {round(tensor({1.256, -1.254}), 2) * 100, {126, -125}},
       {round(tensor({1250.0}), -2), {1200}},
       {div(tensor({-7.0, 7.0}), tensor({2.0, 2.0}), "trunc"), {-3, 3}},
       {div(tensor({-7.0, 7.0}), 2, "floor"), {-4, 3}},
       {hardshrink(x), {-2, 0, 0, 0, 2}},
       {softshrink(x), {-1.5, 0, 0, 0, 1.5}},
       {threshold(x, 0, 9), {9, 9, 9, 0.25, 2}},
       {prelu(x, tensor({0.5})), {-1, -0.125, 0, 0.25, 2}},
       {prelu(-ones({1, 2, 2}), tensor({0.5, 2.0})), {-0.5, -0.5, -2, -2}},
       {glu(tensor({{1.0, 2.0, 0.0, 0.0}})), {0.5, 1}},
       {softmin(tensor({1.0, 1.0})), {0.5, 0.5}},
       {normalize(tensor({{3.0, 4.0}})), {0.60000002384185791, 0.80000001192092896}},
       {cosine_similarity(tensor({{1.0, 0.0}, {2.0, 0.0}}), tensor({{0.0, 3.0}, {5.0, 0.0}})),
        {0, 1}},
       {pairwise_distance(tensor({{3.0, 4.0}}), zeros({1, 2}), 2, 0), {5}},
       {dist(tensor({3.0, 4.0}), zeros({2})), {5}}});
  check_whole({{div(tensor({-7, 7, -8}), tensor({2, -2, 2}), "trunc"), {-3, -3, -4}},
               {div(tensor({-7, 7}), 2, "floor"), {-4, 3}},
               {div(tensor({true, false}), tensor({1, 2}), "trunc"), {1, 0}},
               {div(tensor({true, false}), 2, "trunc"), {0, 0}},
               {div(tensor({true, false}), 2, "floor"), {0, 0}},
               {floor_divide(tensor({true, false}), 1), {1, 0}},
               {fmod(tensor({true, false}), 2), {1, 0}},
               {remainder(3, tensor({true, true})), {0, 0}}});
  check_lists({{remainder(tensor({true, false}), 0.75), {0.25, 0}}});
  CHECK_THROWS_TEXT(DTypeError, "floor_divide: expected numbers, got bool",
                    (void)floor_divide(tensor({true}), true));
  check_bools({{sgn(tensor({true, false})), {true, false}},
               {isposinf(special), {false, true, false, false}},
               {isneginf(special), {false, false, true, false}},
               {isclose(special, special), {false, true, true, true}},
               {isclose(special, special, 0, 0, true), {true, true, true, true}},
               {isclose(tensor({1.0, 1.0}), tensor({1.1, 1.2}), 0.1, 0), {true, false}}});
  CHECK(std::isnan(list(softshrink(tensor({kNan})))[0]));
  CHECK(std::isnan(list(hardshrink(tensor({kNan})))[0]));
  CHECK_THROWS_TEXT(ArgumentError, "div: expected the rounding mode *, got \"up\"",
                    (void)div(x, x, "up"));
  CHECK_THROWS_AS((void)glu(x), ShapeError);
}

TEST_CASE("composed: gradients", "[composed][gradients]") {
  CHECK(gradient_at([](T x) { return softshrink(x); }, {-2, 0.25, 2}) == List{1, 0, 1});
  CHECK(gradient_at([](T x) { return hypot(x, full_like(x, 4)); }, {3})[0] == Approx(0.6));
  CHECK(gradient_at([](T x) { return glu(x); }, {1, 0}) == List{0.5, 0.25});
  CHECK(gradient_at([](T x) { return nan_to_num(x, 0); }, {kNan, 2}) == List{0, 1});
  CHECK(gradient_at([](T x) { return diff(x); }, {1, 5, 9}) == List{-1, 0, 1});
  const Tensor weight = tensor({0.5}).requires_grad_();
  prelu(tensor({-3.0, 5.0}), weight).sum().backward();
  CHECK(list(weight.grad()) == List{-3});
}

TEST_CASE("composed: reductions, products and arrangements", "[composed]") {
  const Tensor x = tensor({{4.0, 1.0}, {2.0, kNan}}), m = tensor({{1, 2, 3}, {4, 5, 6}});
  const auto [least, most] = aminmax(m, 1);
  const auto [deviation, average] = std_mean(tensor({1.0, 3.0}), {}, 0);
  const auto [third, where_third] = kthvalue(tensor({5, 9, 7}), 2);
  check_lists({{nansum(x), {7}},
               {nansum(x, 1), {5, 2}},
               {nanmean(x, 0), {3, 1}},
               {deviation, {1}},
               {average, {2}},
               {diff(tensor({1.0, 4.0, 9.0}), 2), {2}}});
  check_whole({{least, {1, 4}},
               {most, {3, 6}},
               {third, {7}},
               {where_third, {2}},
               {msort(tensor({{3, 1}, {2, 5}})), {2, 1, 3, 5}},
               {addmm(ones({2, 2}).to(kInt64), m, m.t(), 2, 10), {142, 322, 322, 772}},
               {addmv(tensor({1, 1}), m, tensor({1, 0, 1})), {5, 11}},
               {addr(zeros({2, 2}).to(kInt64), tensor({1, 2}), tensor({3, 4})), {3, 4, 6, 8}},
               {baddbmm(tensor({{{1}}}), tensor({{{2}}}), tensor({{{3}}})), {7}},
               {addbmm(tensor({{1}}), tensor({{{2}}, {{1}}}), tensor({{{3}}, {{5}}})), {12}},
               {inner(m, m), {14, 32, 32, 77}},
               {fliplr(m), {3, 2, 1, 6, 5, 4}},
               {flipud(m), {4, 5, 6, 1, 2, 3}},
               {tile(tensor({1, 2}), {2}), {1, 2, 1, 2}},
               {tile(tensor({{1}, {2}}), 2), {1, 1, 2, 2}},
               {diagflat(tensor({{1, 2}})), {1, 0, 0, 2}},
               {take(m, tensor({5, 0})), {6, 1}},
               {argwhere(tensor({0, 3})), {1}},
               {hstack({tensor({1}), tensor({2})}), {1, 2}},
               {hstack({m, m}), {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}},
               {vstack({tensor({1, 2}), tensor({3, 4})}), {1, 2, 3, 4}},
               {m.trace(), {6}},
               {m.T(), {1, 4, 2, 5, 3, 6}},
               {m.mT(), {1, 4, 2, 5, 3, 6}},
               {m.H(), {1, 4, 2, 5, 3, 6}}});
  CHECK_THROWS_AS((void)kthvalue(m, 4), IndexError);
  CHECK_THROWS_AS((void)kthvalue(m, 0), IndexError);
  CHECK_THROWS_TEXT(ShapeError, "mT: expected at least 2 dimensions*", (void)ones({2}).mT());
  CHECK_THROWS_TEXT(ShapeError, "trace: expected a matrix*", (void)ones({2}).trace());
}

TEST_CASE("composed: max, min and sort give tuples with names", "[composed]") {
  const Tensor x = tensor({{1, 5, 2}, {7, 0, 3}});
  const auto [values, indices] = max(x, 1);
  Tensor v, i;
  std::tie(v, i) = x.min(1);
  const std::tuple<Tensor, Tensor> sorted = x.sort(1, true);
  const Tensor copied = ValuesIndices(max(x, 0)).values;
  ValuesIndices assigned = max(x, 1);
  assigned = topk(x, 1);
  check_whole({{values, {5, 7}},
               {indices, {1, 0}},
               {v, {1, 0}},
               {i, {0, 1}},
               {std::get<0>(sorted), {5, 2, 1, 7, 3, 0}},
               {std::get<1>(max(x, 0)), {1, 0, 1}},
               {max(x, 0).indices, {1, 0, 1}},
               {copied, {7, 5, 3}},
               {assigned.values, {5, 7}},
               {std::get<1>(assigned), {1, 0}},
               {max(x, x + 1), {2, 6, 3, 8, 1, 4}}});
}

TEST_CASE("names: properties and conversions", "[names]") {
  const Tensor x = ones({2, 3}, {.dtype = kFloat64}).t();
  CHECK((x.sizes() == Shape{3, 2} && x.size() == x.shape() && x.sizes().size() == 2));
  CHECK((x.sizes().vec() == std::vector<std::int64_t>{3, 2} && x.stride(0) == 1 &&
         x.stride(-1) == 3));
  CHECK((x.ndim() == 2 && x.ndimension() == 2 && x.scalar_type() == kDouble));
  CHECK((x.element_size() == 8 && x.itemsize() == 8 && x.nbytes() == 48));
  CHECK((x.is_cpu() == on_cpu() && x.is_cuda() == !on_cpu()));
  CHECK(x.get_device() == (on_cpu() ? -1 : here().index()));
  CHECK((x.is_floating_point() && !x.is_complex() && x.is_signed()));
  CHECK((!tensor({true}).is_signed() && !x.to(kUInt8).is_signed() && x.to(kInt).is_signed()));
  CHECK((x.options().dtype() == kFloat64 && x.options().device() == here()));
  CHECK((x.to(kFloat).dtype() == kFloat32 && x.toType(kLong).dtype() == kInt64));
  CHECK((x.to(ones({1})).dtype() == kFloat32 && x.type_as(ones({1})).device() == here()));
  CHECK(x.to(x.options().dtype(kHalf)).dtype() == kFloat16);
  CHECK(x.to(TensorOptions(there())).device() == there());
  CHECK((x.cpu().device() == Device("cpu:0") && x.to(kCPU).device() == Device()));
  CHECK(x.to(kFloat64, false, true).id() != x.id());
  CHECK((x.data().id() != x.id() && x.data().storage() == x.storage()));
  CHECK((Device(kCUDA, 1).str() == "cuda:1" && Device(kCPU).is_cpu() && !Device(kCPU).is_cuda()));
  if (on_cpu()) CHECK(ones({2}).data_ptr<float>()[1] == 1.0f);
  CHECK_THROWS_AS((void)x.stride(2), IndexError);
  CHECK_THROWS_AS((void)ones({}).stride(0), IndexError);
  CHECK_THROWS_AS((void)Tensor().is_complex(), ArgumentError);
  CHECK_THROWS_AS((void)x.is_same_size(Tensor()), ArgumentError);
}

TEST_CASE("names: item converts", "[names]") {
  const float a = tensor({1.5}).item();
  const double b = tensor({1.5}).item();
  const std::int64_t c = tensor({kMax}).item();
  const bool d = tensor({true}).item();
  CHECK((a == 1.5f && b == 1.5 && c == kMax && d));
  CHECK((tensor({2}).item().toInt() == 2 && tensor({2.5}).item().toFloat() == 2.5f));
  CHECK((tensor({2}).item() == 2 && tensor({2.5}).item() > 2 && tensor({2}).item() < 2.5));
  CHECK((tensor({true}).item().isBoolean() && tensor({1}).item().isIntegral(false) &&
         tensor({1.0}).item().isFloatingPoint()));
  CHECK(tensor({300}).item().to<int>() == 300);
  CHECK_THROWS_TEXT(DTypeError, "Scalar: expected a number in the range of the type, got 300",
                    (void)tensor({300}).item().to<std::uint8_t>());
  for (const double x : {kNan, kInf, 0x1p63, -0x1.8p63, 1e30})
    CHECK_THROWS_AS((void)Scalar(x).to<std::int64_t>(), DTypeError);
  CHECK((Scalar(-0x1p63).to<std::int64_t>() == kMin && Scalar(-128.9).to<std::int8_t>() == -128));
  CHECK((Scalar(255.5).to<std::uint8_t>() == 255 && Scalar(-0.5).to<std::uint8_t>() == 0));
  CHECK_THROWS_AS((void)Scalar(1e300).to<float>(), DTypeError);
  CHECK(Scalar(kInf).to<float>() == kInf);
  CHECK_THROWS_AS((void)ones({2}).item(), ShapeError);
}

TEST_CASE("in place: random values", "[inplace][random]") {
  manual_seed(3);
  const Tensor x = empty({1000});
  const auto range = [&](double low, double high) {
    const List v = list(x);
    return std::all_of(v.begin(), v.end(), [&](double a) { return a >= low && a <= high; });
  };
  const std::uint64_t version = x.version();
  x.uniform_(2, 3);
  CHECK((range(2, 3) && x.version() > version));
  x.normal_(100, 0.5);
  CHECK((range(97, 103) && std::abs(x.mean().item<double>() - 100) < 0.1));
  CHECK(x.std().item<double>() == Approx(0.5).epsilon(0.1));
  x.exponential_(2);
  CHECK((range(0, 100) && std::abs(x.mean().item<double>() - 0.5) < 0.1));
  x.bernoulli_(0.25);
  CHECK((range(0, 1) && std::abs(x.mean().item<double>() - 0.25) < 0.1));
  x.bernoulli_(zeros({1000}));
  CHECK(range(0, 0));
  x.random_(5, 8);
  CHECK((range(5, 7) && x.amax().item<double>() == 7));
  x.random_();
  CHECK((range(0, 1 << 24) && x.max().item<double>() > 1e6));
  CHECK_FALSE(any(empty({100}, {.dtype = kInt64}).random_() < 0));
  const Tensor whole = zeros({100}, {.dtype = kUInt8}).bernoulli_(1.0);
  CHECK(all(whole == 1));
  CHECK_THROWS_TEXT(DTypeError, "uniform: expected a floating point type*", whole.uniform_());
  CHECK_THROWS_TEXT(ArgumentError, "bernoulli_: expected a probability*", x.bernoulli_(1.5));
  CHECK_THROWS_TEXT(ArgumentError, "exponential_: expected lambda > 0*", x.exponential_(0));
  CHECK_THROWS_AS(ones({2}).requires_grad_().normal_(), AutogradError);
  const Tensor w = ones({2}).requires_grad_(), y = w * 2;
  const Tensor part = y[0];
  y.uniform_();
  const Tensor both = (y * y).sum() + part * part;  // of the new values alone
  const Tensor gradient =
      grad(std::vector<Tensor>{both}, std::vector<Tensor>{w}, {}, false, false, true)[0];
  CHECK((!gradient.defined() || list(gradient) == List{0, 0}));
}

TEST_CASE("members: handles of the same memory", "[views]") {
  const Tensor x = counting({2, 3}), y = x.alias();
  CHECK((y.is_set_to(x) && !y.is_same(x) && x.view({2, 3}).is_set_to(x)));
  CHECK_FALSE((x.t().is_set_to(x) || x.clone().is_set_to(x) || x[0].is_set_to(x[1])));
  const Tensor w = ones({3}).requires_grad_(), z = w * 2;
  z.alias().mul_(3);
  z.sum().backward();
  CHECK(list(w.grad()) == List{6, 6, 6});
  CHECK((z.output_nr() == 0 && x.output_nr() == 0));
}

TEST_CASE("accessor: the elements of strided memory", "[views][once]") {
  const Tensor x = arange(24).reshape({2, 3, 4}).to(Device(), DType::float32),
               part = x.transpose(0, 2).slice(1, 1, 3);  // [4, 2, 2]
  const auto a = part.accessor<float, 3>();
  CHECK((a.size(0) == 4 && a.size(1) == 2 && a.stride(0) == 1 && a.sizes().size() == 3));
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 2; ++j)
      for (std::int64_t k = 0; k < 2; ++k) CHECK(a[i][j][k] == part[i][j][k].item<float>());
  a[3][1][0] = -1;
  CHECK(x.accessor<const float, 3>()[0][2][3] == -1.f);
  CHECK_THROWS_TEXT(ShapeError, "accessor: expected a tensor of 2 dims, got shape [2, 3, 4]",
                    (void)(x.accessor<float, 2>()));
  CHECK_THROWS_AS((void)(x.accessor<double, 3>()), DTypeError);
}

TEST_CASE("in place: the shape changes, for all handles and in the graph", "[inplace][views]") {
  const Tensor x = counting({2, 1, 3}), same = x;
  const std::uint64_t version = x.version();
  x.squeeze_();
  CHECK((same.shape() == Shape{2, 3} && x.version() > version));
  x.t_();
  CHECK((x.shape() == Shape{3, 2} && !x.is_contiguous()));
  CHECK(list(x) == List{0, 3, 1, 4, 2, 5});
  x.unsqueeze_(0).transpose_(0, 2);
  CHECK(x.shape() == Shape{2, 3, 1});
  x.squeeze_(2);
  CHECK(list(x) == List{0, 1, 2, 3, 4, 5});
  const Tensor w = ones({2, 3}).requires_grad_(), y = w * 2;
  y.t_();
  (y * counting({3, 2})).sum().backward();
  CHECK(list(w.grad()) == List{0, 4, 8, 2, 6, 10});
  CHECK_THROWS_AS(ones({2, 3}).requires_grad_().t_(), AutogradError);
  {
    const NoGrad guard;
    CHECK_THROWS_TEXT(AutogradError, "squeeze_: expected a tensor without a graph under NoGrad",
                      y.squeeze_());
    w.t_();  // a parameter has no graph
    CHECK(w.shape() == Shape{3, 2});
  }
  CHECK_THROWS_AS(x.unsqueeze_(5), IndexError);
  const Tensor diagonal = zeros({2, 3}).fill_diagonal_(4);
  CHECK(list(diagonal) == List{4, 0, 0, 0, 4, 0});
  CHECK_THROWS_TEXT(ShapeError, "fill_diagonal_: expected a matrix*", ones({2}).fill_diagonal_(1));
  CHECK(list(zeros({2}).fill_(tensor(3.0))) == List{3, 3});
  CHECK_THROWS_TEXT(ShapeError, "fill_: expected a value without dimensions*",
                    zeros({2}).fill_(ones({2})));
  const Tensor z = w * 3;
  z.detach_();
  CHECK((z.is_leaf() && !z.requires_grad()));
  CHECK_THROWS_AS((w * 3)[0].detach_(), AutogradError);
}

TEST_CASE("names: new tensors like this one", "[names]") {
  const Tensor x = ones({2}, {.dtype = kInt32});
  CHECK((x.new_zeros({3}).dtype() == kInt32 && x.new_zeros({3}).device() == here()));
  CHECK(list(x.new_full({2}, 7, kFloat64)) == List{7, 7});
  CHECK((x.new_ones(4).numel() == 4 && x.new_empty({2, 2}, kBool).dtype() == kBool));
}

TEST_CASE("parts: split, replaced, turned", "[composed]") {
  const Tensor m = tensor({{1, 2, 3}, {4, 5, 6}}), v = tensor({1, 2, 3, 4, 5});
  const auto parts = tensor_split(v, 3), cut = v.tensor_split({1, 4});
  check_whole({{parts[0], {1, 2}},
               {parts[1], {3, 4}},
               {parts[2], {5}},
               {cut[0], {1}},
               {cut[1], {2, 3, 4}},
               {cut[2], {5}},
               {m.vsplit(2)[1], {4, 5, 6}},
               {m.hsplit(3)[2], {3, 6}},
               {v.hsplit(5)[4], {5}},
               {m.unsqueeze(0).dsplit(3)[1], {2, 5}},
               {m.index_copy(1, tensor({2, 0}), tensor({{7, 8}, {9, 0}})), {8, 2, 7, 0, 5, 9}},
               {m.index_fill(1, tensor({2, 0}), 7), {7, 2, 7, 7, 5, 7}},
               {select_scatter(m, tensor({7, 8}), 1, -1), {1, 2, 7, 4, 5, 8}},
               {m.slice_scatter(tensor({{7, 8, 9}}), 0, 1), {1, 2, 3, 7, 8, 9}},
               {slice_scatter(m, tensor({{7, 8}, {9, 0}}), 1, {}, {}, 2), {7, 2, 8, 9, 5, 0}},
               {diagonal_scatter(m, tensor({7, 8})), {7, 2, 3, 4, 8, 6}},
               {m.take_along_dim(tensor({5, 0})), {6, 1}},
               {m.take_along_dim(tensor({-1, 0})), {6, 1}},
               {m.take_along_dim(tensor({{-1, 0, -3}}), 1), {3, 1, 1, 6, 4, 4}},
               {m.rot90(), {3, 6, 2, 5, 1, 4}},
               {rot90(m, 2), {6, 5, 4, 3, 2, 1}},
               {rot90(m, -1), {4, 1, 5, 2, 6, 3}},
               {rot90(m, 1, {1, 0}), {4, 1, 5, 2, 6, 3}},
               {m.sum_to_size({1, 3}), {5, 7, 9}},
               {m.sum_to_size({3}), {5, 7, 9}},
               {m.sum_to_size({2, 1}), {6, 15}},
               {tensor({{0, 1}, {1, 0}}).nonzero_numpy()[1], {1, 0}},
               {m.slice(1, 1), {2, 3, 5, 6}},
               {m.clone().swapaxes_(0, 1), {1, 4, 2, 5, 3, 6}},
               {m.clone().swapdims_(0, 1), {1, 4, 2, 5, 3, 6}},
               {std::get<1>(m.aminmax()), {6}},
               {std::get<0>(m.aminmax(1)), {1, 4}},
               {m.mH(), {1, 4, 2, 5, 3, 6}},
               {m.conj(), {1, 2, 3, 4, 5, 6}},
               {m.clone().index_fill_(0, tensor({1}), 0), {1, 2, 3, 0, 0, 0}}});
  CHECK(rot90(m).shape() == Shape{3, 2});
  CHECK(
      gradient_at([](T x) { return index_copy(x, 0, argsort(x.slice(0, 0, 1)), x.slice(0, 1, 2)); },
                  {1, 5, 9}) == List{0, 2, 1});
  CHECK(gradient_at([](T x) { return take_along_dim(x, tensor({-1, 1, -1}), 0); }, {1, 5, 9}) ==
        List{0, 1, 2});
  CHECK(gradient_at([](T x) { return rot90(x.reshape({1, 3})) * x.reshape({3, 1}); }, {1, 5, 9}) ==
        List{18, 10, 2});
  CHECK_THROWS_TEXT(ArgumentError, "tensor_split: expected sections >= 1, got 0",
                    (void)tensor_split(v, 0));
  CHECK_THROWS_TEXT(ArgumentError, "hsplit: expected sections that divide 3, got 2",
                    (void)hsplit(m, 2));
  CHECK_THROWS_AS((void)dsplit(m, 1), ShapeError);
  CHECK_THROWS_AS((void)vsplit(v, 1), ShapeError);
  CHECK_THROWS_AS((void)index_copy(m, 1, tensor({0}), m), ShapeError);
  CHECK_THROWS_AS((void)rot90(m, 1, {0, 0}), ArgumentError);
  CHECK_THROWS_AS((void)m.sum_to_size({2}), ShapeError);
  CHECK_THROWS_AS((void)tensor_split(v, 2, 1), IndexError);
}

}  // namespace braid::test::on_device
