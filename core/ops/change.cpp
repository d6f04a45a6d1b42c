#include "change.hpp"

#include "inplace.hpp"

namespace braid {

const Tensor& ops::change(const char* op, const Tensor& t,
                          const std::function<Tensor(const Tensor& old)>& f) {
  check_in_place(op, t, {});
  bool recorded = true;
  const auto result = [&](const Tensor& old) {
    const Tensor y = f(old);
    if (y.shape() != t.shape())
      throw ShapeError(str(op, ": expected a result of shape ", t.shape(), ", got ", y.shape()));
    if ((is_floating(y.dtype()) && !is_floating(t.dtype())) ||
        (y.dtype() != DType::bool_ && t.dtype() == DType::bool_))
      throw DTypeError(
          str(op, ": expected a result that ", t.dtype(), " can hold, got ", y.dtype()));
    const Tensor z = y.to(t.dtype());
    recorded = z.requires_grad();
    return z;
  };
  if (!needs_grad({t})) {
    const Tensor y = result(t);
    if (!recorded) {
      if (y.id() == t.id()) return t;
      copy_values(t, y);
      t.storage()->bump_version();
      return t;
    }
    check_in_place(op, t, y);  // another operand requires a gradient
  }
  recorded_in_place(t, result);
  if (!recorded) t.id()->grad_fn = {};  // the new values do not depend on the old graph
  return t;
}

}  // namespace braid
