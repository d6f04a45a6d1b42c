#include "op_cases.hpp"
#include "op_errors.hpp"
#include "reference/views.hpp"

namespace braid::test {
namespace {

using T = const Tensor&;

template <class F, class R>
void add_view(std::vector<OpCase>& list, const char* op, const char* variant, const char* torch,
              Sizes shape, F f, R r) {
  OpCase c;
  c.op = op;
  c.variant = variant;
  c.inputs = {{std::move(shape)}};
  c.call = function_of(f);
  c.expected = expecting([r](const Array& a) { return Array(r(a)); });
  c.dtypes = all_dtypes();
  c.torch = torch;
  list.push_back(c);
}

}  // namespace

void add_view_cases(std::vector<OpCase>& list) {
  using reference::reshape;
  add_view(
      list, "select", "dim 0", "x0[1]", {3, 2}, [](T x) { return x[1]; },
      [](const Array& a) { return reference::select(a, 0, 1); });
  add_view(
      list, "select", "negative", "x0.select(-2, -1)", {2, 3, 2},
      [](T x) { return x.select(-2, -1); },
      [](const Array& a) { return reference::select(a, -2, -1); });
  add_view(
      list, "select", "to rank 0", "x0.select(0, 2)", {3}, [](T x) { return x.select(0, 2); },
      [](const Array& a) { return reference::select(a, 0, 2); });
  add_view(
      list, "slice", "", "x0[1:3]", {4, 3}, [](T x) { return x.slice(0, 1, 3); },
      [](const Array& a) { return reference::slice(a, 0, 1, 3); });
  add_view(
      list, "slice", "step 2", "x0[:, 1:5:2]", {2, 5}, [](T x) { return x.slice(1, 1, 5, 2); },
      [](const Array& a) { return reference::slice(a, 1, 1, 5, 2); });
  add_view(
      list, "slice", "negative bounds", "x0[-4:-1:3]", {5, 2},
      [](T x) { return x.slice(-2, -4, -1, 3); },
      [](const Array& a) { return reference::slice(a, -2, -4, -1, 3); });
  add_view(
      list, "slice", "clamped", "x0[-100:100]", {3, 2}, [](T x) { return x.slice(0, -100, 100); },
      [](const Array& a) { return a; });
  add_view(
      list, "slice", "empty", "x0[2:1]", {3, 2}, [](T x) { return x.slice(0, 2, 1); },
      [](const Array& a) { return reference::slice(a, 0, 2, 1); });
  add_view(
      list, "narrow", "", "x0.narrow(1, 1, 2)", {2, 4}, [](T x) { return x.narrow(1, 1, 2); },
      [](const Array& a) { return reference::slice(a, 1, 1, 3); });
  add_view(
      list, "narrow", "of nothing", "x0.narrow(1, 4, 0)", {2, 4},
      [](T x) { return x.narrow(1, 4, 0); },
      [](const Array& a) { return reference::slice(a, 1, 4, 4); });
  add_view(
      list, "transpose", "", "x0.transpose(0, 1)", {2, 3}, [](T x) { return x.transpose(0, 1); },
      [](const Array& a) { return reference::transpose(a, 0, 1); });
  add_view(
      list, "transpose", "negative", "x0.transpose(-1, 0)", {2, 3, 2},
      [](T x) { return x.transpose(-1, 0); },
      [](const Array& a) { return reference::transpose(a, -1, 0); });
  add_view(
      list, "transpose", "one dim", "x0.transpose(0, 0)", {3},
      [](T x) { return x.transpose(0, 0); }, [](const Array& a) { return a; });
  add_view(
      list, "t", "matrix", "x0.t()", {2, 3}, [](T x) { return x.t(); },
      [](const Array& a) { return reference::transpose(a, 0, 1); });
  add_view(
      list, "t", "vector", "x0.t()", {3}, [](T x) { return x.t(); },
      [](const Array& a) { return a; });
  add_view(
      list, "permute", "", "x0.permute(2, 0, 1)", {2, 3, 2},
      [](T x) { return x.permute({2, 0, 1}); },
      [](const Array& a) { return reference::permute(a, {2, 0, 1}); });
  add_view(
      list, "permute", "negative", "x0.permute(-1, 1, 0)", {2, 3, 2},
      [](T x) { return x.permute({-1, 1, 0}); },
      [](const Array& a) { return reference::permute(a, {2, 1, 0}); });
  add_view(
      list, "reshape", "", "x0.reshape(3, 4)", {2, 6}, [](T x) { return x.reshape({3, 4}); },
      [](const Array& a) { return reshape(a, {3, 4}); });
  add_view(
      list, "reshape", "-1", "x0.reshape(2, -1)", {2, 3, 2}, [](T x) { return x.reshape({2, -1}); },
      [](const Array& a) { return reshape(a, {2, 6}); });
  add_view(
      list, "reshape", "to rank 0", "x0.reshape(())", {1, 1}, [](T x) { return x.reshape({}); },
      [](const Array& a) { return reshape(a, {}); });
  add_view(
      list, "reshape", "size 1 dims", "x0.reshape(1, 2, 1, 3, 1)", {2, 3},
      [](T x) { return x.reshape({1, 2, 1, 3, 1}); },
      [](const Array& a) { return reshape(a, {1, 2, 1, 3, 1}); });
  add_view(
      list, "reshape", "after a transpose", "x0.t().reshape(2, 3)", {2, 3},
      [](T x) { return x.t().reshape({2, 3}); },
      [](const Array& a) { return reshape(reference::transpose(a, 0, 1), {2, 3}); });
  add_view(
      list, "view", "of a dense copy", "x0.contiguous().view(4, -1)", {2, 6},
      [](T x) { return x.contiguous().view({4, -1}); },
      [](const Array& a) { return reshape(a, {4, 3}); });
  add_view(
      list, "flatten", "all", "x0.flatten()", {2, 3, 2}, [](T x) { return x.flatten(); },
      [](const Array& a) { return reshape(a, {12}); });
  add_view(
      list, "flatten", "from 1", "x0.flatten(1)", {2, 3, 2}, [](T x) { return x.flatten(1); },
      [](const Array& a) { return reshape(a, {2, 6}); });
  add_view(
      list, "flatten", "0 to 1", "x0.flatten(0, 1)", {2, 3, 2}, [](T x) { return x.flatten(0, 1); },
      [](const Array& a) { return reshape(a, {6, 2}); });
  add_view(
      list, "flatten", "rank 0", "x0.flatten()", {}, [](T x) { return x.flatten(); },
      [](const Array& a) { return reshape(a, {1}); });
  add_view(
      list, "squeeze", "all", "x0.squeeze()", {1, 3, 1, 2}, [](T x) { return x.squeeze(); },
      [](const Array& a) { return reshape(a, {3, 2}); });
  add_view(
      list, "squeeze", "dim", "x0.squeeze(-1)", {1, 3, 1}, [](T x) { return x.squeeze(-1); },
      [](const Array& a) { return reshape(a, {1, 3}); });
  add_view(
      list, "squeeze", "dim of another size", "x0.squeeze(1)", {1, 3},
      [](T x) { return x.squeeze(1); }, [](const Array& a) { return a; });
  add_view(
      list, "unsqueeze", "front", "x0.unsqueeze(0)", {2, 3}, [](T x) { return x.unsqueeze(0); },
      [](const Array& a) { return reshape(a, {1, 2, 3}); });
  add_view(
      list, "unsqueeze", "back", "x0.unsqueeze(-1)", {2, 3}, [](T x) { return x.unsqueeze(-1); },
      [](const Array& a) { return reshape(a, {2, 3, 1}); });
  add_view(
      list, "expand", "", "x0.expand(2, 3, 4)", {3, 1}, [](T x) { return x.expand({2, 3, 4}); },
      [](const Array& a) { return reference::expand(a, {2, 3, 4}); });
  add_view(
      list, "expand", "-1", "x0.expand(-1, 3)", {2, 1}, [](T x) { return x.expand({-1, 3}); },
      [](const Array& a) { return reference::expand(a, {2, 3}); });
  add_view(
      list, "expand", "rank 0", "x0.expand(2, 2)", {}, [](T x) { return x.expand({2, 2}); },
      [](const Array& a) { return reference::expand(a, {2, 2}); });
  add_view(
      list, "clone", "", "x0.clone()", {2, 3}, [](T x) { return x.clone(); },
      [](const Array& a) { return a; });
  add_view(
      list, "contiguous", "", "x0.contiguous()", {2, 3}, [](T x) { return x.contiguous(); },
      [](const Array& a) { return a; });
  add_view(
      list, "to", "a forced copy", "x0.to(x0.dtype, copy=True)", {2, 3},
      [](T x) { return x.to(x.dtype(), true); }, [](const Array& a) { return a; });
  on_device::add_view_errors(list);
}

}  // namespace braid::test
