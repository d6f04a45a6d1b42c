#pragma once
#include <cstring>

#include <braid/core/kernel_args/loop.hpp>

#include "cuda/device/loop.cuh"
#include "cuda/device/run.cuh"

// Elementwise kernels. A body computes one element (operands by offset) or kPack neighbouring
// elements. Two kernels run it: one for contiguous operands in packs of up to 16 bytes, one for
// others, element by element.
// Traffic  each operand once. If all contiguous operands are at the same distance from an aligned
//          address, a few single elements precede the packs; otherwise they are read element by
//          element, still coalesced.
namespace braid::cuda {

/// Computes elements [0, head) and the last ones singly, those between in packs.
template <class Body>
__global__ void __launch_bounds__(kThreads)
    map_dense(Body body, std::int64_t n, std::int64_t head, std::int64_t packs) {
#pragma unroll 1  // no unrolling: out may be an operand, so loads cannot pass stores
  for (std::int64_t p = grid_thread(); p < packs; p += grid_threads())
    body.pack(head + p * Body::kPack);
  const std::int64_t packed = packs * Body::kPack;
#pragma unroll 1
  for (std::int64_t i = grid_thread(); i < n - packed; i += grid_threads())
    body.element(same_offsets<Body::kOperands>(i < head ? i : i + packed));
}

template <class Body>
__global__ void __launch_bounds__(kThreads)
    map_strided(Body body, DeviceLoop<Body::kOperands> loop) {
#pragma unroll 1
  for (std::int64_t i = grid_thread(); i < loop.n; i += grid_threads())
    body.element(offsets_of(loop, i));
}

/// Queues a body over all elements of a loop.
template <class Body> void map(const char* op, const Body& body, const Loop& loop, Stream& stream) {
  if (loop.n <= 0) return;
  if (loop.dense) {
    const int head = body.head();
    const std::int64_t packs = head >= 0 && head < loop.n ? (loop.n - head) / Body::kPack : 0;
    const std::int64_t threads = packs > 0 ? packs : loop.n;
    run(op, map_dense<Body>, blocks_for(threads, kThreads), kThreads, stream, body, loop.n,
        packs > 0 ? head : 0, packs);
  } else {
    run(op, map_strided<Body>, blocks_for(loop.n, kThreads), kThreads, stream, body,
        make_loop<Body::kOperands>(loop));
  }
}

/// Returns the number of elements before the first that may be accessed in packs of N, if it is the
/// same for all operands that are not null, else -1.
template <int N, class... T> int common_head(const T*... operand) {
  int common = -1;
  bool same = true;
  const auto look = [&](const auto* p) {
    using U = std::remove_cv_t<std::remove_pointer_t<decltype(p)>>;
    if (p == nullptr) return;
    const auto past = reinterpret_cast<std::uintptr_t>(p) % alignof(Pack<U, N>);
    const int head = past == 0 ? 0 : static_cast<int>((alignof(Pack<U, N>) - past) / sizeof(U));
    same = same && (common < 0 || common == head);
    common = head;
  };
  (look(operand), ...);
  return same ? common : -1;
}

/// The number of elements in a pack of these types: the largest type fills 16 bytes.
template <class... T> constexpr int pack_size() {
  std::size_t largest = 1;
  ((largest = sizeof(T) > largest ? sizeof(T) : largest), ...);
  return static_cast<int>(16 / largest);
}

/// F may limit the length of packs.
template <class F> constexpr int pack_limit() {
  if constexpr (requires { F::kPackLimit; }) return F::kPackLimit;
  else return 16;
}
constexpr int shorter(int a, int b) { return a < b ? a : b; }

/// The number of elements of T for which the code of F is unrolled: a pack, unless F has long code
/// and declares kAtOnce. They fill at least a 32-bit register.
template <class F, class T> constexpr int at_once(int pack) {
  if constexpr (requires { F::kAtOnce; }) {
    constexpr int fewest =
        static_cast<int>(4 / sizeof(T) > F::kAtOnce ? 4 / sizeof(T) : F::kAtOnce);
    return fewest < pack ? fewest : pack;
  }
  return pack;
}

/// Removes the first elements of the pack and appends `last`.
template <class T, int N, int M> BRAID_DEVICE void turn(Pack<T, N>& pack, const Pack<T, M>& last) {
  constexpr int words = sizeof pack / 4, part = sizeof last / 4;  // in 32-bit registers
  std::uint32_t to[words + part];
  memcpy(to, &pack, sizeof pack);
  memcpy(to + words, &last, sizeof last);
  memcpy(&pack, to + part, sizeof pack);
}
template <int M, class T, int N> BRAID_DEVICE Pack<T, M> first_of(const Pack<T, N>& pack) {
  Pack<T, M> first;
  memcpy(&first, &pack, sizeof first);
  return first;
}

/// f(x, y…) for the elements of packs. Long code is unrolled for a few elements only: a loop
/// rotates the packs, because registers cannot be indexed.
template <class Out, class In, class F, int N, class... Packs>
BRAID_DEVICE Pack<typename Out::T, N> map_pack(const F& f, Pack<typename In::T, N> x, Packs... y) {
  constexpr int step = at_once<F, typename In::T>(N);
  if constexpr (step == N) {
    Pack<typename Out::T, N> to;
#pragma unroll
    for (int k = 0; k < N; ++k) to.v[k] = Out::store(f(In::load(x.v[k]), In::load(y.v[k])...));
    return to;
  } else {
    static_assert(std::is_same_v<Out, In>);
#pragma unroll 1
    for (int left = N; left > 0; left -= step) {
      turn(x, map_pack<Out, In, F, step>(f, first_of<step>(x), first_of<step>(y)...));
      (turn(y, first_of<step>(y)), ...);
    }
    return x;
  }
}

/// out = f(x). Out and In are element structs; f maps In::A to Out::A.
template <class Out, class In, class F> struct Map1 {
  static constexpr int kOperands = 2, kPack = pack_size<typename Out::T, typename In::T>();
  typename Out::T* out;
  const typename In::T* x;
  F f;
  [[nodiscard]] int head() const { return common_head<kPack>(out, x); }
  BRAID_DEVICE void element(const Offsets<2>& o) const {
    out[o.at[0]] = Out::store(f(In::load(x[o.at[1]])));
  }
  BRAID_DEVICE void pack(std::int64_t i) const {
    store_pack(out + i, map_pack<Out, In, F, kPack>(f, load_pack<kPack>(x + i)));
  }
};

/// An operand: elements, or one number if `p` is null.
template <class E> struct Operand {
  const typename E::T* p;
  typename E::T scalar;
  BRAID_DEVICE typename E::A at(std::int64_t i) const {
    return E::load(p != nullptr ? p[i] : scalar);
  }
  template <int N> BRAID_DEVICE Pack<typename E::T, N> pack(std::int64_t i) const {
    if (p != nullptr) return load_pack<N>(p + i);
    Pack<typename E::T, N> same;
#pragma unroll
    for (int k = 0; k < N; ++k) same.v[k] = scalar;
    return same;
  }
};

/// out = f(a, b).
template <class Out, class In, class F> struct Map2 {
  static constexpr int kOperands = 3, kPack = shorter(pack_size<typename Out::T, typename In::T>(),
                                                      pack_limit<F>());
  typename Out::T* out;
  Operand<In> a, b;
  F f;
  [[nodiscard]] int head() const { return common_head<kPack>(out, a.p, b.p); }
  BRAID_DEVICE void element(const Offsets<3>& o) const {
    out[o.at[0]] = Out::store(f(a.at(o.at[1]), b.at(o.at[2])));
  }
  BRAID_DEVICE void pack(std::int64_t i) const {
    store_pack(out + i, map_pack<Out, In, F, kPack>(f, a.template pack<kPack>(i),
                                                    b.template pack<kPack>(i)));
  }
};

}  // namespace braid::cuda
