// Elements by index and by truth values.
#include <limits>

#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/index.hpp>
#include <braid/core/ops/reduce.hpp>

#include "op_cases.hpp"
#include "reference/gather.hpp"
#include "support/on_device.hpp"

namespace braid::test {
namespace {

using Kind = Input::Kind;
using T = const Tensor&;
using Arrays = const std::vector<Array>&;

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

Tensor ones_here(const Shape& shape, DType dtype = DType::float32) {
  return on_device::ones(shape, {.dtype = dtype});
}
Tensor indices(const Literal& numbers) { return on_device::tensor(numbers); }

/// f of the op's tensor at place `which` replaced by what is wrong; the result is waited for, as
/// CUDA finds wrong indices late.
struct Refused {
  OpCase& c;
  void operator()(const char* argument, std::function<Tensor()> call, const char* type,
                  const std::string& text) const {
    c.errors.push_back({argument, [call] { (void)awaited(call()); }, type, text});
  }
};

/// What any op with x, dim and an index refuses. f(x, dim, index).
template <class F> void refuse_index(OpCase& c, F f) {
  const Refused refused{c};
  const std::string op = c.op;
  for (const std::int64_t dim : {std::int64_t{2}, std::int64_t{-3}, kLargest})
    refused(
        "dim", [=] { return f(ones_here({2, 3}), dim, indices({{0, 1}})); }, "IndexError",
        str(op, ": expected .*got ", dim));
  for (const DType t : {DType::int32, DType::float32, DType::bool_})
    refused(
        "index", [=] { return f(ones_here({2, 3}), 1, indices({{0, 1}}).to(t)); }, "DTypeError",
        str(op, ": expected an int64 index, got ", t));
  for (const std::int64_t wrong : {std::int64_t{3}, std::int64_t{-1}, kLargest})
    refused(
        "index",
        [=] {
          return f(ones_here({2, 3}), 1,
                   braid::full({1, 2}, 0, {.device = here(), .dtype = DType::int64})
                       .add_(Tensor(indices(wrong))));
        },
        "IndexError", str(op, ": expected indices in .0, 3., got ", wrong));
  refused("x", [=] { return f(Tensor(), 1, indices({{0, 1}})); }, "ArgumentError", "undefined");
  refused(
      "x", [=] { return f(ones_here({3}), 0, indices({{0, 1}})); }, "ShapeError",
      op + ": expected an index of rank 1");
  refused(
      "x", [=] { return f(ones_here({2, 0}), 1, indices({{0, 1}})); }, "IndexError",
      op + ": expected indices in .0, 0.");
}

struct Along {
  const char* variant;
  Sizes x, index;
  std::int64_t dim, below;
};
const std::vector<Along>& places() {
  static const std::vector<Along> list{{"last dim", {3, 4}, {3, 4}, 1, 4},
                                       {"first dim", {4, 3}, {4, 3}, 0, 4},
                                       {"middle dim", {2, 4, 2}, {2, 5, 2}, -2, 4},
                                       {"smaller index", {3, 4}, {2, 3}, 1, 3},
                                       {"longer index", {3, 4}, {3, 6}, 1, 4},
                                       {"vector", {4}, {5}, 0, 4},
                                       {"rank 0", {}, {}, 0, 1}};
  return list;
}

OpCase indexed(const char* op, const Along& a, Function call,
               std::function<std::vector<Array>(Arrays)> expected, std::string torch) {
  OpCase c;
  c.op = op;
  c.variant = a.variant;
  c.inputs = {{a.x}, {a.index, Kind::index, a.below, false}};
  c.call = std::move(call);
  c.expected = std::move(expected);
  c.dtypes = all_dtypes();
  c.torch = std::move(torch);
  return c;
}

void add_gathers(std::vector<OpCase>& list) {
  for (const Along& a : places()) {
    const std::int64_t dim = a.dim;
    OpCase c = indexed(
        "gather", a, function_of([dim](T x, T i) { return gather(x, dim, i); }),
        [dim](Arrays v) { return std::vector<Array>{reference::gather(v[0], dim, v[1])}; },
        str("torch.gather(x0, ", dim, ", x1)"));
    if (c.variant == "last dim") {
      refuse_index(c, [](T x, std::int64_t d, T i) { return gather(x, d, i); });
      Refused{c}(
          "index", [] { return gather(ones_here({2, 3}), 1, indices({{0}, {1}, {2}})); },
          "ShapeError", "gather: expected an index not larger than x .2, 3. except in dim 1");
    }
    list.push_back(c);
  }
  for (const auto& [variant, x, index, dim] :
       std::vector<std::tuple<const char*, Sizes, Sizes, std::int64_t>>{
           {"both broadcast", {1, 4}, {3, 2}, 1},
           {"index broadcasts", {3, 4}, {1, 2}, -1},
           {"first dim", {4, 3}, {2, 1}, 0}}) {
    OpCase c = indexed(
        "take_along_dim", {variant, x, index, dim, 4},
        function_of([d = dim](T t, T i) { return take_along_dim(t, i, d); }),
        [d = dim](Arrays v) {
          return std::vector<Array>{reference::take_along_dim(v[0], v[1], d)};
        },
        str("torch.take_along_dim(x0, x1, ", dim, ")"));
    if (c.variant == "both broadcast")
      refuse_index(c, [](T t, std::int64_t d, T i) { return take_along_dim(t, i, d); });
    list.push_back(c);
  }
}

void add_scatters(std::vector<OpCase>& list) {
  for (const Along& a : places())
    for (const bool add : {false, true}) {
      const std::int64_t dim = a.dim;
      OpCase c = indexed(
          add ? "scatter_add" : "scatter", a, function_of([=](T x, T i, T src) {
            return add ? scatter_add(x, dim, i, src) : scatter(x, dim, i, src);
          }),
          [=](Arrays v) {
            return std::vector<Array>{reference::scatter(v[0], dim, v[1], v[2], add)};
          },
          // Which of several equal indices stays is open in PyTorch; added, there is no such
          // question.
          add ? str("torch.scatter_add(x0, ", dim, ", x1, x2)") : "");
      c.inputs.push_back({a.index});
      // Each sum is rounded to the type, and integers wrap around: test_gather.cpp.
      if (add)
        c.accuracy = Accuracy::tolerance,
        c.dtypes = {DType::bool_, DType::int32, DType::int64, DType::float32, DType::float64};
      if (c.variant == "last dim") {
        const auto f = [add](T x, std::int64_t d, T i, T src) {
          return add ? scatter_add(x, d, i, src) : scatter(x, d, i, src);
        };
        refuse_index(c, [f](T x, std::int64_t d, T i) { return f(x, d, i, ones_here(i.shape())); });
        const Refused refused{c};
        refused(
            "src", [f] { return f(ones_here({2, 3}), 1, indices({{0, 1}}), ones_here({1, 1})); },
            "ShapeError", c.op + ": expected an index not larger than src .1, 1.");
        refused(
            "src", [f] { return f(ones_here({2, 3}), 1, indices({{0, 1}}), ones_here({2})); },
            "ShapeError", c.op + ": expected src of rank 2");
        refused(
            "src",
            [f] {
              return f(ones_here({2, 3}), 1, indices({{0, 1}}), ones_here({1, 2}, DType::float64));
            },
            "DTypeError", c.op + ": expected one dtype");
        if (!add) {
          const auto number = [](double v, DType t) {
            return scatter(ones_here({2, 3}, t), 1, indices({{0, 1}}), v);
          };
          refused(
              "value", [=] { return number(std::nan(""), DType::int64); }, "DTypeError",
              "scatter: expected a number that int64 can hold, got nan");
          refused(
              "value", [=] { return number(300, DType::uint8); }, "DTypeError",
              "scatter: expected a number that uint8 can hold, got 300");
          refused(
              "value", [=] { return number(1e10, DType::int32); }, "DTypeError",
              "scatter: expected a number that int32 can hold");
        }
      }
      list.push_back(c);
    }
  for (const Along& a : places()) {
    const std::int64_t dim = a.dim;
    OpCase c = indexed(
        "scatter", a, function_of([dim](T x, T i) { return scatter(x, dim, i, 1); }),
        [dim](Arrays v) {
          return std::vector<Array>{
              reference::scatter(v[0], dim, v[1], Array(v[1].shape, 1.0), false)};
        },
        str("torch.scatter(x0, ", dim, ", x1, 1)"));
    c.variant = str("a number, ", a.variant);
    list.push_back(c);
  }
  struct Slices {
    Sizes x, source;
    std::int64_t dim;
    double alpha;
  };
  for (const Slices& s : std::vector<Slices>{{{4, 3}, {5, 3}, 0, 1},
                                             {{3, 4}, {3, 5}, -1, 2},
                                             {{2, 4, 3}, {2, 6, 3}, 1, 1},
                                             {{4}, {5}, 0, -3}}) {
    const std::int64_t dim = s.dim, n = s.source[static_cast<std::size_t>(reference::wrap(
                                        dim, static_cast<std::int64_t>(s.x.size())))];
    const double alpha = s.alpha;
    OpCase c = indexed(
        "index_add", {"", s.x, {n}, dim, 4},
        function_of([=](T x, T i, T source) { return index_add(x, dim, i, source, alpha); }),
        [=](Arrays v) {
          return std::vector<Array>{reference::index_add(v[0], dim, v[1], v[2], alpha)};
        },
        str("torch.index_add(x0, ", dim, ", x1, x2, alpha=", alpha, ")"));
    c.variant = str("dim ", dim, " of ", s.x.size(), ", alpha ", alpha);
    c.inputs.push_back({s.source});
    c.dtypes = {DType::int32, DType::int64, DType::float32, DType::float64};
    c.accuracy = Accuracy::tolerance;
    if (dim == 0 && alpha == 1) {
      const Refused refused{c};
      const auto f = [](T x, std::int64_t d, T i, T source, double a) {
        return index_add(x, d, i, source, a);
      };
      const Tensor none;
      for (const std::int64_t d : {std::int64_t{2}, std::int64_t{-3}, kLargest})
        refused(
            "dim", [=] { return f(ones_here({2, 3}), d, indices({0, 1}), ones_here({2, 3}), 1); },
            "IndexError", str("index_add: expected .*got ", d));
      refused(
          "index", [=] { return f(ones_here({2, 3}), 0, indices({{0, 1}}), ones_here({2, 3}), 1); },
          "ShapeError", "index_add: expected an index of rank 1, got .1, 2.");
      refused(
          "index", [=] { return f(ones_here({2, 3}), 0, indices({0, 2}), ones_here({2, 3}), 1); },
          "IndexError", "index_add: expected indices in .0, 2., got 2");
      refused(
          "index",
          [=] {
            return f(ones_here({2, 3}), 0, indices({0, 1}).to(DType::int32), ones_here({2, 3}), 1);
          },
          "DTypeError", "index_add: expected an int64 index");
      refused(
          "source", [=] { return f(ones_here({2, 3}), 0, indices({0, 1}), ones_here({3, 3}), 1); },
          "ShapeError", "index_add: expected a source of shape .2, 3., got .3, 3.");
      refused(
          "source", [=] { return f(ones_here({2, 3}), 0, indices({0, 1}), ones_here({2}), 1); },
          "ShapeError", "index_add: expected a source of shape .2, 3., got .2.");
      refused(
          "source",
          [=] {
            return f(ones_here({2, 3}), 0, indices({0, 1}), ones_here({2, 3}, DType::float64), 1);
          },
          "DTypeError", "index_add: expected one dtype");
      for (const double wrong : {0.5, std::nan(""), 1e30})
        refused(
            "alpha",
            [=] {
              return f(ones_here({2}, DType::int64), 0, indices({0}), ones_here({1}, DType::int64),
                       wrong);
            },
            "DTypeError", "index_add: expected a whole alpha for int64");
      refused(
          "x", [=] { return f(none, 0, indices({0}), ones_here({1}), 1); }, "ArgumentError",
          "undefined");
      refused(
          "x", [=] { return f(ones_here({2}, DType::bool_), 0, indices({0}), ones_here({1}), 1); },
          "DTypeError", "index_add: expected one dtype, got bool and float32");
      refused(
          "x", [=] { return f(ones_here({0, 3}), 0, indices({0}), ones_here({1, 3}), 1); },
          "IndexError", "index_add: expected indices in .0, 0.");
    }
    list.push_back(c);
  }
}

/// Where each place gets one number, every type has an exact sum.
void add_single_sums(std::vector<OpCase>& list) {
  OpCase c;
  c.op = "scatter_add";
  c.variant = "each place once";
  c.inputs = {{{3, 4}, Kind::positive}, {{3, 4}, Kind::positive}};
  c.dtypes = {DType::bool_, DType::uint8, DType::float16, DType::bfloat16};
  const auto backwards = [](T x) { return arange(x.size(1) - 1, -1, -1, {.device = x.device()}); };
  c.call = function_of(
      [=](T x, T src) { return scatter_add(x, 1, backwards(x).expand(x.shape()), src); });
  c.expected = expecting([](const Array& x, const Array& src) {
    return reference::generate(x.shape, [&](const Sizes& i) {
      return reference::value(x, i) + reference::value(src, {i[0], x.shape[1] - 1 - i[1]});
    });
  });
  c.torch = "torch.scatter_add(x0, 1, torch.arange(x0.shape[1] - 1, -1, -1).expand(x0.shape), x1)";
  list.push_back(c);
  c.op = "index_add";
  c.call = function_of([=](T x, T src) { return index_add(x, 1, backwards(x), src); });
  c.torch = "torch.index_add(x0, 1, torch.arange(x0.shape[1] - 1, -1, -1), x1)";
  list.push_back(c);
}

void add_masks(std::vector<OpCase>& list) {
  for (const auto& [variant, x, mask] :
       std::vector<std::tuple<const char*, Sizes, Sizes>>{{"", {3, 4}, {3, 4}},
                                                          {"mask broadcasts", {3, 4}, {4}},
                                                          {"x broadcasts", {4}, {3, 1}},
                                                          {"rank 0", {}, {}}}) {
    OpCase c;
    c.op = "masked_select";
    c.variant = variant;
    c.inputs = {{x}, {mask, Kind::boolean}};
    c.call = function_of([](T t, T m) { return masked_select(t, m); });
    c.expected = expecting(reference::masked_select);
    c.dtypes = all_dtypes();
    c.torch = "torch.masked_select(x0, x1)";
    if (c.variant.empty()) {
      const Refused refused{c};
      for (const DType t : {DType::uint8, DType::int64, DType::float32})
        refused(
            "mask", [t = t] { return masked_select(ones_here({2}), ones_here({2}, t)); },
            "DTypeError", str("masked_select: expected a bool mask, got ", t));
      refused(
          "x", [] { return masked_select(Tensor(), ones_here({2}, DType::bool_)); },
          "ArgumentError", "undefined");
      refused(
          "x", [] { return masked_select(ones_here({3}), ones_here({2}, DType::bool_)); },
          "ShapeError", "masked_select: ");
      refused(
          "x", [] { return masked_select(ones_here({2, 3}), ones_here({2, 2}, DType::bool_)); },
          "ShapeError", "masked_select: ");
    }
    list.push_back(c);
  }
  for (const Sizes& shape : std::vector<Sizes>{{3, 4}, {5}, {2, 3, 2}, {}}) {
    OpCase c;
    c.op = "nonzero";
    c.variant = str("rank ", shape.size());
    c.inputs = {{shape}};
    c.call = function_of([](T x) { return nonzero(x); });
    c.expected = expecting([](const Array& a) { return Array(reference::nonzero(a)); });
    c.dtypes = all_dtypes();
    c.differentiable = false;
    c.result = [](DType) { return DType::int64; };
    c.torch = "torch.nonzero(x0)";
    if (shape.size() == 2) {
      c.errors.push_back({"x", [] { (void)nonzero(Tensor()); }, "ArgumentError", "undefined"});
      c.free = {{"x", "every defined tensor has an answer"}};
    }
    list.push_back(c);
  }
  for (const bool inferred : {false, true}) {
    OpCase c;
    c.op = "one_hot";
    c.variant = inferred ? "as many classes as there are" : "";
    c.inputs = {{{3, 4}, Kind::distinct}};
    c.call = function_of(
        [inferred](T x) { return one_hot(argmax(x, 1), inferred ? -1 : x.size(1) + 1); });
    c.expected = expecting([inferred](const Array& a) {
      const Array i = reference::argmax(a, 1);
      return Array(reference::one_hot(i, inferred ? -1 : reference::at(a.shape, 1) + 1));
    });
    c.dtypes = all_dtypes();
    c.differentiable = false;
    c.result = [](DType) { return DType::int64; };
    c.torch = inferred ? "F.one_hot(torch.argmax(x0, 1))"
                       : "F.one_hot(torch.argmax(x0, 1), x0.shape[1] + 1)";
    if (!inferred) {
      const Refused refused{c};
      refused(
          "index", [] { return one_hot(indices({0, 3}), 3); }, "IndexError",
          "one_hot: expected indices in .0, 3., got 3");
      refused(
          "index", [] { return one_hot(indices({0, -1}), 3); }, "IndexError",
          "one_hot: expected indices in .0, 3., got -1");
      refused(
          "index", [] { return one_hot(ones_here({2}), 3); }, "DTypeError",
          "one_hot: expected an int64 index, got float32");
      refused(
          "classes", [] { return one_hot(indices({0, 1}), -2); }, "ArgumentError",
          "one_hot: expected classes >= 0.*got -2");
      refused(
          "classes", [] { return one_hot(indices({0, 1}), 0); }, "IndexError",
          "one_hot: expected indices in .0, 0.");
      refused(
          "classes", [] { return one_hot(ones_here({0}, DType::int64), -1); }, "ArgumentError",
          "one_hot: expected a number of classes.*got -1");
    }
    list.push_back(c);
  }
}

}  // namespace

void add_index_cases(std::vector<OpCase>& list) {
  add_gathers(list);
  add_scatters(list);
  add_single_sums(list);
  add_masks(list);
}

}  // namespace braid::test
