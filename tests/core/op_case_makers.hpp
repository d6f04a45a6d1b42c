#pragma once
// Short ways to write records of ops, and their bad inputs: BadInputs(list, "softmax").of("x")
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

/// The type of a bad input's exception.
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

// Types of results.
inline DType floating(DType t) { return is_floating(t) ? t : DType::float32; }
inline DType boolean(DType) { return DType::bool_; }
inline DType as_int64(DType) { return DType::int64; }
inline DType widened(DType t) { return is_floating(t) ? t : DType::int64; }

/// On here().
Tensor ones_of(const Shape& shape, DType dtype = DType::float32);
Tensor made(const Shape& shape, DType dtype = DType::float32);  ///< random numbers
Tensor indices(const Literal& numbers);

inline double log2_ceil(double n) { return n > 1 ? std::ceil(std::log2(n)) : 0; }
Array times(A a, double factor);
/// The bound of a sum of products: so many roundings of the sum of their sizes, which is what is
/// expected of the inputs' sizes.
void bound_by_sizes(OpCase& c, std::function<double(Arrays inputs, A result)> roundings);

/// Adds a record; call and expected are still to be set.
OpCase& push(Cases& list, const std::string& op, const std::string& variant, std::string torch,
             std::vector<Input> inputs, Types dtypes = kAll, Accuracy accuracy = Accuracy::exact);

/// Of one tensor.
OpCase& of_one(Cases& list, const std::string& op, const std::string& variant, std::string torch,
               Input input, const Types& dtypes, std::function<Tensor(T)> call,
               std::function<Array(A)> expected);

/// A function of elements: op, what is special, the call in PyTorch's words, the call, the same of
/// one number.
struct Unary {
  const char *op, *variant, *torch;
  Tensor (*call)(T);
  double (*expected)(double);
  Kind kind = Kind::value;
};
/// One that PyTorch has by the same name, in a precision that rounds once.
struct Function1 {
  const char* op;
  Tensor (*call)(T);
  L (*expected)(L);
  Kind kind = Kind::value;
};
/// Of one tensor of shapes [2, 3, 2], and without a variant of [1] and [0, 3].
void add_unary(Cases& list, const Unary& f, const Types& dtypes, Accuracy accuracy,
               DType (*result)(DType) = floating, bool differentiable = true);
void add_unary(Cases& list, const Function1& f, const Types& dtypes, Accuracy accuracy,
               DType (*result)(DType) = floating, bool differentiable = true);

/// The same elements in another shape: by default all of them as they were.
struct Arrangement {
  const char *op, *variant, *torch;
  Sizes shape;
  Tensor (*call)(T);
  Array (*expected)(A) = [](A a) { return a; };
};
OpCase& add_arrangement(Cases& list, const Arrangement& f, const Types& dtypes = kAll);

/// Elements of pairs.
using Of2 = double (*)(double, double);
std::function<std::vector<Array>(Arrays)> zipping(Of2 f);

/// Dims of a reduction.
struct Dims {
  const char* variant;
  Sizes shape, dims;
  bool keepdim;
};
/// A tuple of Python's.
std::string tuple(const Sizes& sizes);

/// A tensor on here() whose last size is `n`, all of them one element in memory: a size that only a
/// view can have.
Tensor huge(Sizes lead, I n, DType dtype = DType::float32);

/// Adds to the bad inputs of an op. `f` is always the op as a function of the argument in question;
/// what it returns does not matter, where it waits for the device (`awaited`) a check of the kernel
/// is seen too. Texts are regular expressions; all but those of refused() get the name of the op
/// and ": expected " before them.
class BadInputs {
 public:
  using OfTensor = std::function<void(T)>;

  /// They are kept in the first record of the op, which must be in the list.
  BadInputs(Cases& list, const std::string& op, std::string parameter = {});
  /// The next ones are of this parameter.
  BadInputs& of(const char* parameter);
  /// Any call; the text is taken as it stands.
  BadInputs& refused(const char* type, const std::string& text, std::function<void()> call);
  BadInputs& is(const char* type, const std::string& text, std::function<void()> call);
  /// The parameter cannot be wrong in three ways.
  BadInputs& free(const char* parameter, const char* reason);

  // ---- what many ops refuse; with a parameter first, the next ones are of it too
  BadInputs& undefined(const OfTensor& f);
  /// An undefined one; with a shape also one on another device than the op's other tensors.
  BadInputs& tensor(const char* parameter, const OfTensor& f);
  BadInputs& tensor(const char* parameter, const OfTensor& f, const Sizes& shape,
                    DType dtype = DType::float32);
  /// A result of 64 GiB where a GiB is allowed.
  BadInputs& no_room(const OfTensor& f, const Sizes& lead = {}, DType dtype = DType::float32);
  /// uint8 numbers that become too many bytes as float32.
  BadInputs& too_large(const OfTensor& f, const Sizes& lead = {});
  BadInputs& elsewhere(const OfTensor& f, const Sizes& shape, DType dtype = DType::float32);
  /// Where the text ends with "got ", the type follows, the shape in shapes(), the number in
  /// integers().
  BadInputs& types(const OfTensor& f, const Sizes& shape, const Types& list,
                   const std::string& text = "a floating point tensor, got ");
  BadInputs& shapes(const OfTensor& f, const std::vector<Sizes>& list, const std::string& text,
                    const char* type = kShape, DType dtype = DType::float32);
  /// Three dims that a tensor of this rank has not.
  BadInputs& dims(const char* parameter, const std::function<void(I)>& f, I rank = 2);
  /// Any other value, each as a case of its own.
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

/// The same as rows.
struct BadRow {
  const char *argument, *type;
  std::string text;
  std::function<void()> call;
};
void refuse(Cases& list, const std::string& op, const std::vector<BadRow>& rows);

/// What any op with a tensor refuses: one that was never made, one moved away, and more than there
/// is room for.
BadInputs bad_tensor(Cases& list, const char* op, const BadInputs::OfTensor& f);

}  // namespace braid::test
