#pragma once
// Writes down the bad inputs of an op in a few words: BadInputs(list,
// "softmax").of("x").undefined(f).types(f, {2}, {DType::int64}).of("dim").dims(…);
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "op_cases.hpp"
#include "support/on_device.hpp"

namespace braid::test {

/// A tensor on here() whose last size is `n`, all of them one element in memory: a size that only a
/// view can have.
[[nodiscard]] Tensor huge(Sizes lead, std::int64_t n, DType dtype = DType::float32);

/// Adds to the bad inputs of an op. `f` is always the op as a function of the argument in question;
/// what it returns does not matter, where it waits for the device (`awaited`) a check of the kernel
/// is seen too. Texts are regular expressions; those of types, shapes, dims and values get the name
/// of the op before them.
class BadInputs {
 public:
  using OfTensor = std::function<void(const Tensor&)>;

  /// They are kept in the first record of the op, which must be in the list.
  BadInputs(std::vector<OpCase>& list, const std::string& op);
  /// The next ones are of this parameter.
  BadInputs& of(const char* parameter);
  /// Any call; the text is taken as it stands.
  BadInputs& refused(const char* type, const std::string& text, std::function<void()> call);
  /// The parameter cannot be wrong in three ways.
  BadInputs& free(const char* parameter, const char* reason);

  // ---- what many ops refuse
  BadInputs& undefined(const OfTensor& f);
  /// A result of 64 GiB where a GiB is allowed.
  BadInputs& no_room(const OfTensor& f, const Sizes& lead = {}, DType dtype = DType::float32);
  /// uint8 numbers that become too many bytes as float32.
  BadInputs& too_large(const OfTensor& f, const Sizes& lead = {});
  /// On another device than the op's other tensors.
  BadInputs& elsewhere(const OfTensor& f, const Sizes& shape, DType dtype = DType::float32);
  BadInputs& types(const OfTensor& f, const Sizes& shape, const std::vector<DType>& list,
                   const std::string& text);
  BadInputs& shapes(const OfTensor& f, const std::vector<Sizes>& list, const std::string& text,
                    const char* type = "ShapeError", DType dtype = DType::float32);
  /// Three dims that a tensor of this rank has not.
  BadInputs& dims(const std::function<void(std::int64_t)>& f, std::int64_t rank);
  /// Any other value, each as a case of its own.
  template <class V>
  BadInputs& values(const std::type_identity_t<std::function<void(const V&)>>& f,
                    const std::vector<V>& list, const char* type, const std::string& text) {
    for (const V& v : list) refused(type, op_ + ": " + text, [f, v] { f(v); });
    return *this;
  }

 private:
  OpCase* case_ = nullptr;
  std::string op_, parameter_;
};

// By family, called at the end of add_<family>_cases.
namespace on_device {
void add_elementwise_errors(std::vector<OpCase>& list);
void add_reduction_errors(std::vector<OpCase>& list);
void add_product_errors(std::vector<OpCase>& list);
void add_join_errors(std::vector<OpCase>& list);
void add_view_errors(std::vector<OpCase>& list);
void add_shape_errors(std::vector<OpCase>& list);
void add_loss_errors(std::vector<OpCase>& list);
void add_inplace_errors(std::vector<OpCase>& list);
}  // namespace on_device

}  // namespace braid::test
