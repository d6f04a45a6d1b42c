#include "op_case_makers.hpp"

#include <algorithm>
#include <regex>
#include <stdexcept>

#include <braid/core/memory.hpp>

namespace braid::test {
namespace {

const char* const kUndefined = "tensor: expected a defined tensor, got an undefined one";

/// If the text ends with "got ", appends `got`, possibly after other words: the order in which two
/// tensors are named depends on the op.
std::string with(const std::string& text, const std::string& got) {
  if (!text.ends_with("got ")) return text;
  static const std::regex brackets(R"([\[\]])");
  return text + "(.* and )?" + std::regex_replace(got, brackets, R"(\$&)");
}

/// Limits the memory of here() to 1 GiB during its lifetime.
class LittleMemory {
 public:
  LittleMemory() : before_(memory_stats(here()).capacity) {
    set_memory_capacity(here(), std::size_t{1} << 30);
  }
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;
  ~LittleMemory() { set_memory_capacity(here(), before_); }

 private:
  std::size_t before_;
};

}  // namespace

Tensor ones_of(const Shape& shape, DType dtype) { return on_device::ones(shape, {.dtype = dtype}); }
Tensor made(const Shape& shape, DType dtype) {
  return on_device::random_tensor(sizes_of(shape), dtype);
}
Tensor indices(const Literal& numbers) { return on_device::tensor(numbers); }

Array times(A a, double factor) {
  return reference::map(a, [factor](double x) { return factor * x; });
}

double terms_of(A a, A results) {
  return static_cast<double>(a.size()) / static_cast<double>(std::max<I>(results.size(), 1));
}

void bound_by_sizes(OpCase& c, std::function<double(Arrays, A)> roundings) {
  c.accuracy = Accuracy::bound;
  c.bound = [expected = c.expected, roundings = std::move(roundings)](Arrays a) {
    std::vector<Array> sizes;
    for (A x : a) sizes.push_back(reference::abs(x));
    std::vector<Array> bounds = expected(sizes);
    for (Array& b : bounds) b = times(b, roundings(a, b));
    return bounds;
  };
}

std::function<double(Arrays, A)> terms_and(double more) {
  return [more](Arrays a, A) { return static_cast<double>(a[0].shape.back()) + more; };
}

OpCase& push(Cases& list, const std::string& op, const std::string& variant, std::string torch,
             std::vector<Input> inputs, Types dtypes, Accuracy accuracy) {
  OpCase& c = list.emplace_back();
  c.op = op, c.variant = variant, c.torch = std::move(torch);
  c.inputs = std::move(inputs), c.dtypes = std::move(dtypes), c.accuracy = accuracy;
  return c;
}

namespace {

void add_of_elements(Cases& list, const Unary& f, const std::function<double(double)>& expected,
                     const std::string& torch, const Types& dtypes, Accuracy accuracy,
                     DType (*result)(DType), bool differentiable) {
  const Sizes shapes[] = {{2, 3, 2}, {1}, {0, 3}};
  const char* names[] = {f.variant, "one element", "empty"};
  for (int i = 0; i < (f.variant[0] == 0 ? 3 : 1); ++i) {
    OpCase& c = of_one(list, f.op, names[i], torch, {shapes[i], f.kind}, dtypes, f.call,
                       [expected](A a) { return reference::map(a, expected); });
    c.accuracy = accuracy;
    c.result = result;
    c.differentiable = differentiable;
  }
}

}  // namespace

void add_unary(Cases& list, const Unary& f, const Types& dtypes, Accuracy accuracy,
               DType (*result)(DType), bool differentiable) {
  add_of_elements(list, f, f.expected, f.torch, dtypes, accuracy, result, differentiable);
}
void add_unary(Cases& list, const Function1& f, const Types& dtypes, Accuracy accuracy,
               DType (*result)(DType), bool differentiable) {
  const auto expected = [r = f.expected](double x) { return static_cast<double>(r(L{x})); };
  add_of_elements(list, {f.op, "", "", f.call, nullptr, f.kind}, expected,
                  str("torch.", f.op, "(x0)"), dtypes, accuracy, result, differentiable);
}

OpCase& of_one(Cases& list, const std::string& op, const std::string& variant, std::string torch,
               Input input, const Types& dtypes, std::function<Tensor(T)> call,
               std::function<Array(A)> expected) {
  OpCase& c = push(list, op, variant, std::move(torch), {std::move(input)}, dtypes);
  c.call = function_of(std::move(call));
  c.expected = expecting(std::move(expected));
  return c;
}
OpCase& add_arrangement(Cases& list, const Arrangement& f, const Types& dtypes) {
  return of_one(list, f.op, f.variant, f.torch, {f.shape}, dtypes, f.call, f.expected);
}

std::function<std::vector<Array>(Arrays)> zipping(Of2 f) {
  return [f](Arrays a) { return std::vector<Array>{reference::zip(a.at(0), a.at(1), f)}; };
}

std::string tuple(const Sizes& sizes) {
  std::string text = "(";
  for (const I s : sizes) text += str(s, ", ");
  return text + ")";
}

Tensor huge(Sizes lead, I n, DType dtype) {
  lead.push_back(1);
  const Tensor one = made(lead, dtype);
  lead.back() = n;
  return one.expand(Shape(lead));
}

BadInputs::BadInputs(Cases& list, const std::string& op, std::string parameter)
    : op_(op), parameter_(std::move(parameter)) {
  for (OpCase& c : list)
    if (c.op == op && case_ == nullptr) case_ = &c;
  if (case_ == nullptr) throw std::logic_error("BadInputs: no case of " + op);
}

BadInputs& BadInputs::of(const char* parameter) {
  parameter_ = parameter;
  return *this;
}

BadInputs& BadInputs::refused(const char* type, const std::string& text,
                              std::function<void()> call) {
  case_->errors.push_back({parameter_, std::move(call), type, text});
  return *this;
}

BadInputs& BadInputs::is(const char* type, const std::string& text, std::function<void()> call) {
  return refused(type, op_ + ": expected " + text, std::move(call));
}

BadInputs& BadInputs::free(const char* parameter, const char* reason) {
  case_->free.push_back({parameter, reason});
  return *this;
}

BadInputs& BadInputs::undefined(const OfTensor& f) {
  return refused(kArgument, kUndefined, [f] { f(Tensor()); });
}

BadInputs& BadInputs::tensor(const char* parameter, const OfTensor& f) {
  return of(parameter).undefined(f);
}
BadInputs& BadInputs::tensor(const char* parameter, const OfTensor& f, const Sizes& shape,
                             DType dtype) {
  return of(parameter).undefined(f).elsewhere(f, shape, dtype);
}

BadInputs& BadInputs::no_room(const OfTensor& f, const Sizes& lead, DType dtype) {
  return refused("OutOfMemoryError", "allocate: expected [0-9]+ free bytes", [f, lead, dtype] {
    const Tensor x = huge(lead, I{1} << 34, dtype);
    const LittleMemory little;
    f(x);
  });
}

BadInputs& BadInputs::too_large(const OfTensor& f, const Sizes& lead) {
  return refused(kShape, "expected at most 2\\^63 - 1 bytes",
                 [f, lead] { f(huge(lead, I{1} << 62, DType::uint8)); });
}

BadInputs& BadInputs::elsewhere(const OfTensor& f, const Sizes& shape, DType dtype) {
  return refused("DeviceError", "expected tensors on one device, got ",
                 [f, shape, dtype] { f(random_tensor(shape, dtype, there())); });
}

BadInputs& BadInputs::types(const OfTensor& f, const Sizes& shape, const Types& list,
                            const std::string& text) {
  for (const DType t : list) is(kType, with(text, str(t)), [f, shape, t] { f(made(shape, t)); });
  return *this;
}

BadInputs& BadInputs::shapes(const OfTensor& f, const std::vector<Sizes>& list,
                             const std::string& text, const char* type, DType dtype) {
  for (const Sizes& s : list)
    is(type, with(text, str(Shape(s))), [f, s, dtype] { f(made(s, dtype)); });
  return *this;
}

BadInputs& BadInputs::dims(const char* parameter, const std::function<void(I)>& f, I rank) {
  of(parameter);
  for (const I dim : {rank, -rank - 1, kMost})
    is(kIndex, str("a dim in \\[", -rank, ", ", rank - 1, "\\], got ", dim), [f, dim] { f(dim); });
  return *this;
}

BadInputs& BadInputs::integers(const char* parameter, const std::vector<I>& list, const char* type,
                               const std::string& text, const std::function<void(I)>& f) {
  of(parameter);
  for (const I v : list) is(type, text.ends_with("got ") ? str(text, v) : text, [f, v] { f(v); });
  return *this;
}
BadInputs& BadInputs::numbers(const char* parameter, const Doubles& list, const char* type,
                              const std::string& text, const std::function<void(double)>& f) {
  of(parameter);
  for (const double v : list) is(type, text, [f, v] { f(v); });
  return *this;
}
BadInputs& BadInputs::lists(const char* parameter, const Shapes& list, const char* type,
                            const std::string& text, const std::function<void(const Shape&)>& f) {
  of(parameter);
  for (const Shape& v : list) is(type, text, [f, v] { f(v); });
  return *this;
}

void parameters(Cases& list, const std::string& overloads) {
  static const std::regex overload(R"((\S+)\(([^)]*)\) ?)");
  std::sregex_iterator at(overloads.begin(), overloads.end(), overload);
  std::size_t read = 0;
  for (; at != std::sregex_iterator(); ++at) {
    const std::string op = (*at)[1];
    const auto found =
        std::find_if(list.begin(), list.end(), [&](const OpCase& c) { return c.op == op; });
    if (found == list.end()) throw std::logic_error("parameters: no record above of " + op);
    found->overloads.push_back((*at)[2]);
    read += at->str().size();
  }
  if (read != overloads.size()) throw std::logic_error("parameters: cannot read " + overloads);
}

void refuse(Cases& list, const std::string& op, const std::vector<BadRow>& rows) {
  BadInputs bad(list, op);
  for (const BadRow& r : rows) bad.of(r.argument).is(r.type, r.text, r.call);
}

BadInputs bad_tensor(Cases& list, const char* op, const BadInputs::OfTensor& f) {
  BadInputs bad(list, op);
  const auto moved_away = [f] {
    Tensor x = ones_of({2});
    const Tensor taken = std::move(x);
    f(x);  // NOLINT(bugprone-use-after-move): that is the case
  };
  return bad.tensor("x", f).no_room(f).refused(kArgument, kUndefined, moved_away);
}

OpCase& of_numbers(Cases& list, const char* op, const std::string& variant,
                   const std::string& torch, Kind kind, const Types& dtypes, Accuracy accuracy,
                   std::function<Tensor(T)> call, std::function<double(double)> expected) {
  OpCase& c = of_one(list, op, variant, torch, {{2, 3, 2}, kind}, dtypes, std::move(call),
                     [r = std::move(expected)](A a) { return reference::map(a, r); });
  c.accuracy = accuracy;
  return c;
}

void add_binary(Cases& list, const Function2& f, DType (*result)(DType), bool differentiable) {
  static const struct {
    const char* variant;
    Sizes a, b;
  } shapes[] = {{"", {2, 3}, {2, 3}},
                {"broadcast right", {2, 3, 2}, {3, 1}},
                {"broadcast left", {3}, {2, 3}},
                {"broadcast both", {2, 1, 3}, {4, 1}},
                {"rank 0", {}, {2, 2}}};
  for (const auto& s : shapes) {
    OpCase& c = push(list, f.op, s.variant, str("torch.", f.op, "(x0, x1)"),
                     {{s.a, f.a}, {s.b, f.b}}, f.dtypes);
    c.call = function_of(f.call);
    c.expected = zipping(f.expected);
    c.differentiable = differentiable;
    c.kinks = f.a == Kind::distinct;
    c.result = result;
  }
  const auto call = f.call;
  const auto left = [call](T a) { return call(a, made({3})); };
  const auto right = [call](T b) { return call(made({2, 3}), b); };
  BadInputs bad(list, f.op);
  bad.tensor("a", left, {2, 3}).shapes(left, {{2}, {3, 4}}, kBroadcast);
  bad.no_room([call](T a) { return call(a, made({})); });
  bad.tensor("b", right, {2, 3});
  bad.shapes(right, {{2}, {2, 2}, {0, 1}}, kBroadcast)
      .refused(kShape, "expected at most 2\\^63 - 1 bytes",
               [call] { return call(huge({}, I{1} << 32).unsqueeze(1), huge({}, I{1} << 32)); });
}

void add_binary(Cases& list, const Binary& f, bool differentiable) {
  const struct {
    const char* variant;
    Sizes a, b;
  } shapes[] = {{"", {2, 3}, {2, 3}},
                {"broadcast", {2, 1, 3}, {4, 1}},
                {"rank 0", {}, {2, 2}},
                {"one element", {1}, {1}},
                {"empty", {0, 3}, {3}}};
  for (const auto& s : shapes) {
    OpCase& c =
        push(list, f.op, s.variant, f.torch, {{s.a, f.a}, {s.b, f.b}}, f.dtypes, f.accuracy);
    c.call = function_of(f.call);
    c.expected = zipping(f.expected);
    c.differentiable = differentiable;
    c.result = differentiable ? f.result : boolean;
  }
  const auto bad = [&](const char* which, const Shape& a, const Shape& b) {
    refuse(list, f.op,
           {{which, kShape, ".*got", [=, call = f.call] { call(ones_of(a), ones_of(b)); }}});
  };
  const auto call = f.call;
  BadInputs(list, f.op, "a")
      .refused(kArgument, kUndefined, [call] { return call(Tensor(), ones_of({2})); })
      .of("b")
      .refused(kArgument, kUndefined, [call] { return call(ones_of({2}), Tensor()); });
  bad("a", {2, 3}, {3, 2});
  bad("a", {4}, {2, 3});
  bad("b", {0}, {2});
  bad("b", {3, 2}, {2, 2, 2});
}

Tensor zeros_of(const Shape& shape) { return on_device::zeros(shape); }
void refuse_dim(Cases& list, const char* op, const char* argument,
                const std::function<void(T, I)>& f) {
  BadInputs(list, op).integers(argument, {2, -3, kMost, kLeast}, kIndex, ".*got ",
                               [f](I dim) { f(zeros_of({2, 3}), dim); });
}
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

void refuse_lines(Cases& list, const char* op, const std::function<void(T, I)>& f,
                  const char* name) {
  const auto along = [f](I dim) { f(on_device::zeros({2, 3}), dim); };
  BadInputs(list, op)
      .integers(name, {2, -3, kMost}, kIndex, ".*got ", along)
      .tensor("x", [f](T x) { f(x, 0); })
      .is(kIndex, ".*got 1", [f] { f(on_device::zeros({}), 1); })
      .is(kIndex, ".*got -2", [f] { f(on_device::zeros({2}), -2); });
}

}  // namespace braid::test
