// Programs that change views, and tensors with views, in place where gradients are recorded. Their
// values and gradients are PyTorch's.
#include <string_view>

#include "shorthand.hpp"
#include "support/gradcheck.hpp"

namespace braid::test::on_device {
namespace {

Tensor rows(T w, T u) {
  const Tensor o = zeros({2, 3}, {.dtype = DType::float64});
  o[0].copy_(u * 2), o[1].copy_(w[1]);
  return o;
}
Tensor base_changed(T w, T) {
  const Tensor y = w * 1, v = y[0];
  y.add_(1);
  return v * y;
}
Tensor slice_times(T w, T u) {
  const Tensor y = w * 2;
  y.narrow(0, 0, 1).mul_(u);
  return y;
}
Tensor base_times(T w, T u) {
  const Tensor y = w * 2, v = y[1];
  y.mul_(u);
  return v * v;
}
Tensor view_of_view(T w, T u) {
  const Tensor y = w * 2;
  y.t()[0].mul_(u.narrow(0, 0, 2));
  return y;
}
Tensor crossing(T w, T) {
  const Tensor y = w * 1, a = y[0], b = y.select(1, 0);
  a.mul_(3);
  b.mul_(a.narrow(0, 0, 2).clone());
  return a * y;
}
Tensor two_of_one(T w, T u) {
  const Tensor y = w * 1, a = y[0], b = y[0];
  a.mul_(u);
  return a * b + y;
}
Tensor expanded(T w, T u) {
  const Tensor y = u * 1, e = y.expand({2, 3});
  y.mul_(3);
  return e * w;
}
Tensor row_of_expanded(T, T u) {
  const Tensor y = u * 2, e = y.expand({2, 3})[1];
  y.mul_(y.clone());
  return e;
}
Tensor fill_row(T w, T u) {
  const Tensor y = w * u;
  y[0].fill_(5);
  return y;
}
Tensor zero_columns(T w, T u) {
  const Tensor y = w * u;
  y.narrow(1, 1, 2).zero_();
  return y * w;
}
Tensor div_row(T w, T u) {
  const Tensor y = w * 2;
  y[0].div_(u);
  return y;
}
Tensor relu_column(T w, T u) {
  const Tensor y = w - 3;
  y.select(1, 1).relu_();
  return y * u;
}
Tensor clamp_columns(T w, T u) {
  const Tensor y = w * 1;
  y.narrow(1, 0, 2).clamp_(2.5, 4.5);
  return y * u;
}
Tensor masked_row(T w, T u) {
  const Tensor y = w * u;
  y[1].masked_fill_(tensor({true, false, true}), 7);
  return y;
}
Tensor whole_view(T w, T u) {
  const Tensor y = w * u;
  y.view({6}).mul_(2);
  return y;
}
Tensor whole_copy(T w, T u) {
  const Tensor y = w * 3;
  y.view({3, 2}).copy_(w.t() * u.unsqueeze(1));
  return y * w;
}
Tensor loop(T w, T u) {
  const Tensor o = zeros({4, 3}, {.dtype = DType::float64});
  Tensor h = u;
  for (int i = 0; i < 4; ++i) {
    h = h * w[i % 2];
    o[i].copy_(h);
  }
  return o;
}
Tensor transposed_buffer(T w, T u) {
  const Tensor o = zeros({3, 2}, {.dtype = DType::float64}).t();
  o[0].copy_(u), o[1].copy_(u * u);
  o.select(1, 1).mul_(w.select(1, 0));
  return o;
}
Tensor on_diagonal(T w, T u) {
  const Tensor o = zeros({3, 3}, {.dtype = DType::float64});
  diagonal(o).copy_(u);
  return matmul(w, o);
}
Tensor add_alpha(T w, T u) {
  const Tensor y = w * 1;
  y[0].add_(u, 2);
  y.sub_(w * w);
  return y;
}
Tensor detached_transposed(T w, T u) {
  const Tensor y = w.detach().clone().t().detach();
  y[0].copy_(w.select(1, 1) * 2);
  y.select(1, 1).mul_(u);
  return y;
}
Tensor detached_part(T w, T u) {
  const Tensor y = w.detach().clone().slice(0, 1, 2).detach();
  y[0].narrow(0, 1, 2).copy_(w[0].narrow(0, 0, 2) * u[0]);
  return y;
}
Tensor detached_columns(T w, T u) {
  const Tensor y = w.detach().clone().slice(1, 1, 3).detach();
  y.select(1, 1).copy_(w.select(1, 0) * u[0]);
  return y * u[1];
}
Tensor strided_base(T w, T u) {
  const Tensor y = w.detach().clone().t().detach(), v = y[2];
  y.copy_(w.t() * 2);
  y[1].mul_(u.narrow(0, 1, 2));
  return y * v;
}
Tensor copy_own_row(T w, T u) {
  const Tensor y = w * u;
  y[0].copy_(y[1]);
  return y;
}
Tensor add_own_row(T w, T u) {
  const Tensor y = w * u;
  y[0].add_(y[1]);
  y[1].mul_(y[0].clone());
  return y;
}
Tensor permuted(T w, T) {
  const Tensor y =
      w.reshape({1, 2, 3}) * tensor({1.0, 2.0}, {.dtype = DType::float64}).reshape({2, 1, 1});
  y.permute({2, 0, 1})[1].mul_(w[0][1]);
  return y;
}
Tensor steps(T w, T u) {
  const Tensor y = w.reshape({6}) * 2;
  y.slice(0, 0, 6, 2).mul_(u);
  y.slice(0, 1, 6, 2).add_(u);
  return y;
}
Tensor unsqueezed(T w, T u) {
  const Tensor y = u * 1;
  y.unsqueeze(0).mul_(w.narrow(0, 0, 1));
  return y;
}
Tensor no_grad_between(T w, T) {
  const Tensor y = w * 1, v = y[0];
  {
    const NoGrad guard;
    y.add_(1);
  }
  return v * v;
}
Tensor base_then_view(T w, T u) {
  const Tensor y = w * 1, v = y[0];
  y.mul_(2);
  v.mul_(u);
  return y + v;
}
Tensor nested(T w, T u) {
  const Tensor z = zeros({2, 2, 3}, {.dtype = DType::float64});
  z[0].copy_(w), z[1].copy_(w * 2);
  z[0][1].mul_(u);
  z.select(2, 0).zero_();
  return z;
}
Tensor constant_base(T, T u) {
  const Tensor x = tensor({{1.0, 2, 3}, {4, 5, 6}}, {.dtype = DType::float64}), a = x[0];
  x.mul_(u);
  return a * a;
}
Tensor same_view_again(T w, T u) {
  const Tensor y = w * 1, v = y[0];
  for (int i = 0; i < 3; ++i) v.mul_(u);
  return y + v;
}
Tensor numbers(T w, T u) {
  const Tensor y = w * u;
  y[0].mul_(3), y[1].sub_(1), y[0].div_(2), y[1].add_(4);
  return y;
}
Tensor flattened(T w, T u) {
  const Tensor y = w * 1;
  y.flatten().slice(0, 1, 4).mul_(u);
  return y;
}
Tensor elements(T w, T u) {
  const Tensor o = zeros({2, 3}, {.dtype = DType::float64});
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) o[i][j].copy_(w[i][j] * u[j]);
  return o;
}
Tensor empty_part(T w, T u) {
  const Tensor y = w * u;
  y.slice(0, 1, 1).mul_(u);
  return y;
}
Tensor stale_view_changed(T w, T u) {
  const Tensor y = w * 1, a = y[0], b = y.select(1, 1);
  b.mul_(4);
  a.mul_(u);
  b.add_(a.narrow(0, 0, 2).clone());
  return b * y.select(1, 0);
}
Tensor views_of_changed_view(T w, T u) {
  const Tensor y = w * 1, v = y[0], e = v[1];
  v.mul_(u);
  e.mul_(v[0].clone());
  return y * e;
}

struct Program {
  const char* name;
  Tensor (*run)(T w, T u);
  List value, dw, du;  // for loss = sum(value * [1, 2, 3, …]); an empty list is no gradient
};

const std::vector<Program>& programs() {
  static const std::vector<Program> list{
      {"rows", rows, {1, -2, 4, 4, 5, 6}, {0, 0, 0, 4, 5, 6}, {2, 4, 6}},
      {"base changed", base_changed, {4, 9, 16, 10, 18, 28}, {24, 42, 66, 8, 15, 24}, {}},
      {"slice times", slice_times, {1, -4, 12, 8, 10, 12}, {1, -4, 12, 8, 10, 12}, {2, 8, 18}},
      {"base times", base_times, {16, 100, 576}, {0, 0, 0, 8, 80, 576}, {64, -400, 1728}},
      {"view of view", view_of_view, {1, 4, 6, -8, 10, 12}, {1, 4, 6, -8, 10, 12}, {2, 32, 0}},
      {"crossing", crossing, {81, 36, 81, 216, 30, 54}, {2052, 579, 270, 216, 30, 54}, {}},
      {"two of one", two_of_one, {0.75, 2, 42, 4.25, 9, 42}, {3, 26, 222, 4, 5, 6}, {6, -52, 333}},
      {"expanded", expanded, {1.5, -6, 18, 6, -15, 36}, {1.5, -6, 18, 6, -15, 36}, {51, 87, 135}},
      {"row of expanded", row_of_expanded, {1, 4, 16}, {}, {4, -16, 48}},
      {"fill row", fill_row, {5, 5, 5, 2, -5, 12}, {0, 0, 0, 2, -5, 12}, {16, 25, 36}},
      {"zero columns", zero_columns, {0.5, 0, 0, 8, 0, 0}, {1, 0, 0, 16, 0, 0}, {65, 0, 0}},
      {"div row", div_row, {4, -4, 3, 8, 10, 12}, {4, -4, 3, 8, 10, 12}, {-8, -8, -4.5}},
      {"relu column", relu_column, {-1, 0, 0, 0.5, -2, 6}, {0.5, 0, 6, 2, -5, 12}, {2, 10, 18}},
      {"clamp columns",
       clamp_columns,
       {1.25, -2.5, 6, 2, -4.5, 12},
       {0, 0, 6, 2, 0, 12},
       {18.5, 27.5, 45}},
      {"masked row", masked_row, {0.5, -2, 6, 7, -5, 7}, {0.5, -2, 6, 0, -5, 0}, {1, 29, 9}},
      {"whole view", whole_view, {1, -4, 12, 4, -10, 24}, {1, -4, 12, 4, -10, 24}, {34, 58, 90}},
      {"whole copy",
       whole_copy,
       {0.5, 4, -6, -20, 30, 72},
       {1, -5, 44, -18, 14, 144},
       {17, 98, 291}},
      {"loop",
       loop,
       {0.5, -2, 6, 2, -10, 36, 2, -20, 108, 8, -100, 648},
       {196.5, -1287, 5910, 45.5, -482, 2790},
       {205, 1314, 4491}},
      {"transposed buffer",
       transposed_buffer,
       {0.5, -1, 2, 0.25, 4, 4},
       {-2, 0, 0, 5, 0, 0},
       {5, -38, 27}},
      {"on diagonal", on_diagonal, {0.5, -2, 6, 2, -5, 12}, {0.5, -2, 6, 2, -5, 12}, {17, 29, 45}},
      {"add alpha", add_alpha, {1, -4, -2, -12, -20, -30}, {-1, -6, -15, -28, -45, -66}, {2, 4, 6}},
      {"detached transposed",
       detached_transposed,
       {4, 5, 2, -5, 3, 12},
       {0, 2, 0, 0, 2, 0},
       {20, 20, 36}},
      {"detached part", detached_part, {4, 0.5, 1}, {1, 1.5, 0, 0, 0, 0}, {8, 0, 0}},
      {"detached columns",
       detached_columns,
       {-2, -0.5, -5, -2},
       {-1, 0, 0, -2, 0, 0},
       {-18, 26, 0}},
      {"strided base",
       strided_base,
       {12, 96, -24, 240, 36, 144},
       {12, -36, 100, 48, 192, 480},
       {0, 72, 480}},
      {"copy own row", copy_own_row, {2, -5, 12, 2, -5, 12}, {0, 0, 0, 2.5, -7, 18}, {20, 35, 54}},
      {"add own row",
       add_own_row,
       {2.5, -7, 18, 5, 35, 216},
       {4.5, 23, 150, 9.5, 58, 366},
       {85, -336, 1323}},
      {"permuted",
       permuted,
       {1, 4, 3, 4, 10, 6, 2, 8, 6, 8, 20, 12},
       {15, 207, 21, 24, 54, 30},
       {}},
      {"steps", steps, {1, 4.5, -6, 7, 20, 14}, {1, 4, -6, 8, 20, 12}, {4, 22, 56}},
      {"unsqueezed", unsqueezed, {0.5, -2, 6}, {0.5, -2, 6, 0, 0, 0}, {1, 4, 9}},
      {"no grad between", no_grad_between, {4, 9, 16}, {4, 12, 24, 0, 0, 0}, {}},
      {"base then view",
       base_then_view,
       {2, -8, 24, 9, 6, 24},
       {6, -18, 48, 8, 10, 12},
       {12, 36, 72}},
      {"nested",
       nested,
       {0, 2, 3, 0, -5, 12, 0, 4, 6, 0, 10, 12},
       {0, 18, 21, 0, 17, 36},
       {0, 25, 36}},
      {"constant base", constant_base, {0.25, 4, 36}, {}, {1, -16, 108}},
      {"same view again",
       same_view_again,
       {0.25, -4, 48, 4.125, 3, 30},
       {0.75, -9, 96, 4, 5, 6},
       {4.5, 54, 432}},
      {"numbers", numbers, {0.75, -3, 9, 5, -2, 15}, {0.75, -3, 9, 2, -5, 12}, {17.5, 31, 49.5}},
      {"flattened", flattened, {1, 1, -3, 8, 5, 6}, {1, 1, -3, 8, 5, 6}, {4, 9, 16}},
      {"elements", elements, {0.5, -2, 6, 2, -5, 12}, {0.5, -2, 6, 2, -5, 12}, {17, 29, 45}},
      {"empty part", empty_part, {0.5, -2, 6, 2, -5, 12}, {0.5, -2, 6, 2, -5, 12}, {17, 29, 45}},
      {"stale view changed",
       stale_view_changed,
       {-3.75, 48},
       {-3.5, -34, 0, 24, 32, 0},
       {-7, 68, 0}},
      {"views of changed view",
       views_of_changed_view,
       {-0.5, 1, -6, -4, -5, -6},
       {-92, -45.75, -6, -4, -5, -6},
       {-184, 91.5, -9}},
  };
  return list;
}

Tensor w_leaf() {
  return tensor({{1.0, 2, 3}, {4, 5, 6}}, {.dtype = DType::float64}).requires_grad_();
}
Tensor u_leaf() { return tensor({0.5, -1.0, 2.0}, {.dtype = DType::float64}).requires_grad_(); }

}  // namespace

TEST_CASE("in place through views: values and gradients are PyTorch's", "[inplace][gradients]") {
  for (const Program& p : programs()) {
    INFO(p.name);
    const Tensor w = w_leaf(), u = u_leaf(), y = p.run(w, u);
    CHECK(list(y) == p.value);
    const Tensor factors = arange(y.numel(), {.dtype = DType::float64}).reshape(y.shape()) + 1;
    (y * factors).sum().backward();
    CHECK(list(w.grad()) == p.dw);
    CHECK(list(u.grad()) == p.du);
    // gradients of gradients too; some programs hide a dependence on w
    if (std::string_view(p.name).find("detached") == std::string_view::npos)
      CHECK_GRAD(p.run, w, u);
  }
}

}  // namespace braid::test::on_device
