#include <braid/core/internal/kernel_args/optim.hpp>

#include "cuda/device/item_lists.cuh"
#include "cuda/device/math.cuh"
#include "cuda/errors.hpp"
#include "cuda/kernels.hpp"
#include "cuda/record.hpp"

// Optimizer steps: parameters, gradients and state are read and written once.
// Each optimizer is one functor of an element; the iteration is shared. The rarely used optimizers
// share one kernel, which selects among them at run time. Every product is rounded (`multiply`): a
// compiler that may fuse it with a sum does so in some kernels and not in others, and then a
// recorded step has other bits.
namespace braid::cuda {

/// The state that a step reads and writes besides the parameters and the gradients.
struct StepState {
  bool reads_m, writes_m, has_v, has_s;
};

/// One item's memory from some element on.
template <class T> struct StepMemory {
  T* p;
  const T* g;
  T* m;
  T* v;
  T* s;
};

/// Calls step(p, g, m, v, s) for N neighbouring elements, where g is the gradient times `factor`,
/// rounded as if it were stored. They are held in their stored type: a pack of 16-bit numbers takes
/// four registers, not eight.
template <class E, int N, class F>
BRAID_DEVICE void step_pack(const StepMemory<typename E::T>& at, int i, const StepState& state,
                            typename E::A factor, const F& step) {
  using A = typename E::A;
  Pack<typename E::T, N> p = load_pack<N>(at.p + i), m = {}, v = {}, s = {};
  const auto g = load_pack<N>(at.g + i);
  if (state.reads_m) m = load_pack<N>(at.m + i);
  if (state.has_v) v = load_pack<N>(at.v + i);
  if (state.has_s) s = load_pack<N>(at.s + i);
#pragma unroll
  for (int k = 0; k < N; ++k) {
    A value = E::load(p.v[k]), mean = E::load(m.v[k]), square = E::load(v.v[k]),
      third = E::load(s.v[k]);
    const A gradient = E::load(E::store(multiply(E::load(g.v[k]), factor)));
    step(value, gradient, mean, square, third);
    p.v[k] = E::store(value), m.v[k] = E::store(mean), v.v[k] = E::store(square),
    s.v[k] = E::store(third);
  }
  store_pack(at.p + i, p);
  if (state.writes_m) store_pack(at.m + i, m);
  if (state.has_v) store_pack(at.v + i, v);
  if (state.has_s) store_pack(at.s + i, s);
}

/// Calls step for this thread's elements, in packs of 16 bytes where an item's memory is aligned.
template <class E, int N, class F>
BRAID_DEVICE void for_items(const StepItems<N>& items, const typename E::A* grad_factor,
                            const StepState& state, F step) {
  using T = typename E::T;
  const typename E::A factor = grad_factor ? *grad_factor : typename E::A(1);  // changes no number
  constexpr int width = kWidest<T>;
  for (std::int64_t tile = blockIdx.x; tile < items.tiles; tile += gridDim.x) {
    const TileOfItem part = tile_of(items, tile);
    const OptimItem& item = *part.item;
    const std::int64_t begin = part.begin;
    const int count = part.count;
    const StepMemory<T> at{static_cast<T*>(item.p) + begin, static_cast<const T*>(item.g) + begin,
                           static_cast<T*>(item.m) + begin, static_cast<T*>(item.v) + begin,
                           static_cast<T*>(item.s) + begin};
    const bool aligned = is_aligned<width>(at.p) && is_aligned<width>(at.g) &&
                         (!state.writes_m || is_aligned<width>(at.m)) &&
                         (!state.has_v || is_aligned<width>(at.v)) &&
                         (!state.has_s || is_aligned<width>(at.s));
    const int packed = aligned ? count / width * width : 0;
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x) * width; i < packed; i += kThreads * width)
      step_pack<E, width>(at, i, state, factor, step);
#pragma unroll 1
    for (int i = packed + static_cast<int>(threadIdx.x); i < count; i += kThreads)
      step_pack<E, 1>(at, i, state, factor, step);
  }
}

/// The gradient that a step uses: negated to maximize, plus the decay of a coupled optimizer.
template <class A> struct UsedGradient {
  A decay;
  bool maximize, with_decay;
  UsedGradient(double weight_decay, bool negated)
      : decay(static_cast<A>(weight_decay)), maximize(negated), with_decay(weight_decay != 0.0) {}
  BRAID_DEVICE A operator()(A gradient, A value) const {
    if (maximize) gradient = -gradient;
    return with_decay ? gradient + multiply(decay, value) : gradient;
  }
};

template <class A> struct Sgd {
  UsedGradient<A> used;
  A lr, momentum, fresh;
  bool nesterov, first, with_momentum;
  explicit Sgd(const SgdArgs& args)
      : used(args.weight_decay, args.maximize),
        lr(static_cast<A>(args.lr)),
        momentum(static_cast<A>(args.momentum)),
        fresh(static_cast<A>(1.0 - args.dampening)),
        nesterov(args.nesterov),
        first(args.first),
        with_momentum(args.momentum != 0.0) {}
  BRAID_HOST_DEVICE StepState state() const {
    return {with_momentum && !first, with_momentum, false, false};
  }
  BRAID_DEVICE void operator()(A& p, A g, A& m, A&, A&) const {
    A step = used(g, p);
    if (with_momentum) {
      m = first ? step : multiply(momentum, m) + multiply(fresh, step);
      step = nesterov ? step + multiply(momentum, m) : m;
    }
    p -= multiply(lr, step);
  }
};

template <class A> struct Adam {
  UsedGradient<A> used;
  A keep, step_size, beta1, fresh1, beta2, fresh2, root_bias2, eps;
  bool amsgrad;
  explicit Adam(const AdamArgs& args)
      : used(args.coupled ? args.weight_decay : 0.0, args.maximize),
        keep(static_cast<A>(args.coupled ? 1.0 : 1.0 - args.lr * args.weight_decay)),
        step_size(static_cast<A>(args.lr / bias(args.beta1, args.step))),
        beta1(static_cast<A>(args.beta1)),
        fresh1(static_cast<A>(1.0 - args.beta1)),
        beta2(static_cast<A>(args.beta2)),
        fresh2(static_cast<A>(1.0 - args.beta2)),
        root_bias2(static_cast<A>(std::sqrt(bias(args.beta2, args.step)))),
        eps(static_cast<A>(args.eps)),
        amsgrad(args.amsgrad) {}
  BRAID_HOST_DEVICE StepState state() const { return {true, true, true, amsgrad}; }
  BRAID_DEVICE void operator()(A& p, A g, A& m, A& v, A& s) const {
    const A gradient = used(g, p);
    m = multiply(beta1, m) + multiply(fresh1, gradient);
    v = multiply(beta2, v) + multiply(multiply(fresh2, gradient), gradient);
    A square = v;
    if (amsgrad) square = s = v > s || v != v ? v : s;  // a NaN propagates
    p = multiply(p, keep) - multiply(step_size, m) / (sqrt_of(square) / root_bias2 + eps);
  }

 private:
  static double bias(double base, std::int64_t exponent) {
    double result = 1.0;
    for (; exponent > 0; exponent >>= 1, base *= base)
      if ((exponent & 1) != 0) result *= base;
    return 1.0 - result;
  }
};

template <class A> struct Rmsprop {
  UsedGradient<A> used;
  A lr, alpha, fresh, eps, momentum;
  bool centered, with_momentum;
  explicit Rmsprop(const RmspropArgs& args)
      : used(args.weight_decay, args.maximize),
        lr(static_cast<A>(args.lr)),
        alpha(static_cast<A>(args.alpha)),
        fresh(static_cast<A>(1.0 - args.alpha)),
        eps(static_cast<A>(args.eps)),
        momentum(static_cast<A>(args.momentum)),
        centered(args.centered),
        with_momentum(args.momentum != 0.0) {}
  BRAID_HOST_DEVICE StepState state() const {
    return {with_momentum, with_momentum, true, centered};
  }
  BRAID_DEVICE void operator()(A& p, A g, A& m, A& v, A& s) const {
    const A gradient = used(g, p);
    v = multiply(alpha, v) + multiply(multiply(fresh, gradient), gradient);
    A variance = v;
    if (centered) {
      s = multiply(alpha, s) + multiply(fresh, gradient);
      variance = v - multiply(s, s);
    }
    A step = gradient / (sqrt_of(variance) + eps);
    if (with_momentum) step = m = multiply(momentum, m) + step;
    p -= multiply(lr, step);
  }
};

template <class A> struct Adagrad {
  UsedGradient<A> used;
  A lr, eps;
  explicit Adagrad(const AdagradArgs& args)
      : used(args.weight_decay, args.maximize),
        lr(static_cast<A>(args.lr)),
        eps(static_cast<A>(args.eps)) {}
  BRAID_HOST_DEVICE StepState state() const { return {false, false, true, false}; }
  BRAID_DEVICE void operator()(A& p, A g, A&, A& v, A&) const {
    const A gradient = used(g, p);
    v += multiply(gradient, gradient);
    p -= multiply(lr, gradient) / (sqrt_of(v) + eps);
  }
};

template <class A> struct Lion {
  UsedGradient<A> used;
  A lr, keep, beta1, fresh1, beta2, fresh2;
  explicit Lion(const LionArgs& args)
      : used(0.0, args.maximize),
        lr(static_cast<A>(args.lr)),
        keep(static_cast<A>(1.0 - args.lr * args.weight_decay)),
        beta1(static_cast<A>(args.beta1)),
        fresh1(static_cast<A>(1.0 - args.beta1)),
        beta2(static_cast<A>(args.beta2)),
        fresh2(static_cast<A>(1.0 - args.beta2)) {}
  BRAID_HOST_DEVICE StepState state() const { return {true, true, false, false}; }
  BRAID_DEVICE void operator()(A& p, A g, A& m, A&, A&) const {
    const A gradient = used(g, p), way = multiply(beta1, m) + multiply(fresh1, gradient);
    m = multiply(beta2, m) + multiply(fresh2, gradient);
    p = multiply(p, keep) - (way > A(0) ? lr : way < A(0) ? -lr : way);  // 0 stays 0, NaN stays NaN
  }
};

/// One of the optimizers that share a kernel.
template <class A> struct Rare {
  enum class Kind { rmsprop, adagrad, lion } kind;
  Rmsprop<A> rmsprop{RmspropArgs{}};
  Adagrad<A> adagrad{AdagradArgs{}};
  Lion<A> lion{LionArgs{}};
  BRAID_HOST_DEVICE StepState state() const {
    return kind == Kind::rmsprop   ? rmsprop.state()
           : kind == Kind::adagrad ? adagrad.state()
                                   : lion.state();
  }
  BRAID_DEVICE void operator()(A& p, A g, A& m, A& v, A& s) const {
    if (kind == Kind::rmsprop) rmsprop(p, g, m, v, s);
    else if (kind == Kind::adagrad) adagrad(p, g, m, v, s);
    else lion(p, g, m, v, s);
  }
};

template <class E, int N>
__global__ void __launch_bounds__(kThreads)
    sgd_step(StepItems<N> items, const typename E::A* factor, Sgd<typename E::A> step) {
  for_items<E>(items, factor, step.state(), step);
}
template <class E, int N>
__global__ void __launch_bounds__(kThreads)
    adam_step(StepItems<N> items, const typename E::A* factor, Adam<typename E::A> step) {
  for_items<E>(items, factor, step.state(), step);
}
template <class E>
__global__ void __launch_bounds__(kThreads)
    rare_step(StepItems<kFewItems> items, const typename E::A* factor, Rare<typename E::A> step) {
  for_items<E>(items, factor, step.state(), step);
}

/// A step of any optimizer in a graph, which differs from replay to replay.
template <class E, class Step>
__global__ void __launch_bounds__(kThreads)
    step_recorded(StepItems<kFewItems> items, const typename E::A* factor, const Step* recorded) {
  const Step step = *recorded;
  for_items<E>(items, factor, step.state(), step);
}

/// Queues the step make(args). While it is recorded for replays, they read it on the device.
template <class E, class Args, class Make, class F>
void step_as(const char* name, const Args& args, Stream& stream, Make make, F launch) {
  using Step = decltype(make(args));
  if (const Step* const replayed = recorded<Step>(stream, args, make)) {
    in_lists_of<kFewItems>(args.items, args.count, [&](const StepItems<kFewItems>& items) {
      run(name, step_recorded<E, Step>, blocks_for(items.tiles, 1), kThreads, stream, items,
          static_cast<const typename E::A*>(args.grad_factor), replayed);
    });
  } else {
    launch(make(args));
  }
}

void sgd(const SgdArgs& args, Stream& stream) {
  if (!is_floating(args.dtype)) fail_dtype("sgd", "a floating-point dtype", args.dtype);
  (void)with_floating(args.dtype, [&]<class E>() {
    using Step = Sgd<typename E::A>;
    const auto make = [](const SgdArgs& now) { return Step(now); };
    step_as<E>("sgd", args, stream, make, [&](const Step& step) {
      in_lists(args.items, args.count, [&]<int N>(const StepItems<N>& items) {
        run("sgd", sgd_step<E, N>, blocks_for(items.tiles, 1), kThreads, stream, items,
            static_cast<const typename E::A*>(args.grad_factor), step);
      });
    });
  });
}

void adam(const AdamArgs& args, Stream& stream) {
  if (!is_floating(args.dtype)) fail_dtype("adam", "a floating-point dtype", args.dtype);
  (void)with_floating(args.dtype, [&]<class E>() {
    using Step = Adam<typename E::A>;
    const auto make = [](const AdamArgs& now) { return Step(now); };
    step_as<E>("adam", args, stream, make, [&](const Step& step) {
      in_lists(args.items, args.count, [&]<int N>(const StepItems<N>& items) {
        run("adam", adam_step<E, N>, blocks_for(items.tiles, 1), kThreads, stream, items,
            static_cast<const typename E::A*>(args.grad_factor), step);
      });
    });
  });
}

/// One launch for each kFewItems items.
template <class Args, class Put>
void rare(const char* name, const Args& args, Stream& stream, Put put) {
  if (!is_floating(args.dtype)) fail_dtype(name, "a floating-point dtype", args.dtype);
  (void)with_floating(args.dtype, [&]<class E>() {
    using Step = Rare<typename E::A>;
    const auto make = [put](const Args& now) {
      Step step{};
      put(step, now);
      return step;
    };
    step_as<E>(name, args, stream, make, [&](const Step& step) {
      in_lists_of<kFewItems>(args.items, args.count, [&](const StepItems<kFewItems>& items) {
        run(name, rare_step<E>, blocks_for(items.tiles, 1), kThreads, stream, items,
            static_cast<const typename E::A*>(args.grad_factor), step);
      });
    });
  });
}

void rmsprop(const RmspropArgs& args, Stream& stream) {
  rare("rmsprop", args, stream, []<class A>(Rare<A>& step, const RmspropArgs& now) {
    step.kind = Rare<A>::Kind::rmsprop, step.rmsprop = Rmsprop<A>(now);
  });
}
void adagrad(const AdagradArgs& args, Stream& stream) {
  rare("adagrad", args, stream, []<class A>(Rare<A>& step, const AdagradArgs& now) {
    step.kind = Rare<A>::Kind::adagrad, step.adagrad = Adagrad<A>(now);
  });
}
void lion(const LionArgs& args, Stream& stream) {
  rare("lion", args, stream, []<class A>(Rare<A>& step, const LionArgs& now) {
    step.kind = Rare<A>::Kind::lion, step.lion = Lion<A>(now);
  });
}

}  // namespace braid::cuda
