#include <braid/core/kernel_args/elementwise.hpp>

#include "cuda/device/map.cuh"
#include "cuda/kernels.hpp"

// out = condition ? a : b, as bits: works for any dtype by the size of its elements.
namespace braid::cuda {

template <class T> struct Select {
  static constexpr int kOperands = 4, kPack = pack_size<T>();
  T* out;
  const std::uint8_t* condition;
  const T* a;
  const T* b;
  [[nodiscard]] int head() const { return common_head<kPack>(out, condition, a, b); }
  BRAID_DEVICE void element(const Offsets<4>& o) const {
    out[o.at[0]] = condition[o.at[1]] != 0 ? a[o.at[2]] : b[o.at[3]];
  }
  BRAID_DEVICE void pack(std::int64_t i) const {
    const auto c = load_pack<kPack>(condition + i);
    const auto x = load_pack<kPack>(a + i);
    const auto y = load_pack<kPack>(b + i);
    Pack<T, kPack> to;
#pragma unroll
    for (int k = 0; k < kPack; ++k) to.v[k] = c.v[k] != 0 ? x.v[k] : y.v[k];
    store_pack(out + i, to);
  }
};

void where(const WhereArgs& args, Stream& stream) {
  with_bits(size_of(args.dtype), [&]<class T>() {
    map("where",
        Select<T>{static_cast<T*>(args.out), static_cast<const std::uint8_t*>(args.condition),
                  static_cast<const T*>(args.a), static_cast<const T*>(args.b)},
        args.loop, stream);
  });
}

}  // namespace braid::cuda
