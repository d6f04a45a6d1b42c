// Cases of ops that rearrange elements.
#include <braid/core/ops/shape.hpp>

#include "op_case_makers.hpp"
#include "reference/rearrange.hpp"
#include "reference/views.hpp"

namespace braid::test {
namespace {

Tensor zeros_of(const Shape& shape) { return on_device::zeros(shape); }

/// Adds a case with several results.
OpCase& add_several(Cases& list, const char* op, const std::string& variant, const Sizes& shape,
                    const std::string& torch, std::function<std::vector<Tensor>(T)> f,
                    std::function<std::vector<Array>(A)> r) {
  OpCase& c = push(list, op, variant, torch, {{shape}});
  c.call = [f = std::move(f)](Tensors t) { return f(t[0]); };
  c.expected = [r = std::move(r)](Arrays a) { return r(a[0]); };
  return c;
}

/// Adds bad inputs: dims that are invalid for [2, 3].
void refuse_dim(Cases& list, const char* op, const char* argument,
                const std::function<void(T, I)>& f) {
  BadInputs(list, op).integers(argument, {2, -3, kMost, kLeast}, kIndex, ".*got ",
                               [f](I dim) { f(zeros_of({2, 3}), dim); });
}
/// The same, and an undefined x and an x without the dim.
void refuse_dims(Cases& list, const char* op, const char* argument,
                 const std::function<void(T, I)>& f) {
  refuse_dim(list, op, argument, f);
  BadInputs(list, op)
      .tensor("x", [f](T x) { f(x, 0); })
      .is(kIndex, ".*got 1", [f] { f(zeros_of({2}), 1); })
      .is(kIndex, ".*got -4", [f] { f(zeros_of({3, 2, 2}), -4); });
}
void refuse_undefined(Cases& list, const char* op, const BadInputs::OfTensor& f) {
  BadInputs(list, op).tensor("x", f);
}

std::vector<Array> parts(A a, I dim, I size) {
  std::vector<Array> list;
  const I n = reference::at(a.shape, reference::wrap(dim, reference::rank(a)));
  for (I i = 0; i < n || list.empty(); i += size)
    list.push_back(reference::slice(a, dim, i, std::min(i + size, n)));
  return list;
}

void add_parts(Cases& list) {
  using Two = std::vector<std::pair<I, I>>;
  for (const auto& [size, dim] : Two{{2, 0}, {3, -1}, {100, 1}, {1, 0}})
    add_several(
        list, "split", str("in parts of ", size, ", dim ", dim), {5, 4},
        str("torch.split(x0, ", size, ", ", dim, ")"),
        [s = size, d = dim](T x) { return split(x, s, d); },
        [s = size, d = dim](A a) { return parts(a, d, s); });
  for (const auto& [chunks, dim] : Two{{2, 0}, {3, -1}, {4, 0}, {1, 1}})
    add_several(
        list, "chunk", str(chunks, ", dim ", dim), {5, 4},
        str("torch.chunk(x0, ", chunks, ", ", dim, ")"),
        [n = chunks, d = dim](T x) { return chunk(x, n, d); },
        [n = chunks, d = dim](A a) {
          const I size = reference::at(a.shape, reference::wrap(d, 2));
          return size == 0 ? std::vector<Array>(static_cast<std::size_t>(n), a)
                           : parts(a, d, (size + n - 1) / n);
        });
  for (const I dim : {0, 1, -1})
    add_several(
        list, "unbind", str("dim ", dim), {2, 3}, str("torch.unbind(x0, ", dim, ")"),
        [dim](T x) { return unbind(x, dim); },
        [dim](A a) {
          std::vector<Array> all;
          for (I i = 0; i < reference::at(a.shape, reference::wrap(dim, 2)); ++i)
            all.push_back(reference::select(a, dim, i));
          return all;
        });
  refuse_dims(list, "split", "dim", [](T x, I d) { (void)split(x, 1, d); });
  refuse_dims(list, "chunk", "dim", [](T x, I d) { (void)chunk(x, 2, d); });
  refuse_dims(list, "unbind", "dim", [](T x, I d) { (void)unbind(x, d); });
  BadInputs(list, "split")
      .integers("size", {0, -1, kLeast}, kArgument, "a size >= 1, got ",
                [](I n) { (void)split(zeros_of({2}), n); });
  BadInputs(list, "chunk")
      .integers("chunks", {0, -1, kLeast}, kArgument, "at least one chunk, got ",
                [](I n) { (void)chunk(zeros_of({2}), n); });
}

Tensor zeros_beside(T x, const Shape& shape) { return braid::zeros(shape, {.device = x.device()}); }

const Arrangement kViews[] = {
    {"movedim", "", "torch.movedim(x0, 0, -1)", Sizes{2, 3, 4},
     [](T x) { return movedim(x, 0, -1); }, [](A a) { return reference::permute(a, {1, 2, 0}); }},
    {"movedim", "several", "torch.movedim(x0, (2, 0), (0, 1))", Sizes{2, 3, 4},
     [](T x) { return movedim(x, {2, 0}, {0, 1}); },
     [](A a) { return reference::permute(a, {2, 0, 1}); }},
    {"swapaxes", "", "torch.swapaxes(x0, 0, -1)", Sizes{2, 3, 4},
     [](T x) { return swapaxes(x, 0, -1); }, [](A a) { return reference::permute(a, {2, 1, 0}); }},
    {"unflatten", "", "torch.unflatten(x0, 0, (2, -1))", Sizes{6, 7},
     [](T x) { return unflatten(x, 0, {2, -1}); },
     [](A a) { return reference::reshape(a, {2, 3, 7}); }},
    {"unflatten", "last dim", "torch.unflatten(x0, -1, (3, 1, 2))", Sizes{2, 6},
     [](T x) { return unflatten(x, -1, {3, 1, 2}); },
     [](A a) { return reference::reshape(a, {a.shape[0], 3, 1, 2}); }},
    {"broadcast_to", "", "torch.broadcast_to(x0, (2, x0.shape[0], 6))", Sizes{3, 1},
     [](T x) { return broadcast_to(x, {2, x.size(0), 6}); },
     [](A a) { return reference::expand(a, {2, a.shape[0], 6}); }},
    {"expand_as", "", "x0.expand_as(torch.zeros(2, x0.shape[0], 6))", Sizes{3, 1},
     [](T x) { return expand_as(x, zeros_beside(x, {2, x.size(0), 6})); },
     [](A a) { return reference::expand(a, {2, a.shape[0], 6}); }},
    {"view_as", "", "x0.contiguous().view_as(torch.zeros(7, 6))", Sizes{6, 7},
     [](T x) { return view_as(x.contiguous(), zeros_beside(x, {7, 6})); },
     [](A a) { return reference::reshape(a, {7, 6}); }},
    {"reshape_as", "", "x0.reshape_as(torch.zeros(7, 6))", Sizes{6, 7},
     [](T x) { return reshape_as(x, zeros_beside(x, {7, 6})); },
     [](A a) { return reference::reshape(a, {7, 6}); }},
    {"flip", "rank 0", "torch.flip(x0, [])", Sizes{}, [](T x) { return flip(x, {}); },
     [](A a) { return a; }},
    {"repeat_interleave", "flattened", "torch.repeat_interleave(x0, 2)", Sizes{2, 3},
     [](T x) { return repeat_interleave(x, 2); },
     [](A a) { return reference::repeat_interleave(reference::reshape(a, {a.size()}), 2, 0); }},
    {"diag", "of a matrix", "torch.diag(x0, 1)", Sizes{3, 4}, [](T x) { return diag(x, 1); },
     [](A a) { return reference::diagonal(a, 1, 0, 1); }},
};

void add_view_errors(Cases& list) {
  refuse_dims(list, "movedim", "source", [](T x, I d) { (void)movedim(x, d, 0); });
  refuse_dim(list, "movedim", "destination", [](T x, I d) { (void)movedim(x, 0, d); });
  refuse_dims(list, "swapaxes", "a", [](T x, I d) { (void)swapaxes(x, d, 0); });
  refuse_dim(list, "swapaxes", "b", [](T x, I d) { (void)swapaxes(x, 0, d); });
  refuse_dims(list, "unflatten", "dim", [](T x, I d) { (void)unflatten(x, d, {-1}); });
  const auto moved = [](const Shape& from, const Shape& to) {
    return [=] { (void)movedim(zeros_of({2, 3}), from, to); };
  };
  refuse(list, "movedim",
         {{"source", kShape, "each dim once", moved({0, 0}, {0, 1})},
          {"destination", kShape, "each dim once", moved({0, 1}, {1, -1})},
          {"destination", kShape, "lists of one length", moved({0, 1}, {1})}});
  BadInputs(list, "unflatten")
      .lists("sizes",
             {Shape{2, 2}, Shape{-1, -1}, Shape{}, Shape{0, -1}, Shape{-2, 3}, Shape{kMost, kMost}},
             kShape, "", [](const Shape& sizes) { (void)unflatten(zeros_of({6, 7}), 0, sizes); });
  // Bad inputs of expand, view and reshape.
  const struct {
    const char *op, *argument;
    Tensor (*call)(T, const Shape&);
    Shape x;
    std::vector<Shape> wrong;
    const char* text;
  } rows[] = {
      {"broadcast_to", "shape", broadcast_to, Shape{3, 1}, Shapes{{3}, {2, 2, 1}, {3, -2}},
       "expand"},
      {"expand_as", "other", [](T x, const Shape& s) { return expand_as(x, zeros_of(s)); },
       Shape{3, 1}, Shapes{{3}, {2, 2, 1}, {2, 3}}, "expand"},
      {"view_as", "other", [](T x, const Shape& s) { return view_as(x, zeros_of(s)); }, Shape{3, 2},
       Shapes{{3}, {7}, {2, 2}}, "view"},
      {"reshape_as", "other", [](T x, const Shape& s) { return reshape_as(x, zeros_of(s)); },
       Shape{3, 2}, Shapes{{3}, {7}, {2, 2}}, "reshape"},
  };
  for (const auto& r : rows)
    for (const Shape& s : r.wrong)
      BadInputs(list, r.op, r.argument)
          .refused(kShape, str(r.text, ": expected "),
                   [call = r.call, x = r.x, s] { (void)call(zeros_of(x), s); });
  for (const Shape& s : {Shape{2, 3}, Shape{4, 3}, Shape{7, 2}})
    BadInputs(list, "view_as", "x").refused("LayoutError", "view: expected ", [s] {
      return view_as(zeros_of(s).t(), zeros_of({s.numel()}));
    });
  const auto bad_x = [&](const char* op, Tensor (*f)(T), const Shapes& shapes, const char* text) {
    refuse_undefined(list, op, f);
    for (const Shape& s : shapes)
      BadInputs(list, op, "x").refused(kShape, text, [=] { return f(made(s)); });
  };
  const char* const not_to_2_3 = "expand: expected a shape that .* broadcasts to, got \\[2, 3\\]";
  const char* const too_many = "expand: expected at least 3 sizes, got \\[2, 3\\]";
  Tensor (*const broadcast)(T) = [](T x) { return broadcast_to(x, {2, 3}); };
  Tensor (*const as)(T) = [](T x) { return expand_as(x, made({2, 3})); };
  for (const auto& [op, f] : {std::pair("broadcast_to", broadcast), std::pair("expand_as", as)}) {
    bad_x(op, f, {Shape{2}, Shape{4, 3}}, not_to_2_3);
    bad_x(op, f, {Shape{1, 2, 3}}, too_many);
  }
  bad_x(
      "reshape_as", [](T x) { return reshape_as(x, made({2, 3})); },
      {Shape{2}, Shape{4, 3}, Shape{0, 3}},
      "reshape: expected a shape of .* elements, got \\[2, 3\\] for a tensor of shape ");
}

void add_copies(Cases& list) {
  for (const Sizes& dims : std::vector<Sizes>{{0}, {-1}, {0, 2}, {0, 1, 2}, {}}) {
    const std::string words = str(Shape(dims));
    of_one(
        list, "flip", "dims " + words, "torch.flip(x0, " + words + ")", {{2, 3, 4}}, kAll,
        [dims](T x) { return flip(x, dims); }, [dims](A a) { return reference::flip(a, dims); });
  }
  refuse_dims(list, "flip", "dims", [](T x, I d) { (void)flip(x, {d}); });
  struct Roll {
    Sizes shifts, dims;
  };
  for (const Roll& r : std::vector<Roll>{{{1}, {0}}, {{-5}, {-1}}, {{2, 7}, {1, 0}}, {{4}, {}}}) {
    const std::string shifts = str(Shape(r.shifts)), dims = str(Shape(r.dims));
    of_one(
        list, "roll", str("shifts ", shifts, ", dims ", dims),
        r.dims.empty() ? str("torch.roll(x0, ", r.shifts[0], ")")
                       : str("torch.roll(x0, ", shifts, ", ", dims, ")"),
        {{3, 4}}, kAll, [r](T x) { return roll(x, r.shifts, r.dims); },
        [r](A a) { return reference::roll(a, r.shifts, r.dims); });
  }
  refuse_dims(list, "roll", "dims", [](T x, I d) { (void)roll(x, {1}, {d}); });
  for (const Sizes& n : std::vector<Sizes>{{2, 3}, {1, 1}, {2, 1, 2}, {0, 2}, {1, 2, 1, 2}}) {
    const std::string words = str(Shape(n));
    of_one(
        list, "repeat", "times " + words, "x0.repeat(" + words + ")", {{2, 3}}, kAll,
        [n](T x) { return repeat(x, n); }, [n](A a) { return reference::repeat(a, n); });
  }
  for (const auto& [times, dim] : std::vector<std::pair<I, I>>{{2, 0}, {3, -1}, {0, 1}, {1, 0}})
    of_one(
        list, "repeat_interleave", str(times, " times, dim ", dim),
        str("torch.repeat_interleave(x0, ", times, ", ", dim, ")"), {{2, 3}}, kAll,
        [n = times, d = dim](T x) { return repeat_interleave(x, n, d); },
        [n = times, d = dim](A a) { return reference::repeat_interleave(a, n, d); });
  refuse_dims(list, "repeat_interleave", "dim", [](T x, I d) { (void)repeat_interleave(x, 2, d); });
  BadInputs(list, "repeat_interleave")
      .integers("times", {-1, -7, kLeast}, kArgument, "times >= 0, got ",
                [](I n) { (void)repeat_interleave(zeros_of({2}), n, 0); });
  BadInputs(list, "roll")
      .lists("shifts", {Shape{1, 2}, Shape{}, Shape{1, 2, 3}}, kShape, "a shift for each dim",
             [](const Shape& s) { (void)roll(zeros_of({2, 3}), s, {0}); });
  refuse(list, "flip",
         {{"dims", kShape, "each dim once", [] { return flip(zeros_of({2, 3}), {0, -2}); }}});
  const auto repeated = [](const Shape& x, const Shape& times) {
    return [=] { (void)repeat(zeros_of(x), times); };
  };
  refuse_undefined(list, "repeat", [](T x) { (void)repeat(x, {2}); });
  refuse(list, "repeat",
         {{"times", kShape, "at least 2 numbers", repeated({2, 3}, {2})},
          {"times", kArgument, "numbers >= 0", repeated({2, 3}, {2, -1})},
          {"times", kShape, "at most", repeated({2, 3}, {kMost, 2})},
          {"x", kShape, "at least 3 numbers", repeated({2, 3, 4}, {2, 2})},
          {"x", kShape, "at least 1 numbers", repeated({2}, {})}});
}

I padded(PadMode mode, I i, I n) {
  if (mode == PadMode::constant) return -1;
  if (n == 0) throw std::logic_error("reference::pad");
  if (mode == PadMode::reflect) return i < 0 ? -i : 2 * n - 2 - i;
  if (mode == PadMode::replicate) return i < 0 ? 0 : n - 1;
  return (i + n) % n;
}

void add_pads(Cases& list) {
  struct Pad {
    Sizes shape, sizes;
    PadMode mode;
    const char* name;
  };
  // The last three modes pad dims of 6 and 7, which the tests do not resize, so that the padding
  // always fits.
  for (const Pad& p : std::vector<Pad>{{{2, 3}, {1, 2}, PadMode::constant, "constant"},
                                       {{2, 3}, {0, 1, 2, 0}, PadMode::constant, "constant"},
                                       {{6, 7}, {-1, 2, 1, -2}, PadMode::constant, "constant"},
                                       {{2, 3}, {}, PadMode::constant, "constant"},
                                       {{2, 3, 7}, {2, 1}, PadMode::reflect, "reflect"},
                                       {{2, 6, 7}, {2, 1, 0, 2}, PadMode::reflect, "reflect"},
                                       {{2, 3, 7}, {2, 9}, PadMode::replicate, "replicate"},
                                       {{2, 6, 7}, {2, 1, 0, 2}, PadMode::replicate, "replicate"},
                                       {{2, 3, 7}, {2, 7}, PadMode::circular, "circular"},
                                       {{2, 6, 7}, {2, 1, 0, 2}, PadMode::circular, "circular"}}) {
    const std::string words = str(Shape(p.sizes));
    of_one(
        list, "pad", str(p.name, " ", words),
        p.mode == PadMode::constant ? str("F.pad(x0, ", words, ", value=1)")
                                    : str("F.pad(x0, ", words, ", mode='", p.name, "')"),
        {p.shape}, kAll, [p](T x) { return pad(x, p.sizes, p.mode, 1); },
        [p](A a) {
          return reference::pad(a, p.sizes, 1,
                                [mode = p.mode](I i, I n) { return padded(mode, i, n); });
        });
  }
  const auto with = [](PadMode mode, I size) {
    return [=] { (void)pad(zeros_of({2, 3}), {size, 0}, mode); };
  };
  const auto value = [](DType t, double v) {
    return [=] { (void)pad(zeros_of({2}).to(t), {1, 1}, PadMode::constant, v); };
  };
  refuse_undefined(list, "pad", [](T x) { (void)pad(x, {}); });
  BadInputs(list, "pad")
      .lists("sizes",
             {Shape{1}, Shape{1, 1, 1, 1, 1, 1}, Shape{-2, -2}, Shape{kMost, 1}, Shape{kLeast, 0}},
             kShape, "", [](const Shape& s) { (void)pad(zeros_of({2, 3}), s); });
  refuse(list, "pad",
         {{"mode", kShape, "sizes ", with(PadMode::reflect, 3)},
          {"mode", kShape, "sizes ", with(PadMode::circular, 4)},
          {"mode", kShape, "sizes ", with(PadMode::replicate, -1)},
          {"mode", kShape, "sizes ", with(PadMode::replicate, kMost)},
          {"value", kType, "a number that ", value(DType::uint8, 300)},
          {"value", kType, "a number that ", value(DType::int64, kNan)},
          {"value", kType, "a number that ", value(DType::int32, 1e10)},
          {"x", kShape, "two numbers for each of at most 0 dims",
           [] { (void)pad(zeros_of({}), {1, 1}); }},
          {"x", kShape, "sizes from 0 to 0",
           [] { (void)pad(zeros_of({0}), {1, 1}, PadMode::replicate); }}});
}

void add_diagonals(Cases& list) {
  const std::vector<Shape> low{Shape{}, Shape{3}, Shape{0}};
  for (const bool lower : {true, false}) {
    const char* op = lower ? "tril" : "triu";
    const auto triangle = [lower](T x, I k) { return lower ? tril(x, k) : triu(x, k); };
    for (const auto& [shape, k] : std::vector<std::pair<Sizes, I>>{
             {{3, 4}, 0}, {{4, 3}, 1}, {{2, 3, 3}, -1}, {{3, 3}, 100}, {{3, 3}, -100}})
      of_one(
          list, op, str(Shape(shape), ", diagonal ", k), str("torch.", op, "(x0, ", k, ")"),
          {shape}, kAll, [=, k = k](T x) { return triangle(x, k); },
          [lower, k = k](A a) { return reference::triangle(a, k, lower); });
    refuse_undefined(list, op, [=](T x) { triangle(x, 0); });
    BadInputs(list, op)
        .lists("x", low, kShape, "at least two dims",
               [=](const Shape& s) { triangle(zeros_of(s), 0); })
        .free("diagonal", "one beyond the matrix leaves all of it, or nothing");
  }
  struct Diagonal {
    Sizes shape;
    I offset, a, b;
  };
  for (const Diagonal& d : std::vector<Diagonal>{{{3, 4}, 0, 0, 1},
                                                 {{3, 4}, 1, 0, 1},
                                                 {{4, 3}, -2, 0, 1},
                                                 {{2, 3, 4}, 0, -1, 0},
                                                 {{3, 3}, 50, 0, 1},
                                                 {{3, 3}, -50, 1, 0}})
    of_one(
        list, "diagonal", str(Shape(d.shape), ", offset ", d.offset, " of dims ", d.a, ", ", d.b),
        str("torch.diagonal(x0, ", d.offset, ", ", d.a, ", ", d.b, ")"), {d.shape}, kAll,
        [d](T x) { return diagonal(x, d.offset, d.a, d.b); },
        [d](A a) { return reference::diagonal(a, d.offset, d.a, d.b); });
  refuse_dim(list, "diagonal", "a", [](T x, I dim) { (void)diagonal(x, 0, dim, 1); });
  refuse_dim(list, "diagonal", "b", [](T x, I dim) { (void)diagonal(x, 0, 0, dim); });
  BadInputs(list, "diagonal", "b")
      .is(kShape, "two different dims", [] { return diagonal(zeros_of({2, 3}), 0, 0, -2); })
      .lists("x", low, kShape, "at least two dims",
             [](const Shape& s) { (void)diagonal(zeros_of(s)); })
      .free("offset", "one beyond the matrix is an empty diagonal");
  for (const I at : {0, 1, -2})
    of_one(
        list, "diag", str("of a vector, ", at), str("torch.diag(x0, ", at, ")"), {{3}}, kAll,
        [at](T x) { return diag(x, at); }, [at](A a) { return reference::diag(a, at); });
  BadInputs bad(list, "diag");
  bad.lists("x", {Shape{}, Shape{1, 2, 3}, Shape{1, 1, 1, 1}}, kShape, "a vector or a matrix",
            [](const Shape& s) { (void)diag(zeros_of(s)); });
  for (const I far : {kMost, kLeast, I{1} << 62, -(I{1} << 62)})
    bad.of("offset").refused(kShape, "expected", [far] { return diag(zeros_of({3}), far); });
}

}  // namespace

void add_shape_cases(Cases& list) {
  for (const Arrangement& v : kViews) add_arrangement(list, v);
  add_parts(list);
  add_view_errors(list);
  add_copies(list);
  add_pads(list);
  add_diagonals(list);
}

}  // namespace braid::test
