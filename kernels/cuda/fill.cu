#include <cstring>

#include <braid/core/internal/kernel_args/elementwise.hpp>

#include "cuda/device/map.cuh"
#include "cuda/kernels.hpp"

// out = value, as bits.
namespace braid::cuda {

template <class T> struct Fill {
  static constexpr int kOperands = 1, kPack = pack_size<T>();
  T* out;
  T value;
  [[nodiscard]] int head() const { return common_head<kPack>(out); }
  BRAID_DEVICE void element(const Offsets<1>& o) const { out[o.at[0]] = value; }
  BRAID_DEVICE void pack(std::int64_t i) const {
    Pack<T, kPack> to;
#pragma unroll
    for (int k = 0; k < kPack; ++k) to.v[k] = value;
    store_pack(out + i, to);
  }
};

void fill(const FillArgs& args, Stream& stream) {
  std::uint64_t bits = 0;
  if (args.dtype == DType::int64) {
    std::memcpy(&bits, &args.integer, sizeof bits);
  } else {
    with_element(args.dtype, [&]<class E>() {
      const typename E::T value = E::from_double(args.value);
      std::memcpy(&bits, &value, sizeof value);
    });
  }
  with_bits(size_of(args.dtype), [&]<class T>() {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    map("fill", Fill<T>{static_cast<T*>(args.out), value}, args.loop, stream);
  });
}

}  // namespace braid::cuda
