#include <cmath>
#include <limits>

#include <braid/core/ops/attention.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/dropout.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "op_cases.hpp"
#include "reference/norm.hpp"
#include "support/on_device.hpp"

namespace braid::test {
namespace {

using Kind = Input::Kind;
using T = const Tensor&;

Tensor ones_here(const Shape& shape, DType dtype = DType::float32) {
  return on_device::ones(shape, {.dtype = dtype});
}

/// Stream 5 of the seed that is set, rows of the batch from 3 on: what the references take too.
constexpr std::uint64_t kStream = 5;
constexpr std::int64_t kFirstRow = 3;
template <class F> auto as_one_forward(const Tensor& x, F f) {
  const RandomForward forward(kStream, {0, 0, kFirstRow, x.dim() > 0 ? x.shape()[0] : 1});
  return f();
}

void add_dropouts(std::vector<OpCase>& list) {
  struct Shapes {
    const char* op;
    const char* variant;
    Sizes x;
    double p;
    int spatial;  // dims of a channel
  };
  for (const Shapes& s : std::vector<Shapes>{{"dropout", "matrix", {3, 5}, 0.5, 0},
                                             {"dropout", "vector", {5}, 0.25, 0},
                                             {"dropout", "three dims", {2, 3, 4}, 0.75, 0},
                                             {"dropout", "all", {3, 4}, 1, 0},
                                             {"dropout1d", "batch", {2, 4, 3}, 0.5, 1},
                                             {"dropout2d", "batch", {2, 4, 3, 2}, 0.5, 2}}) {
    const auto call = [=](T x, double p, bool training) {
      return s.spatial == 0   ? dropout(x, p, training)
             : s.spatial == 1 ? dropout1d(x, p, training)
                              : dropout2d(x, p, training);
    };
    OpCase c;
    c.op = s.op;
    c.variant = s.variant;
    c.inputs = {{s.x}};
    c.call = function_of([=](T x) {
      if (!x.defined()) return call(x, s.p, true);
      return as_one_forward(x, [&] { return call(x, s.p, true); });
    });
    c.expected = expecting([=](const Array& x) {
      const std::uint64_t seed = initial_seed();
      Array y = x;
      std::int64_t channel = 1;
      for (int d = reference::rank(x) - s.spatial; d < reference::rank(x); ++d)
        channel *= reference::at(x.shape, d);
      const std::int64_t first =
          x.size() > 0 ? kFirstRow * (x.size() / channel / reference::at(x.shape, 0)) : 0;
      for (std::int64_t i = 0; i < x.size(); ++i)
        y[i] =
            x[i] * (s.p < 1 ? reference::drop_factor(seed, kStream, first + i / channel, s.p) : 0);
      return y;
    });
    c.dtypes = floating_dtypes();
    c.accuracy = Accuracy::tolerance;
    if (s.variant == std::string("matrix") || s.spatial > 0) {
      const std::string op = s.op;
      for (const double p : {-0.5, 1.5, std::nan("")})
        c.errors.push_back({"p", [=] { (void)call(ones_here({2, 4, 3}), p, true); },
                            "ArgumentError", op + ": expected 0 <= p <= 1, got "});
      for (const DType t : {DType::int64, DType::uint8, DType::bool_})
        c.errors.push_back({"x", [=] { (void)call(ones_here({2, 4, 3}, t), 0.5, true); },
                            "DTypeError", op + ": expected a floating point tensor, got "});
      if (s.spatial > 0)
        c.errors.push_back({"x", [=] { (void)call(ones_here({3}), 0.5, true); }, "ShapeError",
                            op + ": expected x of rank"});
    }
    list.push_back(c);
  }
}

/// Every third key of a query is hidden; of query 1 all are.
bool sees(std::int64_t query, std::int64_t key) { return query != 1 && (query + key) % 3 != 2; }
Array hidden(std::int64_t queries, std::int64_t keys) {
  return reference::generate({queries, keys},
                             [](const Sizes& i) { return sees(i[0], i[1]) ? 0 : -INFINITY; });
}

void add_attention(std::vector<OpCase>& list) {
  struct Shapes {
    const char* variant;
    Sizes q, k, v;
    bool causal, hides, adds;
    double dropout, scale;  // scale 0: the default
  };
  for (const Shapes& s : std::vector<Shapes>{
           {"heads", {2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 3}, false, false, false, 0, 0},
           {"causal", {2, 1, 4, 3}, {2, 1, 4, 3}, {2, 1, 4, 3}, true, false, false, 0, 0},
           {"causal, fewer keys", {2, 5, 3}, {2, 3, 3}, {2, 3, 4}, true, false, false, 0, 0},
           {"causal, more keys", {3, 4}, {5, 4}, {5, 4}, true, false, false, 0, 0.5},
           {"hidden keys", {2, 3, 4}, {2, 5, 4}, {2, 5, 3}, false, true, false, 0, 0},
           {"added mask", {2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 3}, false, false, true, 0, 0},
           {"dropout", {2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 3}, false, false, false, 0.5, 0},
           {"dropout, causal", {3, 4, 3}, {3, 4, 3}, {3, 4, 3}, true, false, false, 0.25, 0}}) {
    OpCase c;
    c.op = "scaled_dot_product_attention";
    c.variant = s.variant;
    c.inputs = {{s.q}, {s.k}, {s.v}};
    if (s.adds) {
      Input mask{{s.q[s.q.size() - 2], s.k[s.k.size() - 2]}};
      mask.optional = true;
      c.inputs.push_back(mask);
    }
    const std::optional<double> scale = s.scale > 0 ? std::optional<double>(s.scale) : std::nullopt;
    c.call = [=](const std::vector<Tensor>& in) -> std::vector<Tensor> {
      Tensor mask = s.adds ? in[3] : Tensor();
      if (s.hides && in[0].defined() && in[1].defined()) {
        const Array a = hidden(in[0].size(-2), in[1].size(-2));
        Array seen(a.shape);
        for (std::int64_t i = 0; i < a.size(); ++i) seen[i] = a[i] == 0;
        mask = tensor_of(seen, DType::bool_, in[0].device());
      }
      if (!in[0].defined()) return {scaled_dot_product_attention(in[0], in[1], in[2])};
      return {as_one_forward(in[0], [&] {
        return scaled_dot_product_attention(in[0], in[1], in[2], mask, s.dropout, s.causal, scale);
      })};
    };
    c.expected = [=](const std::vector<Array>& in) -> std::vector<Array> {
      const int r = reference::rank(in[0]);
      const std::int64_t queries = reference::at(in[0].shape, r - 2),
                         keys = reference::at(in[1].shape, r - 2),
                         width = reference::at(in[0].shape, r - 1);
      const Array mask = s.hides ? hidden(queries, keys) : s.adds ? in[3] : Array();
      std::function<double(std::int64_t)> factor;
      const std::int64_t rows = reference::at(in[0].shape, 0);
      const std::int64_t batch = r == 2 ? 1 : rows,
                         heads = r == 4 ? reference::at(in[0].shape, 1) : 1;
      const std::int64_t first = batch == rows ? kFirstRow * heads * queries * keys : 0;
      if (s.dropout > 0)
        factor = [=, seed = initial_seed()](std::int64_t i) {
          return reference::drop_factor(seed, kStream, first + i, s.dropout);
        };
      return {
          reference::attention(in[0], in[1], in[2], s.hides || s.adds ? &mask : nullptr, s.causal,
                               scale.value_or(1 / std::sqrt(static_cast<double>(width))), factor)};
    };
    c.dtypes = floating_dtypes();
    c.accuracy = Accuracy::tolerance;
    if (s.dropout == 0 && !s.hides)
      c.torch = str("torch.nn.functional.scaled_dot_product_attention(x0, x1, x2, ",
                    s.adds ? "x3" : "None", ", 0.0, ", s.causal ? "True" : "False",
                    s.scale > 0 ? str(", scale=", s.scale) : std::string(), ")");
    if (s.variant == std::string("heads")) {
      const std::string op = c.op;
      const auto refused = [&](const char* argument, const std::function<void()>& call,
                               const char* type, const std::string& text) {
        c.errors.push_back({argument, call, type, op + ": expected " + text});
      };
      const auto with = [](T q, T k, T v, T mask = {}, double p = 0, bool causal = false,
                           std::optional<double> scaled = {}) {
        (void)scaled_dot_product_attention(q, k, v, mask, p, causal, scaled);
      };
      const auto q = [] { return ones_here({2, 3, 4}); };
      const auto k = [] { return ones_here({2, 5, 4}); };
      refused(
          "q", [=] { with(ones_here({4}), k(), k()); }, "ShapeError", "q, k and v of rank >= 2");
      refused(
          "q", [=] { with(ones_here({2, 3, 4}, DType::int64), k(), k()); }, "DTypeError",
          "a floating point tensor, got int64");
      refused(
          "q", [=] { with(ones_here({2, 3, 4}, DType::float64), k(), k()); }, "DTypeError",
          "one dtype, got float64 and float32");
      refused("k", [=] { with(q(), ones_here({2, 5, 3}), k()); }, "ShapeError", "k \\[.., 4\\]");
      refused(
          "k", [=] { with(q(), ones_here({4}), k()); }, "ShapeError", "q, k and v of rank >= 2");
      refused(
          "k", [=] { with(q(), ones_here({2, 5, 4}, DType::float16), k()); }, "DTypeError",
          "one dtype, got float32 and float16");
      refused(
          "v", [=] { with(q(), k(), ones_here({2, 4, 4})); }, "ShapeError", "v \\[.., 5, width\\]");
      refused("v", [=] { with(q(), k(), ones_here({})); }, "ShapeError", "q, k and v of rank >= 2");
      refused(
          "v", [=] { with(q(), k(), ones_here({2, 5, 4}, DType::bool_)); }, "DTypeError",
          "one dtype, got float32 and bool");
      refused(
          "mask", [=] { with(q(), k(), k(), ones_here({3, 4})); }, "ShapeError",
          "a mask that broadcasts to \\[2, 3, 5\\], got \\[3, 4\\]");
      refused(
          "mask", [=] { with(q(), k(), k(), ones_here({3, 5}, DType::int64)); }, "DTypeError",
          "a mask of bool or float32, got int64");
      refused(
          "mask", [=] { with(q(), k(), k(), ones_here({3, 5}), 0, true); }, "ArgumentError",
          "no mask beside is_causal");
      for (const double p : {-0.5, 1.5, std::nan("")})
        refused(
            "dropout_p", [=] { with(q(), k(), k(), {}, p); }, "ArgumentError",
            "0 <= dropout_p <= 1");
      for (const double x : {std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(), std::nan("")})
        refused(
            "scale", [=] { with(q(), k(), k(), {}, 0, false, x); }, "ArgumentError",
            "a finite scale");
    }
    list.push_back(c);
  }
}

/// [batch, n, 3, heads, width] to the three heads.
Array part_of(const Array& qkv, std::int64_t part) {
  const Sizes& s = qkv.shape;
  return reference::generate({s[0], s[3], s[1], s[4]}, [&](const Sizes& i) {
    return reference::value(qkv, {i[0], i[2], part, i[1], i[3]});
  });
}

void add_packed(std::vector<OpCase>& list) {
  for (const bool causal : {false, true}) {
    OpCase c;
    c.op = "packed_attention";
    c.variant = causal ? "causal, dropout" : "";
    c.inputs = {{causal ? Sizes{2, 5, 3, 2, 4} : Sizes{1, 4, 3, 2, 5}}};
    c.call = function_of([=](T x) {
      if (!x.defined()) return packed_attention(x);
      // The tests of sizes change the 3 too.
      return as_one_forward(x, [&] {
        return packed_attention(
            x.shape()[2] == 3 ? x : x.narrow(2, 0, 1).expand({-1, -1, 3, -1, -1}), {},
            causal ? 0.5 : 0, causal);
      });
    });
    c.expected = expecting([=](const Array& given) {
      Sizes three = given.shape;
      three[2] = 3;
      const Array x = reference::generate(three, [&](const Sizes& i) {
        return reference::value(given, {i[0], i[1], given.shape[2] == 3 ? i[2] : 0, i[3], i[4]});
      });
      std::function<double(std::int64_t)> factor;
      const std::int64_t n = x.shape[1], first = kFirstRow * x.shape[3] * n * n;
      if (causal)
        factor = [=, seed = initial_seed()](std::int64_t i) {
          return reference::drop_factor(seed, kStream, first + i, 0.5);
        };
      const Array y =
          reference::attention(part_of(x, 0), part_of(x, 1), part_of(x, 2), nullptr, causal,
                               1 / std::sqrt(static_cast<double>(x.shape[4])), factor);
      return reference::generate({x.shape[0], n, x.shape[3], x.shape[4]}, [&](const Sizes& i) {
        return reference::value(y, {i[0], i[2], i[1], i[3]});
      });
    });
    c.dtypes = floating_dtypes();
    c.accuracy = Accuracy::tolerance;
    if (!causal) {
      const std::string op = c.op;
      const auto with = [](T x, T mask = {}, double p = 0, bool hides = false,
                           std::optional<double> scale = {}) {
        (void)packed_attention(x, mask, p, hides, scale);
      };
      const auto x = [] { return ones_here({2, 5, 3, 2, 4}); };
      const auto refused = [&](const char* argument, const std::function<void()>& call,
                               const char* type, const std::string& text) {
        c.errors.push_back({argument, call, type, op + ": expected " + text});
      };
      refused(
          "qkv", [=] { with(ones_here({2, 5, 3, 8})); }, "ShapeError",
          "qkv \\[batch, n, 3, heads, width\\], got \\[2, 5, 3, 8\\]");
      refused(
          "qkv", [=] { with(ones_here({2, 5, 2, 2, 4})); }, "ShapeError",
          "qkv \\[batch, n, 3, heads, width\\]");
      refused(
          "qkv", [=] { with(ones_here({2, 5, 3, 2, 4}, DType::int32)); }, "DTypeError",
          "a floating point tensor, got int32");
      refused(
          "mask", [=] { with(x(), ones_here({3, 5})); }, "ShapeError",
          "a mask that broadcasts to \\[2, 2, 5, 5\\], got \\[3, 5\\]");
      refused(
          "mask", [=] { with(x(), ones_here({5, 5}, DType::float64)); }, "DTypeError",
          "a mask of bool or float32, got float64");
      refused(
          "mask", [=] { with(x(), ones_here({5, 5}), 0, true); }, "ArgumentError",
          "no mask beside is_causal");
      for (const double p : {-0.5, 1.5, std::nan("")})
        refused("dropout_p", [=] { with(x(), {}, p); }, "ArgumentError", "0 <= dropout_p <= 1");
      for (const double s : {std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(), std::nan("")})
        refused("scale", [=] { with(x(), {}, 0, false, s); }, "ArgumentError", "a finite scale");
    }
    list.push_back(c);
  }
}

}  // namespace

void add_attention_cases(std::vector<OpCase>& list) {
  add_dropouts(list);
  add_attention(list);
  add_packed(list);
}

}  // namespace braid::test
