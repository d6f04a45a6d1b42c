#include "op_errors.hpp"

#include <limits>
#include <stdexcept>

#include <braid/core/memory.hpp>

namespace braid::test {
namespace {

/// No request of more than a GiB is served on here() while this lives.
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

Tensor huge(Sizes lead, std::int64_t n, DType dtype) {
  lead.push_back(1);
  const Tensor one = on_device::random_tensor(lead, dtype);
  lead.back() = n;
  return one.expand(Shape(lead));
}

BadInputs::BadInputs(std::vector<OpCase>& list, const std::string& op) : op_(op) {
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

BadInputs& BadInputs::free(const char* parameter, const char* reason) {
  case_->free.push_back({parameter, reason});
  return *this;
}

BadInputs& BadInputs::undefined(const OfTensor& f) {
  return refused("ArgumentError", "expected a defined tensor, got an undefined one",
                 [f] { f(Tensor()); });
}

BadInputs& BadInputs::no_room(const OfTensor& f, const Sizes& lead, DType dtype) {
  return refused("OutOfMemoryError", "allocate: expected [0-9]+ free bytes", [f, lead, dtype] {
    const Tensor x = huge(lead, std::int64_t{1} << 34, dtype);
    const LittleMemory little;
    f(x);
  });
}

BadInputs& BadInputs::too_large(const OfTensor& f, const Sizes& lead) {
  return refused("ShapeError", "expected at most 2\\^63 - 1 bytes",
                 [f, lead] { f(huge(lead, std::int64_t{1} << 62, DType::uint8)); });
}

BadInputs& BadInputs::elsewhere(const OfTensor& f, const Sizes& shape, DType dtype) {
  return refused("DeviceError", "expected tensors on one device, got ",
                 [f, shape, dtype] { f(random_tensor(shape, dtype, there())); });
}

BadInputs& BadInputs::types(const OfTensor& f, const Sizes& shape, const std::vector<DType>& list,
                            const std::string& text) {
  for (const DType t : list)
    refused("DTypeError", op_ + ": " + text,
            [f, shape, t] { f(on_device::random_tensor(shape, t)); });
  return *this;
}

BadInputs& BadInputs::shapes(const OfTensor& f, const std::vector<Sizes>& list,
                             const std::string& text, const char* type, DType dtype) {
  for (const Sizes& s : list)
    refused(type, op_ + ": " + text, [f, s, dtype] { f(on_device::random_tensor(s, dtype)); });
  return *this;
}

BadInputs& BadInputs::dims(const std::function<void(std::int64_t)>& f, std::int64_t rank) {
  for (const std::int64_t dim : {rank, -rank - 1, std::numeric_limits<std::int64_t>::max()})
    refused("IndexError", op_ + ": expected a dim in", [f, dim] { f(dim); });
  return *this;
}

}  // namespace braid::test
