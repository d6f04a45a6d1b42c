#include <braid/core/ops/attention.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "dropout_factors.hpp"
#include "op_case_makers.hpp"
#include "reference/norm.hpp"

namespace braid::test {
namespace {

using reference::at, reference::rank;

/// Every third key of a query is masked; for query 1 all keys are.
bool sees(I query, I key) { return query != 1 && (query + key) % 3 != 2; }
Array hidden(I queries, I keys) {
  return reference::generate({queries, keys},
                             [](const Sizes& i) { return sees(i[0], i[1]) ? 0 : -INFINITY; });
}

struct Attention {
  const char* variant;
  Sizes q, k, v;
  bool causal = false, hides = false, adds = false;
  double dropout = 0, scale = 0;  // scale 0: the default
  bool groups = false;            // enable_gqa
};
const Attention kAttentions[] = {
    {"heads", Sizes{2, 2, 3, 4}, Sizes{2, 2, 5, 4}, Sizes{2, 2, 5, 3}},
    {"causal", Sizes{2, 1, 4, 3}, Sizes{2, 1, 4, 3}, Sizes{2, 1, 4, 3}, true},
    {"causal, fewer keys", Sizes{2, 5, 3}, Sizes{2, 3, 3}, Sizes{2, 3, 4}, true},
    {"causal, more keys", Sizes{3, 4}, Sizes{5, 4}, Sizes{5, 4}, true, false, false, 0, 0.5},
    {"hidden keys", Sizes{2, 3, 4}, Sizes{2, 5, 4}, Sizes{2, 5, 3}, false, true},
    {"added mask", Sizes{2, 2, 3, 4}, Sizes{2, 2, 5, 4}, Sizes{2, 2, 5, 3}, false, false, true},
    {"dropout", Sizes{2, 2, 3, 4}, Sizes{2, 2, 5, 4}, Sizes{2, 2, 5, 3}, false, false, false, 0.5},
    {"dropout, causal", Sizes{3, 4, 3}, Sizes{3, 4, 3}, Sizes{3, 4, 3}, true, false, false, 0.25},
    // the samples without elements have no size of 2 or of 3
    {.variant = "groups",
     .q = Sizes{2, 8, 3, 2},
     .k = Sizes{2, 4, 5, 2},
     .v = Sizes{2, 4, 5, 3},
     .groups = true},
    {.variant = "groups, one key head, causal",
     .q = Sizes{1, 4, 3, 2},
     .k = Sizes{1, 1, 5, 2},
     .v = Sizes{1, 1, 5, 3},
     .causal = true,
     .groups = true},
    {.variant = "groups, rank 3, added mask",
     .q = Sizes{8, 3, 2},
     .k = Sizes{4, 5, 2},
     .v = Sizes{4, 5, 2},
     .adds = true,
     .scale = 0.5,
     .groups = true},
    {.variant = "groups, of k and of v",
     .q = Sizes{2, 8, 1, 3},
     .k = Sizes{2, 1, 4, 3},
     .v = Sizes{2, 4, 4, 2},
     .groups = true},
    {.variant = "groups of one head",
     .q = Sizes{1, 4, 2, 3},
     .k = Sizes{1, 4, 3, 3},
     .v = Sizes{1, 4, 3, 2},
     .groups = true},
    {.variant = "groups, hidden keys, dropout",
     .q = Sizes{2, 8, 3, 2},
     .k = Sizes{2, 4, 5, 2},
     .v = Sizes{2, 4, 5, 3},
     .hides = true,
     .dropout = 0.25,
     .groups = true},
    {.variant = "groups, rank 3, dropout",
     .q = Sizes{8, 3, 2},
     .k = Sizes{4, 5, 2},
     .v = Sizes{4, 5, 2},
     .dropout = 0.5,
     .groups = true},
};

Tensor call(const Attention& s, Tensors in) {
  if (!in[0].defined()) return scaled_dot_product_attention(in[0], in[1], in[2]);
  Tensor mask = s.adds ? in[3] : Tensor();
  if (s.hides && in[1].defined())
    mask = tensor_of(reference::map(hidden(in[0].size(-2), in[1].size(-2)),
                                    [](double x) { return x == 0 ? 1 : 0; }),
                     DType::bool_, in[0].device());
  const auto scale = s.scale > 0 ? std::optional<double>(s.scale) : std::nullopt;
  return as_one_forward(in[0], [&] {
    return scaled_dot_product_attention(in[0], in[1], in[2], mask, s.dropout, s.causal, scale,
                                        s.groups);
  });
}

/// 1 / √width. A score of vectors of width 0 is a sum of nothing, 0 with any finite scale.
double usual_scale(I width) { return width == 0 ? 1 : 1 / std::sqrt(static_cast<double>(width)); }

/// k or v with each head repeated for the query heads of its group.
Array repeated(const Attention& s, A x, I heads) {
  if (!s.groups) return x;
  Sizes shape = x.shape;
  const std::size_t d = shape.size() - 3;
  const I group = heads / shape[d];
  shape[d] = heads;
  return reference::generate(shape, [&](Sizes i) {
    i[d] /= group;
    return reference::value(x, i);
  });
}

Array expected(const Attention& s, Arrays in) {
  const int r = rank(in[0]);
  const I queries = at(in[0].shape, r - 2), keys = at(in[1].shape, r - 2),
          width = at(in[0].shape, r - 1), rows = at(in[0].shape, 0);
  const Array mask = s.hides ? hidden(queries, keys) : s.adds ? in[3] : Array();
  const I heads = r == 4 ? at(in[0].shape, 1) : 1, all = r > 2 ? at(in[0].shape, r - 3) : 1;
  const I first = r > 2 || rows == 1 ? kFirstRow * heads * queries * keys : 0;
  return reference::attention(
      in[0], repeated(s, in[1], all), repeated(s, in[2], all), s.hides || s.adds ? &mask : nullptr,
      s.causal, s.scale > 0 ? s.scale : usual_scale(width),
      s.dropout > 0 ? factors(first, s.dropout) : std::function<double(I)>());
}

void add_attention(Cases& list) {
  const char* const op = "scaled_dot_product_attention";
  for (const Attention& s : kAttentions) {
    OpCase& c = push(list, op, s.variant, "", {{s.q}, {s.k}, {s.v}}, kFloats, Accuracy::tolerance);
    if (s.adds) {
      c.inputs.push_back({{s.q[s.q.size() - 2], s.k[s.k.size() - 2]}});
      c.inputs.back().optional = true;
    }
    c.call = [s](Tensors in) { return std::vector<Tensor>{call(s, in)}; };
    c.expected = [s](Arrays in) { return std::vector<Array>{expected(s, in)}; };
    if (s.dropout == 0 && !s.hides)
      c.torch = str("torch.nn.functional.", op, "(x0, x1, x2, ", s.adds ? "x3" : "None", ", 0.0, ",
                    s.causal ? "True" : "False", s.scale > 0 ? str(", scale=", s.scale) : "",
                    s.groups ? ", enable_gqa=True)" : ")");
  }
  const auto with = [](T q, T k, T v, T mask = {}, double p = 0, bool causal = false,
                       std::optional<double> scale = {}) {
    (void)scaled_dot_product_attention(q, k, v, mask, p, causal, scale);
  };
  const auto q = [] { return ones_of({2, 3, 4}); };
  const auto k = [] { return ones_of({2, 5, 4}); };
  const auto of_q = [=](T x) { with(x, k(), k()); };
  const auto of_k = [=](T x) { with(q(), x, k()); };
  const auto of_v = [=](T x) { with(q(), k(), x); };
  const auto masked = [=](T x) { with(q(), k(), k(), x); };
  const char* const of_rank = "q, k and v of rank >= 2";
  BadInputs(list, op, "q")
      .shapes(of_q, {{4}}, of_rank)
      .types(of_q, {2, 3, 4}, {DType::int64})
      .types(of_q, {2, 3, 4}, {DType::float64}, "one dtype, got float64 and float32")
      .of("k")
      .shapes(of_k, {{2, 5, 3}}, "k \\[.., 4\\]")
      .shapes(of_k, {{4}}, of_rank)
      .types(of_k, {2, 5, 4}, {DType::float16}, "one dtype, got float32 and float16")
      .of("v")
      .shapes(of_v, {{2, 4, 4}}, "v \\[.., 5, width\\]")
      .shapes(of_v, {{}}, of_rank)
      .types(of_v, {2, 5, 4}, {DType::bool_}, "one dtype, got float32 and bool")
      .of("mask")
      .shapes(masked, {{3, 4}}, "a mask that broadcasts to \\[2, 3, 5\\], got \\[3, 4\\]")
      .types(masked, {3, 5}, {DType::int64}, "a mask of bool or float32, got ")
      .is(kArgument, "no mask beside is_causal",
          [=] { with(q(), k(), k(), ones_of({3, 5}), 0, true); })
      .numbers("dropout_p", {-0.5, 1.5, kNan}, kArgument, "0 <= dropout_p <= 1",
               [=](double p) { with(q(), k(), k(), {}, p); })
      .numbers("scale", {kInf, -kInf, kNan}, kArgument, "a finite scale",
               [=](double x) { with(q(), k(), k(), {}, 0, false, x); });
  const auto grouped = [](const Shape& a, const Shape& b, const Shape& c) {
    (void)scaled_dot_product_attention(ones_of(a), ones_of(b), ones_of(c), {}, 0, false, {}, true);
  };
  const auto of_heads = [=](I key_heads, I value_heads) {
    grouped({1, 4, 3, 2}, {1, key_heads, 5, 2}, {1, value_heads, 5, 2});
  };
  const char* const divide = "heads of k and v that divide the 4 heads of q, got k ";
  BadInputs(list, op, "enable_gqa")
      .is(kShape, divide, [=] { of_heads(3, 3); })
      .is(kShape, divide, [=] { of_heads(8, 8); })
      .is(kShape, divide, [=] { of_heads(2, 3); })
      .is(kShape, divide, [=] { of_heads(3, 2); })
      .is(kShape, divide, [=] { of_heads(0, 0); })
      .is(kShape, "q, k and v of rank >= 3 with enable_gqa, got ",
          [=] { grouped({3, 2}, {3, 2}, {3, 2}); })
      .is(kShape, "q, k and v of rank >= 3 with enable_gqa, got ",
          [=] { grouped({4, 3, 2}, {4, 3, 2}, {3, 2}); });
}

/// Returns q, k or v of [batch, n, 3, heads, width] as [batch, heads, n, width].
Array part_of(A qkv, I part) {
  const Sizes& s = qkv.shape;
  return reference::generate({s[0], s[3], s[1], s[4]}, [&](const Sizes& i) {
    return reference::value(qkv, {i[0], i[2], part, i[1], i[3]});
  });
}

void add_packed(Cases& list) {
  for (const bool causal : {false, true}) {
    OpCase& c = push(list, "packed_attention", causal ? "causal, dropout" : "", "",
                     {{causal ? Sizes{2, 5, 3, 2, 4} : Sizes{1, 4, 3, 2, 5}}}, kFloats,
                     Accuracy::tolerance);
    c.call = function_of([=](T x) {
      if (!x.defined()) return packed_attention(x);
      // The tests that change sizes also change the 3.
      return as_one_forward(x, [&] {
        return packed_attention(
            x.shape()[2] == 3 ? x : x.narrow(2, 0, 1).expand({-1, -1, 3, -1, -1}), {},
            causal ? 0.5 : 0, causal);
      });
    });
    c.expected = expecting([=](A given) {
      Sizes three = given.shape;
      three[2] = 3;
      const Array x = reference::generate(three, [&](const Sizes& i) {
        return reference::value(given, {i[0], i[1], given.shape[2] == 3 ? i[2] : 0, i[3], i[4]});
      });
      const I n = x.shape[1], first = kFirstRow * x.shape[3] * n * n;
      const Array y = reference::attention(
          part_of(x, 0), part_of(x, 1), part_of(x, 2), nullptr, causal, usual_scale(x.shape[4]),
          causal ? factors(first, 0.5) : std::function<double(I)>());
      return reference::generate({x.shape[0], n, x.shape[3], x.shape[4]}, [&](const Sizes& i) {
        return reference::value(y, {i[0], i[2], i[1], i[3]});
      });
    });
  }
  const auto with = [](T x, T mask = {}, double p = 0, bool causal = false,
                       std::optional<double> scale = {}) {
    (void)packed_attention(x, mask, p, causal, scale);
  };
  const auto x = [] { return ones_of({2, 5, 3, 2, 4}); };
  const auto masked = [=](T mask) { with(x(), mask); };
  BadInputs(list, "packed_attention", "qkv")
      .shapes([=](T t) { with(t); }, {{2, 5, 3, 8}, {2, 5, 2, 2, 4}},
              "qkv \\[batch, n, 3, heads, width\\], got ")
      .types([=](T t) { with(t); }, {2, 5, 3, 2, 4}, {DType::int32})
      .of("mask")
      .shapes(masked, {{3, 5}}, "a mask that broadcasts to \\[2, 2, 5, 5\\], got \\[3, 5\\]")
      .types(masked, {5, 5}, {DType::float64}, "a mask of bool or float32, got ")
      .is(kArgument, "no mask beside is_causal", [=] { with(x(), ones_of({5, 5}), 0, true); })
      .numbers("dropout_p", {-0.5, 1.5, kNan}, kArgument, "0 <= dropout_p <= 1",
               [=](double p) { with(x(), {}, p); })
      .numbers("scale", {kInf, -kInf, kNan}, kArgument, "a finite scale",
               [=](double s) { with(x(), {}, 0, false, s); });
}

/// Three sequences of [tokens, heads, width]: they begin at 0, a third, and all but one.
Sizes starts_of(I tokens) { return {0, tokens / 3, tokens > 0 ? tokens - 1 : 0, tokens}; }
Tensor tensor_of_starts(const Sizes& starts, Device device) {
  return tensor(std::span<const std::int64_t>(starts)).to(DType::int32).to(device);
}

struct Varlen {
  const char* variant;
  Sizes q, k, v;
  VarlenAttnOptions options = {};
};
const Varlen kVarlens[] = {
    {"", Sizes{7, 2, 4}, Sizes{5, 2, 4}, Sizes{5, 2, 3}},
    {"causal", Sizes{5, 2, 3}, Sizes{8, 2, 3}, Sizes{8, 2, 4}, {.is_causal = true, .scale = 0.5}},
    {"causal, fewer keys", Sizes{9, 1, 3}, Sizes{4, 1, 3}, Sizes{4, 1, 3}, {.is_causal = true}},
    {"groups, dropout",
     Sizes{5, 8, 3},
     Sizes{6, 4, 3},
     Sizes{6, 1, 2},
     {.dropout_p = 0.5, .enable_gqa = true}},
};

Tensor call(const Varlen& s, Tensors in) {
  if (!in[0].defined() || !in[1].defined()) {
    const Tensor starts = tensor_of_starts({0, 0}, {});
    return varlen_attn(in[0], in[1], in[2], starts, starts, 0, 0);
  }
  const I queries = in[0].size(0), keys = in[1].size(0);
  return as_one_forward(in[0], [&] {
    return varlen_attn(in[0], in[1], in[2], tensor_of_starts(starts_of(queries), in[0].device()),
                       tensor_of_starts(starts_of(keys), in[0].device()), queries, keys, s.options);
  });
}

Array expected(const Varlen& s, Arrays in) {
  const Sizes &q = in[0].shape, &k = in[1].shape, &v = in[2].shape;
  const Sizes q_starts = starts_of(q[0]), k_starts = starts_of(k[0]);
  const double p = s.options.dropout_p;
  Array y(Sizes{q[0], q[1], v[2]});
  for (std::size_t b = 0; b < 3; ++b) {
    const I q_first = q_starts[b], k_first = k_starts[b], queries = q_starts[b + 1] - q_first,
            keys = k_starts[b + 1] - k_first;
    // [heads, rows, width] of a sequence; heads of keys are repeated
    const auto part = [&](A x, I first, I rows) {
      return reference::generate({q[1], rows, x.shape[2]}, [&](const Sizes& i) {
        return reference::value(x, {first + i[1], i[0] / (q[1] / x.shape[1]), i[2]});
      });
    };
    const Array mask = reference::generate({queries, keys}, [&](const Sizes& i) {
      return s.options.is_causal && i[1] > i[0] + keys - queries ? -INFINITY : 0;
    });
    const auto factor = factors(0, p);
    const std::function<double(I)> of_index = [&](I i) {
      const I h = i / (queries * keys), token = q_first + i / keys % queries;
      return factor(((kFirstRow + token) * q[1] + h) * k[0] + i % keys);
    };
    const Array of = reference::attention(part(in[0], q_first, queries), part(in[1], k_first, keys),
                                          part(in[2], k_first, keys), &mask, false,
                                          s.options.scale.value_or(usual_scale(q[2])),
                                          p > 0 ? of_index : std::function<double(I)>());
    reference::for_each(of.shape, [&](const Sizes& i) {
      y[((q_first + i[1]) * q[1] + i[0]) * v[2] + i[2]] = reference::value(of, i);
    });
  }
  return y;
}

void add_varlen(Cases& list) {
  const char* const op = "varlen_attn";
  for (const Varlen& s : kVarlens) {
    OpCase& c = push(list, op, s.variant, "", {{s.q}, {s.k}, {s.v}}, kFloats, Accuracy::tolerance);
    c.call = [s](Tensors in) { return std::vector<Tensor>{call(s, in)}; };
    c.expected = [s](Arrays in) { return std::vector<Array>{expected(s, in)}; };
  }
  struct With {
    Tensor q = ones_of({3, 2, 4}), k = ones_of({5, 2, 4}), v = ones_of({5, 2, 4}),
           q_starts = tensor_of_starts({0, 1, 3}, here()),
           k_starts = tensor_of_starts({0, 1, 5}, here());
    I max_q = 2, max_k = 4;
    VarlenAttnOptions options = {};
    void run() const { (void)varlen_attn(q, k, v, q_starts, k_starts, max_q, max_k, options); }
  };
  const auto of_q = [](T x) {
    With w;
    w.q = x;
    w.run();
  };
  const auto of_k = [](T x) {
    With w;
    w.k = x;
    w.run();
  };
  const auto of_v = [](T x) {
    With w;
    w.v = x;
    w.run();
  };
  const auto of_q_starts = [](T x) {
    With w;
    w.q_starts = x;
    w.run();
  };
  const auto of_k_starts = [](T x) {
    With w;
    w.k_starts = x;
    w.run();
  };
  const char* const of_rank = "query, key and value \\[tokens, heads, width\\]";
  BadInputs(list, op, "query")
      .shapes(of_q, {{3, 8}}, of_rank)
      .types(of_q, {3, 2, 4}, {DType::int64})
      .types(of_q, {3, 2, 4}, {DType::float64}, "one dtype, got float64 and float32")
      .of("key")
      .shapes(of_k, {{5, 8}}, of_rank)
      .shapes(of_k, {{5, 2, 3}}, "key \\[.., 4\\]")
      .shapes(of_k, {{5, 1, 4}}, "key and value with the 2 heads of query without enable_gqa")
      .types(of_k, {5, 2, 4}, {DType::float16}, "one dtype, got float32 and float16")
      .of("value")
      .shapes(of_v, {{4, 2, 4}}, "value \\[5, heads, width\\]")
      .shapes(of_v, {{}}, of_rank)
      .types(of_v, {5, 2, 4}, {DType::bool_}, "one dtype, got float32 and bool")
      .of("cu_seq_q")
      .types(of_q_starts, {3}, {DType::int64}, "cu_seq_q of int32, got ")
      .shapes(of_q_starts, {{3, 1}, {0}}, "cu_seq_q \\[sequences \\+ 1\\], got ", kShape,
              DType::int32)
      .of("cu_seq_k")
      .types(of_k_starts, {3}, {DType::int64, DType::float32}, "cu_seq_k of int32, got ")
      .shapes(of_k_starts, {{1, 3}}, "cu_seq_k \\[sequences \\+ 1\\], got ", kShape, DType::int32)
      .is(kShape, "cu_seq_k \\[3\\] as cu_seq_q, got \\[4\\]",
          [=] { of_k_starts(tensor_of_starts({0, 1, 3, 5}, here())); })
      .integers("max_q", {-1, 1, I{1} << 31}, kArgument,
                "a max_q with which 2 sequences can have the 3 rows",
                [](I n) {
                  With w;
                  w.max_q = n;
                  w.run();
                })
      .integers("max_k", {-1, 2, I{1} << 40}, kArgument,
                "a max_k with which 2 sequences can have the 5 rows",
                [](I n) {
                  With w;
                  w.max_k = n;
                  w.run();
                })
      .numbers("dropout_p", {-0.5, 1.5, kNan}, kArgument, "0 <= dropout_p <= 1",
               [](double p) {
                 With w;
                 w.options.dropout_p = p;
                 w.run();
               })
      .numbers("scale", {kInf, -kInf, kNan}, kArgument, "a finite scale", [](double x) {
        With w;
        w.options.scale = x;
        w.run();
      });
  const auto grouped = [](I k, I v) {
    With w;
    w.options.enable_gqa = true;
    w.k = ones_of({5, k, 4}), w.v = ones_of({5, v, 4});
    w.run();
  };
  BadInputs(list, op, "options")
      .is(kShape, "heads of k and v that divide the 2 heads of q", [=] { grouped(3, 3); })
      .is(kShape, "heads of k and v that divide the 2 heads of q", [=] { grouped(2, 4); })
      .is(kShape, "heads of k and v that divide the 2 heads of q", [=] { grouped(0, 1); });
}

}  // namespace

void add_attention_cases(Cases& list) {
  add_attention(list);
  add_packed(list);
  add_varlen(list);
  parameters(list,
             "packed_attention(qkv mask dropout_p is_causal scale) "
             "scaled_dot_product_attention(q k v mask dropout_p is_causal scale enable_gqa) "
             "varlen_attn(query key value cu_seq_q cu_seq_k max_q max_k options)");
}

}  // namespace braid::test
