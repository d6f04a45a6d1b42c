#pragma once
// Short forms for records of ops and their bad inputs: BadInputs(list, "softmax").of("x")
// .undefined(f).types(f, {2}, {DType::int64}).of("dim").dims(…);
#include <cmath>
#include <limits>
#include <utility>

#include <braid/core/ops/create.hpp>

#include "op_cases.hpp"
#include "reference/elementwise.hpp"
#include "support/on_device.hpp"

namespace braid::test {

using T = const Tensor&;
using A = const Array&;
using Tensors = const std::vector<Tensor>&;
using Arrays = const std::vector<Array>&;
using Numbers1 = const std::vector<double>&;
using Cases = std::vector<OpCase>;
using Shapes = std::vector<Shape>;
using Doubles = std::vector<double>;
using I = std::int64_t;
using L = long double;
using Kind = Input::Kind;

/// The exception type of a bad input.
inline constexpr const char *kArgument = "ArgumentError", *kType = "DTypeError",
                            *kIndex = "IndexError", *kShape = "ShapeError";
inline constexpr I kMost = std::numeric_limits<I>::max(), kLeast = std::numeric_limits<I>::min();
inline constexpr double kInf = std::numeric_limits<double>::infinity(),
                        kNan = std::numeric_limits<double>::quiet_NaN();

using Types = std::vector<DType>;
inline const Types kAll = all_dtypes(), kFloats = floating_dtypes(),
                   kSigned{DType::int32,    DType::int64,   DType::float16,
                           DType::bfloat16, DType::float32, DType::float64},
                   kNumbers{DType::uint8,    DType::int32,   DType::int64,  DType::float16,
                            DType::bfloat16, DType::float32, DType::float64},
                   kWhole{DType::bool_, DType::uint8, DType::int32, DType::int64},
                   kWide{DType::int32, DType::int64, DType::float32, DType::float64};

// Dtypes of results.
inline DType floating(DType t) { return is_floating(t) ? t : DType::float32; }
inline DType boolean(DType) { return DType::bool_; }
inline DType as_int64(DType) { return DType::int64; }
inline DType widened(DType t) { return is_floating(t) ? t : DType::int64; }

/// These tensors are on here().
Tensor ones_of(const Shape& shape, DType dtype = DType::float32);
Tensor made(const Shape& shape, DType dtype = DType::float32);  ///< random numbers
Tensor indices(const Literal& numbers);

inline double log2_ceil(double n) { return n > 1 ? std::ceil(std::log2(n)) : 0; }
Array times(A a, double factor);
/// Returns how many elements of `a` each element of `results` combines.
double terms_of(A a, A results);
/// Sets the bound of a sum of products: `roundings` of the sum of the magnitudes. That sum is what
/// the reference computes from the magnitudes of the inputs.
void bound_by_sizes(OpCase& c, std::function<double(Arrays inputs, A result)> roundings);

/// The number of roundings of a dot product: one per term, and `more`.
std::function<double(Arrays, A)> terms_and(double more);

/// Adds a record; the caller sets `call` and `expected`.
OpCase& push(Cases& list, const std::string& op, const std::string& variant, std::string torch,
             std::vector<Input> inputs, Types dtypes = kAll, Accuracy accuracy = Accuracy::exact);

/// Adds a case with one input.
OpCase& of_one(Cases& list, const std::string& op, const std::string& variant, std::string torch,
               Input input, const Types& dtypes, std::function<Tensor(T)> call,
               std::function<Array(A)> expected);

/// An elementwise function: op, variant, the call in PyTorch, the call, and the same function of
/// one number.
struct Unary {
  const char *op, *variant, *torch;
  Tensor (*call)(T);
  double (*expected)(double);
  Kind kind = Kind::value;
};
/// A function with the same name in PyTorch; the reference has enough precision to round once.
struct Function1 {
  const char* op;
  Tensor (*call)(T);
  L (*expected)(L);
  Kind kind = Kind::value;
};
/// Adds cases of shape [2, 3, 2] and, without a variant, of shapes [1] and [0, 3].
void add_unary(Cases& list, const Unary& f, const Types& dtypes, Accuracy accuracy,
               DType (*result)(DType) = floating, bool differentiable = true);
void add_unary(Cases& list, const Function1& f, const Types& dtypes, Accuracy accuracy,
               DType (*result)(DType) = floating, bool differentiable = true);

/// Adds a case of shape [2, 3, 2].
OpCase& of_numbers(Cases& list, const char* op, const std::string& variant,
                   const std::string& torch, Kind kind, const Types& dtypes, Accuracy accuracy,
                   std::function<Tensor(T)> call, std::function<double(double)> expected);

/// The elements in another shape; by default the elements and their order stay the same.
struct Arrangement {
  const char *op, *variant, *torch;
  Sizes shape;
  Tensor (*call)(T);
  Array (*expected)(A) = [](A a) { return a; };
};
OpCase& add_arrangement(Cases& list, const Arrangement& f, const Types& dtypes = kAll);

/// A function of two numbers, applied elementwise.
using Of2 = double (*)(double, double);
std::function<std::vector<Array>(Arrays)> zipping(Of2 f);

inline const char* const kBroadcast = "shapes that broadcast .*got ";

/// A function of two tensors with the same name in PyTorch.
struct Function2 {
  const char* op;
  Tensor (*call)(T, T);
  Of2 expected;
  const Types& dtypes;
  Kind a = Kind::value, b = Kind::value;
};
/// Adds cases of equal and broadcast shapes, and the bad inputs of any function of two tensors.
void add_binary(Cases& list, const Function2& f, DType (*result)(DType), bool differentiable);
/// A function of two tensors, with its call in PyTorch.
struct Binary {
  const char *op, *torch;
  Tensor (*call)(T, T);
  Of2 expected;
  const Types& dtypes;
  Kind a = Kind::value, b = Kind::value;
  Accuracy accuracy = Accuracy::exact;
  DType (*result)(DType) = same;
};
/// Adds cases with equal shapes, broadcasting on both sides, rank 0, one element and no element,
/// and the bad inputs of any op on two tensors.
void add_binary(Cases& list, const Binary& f, bool differentiable);

/// The dims of a reduction.
struct Dims {
  const char* variant;
  Sizes shape, dims;
  bool keepdim;
};
/// Tensors and a dim of them.
struct Line {
  const char* variant;
  Sizes shape;
  I dim;
};
inline const std::vector<Line> kLines{{"last dim", {3, 4}, -1},     {"first dim", {3, 4}, 0},
                                      {"middle dim", {2, 3, 2}, 1}, {"vector", {5}, 0},
                                      {"rank 0", {}, -1},           {"dim of size 1", {3, 1}, 1}};
/// Returns a Python tuple.
std::string tuple(const Sizes& sizes);

/// Returns a tensor on here() whose last size is `n`. All its elements are the same element in
/// memory: only a view can have such a size.
Tensor huge(Sizes lead, I n, DType dtype = DType::float32);

/// Adds to the bad inputs of an op. `f` is always the op as a function of the argument that is
/// tested. Its result does not matter; if it waits for the device (`awaited`), errors of kernels
/// are detected too. Texts are regular expressions. All except those of refused() are prefixed with
/// the op's name and ": expected ".
class BadInputs {
 public:
  using OfTensor = std::function<void(T)>;

  /// The bad inputs are stored in the first record of the op, which must be in the list.
  BadInputs(Cases& list, const std::string& op, std::string parameter = {});
  /// Selects the parameter for the following calls.
  BadInputs& of(const char* parameter);
  /// Adds any call; the text is taken without a prefix.
  BadInputs& refused(const char* type, const std::string& text, std::function<void()> call);
  BadInputs& is(const char* type, const std::string& text, std::function<void()> call);
  /// Declares that the parameter cannot be wrong in three ways.
  BadInputs& free(const char* parameter, const char* reason);

  // ---- what many ops reject; a parameter given first also applies to the following calls
  BadInputs& undefined(const OfTensor& f);
  /// An undefined tensor; with a shape, also one on another device than the op's other tensors.
  BadInputs& tensor(const char* parameter, const OfTensor& f);
  BadInputs& tensor(const char* parameter, const OfTensor& f, const Sizes& shape,
                    DType dtype = DType::float32);
  /// A result of 64 GiB where 1 GiB is allowed.
  BadInputs& no_room(const OfTensor& f, const Sizes& lead = {}, DType dtype = DType::float32);
  /// uint8 numbers that need too many bytes as float32.
  BadInputs& too_large(const OfTensor& f, const Sizes& lead = {});
  BadInputs& elsewhere(const OfTensor& f, const Sizes& shape, DType dtype = DType::float32);
  /// If the text ends with "got ", the dtype is appended; in shapes() the shape, in integers() the
  /// number.
  BadInputs& types(const OfTensor& f, const Sizes& shape, const Types& list,
                   const std::string& text = "a floating point tensor, got ");
  BadInputs& shapes(const OfTensor& f, const std::vector<Sizes>& list, const std::string& text,
                    const char* type = kShape, DType dtype = DType::float32);
  /// Three dims that a tensor of this rank does not have.
  BadInputs& dims(const char* parameter, const std::function<void(I)>& f, I rank = 2);
  /// Any other values, each as a separate case.
  BadInputs& integers(const char* parameter, const std::vector<I>& list, const char* type,
                      const std::string& text, const std::function<void(I)>& f);
  BadInputs& numbers(const char* parameter, const std::vector<double>& list, const char* type,
                     const std::string& text, const std::function<void(double)>& f);
  BadInputs& lists(const char* parameter, const Shapes& list, const char* type,
                   const std::string& text, const std::function<void(const Shape&)>& f);

 private:
  OpCase* case_ = nullptr;
  std::string op_, parameter_;
};

/// States the names of an op's parameters, in the order of the declaration, for each overload:
/// "norm(x p dims keepdim) sum(x dims keepdim) sum(x)". If all are (), (x) or (a b), nothing is
/// stated; SumAndCount never is. core.op_symbols compares them with the types of the functions that
/// are compiled, and with the bad inputs.
void parameters(Cases& list, const std::string& overloads);

/// Bad inputs in the form of rows.
struct BadRow {
  const char *argument, *type;
  std::string text;
  std::function<void()> call;
};
void refuse(Cases& list, const std::string& op, const std::vector<BadRow>& rows);

// Bad inputs of ops along dims.
Tensor zeros_of(const Shape& shape);  ///< on here()
/// Adds dims that are invalid for [2, 3].
void refuse_dim(Cases& list, const char* op, const char* argument,
                const std::function<void(T, I)>& f);
/// The same, and an undefined x and an x without the dim.
void refuse_dims(Cases& list, const char* op, const char* argument,
                 const std::function<void(T, I)>& f);
/// The same of an op for which rank 0 counts as one element.
void refuse_lines(Cases& list, const char* op, const std::function<void(T, I)>& f,
                  const char* name = "dim");
void refuse_undefined(Cases& list, const char* op, const BadInputs::OfTensor& f);

/// Adds what any op with a tensor rejects: an undefined tensor, a moved-from tensor, and one that
/// needs more memory than there is.
BadInputs bad_tensor(Cases& list, const char* op, const BadInputs::OfTensor& f);

}  // namespace braid::test
