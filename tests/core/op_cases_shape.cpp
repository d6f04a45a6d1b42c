// Cases of views: other arrangements of the same elements.
#include <algorithm>

#include <braid/core/ops/shape.hpp>

#include "op_case_makers.hpp"
#include "reference/views.hpp"

namespace braid::test {
namespace {

/// Adds a case with several results.
OpCase& add_several(Cases& list, const char* op, const std::string& variant, const Sizes& shape,
                    const std::string& torch, std::function<std::vector<Tensor>(T)> f,
                    std::function<std::vector<Array>(A)> r) {
  OpCase& c = push(list, op, variant, torch, {{shape}});
  c.call = [f = std::move(f)](Tensors t) { return f(t[0]); };
  c.expected = [r = std::move(r)](Arrays a) { return r(a[0]); };
  return c;
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

}  // namespace

void add_shape_cases(Cases& list) {
  for (const Arrangement& v : kViews) add_arrangement(list, v);
  add_parts(list);
  add_view_errors(list);
  parameters(
      list,
      "broadcast_to(x shape) chunk(x chunks dim) expand_as(x other) "
      "movedim(x source destination) reshape_as(x other) split(x sizes dim) split(x size dim) "
      "swapaxes(x a b) unbind(x dim) unflatten(x dim sizes) view_as(x other)");
}

}  // namespace braid::test
