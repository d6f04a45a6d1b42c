#include "op_case_makers.hpp"

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

}  // namespace braid::test
