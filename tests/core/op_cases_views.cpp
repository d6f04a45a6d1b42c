#include "op_cases.hpp"
#include "reference/views.hpp"

namespace braid::test {
namespace {

using T = const Tensor&;

template <class F, class R>
void add_view(std::vector<OpCase>& list, const char* op, const char* variant, Sizes shape, F f, R r) {
  OpCase c;
  c.op = op;
  c.variant = variant;
  c.inputs = {{std::move(shape)}};
  c.call = function_of(f);
  c.expected = expecting([r](const Array& a) { return Array(r(a)); });
  c.dtypes = all_dtypes();
  list.push_back(c);
}

}  // namespace

void add_view_cases(std::vector<OpCase>& list) {
  using reference::reshape;
  add_view(
      list, "select", "dim 0", {3, 2}, [](T x) { return x[1]; }, [](const Array& a) { return reference::select(a, 0, 1); });
  add_view(
      list, "select", "negative", {2, 3, 2}, [](T x) { return x.select(-2, -1); }, [](const Array& a) { return reference::select(a, -2, -1); });
  add_view(
      list, "select", "to rank 0", {3}, [](T x) { return x.select(0, 2); }, [](const Array& a) { return reference::select(a, 0, 2); });
  add_view(
      list, "slice", "", {4, 3}, [](T x) { return x.slice(0, 1, 3); }, [](const Array& a) { return reference::slice(a, 0, 1, 3); });
  add_view(
      list, "slice", "step 2", {2, 5}, [](T x) { return x.slice(1, 1, 5, 2); }, [](const Array& a) { return reference::slice(a, 1, 1, 5, 2); });
  add_view(
      list, "slice", "negative bounds", {5, 2}, [](T x) { return x.slice(-2, -4, -1, 3); }, [](const Array& a) { return reference::slice(a, -2, -4, -1, 3); });
  add_view(
      list, "slice", "clamped", {3, 2}, [](T x) { return x.slice(0, -100, 100); }, [](const Array& a) { return a; });
  add_view(
      list, "slice", "empty", {3, 2}, [](T x) { return x.slice(0, 2, 1); }, [](const Array& a) { return reference::slice(a, 0, 2, 1); });
  add_view(
      list, "narrow", "", {2, 4}, [](T x) { return x.narrow(1, 1, 2); }, [](const Array& a) { return reference::slice(a, 1, 1, 3); });
  add_view(
      list, "narrow", "of nothing", {2, 4}, [](T x) { return x.narrow(1, 4, 0); }, [](const Array& a) { return reference::slice(a, 1, 4, 4); });
  add_view(
      list, "transpose", "", {2, 3}, [](T x) { return x.transpose(0, 1); }, [](const Array& a) { return reference::transpose(a, 0, 1); });
  add_view(
      list, "transpose", "negative", {2, 3, 2}, [](T x) { return x.transpose(-1, 0); }, [](const Array& a) { return reference::transpose(a, -1, 0); });
  add_view(
      list, "transpose", "one dim", {3}, [](T x) { return x.transpose(0, 0); }, [](const Array& a) { return a; });
  add_view(
      list, "t", "matrix", {2, 3}, [](T x) { return x.t(); }, [](const Array& a) { return reference::transpose(a, 0, 1); });
  add_view(
      list, "t", "vector", {3}, [](T x) { return x.t(); }, [](const Array& a) { return a; });
  add_view(
      list, "permute", "", {2, 3, 2},
      [](T x) {
        return x.permute({2, 0, 1});
      },
      [](const Array& a) {
        return reference::permute(a, {2, 0, 1});
      });
  add_view(
      list, "permute", "negative", {2, 3, 2},
      [](T x) {
        return x.permute({-1, 1, 0});
      },
      [](const Array& a) {
        return reference::permute(a, {2, 1, 0});
      });
  add_view(
      list, "reshape", "", {2, 6},
      [](T x) {
        return x.reshape({3, 4});
      },
      [](const Array& a) {
        return reshape(a, {3, 4});
      });
  add_view(
      list, "reshape", "-1", {2, 3, 2},
      [](T x) {
        return x.reshape({2, -1});
      },
      [](const Array& a) {
        return reshape(a, {2, 6});
      });
  add_view(
      list, "reshape", "to rank 0", {1, 1}, [](T x) { return x.reshape({}); }, [](const Array& a) { return reshape(a, {}); });
  add_view(
      list, "reshape", "size 1 dims", {2, 3},
      [](T x) {
        return x.reshape({1, 2, 1, 3, 1});
      },
      [](const Array& a) {
        return reshape(a, {1, 2, 1, 3, 1});
      });
  add_view(
      list, "reshape", "after a transpose", {2, 3},
      [](T x) {
        return x.t().reshape({2, 3});
      },
      [](const Array& a) {
        return reshape(reference::transpose(a, 0, 1), {2, 3});
      });
  add_view(
      list, "view", "of a dense copy", {2, 6},
      [](T x) {
        return x.contiguous().view({4, -1});
      },
      [](const Array& a) {
        return reshape(a, {4, 3});
      });
  add_view(
      list, "flatten", "all", {2, 3, 2}, [](T x) { return x.flatten(); }, [](const Array& a) { return reshape(a, {12}); });
  add_view(
      list, "flatten", "from 1", {2, 3, 2}, [](T x) { return x.flatten(1); },
      [](const Array& a) {
        return reshape(a, {2, 6});
      });
  add_view(
      list, "flatten", "0 to 1", {2, 3, 2}, [](T x) { return x.flatten(0, 1); },
      [](const Array& a) {
        return reshape(a, {6, 2});
      });
  add_view(
      list, "flatten", "rank 0", {}, [](T x) { return x.flatten(); }, [](const Array& a) { return reshape(a, {1}); });
  add_view(
      list, "squeeze", "all", {1, 3, 1, 2}, [](T x) { return x.squeeze(); },
      [](const Array& a) {
        return reshape(a, {3, 2});
      });
  add_view(
      list, "squeeze", "dim", {1, 3, 1}, [](T x) { return x.squeeze(-1); },
      [](const Array& a) {
        return reshape(a, {1, 3});
      });
  add_view(
      list, "squeeze", "dim of another size", {1, 3}, [](T x) { return x.squeeze(1); }, [](const Array& a) { return a; });
  add_view(
      list, "unsqueeze", "front", {2, 3}, [](T x) { return x.unsqueeze(0); },
      [](const Array& a) {
        return reshape(a, {1, 2, 3});
      });
  add_view(
      list, "unsqueeze", "back", {2, 3}, [](T x) { return x.unsqueeze(-1); },
      [](const Array& a) {
        return reshape(a, {2, 3, 1});
      });
  add_view(
      list, "expand", "", {3, 1},
      [](T x) {
        return x.expand({2, 3, 4});
      },
      [](const Array& a) {
        return reference::expand(a, {2, 3, 4});
      });
  add_view(
      list, "expand", "-1", {2, 1},
      [](T x) {
        return x.expand({-1, 3});
      },
      [](const Array& a) {
        return reference::expand(a, {2, 3});
      });
  add_view(
      list, "expand", "rank 0", {},
      [](T x) {
        return x.expand({2, 2});
      },
      [](const Array& a) {
        return reference::expand(a, {2, 2});
      });
  add_view(
      list, "clone", "", {2, 3}, [](T x) { return x.clone(); }, [](const Array& a) { return a; });
  add_view(
      list, "contiguous", "", {2, 3}, [](T x) { return x.contiguous(); }, [](const Array& a) { return a; });
  add_view(
      list, "to", "a forced copy", {2, 3}, [](T x) { return x.to(x.dtype(), true); }, [](const Array& a) { return a; });
}

}  // namespace braid::test
