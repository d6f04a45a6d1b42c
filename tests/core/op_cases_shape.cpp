// Other arrangements of the same elements.
#include <limits>

#include <braid/core/ops/create.hpp>
#include <braid/core/ops/shape.hpp>

#include "op_errors.hpp"
#include "reference/rearrange.hpp"
#include "reference/views.hpp"
#include "support/on_device.hpp"

namespace braid::test {
namespace {

using T = const Tensor&;

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max(),
                       kSmallest = std::numeric_limits<std::int64_t>::min();

Tensor zeros_here(const Shape& shape) { return on_device::zeros(shape); }

/// f(x) gives a tensor or several, r(array) an Array or several.
template <class F, class R>
OpCase& add(std::vector<OpCase>& list, const char* op, std::string variant, Sizes shape, F f, R r,
            std::string torch) {
  OpCase c;
  c.op = op;
  c.variant = std::move(variant);
  c.inputs = {{std::move(shape)}};
  c.call = function_of(f);
  c.expected = [r](const std::vector<Array>& a) {
    if constexpr (std::is_convertible_v<decltype(r(a[0])), Array>)
      return std::vector<Array>{r(a[0])};
    else return std::vector<Array>(r(a[0]));
  };
  c.dtypes = all_dtypes();
  c.torch = std::move(torch);
  list.push_back(c);
  return list.back();
}

/// Bad inputs: what the call says, with the type and the text of its error.
template <class F>
void refuse(OpCase& c, const char* argument, F call, const char* type, const std::string& text) {
  c.errors.push_back({argument, [call] { (void)call(); }, type, text});
}
/// An undefined x, and dims that are wrong for [2, 3] and for a scalar.
template <class F> void refuse_dims(OpCase& c, const char* argument, F f) {
  const std::string op = c.op;
  for (const std::int64_t dim : {std::int64_t{2}, std::int64_t{-3}, kLargest, kSmallest})
    refuse(
        c, argument, [=] { return f(zeros_here({2, 3}), dim); }, "IndexError",
        str(op, ": expected .*got ", dim));
  refuse(c, "x", [=] { return f(Tensor(), 0); }, "ArgumentError", "undefined");
  refuse(c, "x", [=] { return f(zeros_here({2}), 1); }, "IndexError", op + ": expected .*got 1");
  refuse(
      c, "x", [=] { return f(zeros_here({3, 2, 2}), -4); }, "IndexError",
      op + ": expected .*got -4");
}

std::vector<Array> parts(const Array& a, std::int64_t dim, std::int64_t size) {
  std::vector<Array> list;
  const std::int64_t n = reference::at(a.shape, reference::wrap(dim, reference::rank(a)));
  for (std::int64_t i = 0; i < n || list.empty(); i += size)
    list.push_back(reference::slice(a, dim, i, std::min(i + size, n)));
  return list;
}

void add_parts(std::vector<OpCase>& list) {
  for (const auto& [size, dim] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{2, 0}, {3, -1}, {100, 1}, {1, 0}}) {
    OpCase& c = add(
        list, "split", str("in parts of ", size, ", dim ", dim), {5, 4},
        [s = size, d = dim](T x) { return split(x, s, d); },
        [s = size, d = dim](const Array& a) { return parts(a, d, s); },
        str("torch.split(x0, ", size, ", ", dim, ")"));
    if (size != 2) continue;
    refuse_dims(c, "dim", [](T x, std::int64_t d) { return split(x, 1, d); });
    for (const std::int64_t wrong : {std::int64_t{0}, std::int64_t{-1}, kSmallest})
      refuse(
          c, "size", [=] { return split(zeros_here({2}), wrong); }, "ArgumentError",
          str("split: expected a size >= 1, got ", wrong));
  }
  for (const auto& [chunks, dim] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{2, 0}, {3, -1}, {4, 0}, {1, 1}}) {
    OpCase& c = add(
        list, "chunk", str(chunks, ", dim ", dim), {5, 4},
        [n = chunks, d = dim](T x) { return chunk(x, n, d); },
        [n = chunks, d = dim](const Array& a) {
          const std::int64_t size = reference::at(a.shape, reference::wrap(d, 2));
          return size == 0 ? std::vector<Array>(static_cast<std::size_t>(n), a)
                           : parts(a, d, (size + n - 1) / n);
        },
        str("torch.chunk(x0, ", chunks, ", ", dim, ")"));
    if (chunks != 2) continue;
    refuse_dims(c, "dim", [](T x, std::int64_t d) { return chunk(x, 2, d); });
    for (const std::int64_t wrong : {std::int64_t{0}, std::int64_t{-1}, kSmallest})
      refuse(
          c, "chunks", [=] { return chunk(zeros_here({2}), wrong); }, "ArgumentError",
          str("chunk: expected at least one chunk, got ", wrong));
  }
  for (const std::int64_t dim : {0, 1, -1}) {
    OpCase& c = add(
        list, "unbind", str("dim ", dim), {2, 3}, [dim](T x) { return unbind(x, dim); },
        [dim](const Array& a) {
          std::vector<Array> all;
          for (std::int64_t i = 0; i < reference::at(a.shape, reference::wrap(dim, 2)); ++i)
            all.push_back(reference::select(a, dim, i));
          return all;
        },
        str("torch.unbind(x0, ", dim, ")"));
    if (dim == 0) refuse_dims(c, "dim", [](T x, std::int64_t d) { return unbind(x, d); });
  }
}

void add_views(std::vector<OpCase>& list) {
  OpCase* c = &add(
      list, "movedim", "", {2, 3, 4}, [](T x) { return movedim(x, 0, -1); },
      [](const Array& a) { return reference::permute(a, {1, 2, 0}); }, "torch.movedim(x0, 0, -1)");
  refuse_dims(*c, "source", [](T x, std::int64_t d) { return movedim(x, d, 0); });
  for (const std::int64_t d : {std::int64_t{2}, std::int64_t{-3}, kLargest})
    refuse(
        *c, "destination", [=] { return movedim(zeros_here({2, 3}), 0, d); }, "IndexError",
        str("movedim: expected .*got ", d));
  refuse(
      *c, "source", [] { return movedim(zeros_here({2, 3}), {0, 0}, {0, 1}); }, "ShapeError",
      "movedim: expected each dim once");
  refuse(
      *c, "destination", [] { return movedim(zeros_here({2, 3}), {0, 1}, {1, -1}); }, "ShapeError",
      "movedim: expected each dim once");
  refuse(
      *c, "destination", [] { return movedim(zeros_here({2, 3}), {0, 1}, {1}); }, "ShapeError",
      "movedim: expected lists of one length");
  add(
      list, "movedim", "several", {2, 3, 4}, [](T x) { return movedim(x, {2, 0}, {0, 1}); },
      [](const Array& a) { return reference::permute(a, {2, 0, 1}); },
      "torch.movedim(x0, (2, 0), (0, 1))");
  c = &add(
      list, "swapaxes", "", {2, 3, 4}, [](T x) { return swapaxes(x, 0, -1); },
      [](const Array& a) { return reference::permute(a, {2, 1, 0}); }, "torch.swapaxes(x0, 0, -1)");
  refuse_dims(*c, "a", [](T x, std::int64_t d) { return swapaxes(x, d, 0); });
  for (const std::int64_t d : {std::int64_t{2}, std::int64_t{-3}, kLargest})
    refuse(
        *c, "b", [=] { return swapaxes(zeros_here({2, 3}), 0, d); }, "IndexError",
        str("swapaxes: expected .*got ", d));
  c = &add(
      list, "unflatten", "", {6, 7}, [](T x) { return unflatten(x, 0, {2, -1}); },
      [](const Array& a) { return reference::reshape(a, {2, 3, 7}); },
      "torch.unflatten(x0, 0, (2, -1))");
  refuse_dims(*c, "dim", [](T x, std::int64_t d) { return unflatten(x, d, {-1}); });
  for (const Shape& sizes :
       {Shape{2, 2}, Shape{-1, -1}, Shape{}, Shape{0, -1}, Shape{-2, 3}, Shape{kLargest, kLargest}})
    refuse(
        *c, "sizes", [=] { return unflatten(zeros_here({6, 7}), 0, sizes); }, "ShapeError",
        "unflatten: expected ");
  add(
      list, "unflatten", "last dim", {2, 6}, [](T x) { return unflatten(x, -1, {3, 1, 2}); },
      [](const Array& a) { return reference::reshape(a, {a.shape[0], 3, 1, 2}); },
      "torch.unflatten(x0, -1, (3, 1, 2))");
  c = &add(
      list, "broadcast_to", "", {3, 1}, [](T x) { return broadcast_to(x, {2, x.size(0), 6}); },
      [](const Array& a) { return reference::expand(a, {2, a.shape[0], 6}); },
      "torch.broadcast_to(x0, (2, x0.shape[0], 6))");
  for (const Shape& shape : {Shape{3}, Shape{2, 2, 1}, Shape{3, -2}})
    refuse(
        *c, "shape", [=] { return broadcast_to(zeros_here({3, 1}), shape); }, "ShapeError",
        "expand: expected ");
  c = &add(
      list, "expand_as", "", {3, 1},
      [](T x) { return expand_as(x, braid::zeros({2, x.size(0), 6}, {.device = x.device()})); },
      [](const Array& a) { return reference::expand(a, {2, a.shape[0], 6}); },
      "x0.expand_as(torch.zeros(2, x0.shape[0], 6))");
  for (const Shape& shape : {Shape{3}, Shape{2, 2, 1}, Shape{2, 3}})
    refuse(
        *c, "other", [=] { return expand_as(zeros_here({3, 1}), zeros_here(shape)); }, "ShapeError",
        "expand: expected ");
  c = &add(
      list, "view_as", "", {6, 7},
      [](T x) { return view_as(x.contiguous(), braid::zeros({7, 6}, {.device = x.device()})); },
      [](const Array& a) { return reference::reshape(a, {7, 6}); },
      "x0.contiguous().view_as(torch.zeros(7, 6))");
  for (const Shape& shape : {Shape{3}, Shape{7}, Shape{2, 2}})
    refuse(
        *c, "other", [=] { return view_as(zeros_here({3, 2}), zeros_here(shape)); }, "ShapeError",
        "view: expected ");
  for (const Shape& shape : {Shape{2, 3}, Shape{4, 3}, Shape{7, 2}})
    refuse(
        *c, "x", [=] { return view_as(zeros_here(shape).t(), zeros_here({shape.numel()})); },
        "LayoutError", "view: expected ");
  c = &add(
      list, "reshape_as", "", {6, 7},
      [](T x) { return reshape_as(x, braid::zeros({7, 6}, {.device = x.device()})); },
      [](const Array& a) { return reference::reshape(a, {7, 6}); },
      "x0.reshape_as(torch.zeros(7, 6))");
  for (const Shape& shape : {Shape{3}, Shape{7}, Shape{2, 2}})
    refuse(
        *c, "other", [=] { return reshape_as(zeros_here({3, 2}), zeros_here(shape)); },
        "ShapeError", "reshape: expected ");
}

void add_copies(std::vector<OpCase>& list) {
  for (const Sizes& dims : std::vector<Sizes>{{0}, {-1}, {0, 2}, {0, 1, 2}, {}}) {
    const std::string words = str(Shape(dims));
    OpCase& c = add(
        list, "flip", "dims " + words, {2, 3, 4}, [dims](T x) { return flip(x, Shape(dims)); },
        [dims](const Array& a) { return reference::flip(a, dims); },
        "torch.flip(x0, " + words + ")");
    if (dims.size() != 1 || dims[0] != 0) continue;
    refuse_dims(c, "dims", [](T x, std::int64_t d) { return flip(x, {d}); });
    refuse(
        c, "dims", [] { return flip(zeros_here({2, 3}), {0, -2}); }, "ShapeError",
        "flip: expected each dim once");
  }
  add(
      list, "flip", "rank 0", {}, [](T x) { return flip(x, {}); }, [](const Array& a) { return a; },
      "torch.flip(x0, [])");
  struct Roll {
    Sizes shifts, dims;
  };
  for (const Roll& r : std::vector<Roll>{{{1}, {0}}, {{-5}, {-1}}, {{2, 7}, {1, 0}}, {{4}, {}}}) {
    const std::string shifts = str(Shape(r.shifts)), dims = str(Shape(r.dims));
    OpCase& c = add(
        list, "roll", str("shifts ", shifts, ", dims ", dims), {3, 4},
        [r](T x) { return roll(x, Shape(r.shifts), Shape(r.dims)); },
        [r](const Array& a) { return reference::roll(a, r.shifts, r.dims); },
        r.dims.empty() ? str("torch.roll(x0, ", r.shifts[0], ")")
                       : str("torch.roll(x0, ", shifts, ", ", dims, ")"));
    if (!r.dims.empty() && r.dims[0] == 0) {
      refuse_dims(c, "dims", [](T x, std::int64_t d) { return roll(x, {1}, {d}); });
      for (const Shape& wrong : {Shape{1, 2}, Shape{}, Shape{1, 2, 3}})
        refuse(
            c, "shifts", [=] { return roll(zeros_here({2, 3}), wrong, {0}); }, "ShapeError",
            "roll: expected a shift for each dim");
    }
  }
  for (const Sizes& times : std::vector<Sizes>{{2, 3}, {1, 1}, {2, 1, 2}, {0, 2}, {1, 2, 1, 2}}) {
    const std::string words = str(Shape(times));
    OpCase& c = add(
        list, "repeat", "times " + words, {2, 3}, [times](T x) { return repeat(x, Shape(times)); },
        [times](const Array& a) { return reference::repeat(a, times); },
        "x0.repeat(" + words + ")");
    if (times.size() != 2 || times[0] != 2) continue;
    refuse(
        c, "times", [] { return repeat(zeros_here({2, 3}), {2}); }, "ShapeError",
        "repeat: expected at least 2 numbers");
    refuse(
        c, "times", [] { return repeat(zeros_here({2, 3}), {2, -1}); }, "ArgumentError",
        "repeat: expected numbers >= 0");
    refuse(
        c, "times", [] { return repeat(zeros_here({2, 3}), {kLargest, 2}); }, "ShapeError",
        "repeat: expected at most");
    refuse(c, "x", [] { return repeat(Tensor(), {2}); }, "ArgumentError", "undefined");
    refuse(
        c, "x", [] { return repeat(zeros_here({2, 3, 4}), {2, 2}); }, "ShapeError",
        "repeat: expected at least 3 numbers");
    refuse(
        c, "x", [] { return repeat(zeros_here({2}), {}); }, "ShapeError",
        "repeat: expected at least 1 numbers");
  }
  for (const auto& [times, dim] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{2, 0}, {3, -1}, {0, 1}, {1, 0}}) {
    OpCase& c = add(
        list, "repeat_interleave", str(times, " times, dim ", dim), {2, 3},
        [n = times, d = dim](T x) { return repeat_interleave(x, n, d); },
        [n = times, d = dim](const Array& a) { return reference::repeat_interleave(a, n, d); },
        str("torch.repeat_interleave(x0, ", times, ", ", dim, ")"));
    if (times != 2) continue;
    refuse_dims(c, "dim", [](T x, std::int64_t d) { return repeat_interleave(x, 2, d); });
    for (const std::int64_t wrong : {std::int64_t{-1}, std::int64_t{-7}, kSmallest})
      refuse(
          c, "times", [=] { return repeat_interleave(zeros_here({2}), wrong, 0); }, "ArgumentError",
          str("repeat_interleave: expected times >= 0, got ", wrong));
  }
  add(
      list, "repeat_interleave", "flattened", {2, 3}, [](T x) { return repeat_interleave(x, 2); },
      [](const Array& a) {
        return reference::repeat_interleave(reference::reshape(a, {a.size()}), 2, 0);
      },
      "torch.repeat_interleave(x0, 2)");
}

void add_pads(std::vector<OpCase>& list) {
  struct Pad {
    Sizes shape, sizes;
    PadMode mode;
    const char* name;
  };
  // The last three modes have room for two elements in dims of 6 and 7, which the tests do not
  // change.
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
    const bool constant = p.mode == PadMode::constant;
    const std::string words = str(Shape(p.sizes));
    OpCase& c = add(
        list, "pad", str(p.name, " ", words), p.shape,
        [p](T x) { return pad(x, Shape(p.sizes), p.mode, 1); },
        [p](const Array& a) {
          return reference::pad(a, p.sizes, 1,
                                [mode = p.mode](std::int64_t i, std::int64_t n) -> std::int64_t {
                                  if (mode == PadMode::constant) return -1;
                                  if (n == 0) throw std::logic_error("reference::pad");
                                  if (mode == PadMode::reflect) return i < 0 ? -i : 2 * n - 2 - i;
                                  if (mode == PadMode::replicate) return i < 0 ? 0 : n - 1;
                                  return (i + n) % n;
                                });
        },
        constant ? str("F.pad(x0, ", words, ", value=1)")
                 : str("F.pad(x0, ", words, ", mode='", p.name, "')"));
    if (c.variant != "constant [1, 2]") continue;
    for (const Shape& wrong : {Shape{1}, Shape{1, 1, 1, 1, 1, 1}, Shape{-2, -2}, Shape{kLargest, 1},
                               Shape{kSmallest, 0}})
      refuse(
          c, "sizes", [=] { return pad(zeros_here({2, 3}), wrong); }, "ShapeError",
          "pad: expected ");
    for (const auto& [mode, size] :
         std::vector<std::pair<PadMode, std::int64_t>>{{PadMode::reflect, 3},
                                                       {PadMode::circular, 4},
                                                       {PadMode::replicate, -1},
                                                       {PadMode::replicate, kLargest}})
      refuse(
          c, "mode", [m = mode, s = size] { return pad(zeros_here({2, 3}), {s, 0}, m); },
          "ShapeError", "pad: expected sizes ");
    for (const auto& [type, wrong] : std::vector<std::pair<DType, double>>{
             {DType::uint8, 300}, {DType::int64, std::nan("")}, {DType::int32, 1e10}})
      refuse(
          c, "value",
          [t = type, v = wrong] {
            return pad(zeros_here({2}).to(t), {1, 1}, PadMode::constant, v);
          },
          "DTypeError", "pad: expected a number that ");
    refuse(c, "x", [] { return pad(Tensor(), {}); }, "ArgumentError", "undefined");
    refuse(
        c, "x", [] { return pad(zeros_here({}), {1, 1}); }, "ShapeError",
        "pad: expected two numbers for each of at most 0 dims");
    refuse(
        c, "x", [] { return pad(zeros_here({0}), {1, 1}, PadMode::replicate); }, "ShapeError",
        "pad: expected sizes from 0 to 0");
  }
}

void add_diagonals(std::vector<OpCase>& list) {
  for (const bool lower : {true, false})
    for (const auto& [shape, diagonal_at] : std::vector<std::pair<Sizes, std::int64_t>>{
             {{3, 4}, 0}, {{4, 3}, 1}, {{2, 3, 3}, -1}, {{3, 3}, 100}, {{3, 3}, -100}}) {
      OpCase& c = add(
          list, lower ? "tril" : "triu", str(Shape(shape), ", diagonal ", diagonal_at), shape,
          [lower, k = diagonal_at](T x) { return lower ? tril(x, k) : triu(x, k); },
          [lower, k = diagonal_at](const Array& a) { return reference::triangle(a, k, lower); },
          str("torch.", lower ? "tril" : "triu", "(x0, ", diagonal_at, ")"));
      if (shape != Sizes{3, 4}) continue;
      for (const Shape& wrong : {Shape{}, Shape{3}, Shape{0}})
        refuse(
            c, "x", [=] { return lower ? tril(zeros_here(wrong)) : triu(zeros_here(wrong)); },
            "ShapeError", c.op + ": expected at least two dims");
      refuse(
          c, "x", [=] { return lower ? tril(Tensor()) : triu(Tensor()); }, "ArgumentError",
          "undefined");
    }
  struct Diagonal {
    Sizes shape;
    std::int64_t offset, a, b;
  };
  for (const Diagonal& d : std::vector<Diagonal>{{{3, 4}, 0, 0, 1},
                                                 {{3, 4}, 1, 0, 1},
                                                 {{4, 3}, -2, 0, 1},
                                                 {{2, 3, 4}, 0, -1, 0},
                                                 {{3, 3}, 50, 0, 1},
                                                 {{3, 3}, -50, 1, 0}}) {
    OpCase& c = add(
        list, "diagonal", str(Shape(d.shape), ", offset ", d.offset, " of dims ", d.a, ", ", d.b),
        d.shape, [d](T x) { return diagonal(x, d.offset, d.a, d.b); },
        [d](const Array& a) { return reference::diagonal(a, d.offset, d.a, d.b); },
        str("torch.diagonal(x0, ", d.offset, ", ", d.a, ", ", d.b, ")"));
    if (c.variant != "[3, 4], offset 0 of dims 0, 1") continue;
    for (const std::int64_t dim : {std::int64_t{2}, std::int64_t{-3}, kLargest}) {
      refuse(
          c, "a", [=] { return diagonal(zeros_here({2, 3}), 0, dim, 1); }, "IndexError",
          str("diagonal: expected .*got ", dim));
      refuse(
          c, "b", [=] { return diagonal(zeros_here({2, 3}), 0, 0, dim); }, "IndexError",
          str("diagonal: expected .*got ", dim));
    }
    refuse(
        c, "b", [] { return diagonal(zeros_here({2, 3}), 0, 0, -2); }, "ShapeError",
        "diagonal: expected two different dims");
    for (const Shape& wrong : {Shape{}, Shape{3}, Shape{0}})
      refuse(
          c, "x", [=] { return diagonal(zeros_here(wrong)); }, "ShapeError",
          "diagonal: expected at least two dims");
  }
  for (const std::int64_t at : {0, 1, -2}) {
    OpCase& c = add(
        list, "diag", str("of a vector, ", at), {3}, [at](T x) { return diag(x, at); },
        [at](const Array& a) { return reference::diag(a, at); }, str("torch.diag(x0, ", at, ")"));
    if (at != 0) continue;
    for (const Shape& wrong : {Shape{}, Shape{1, 2, 3}, Shape{1, 1, 1, 1}})
      refuse(
          c, "x", [=] { return diag(zeros_here(wrong)); }, "ShapeError",
          "diag: expected a vector or a matrix");
    for (const std::int64_t far :
         {kLargest, kSmallest, std::int64_t{1} << 62, -(std::int64_t{1} << 62)})
      refuse(c, "offset", [=] { return diag(zeros_here({3}), far); }, "ShapeError", "expected");
  }
  add(
      list, "diag", "of a matrix", {3, 4}, [](T x) { return diag(x, 1); },
      [](const Array& a) { return reference::diagonal(a, 1, 0, 1); }, "torch.diag(x0, 1)");
}

}  // namespace

void add_shape_cases(std::vector<OpCase>& list) {
  add_parts(list);
  add_views(list);
  add_copies(list);
  add_pads(list);
  add_diagonals(list);
  on_device::add_shape_errors(list);
}

}  // namespace braid::test
