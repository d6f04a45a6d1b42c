#include <braid/core/ops/join.hpp>

#include "op_cases.hpp"
#include "op_errors.hpp"
#include "reference/index.hpp"
#include "reference/views.hpp"

namespace braid::test {
namespace {

using Kind = Input::Kind;
using T = const Tensor&;
using Tensors = const std::vector<Tensor>&;
using Arrays = const std::vector<Array>&;

OpCase join_case(const char* op, const std::string& variant, std::vector<Input> inputs) {
  OpCase c;
  c.op = op;
  c.variant = variant;
  c.inputs = std::move(inputs);
  c.dtypes = all_dtypes();
  return c;
}

std::vector<std::int64_t> integers(const Array& a) {
  std::vector<std::int64_t> list;
  for (const double v : a.data) list.push_back(static_cast<std::int64_t>(v));
  return list;
}

}  // namespace

void add_join_cases(std::vector<OpCase>& list) {
  struct Cat {
    std::int64_t dim;
    std::vector<Sizes> shapes;
  };
  for (const Cat& k : std::vector<Cat>{{0, {{2, 3}, {1, 3}, {3, 3}}},
                                       {1, {{2, 1}, {2, 3}}},
                                       {-1, {{2, 2, 2}, {2, 2, 1}}},
                                       {1, {{2, 1, 2}, {2, 2, 2}}},
                                       {0, {{3}}},
                                       {0, {{0, 2}, {2, 2}, {0, 2}}}}) {
    std::vector<Input> inputs;
    for (const Sizes& s : k.shapes) inputs.push_back({s});
    OpCase c = join_case(
        "cat", str("dim ", k.dim, " of ", inputs.size(), ", the first ", Shape(k.shapes[0])),
        inputs);
    const std::int64_t dim = k.dim;
    c.call = function_of([dim](Tensors t) { return cat(t, dim); });
    c.torch = str("torch.cat(x, ", dim, ")");
    c.expected = [dim](Arrays a) { return std::vector<Array>{reference::cat(a, dim)}; };
    list.push_back(c);
  }
  for (const std::int64_t dim : {0, 1, 2, -1, -3}) {
    OpCase c = join_case("stack", str("dim ", dim), {{{2, 3}}, {{2, 3}}});
    c.call = function_of([dim](Tensors t) { return stack(t, dim); });
    c.torch = str("torch.stack(x, ", dim, ")");
    c.expected = [dim](Arrays a) { return std::vector<Array>{reference::stack(a, dim)}; };
    list.push_back(c);
  }
  {
    OpCase c = join_case("stack", "numbers", {{{}}, {{}}, {{}}});
    c.call = function_of([](T x, T y, T z) { return stack({x, y, z}); });
    c.torch = "torch.stack(x)";
    c.expected = [](Arrays a) { return std::vector<Array>{reference::stack(a, 0)}; };
    list.push_back(c);
  }
  for (const std::int64_t dim : {0, 1, -1}) {
    OpCase c = join_case("split", str("dim ", dim), {{{4, 4}}});
    c.call = function_of([dim](T x) { return split(x, std::vector<std::int64_t>{1, 0, 3}, dim); });
    c.torch = str("torch.split(x0, [1, 0, 3], ", dim, ")");
    c.expected = [dim](Arrays a) {
      return std::vector<Array>{reference::slice(a[0], dim, 0, 1),
                                reference::slice(a[0], dim, 1, 1),
                                reference::slice(a[0], dim, 1, 4)};
    };
    list.push_back(c);
  }
  for (const std::int64_t dim : {0, 1, -1}) {
    OpCase c =
        join_case("index_select", str("dim ", dim), {{{3, 3, 2}}, {{5}, Kind::index, 2, false}});
    c.call = function_of([dim](T x, T i) { return index_select(x, dim, i); });
    c.torch = str("torch.index_select(x0, ", dim, ", x1)");
    c.expected = [dim](Arrays a) {
      return std::vector<Array>{reference::index_select(a[0], dim, integers(a[1]))};
    };
    list.push_back(c);
  }
  for (const Sizes& shape : std::vector<Sizes>{{4}, {2, 3}, {}}) {
    OpCase c = join_case("embedding", str("index of rank ", shape.size()),
                         {{{3, 2}}, {shape, Kind::index, 3, false}});
    c.call = function_of([](T w, T i) { return embedding(w, i); });
    c.torch = "F.embedding(x1, x0)";
    c.expected = expecting(reference::embedding);
    list.push_back(c);
    c = join_case("operator[]", str("index of rank ", shape.size()),
                  {{{3, 2, 2}}, {shape, Kind::index, 3}});
    c.call = function_of([](T w, T i) { return w[i]; });
    c.torch = "x0[x1]";
    c.expected = expecting(reference::embedding);
    list.push_back(c);
  }
  on_device::add_join_errors(list);
}

}  // namespace braid::test
