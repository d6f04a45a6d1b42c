#pragma once
#include <iosfwd>
#include <map>
#include <stdexcept>
#include <string>

#include <braid/core/tensor.hpp>

// Reads the files of tests/goldens (format: README.md there).
namespace braid::testing {

/// One golden file: tensors and texts by name.
class Goldens {
 public:
  /// Reads tests/goldens/<file>; tensor() returns its tensors on `device`. Throws
  /// std::runtime_error that names the file and what is wrong with it.
  explicit Goldens(const std::string& file, Device device = {});

  [[nodiscard]] bool has(const std::string& name) const { return tensors_.count(name) != 0; }
  /// Returns a copy of the tensor, so changing it changes no golden. Throws std::runtime_error for
  /// an unknown name.
  [[nodiscard]] Tensor tensor(const std::string& name) const {
    return find(tensors_, name).to(device_, {}, true);
  }
  [[nodiscard]] const std::string& text(const std::string& name) const {
    return find(texts_, name);
  }
  [[nodiscard]] const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  [[nodiscard]] const std::map<std::string, std::string>& texts() const { return texts_; }

 private:
  template <class T>
  const T& find(const std::map<std::string, T>& map, const std::string& name) const {
    const auto at = map.find(name);
    if (at == map.end()) throw std::runtime_error("goldens: " + file_ + " has no " + name);
    return at->second;
  }

  void read_tensor(std::istream& in);
  void read_text(std::istream& in);

  std::string file_;
  Device device_;
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> texts_;
};

/// Returns "" if `got` has the shape and dtype of `want` and |got - want| <= atol + rtol |want|
/// everywhere, else the difference. NaN is never close.
[[nodiscard]] std::string difference(const Tensor& got, const Tensor& want, double rtol,
                                     double atol);
/// The same with tolerances that depend on the dtype: a few operations' rounding errors.
[[nodiscard]] std::string difference(const Tensor& got, const Tensor& want);

}  // namespace braid::testing
