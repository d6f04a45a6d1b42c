#include "change.hpp"

#include "inplace.hpp"
#include "map.hpp"

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
    check_device(op, t, y);
    const Tensor z = y.to(t.dtype());
    recorded = z.requires_grad();
    if (recorded || !needs_grad({old})) return z;
    // The new values do not depend on the old ones. Views of t, or the tensor that t is a view of,
    // must learn that.
    return record(op, {old}, z.clone(),
                  [](const Tensor& dy) -> Grads { return {ops::zeros_as(dy)}; });
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
  return recorded_in_place(t, result);
}

}  // namespace braid
