#include "op_case_makers.hpp"
#include "reference/views.hpp"

namespace braid::test {
namespace {

using reference::reshape;

const Arrangement kViews[] = {
    {"select", "dim 0", "x0[1]", Sizes{3, 2}, [](T x) { return x[1]; },
     [](A a) { return reference::select(a, 0, 1); }},
    {"select", "negative", "x0.select(-2, -1)", Sizes{2, 3, 2},
     [](T x) { return x.select(-2, -1); }, [](A a) { return reference::select(a, -2, -1); }},
    {"select", "to rank 0", "x0.select(0, 2)", Sizes{3}, [](T x) { return x.select(0, 2); },
     [](A a) { return reference::select(a, 0, 2); }},
    {"slice", "", "x0[1:3]", Sizes{4, 3}, [](T x) { return x.slice(0, 1, 3); },
     [](A a) { return reference::slice(a, 0, 1, 3); }},
    {"slice", "step 2", "x0[:, 1:5:2]", Sizes{2, 5}, [](T x) { return x.slice(1, 1, 5, 2); },
     [](A a) { return reference::slice(a, 1, 1, 5, 2); }},
    {"slice", "negative bounds", "x0[-4:-1:3]", Sizes{5, 2},
     [](T x) { return x.slice(-2, -4, -1, 3); },
     [](A a) { return reference::slice(a, -2, -4, -1, 3); }},
    {"slice", "clamped", "x0[-100:100]", Sizes{3, 2}, [](T x) { return x.slice(0, -100, 100); }},
    {"slice", "empty", "x0[2:1]", Sizes{3, 2}, [](T x) { return x.slice(0, 2, 1); },
     [](A a) { return reference::slice(a, 0, 2, 1); }},
    {"narrow", "", "x0.narrow(1, 1, 2)", Sizes{2, 4}, [](T x) { return x.narrow(1, 1, 2); },
     [](A a) { return reference::slice(a, 1, 1, 3); }},
    {"narrow", "of nothing", "x0.narrow(1, 4, 0)", Sizes{2, 4},
     [](T x) { return x.narrow(1, 4, 0); }, [](A a) { return reference::slice(a, 1, 4, 4); }},
    {"transpose", "", "x0.transpose(0, 1)", Sizes{2, 3}, [](T x) { return x.transpose(0, 1); },
     [](A a) { return reference::transpose(a, 0, 1); }},
    {"transpose", "negative", "x0.transpose(-1, 0)", Sizes{2, 3, 2},
     [](T x) { return x.transpose(-1, 0); }, [](A a) { return reference::transpose(a, -1, 0); }},
    {"transpose", "one dim", "x0.transpose(0, 0)", Sizes{3}, [](T x) { return x.transpose(0, 0); }},
    {"t", "matrix", "x0.t()", Sizes{2, 3}, [](T x) { return x.t(); },
     [](A a) { return reference::transpose(a, 0, 1); }},
    {"t", "vector", "x0.t()", Sizes{3}, [](T x) { return x.t(); }},
    {"permute", "", "x0.permute(2, 0, 1)", Sizes{2, 3, 2}, [](T x) { return x.permute({2, 0, 1}); },
     [](A a) { return reference::permute(a, {2, 0, 1}); }},
    {"permute", "negative", "x0.permute(-1, 1, 0)", Sizes{2, 3, 2},
     [](T x) { return x.permute({-1, 1, 0}); },
     [](A a) { return reference::permute(a, {2, 1, 0}); }},
    {"reshape", "", "x0.reshape(3, 4)", Sizes{2, 6}, [](T x) { return x.reshape({3, 4}); },
     [](A a) { return reshape(a, {3, 4}); }},
    {"reshape", "-1", "x0.reshape(2, -1)", Sizes{2, 3, 2}, [](T x) { return x.reshape({2, -1}); },
     [](A a) { return reshape(a, {2, 6}); }},
    {"reshape", "to rank 0", "x0.reshape(())", Sizes{1, 1}, [](T x) { return x.reshape({}); },
     [](A a) { return reshape(a, {}); }},
    {"reshape", "size 1 dims", "x0.reshape(1, 2, 1, 3, 1)", Sizes{2, 3},
     [](T x) { return x.reshape({1, 2, 1, 3, 1}); },
     [](A a) { return reshape(a, {1, 2, 1, 3, 1}); }},
    {"reshape", "after a transpose", "x0.t().reshape(2, 3)", Sizes{2, 3},
     [](T x) { return x.t().reshape({2, 3}); },
     [](A a) { return reshape(reference::transpose(a, 0, 1), {2, 3}); }},
    {"view", "of a dense copy", "x0.contiguous().view(4, -1)", Sizes{2, 6},
     [](T x) { return x.contiguous().view({4, -1}); }, [](A a) { return reshape(a, {4, 3}); }},
    {"flatten", "all", "x0.flatten()", Sizes{2, 3, 2}, [](T x) { return x.flatten(); },
     [](A a) { return reshape(a, {12}); }},
    {"flatten", "from 1", "x0.flatten(1)", Sizes{2, 3, 2}, [](T x) { return x.flatten(1); },
     [](A a) { return reshape(a, {2, 6}); }},
    {"flatten", "0 to 1", "x0.flatten(0, 1)", Sizes{2, 3, 2}, [](T x) { return x.flatten(0, 1); },
     [](A a) { return reshape(a, {6, 2}); }},
    {"flatten", "rank 0", "x0.flatten()", Sizes{}, [](T x) { return x.flatten(); },
     [](A a) { return reshape(a, {1}); }},
    {"squeeze", "all", "x0.squeeze()", Sizes{1, 3, 1, 2}, [](T x) { return x.squeeze(); },
     [](A a) { return reshape(a, {3, 2}); }},
    {"squeeze", "dim", "x0.squeeze(-1)", Sizes{1, 3, 1}, [](T x) { return x.squeeze(-1); },
     [](A a) { return reshape(a, {1, 3}); }},
    {"squeeze", "dim of another size", "x0.squeeze(1)", Sizes{1, 3},
     [](T x) { return x.squeeze(1); }},
    {"unsqueeze", "front", "x0.unsqueeze(0)", Sizes{2, 3}, [](T x) { return x.unsqueeze(0); },
     [](A a) { return reshape(a, {1, 2, 3}); }},
    {"unsqueeze", "back", "x0.unsqueeze(-1)", Sizes{2, 3}, [](T x) { return x.unsqueeze(-1); },
     [](A a) { return reshape(a, {2, 3, 1}); }},
    {"expand", "", "x0.expand(2, 3, 4)", Sizes{3, 1}, [](T x) { return x.expand({2, 3, 4}); },
     [](A a) { return reference::expand(a, {2, 3, 4}); }},
    {"expand", "-1", "x0.expand(-1, 3)", Sizes{2, 1}, [](T x) { return x.expand({-1, 3}); },
     [](A a) { return reference::expand(a, {2, 3}); }},
    {"expand", "rank 0", "x0.expand(2, 2)", Sizes{}, [](T x) { return x.expand({2, 2}); },
     [](A a) { return reference::expand(a, {2, 2}); }},
    {"clone", "", "x0.clone()", Sizes{2, 3}, [](T x) { return x.clone(); }},
    {"contiguous", "", "x0.contiguous()", Sizes{2, 3}, [](T x) { return x.contiguous(); }},
    {"to", "a forced copy", "x0.to(x0.dtype, copy=True)", Sizes{2, 3},
     [](T x) { return x.to(x.dtype(), true); }},
};

/// Calls on a [2, 3] tensor with a dim or another number.
struct OfNumber {
  const char *op, *argument;
  Tensor (*call)(T, I);
  I rank = 2;
};
const OfNumber kOfDims[] = {
    {"select", "dim", [](T x, I d) { return x.select(d, 0); }},
    {"slice", "dim", [](T x, I d) { return x.slice(d, 0, 1); }},
    {"narrow", "dim", [](T x, I d) { return x.narrow(d, 0, 1); }},
    {"transpose", "a", [](T x, I d) { return x.transpose(d, 0); }},
    {"transpose", "b", [](T x, I d) { return x.transpose(0, d); }},
    {"flatten", "start", [](T x, I d) { return x.flatten(d); }},
    {"flatten", "end", [](T x, I d) { return x.flatten(0, d); }},
    {"squeeze", "dim", [](T x, I d) { return x.squeeze(d); }},
    {"unsqueeze", "dim", [](T x, I d) { return x.unsqueeze(d); }, 3},
};

void add_errors(Cases& list) {
  const auto x = [] { return made({2, 3}); };
  for (const OfNumber& f : kOfDims)
    BadInputs(list, f.op).dims(f.argument, [=](I d) { return f.call(x(), d); }, f.rank);
  for (const char* op : {"select", "slice", "narrow"})
    refuse(list, op, {{"dim", kIndex, "a tensor with dimensions, got a scalar", [op = op[1]] {
                         const Tensor scalar = made({});
                         if (op == 'e') return scalar.select(0, 0);
                         return op == 'l' ? scalar.slice(0, 0, 1) : scalar.narrow(0, 0, 0);
                       }}});
  BadInputs(list, "select")
      .integers("index", {3, -4, kMost, kLeast}, kIndex,
                "an index in \\[-3, 2\\] for dim 1 of .*got ",
                [x](I i) { return x().select(1, i); });
  BadInputs(list, "slice")
      .integers("step", {0, -1, kLeast}, kArgument, "step >= 1, got ",
                [x](I step) { return x().slice(1, 0, 2, step); })
      .free("start", "cut to the size, as in Python")
      .free("end", "cut to the size, as in Python");
  const char* const part = "a part of \\[0, 3\\) of dim 1, got start ";
  BadInputs(list, "narrow")
      .integers("start", {3, -4, kMost, kLeast}, kIndex, part,
                [x](I start) { return x().narrow(1, start, 1); })
      .integers("length", {3, -1, kMost, kLeast}, kIndex, part,
                [x](I length) { return x().narrow(1, 1, length); });
  refuse(list, "flatten",
         {{"start", kShape, "start <= end, got 1 and 0", [x] { return x().flatten(1, 0); }},
          {"end", kShape, "start <= end, got 1 and -2", [x] { return x().flatten(1, -2); }}});

  const struct {
    const char *op, *argument;
    Tensor (*call)(T, const Shape&);
    std::vector<Shape> shapes;
    const char *type, *text;
  } of_shapes[] = {
      {"permute", "dims", [](T t, const Shape& s) { return t.permute(s); },
       Shapes{{0}, {0, 1, 2}, {}}, kShape, "2 dims, got "},
      {"permute", "dims", [](T t, const Shape& s) { return t.permute(s); }, Shapes{{0, 0}, {1, -1}},
       kShape, "each dim once, got "},
      {"permute", "dims", [](T t, const Shape& s) { return t.permute(s); }, Shapes{{0, 2}, {-3, 0}},
       kIndex, "a dim in \\[-2, 1\\], got "},
      {"reshape", "shape", [](T t, const Shape& s) { return t.reshape(s); },
       Shapes{{4}, {2, 2}, {-1, 4}, {0, -1}, {}}, kShape, "a shape of 6 elements, got "},
      {"reshape", "shape", [](T t, const Shape& s) { return t.reshape(s); },
       Shapes{{-1, -1}, {-2, 3}}, kShape, "sizes >= 0, got "},
      {"view", "shape", [](T t, const Shape& s) { return t.view(s); },
       Shapes{{4}, {2, 2}, {-1, 4}, {0, -1}, {}}, kShape, "a shape of 6 elements, got "},
      {"view", "shape", [](T t, const Shape& s) { return t.t().view(s); }, Shapes{{6}, {2, 3}},
       "LayoutError", "a tensor whose strides allow shape "},
      {"expand", "shape", [](T t, const Shape& s) { return t.expand(s); }, Shapes{{3}, {}}, kShape,
       "at least 2 sizes, got "},
      {"expand", "shape", [](T t, const Shape& s) { return t.expand(s); },
       Shapes{{2, 4}, {3, 3}, {-1, 2, 3}, {2, -2}}, kShape,
       "a shape that \\[2, 3\\] broadcasts to, got "},
  };
  for (const auto& f : of_shapes)
    BadInputs(list, f.op)
        .lists(f.argument, f.shapes, f.type, f.text,
               [x, call = f.call](const Shape& s) { return call(x(), s); });
  for (const std::string name : {"cpu:99", "cuda:99", "cpu:1023", "gpu"})
    BadInputs(list, "to", "device")
        .refused("DeviceError",
                 str("device: expected ", name == "gpu" ? "cpu, cpu:<index>" : "one of "),
                 [x, name] { return x().to(Device(name)); });
  BadInputs(list, "to").free("dtype", "every type can be converted to every other");
}

}  // namespace

void add_views_cases(Cases& list) {
  for (const Arrangement& v : kViews) add_arrangement(list, v);
  add_errors(list);
  parameters(
      list,
      "expand(shape) flatten(start end) narrow(dim start length) permute(dims) reshape(shape) "
      "select(dim index) slice(dim start end step) squeeze(dim) squeeze() to(device dtype "
      "non_blocking copy) "
      "to(dtype copy) unsqueeze(dim) view(shape)");
}

}  // namespace braid::test
