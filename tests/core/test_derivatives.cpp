// Tests of the derivative of an activation in the product before it. In every situation the
// gradients are those of a graph where a view between the two keeps the engine from it, bit for
// bit. tests/simt/engine/test_step_launches.cpp counts the kernels.
#include "shorthand.hpp"

namespace braid::test::on_device {

namespace {

/// y = linear(h, v, c), h = activation(z), z = linear(x, w, b), and all that somebody may look at.
struct Net {
  Tensor x, w, b, v, c;
  Tensor z;        // undefined if one op computes h
  Tensor h, used;  // used: h, or a view of it
  Tensor y, dy;
};

struct Activation {
  const char* name;
  std::function<Tensor(T)> alone;
  std::function<Tensor(T, T, T)> fused = nullptr;  // null: linear, then the activation
};
const std::vector<Activation>& activations() {
  static const std::vector<Activation> list{
      {"relu", [](T z) { return relu(z); }},
      {"gelu", [](T z) { return gelu(z); }},
      {"gelu, tanh", [](T z) { return gelu(z, "tanh"); }},
      {"silu, which has no epilogue", [](T z) { return silu(z); }},
      {"linear_relu", [](T z) { return relu(z); },
       [](T x, T w, T b) { return linear_relu(x, w, b); }},
      {"linear_gelu", [](T z) { return gelu(z); },
       [](T x, T w, T b) { return linear_gelu(x, w, b); }},
      {"linear_gelu, tanh", [](T z) { return gelu(z, "tanh"); },
       [](T x, T w, T b) { return linear_gelu(x, w, b, "tanh"); }},
  };
  return list;
}

/// What a situation shows: tensors, and the text of the error if there is one.
struct Outcome {
  std::vector<Tensor> tensors;
  std::string error;
};

struct Situation {
  const char* name;
  std::function<std::vector<Tensor>(Net&)> run;  // the backward; returns what it shows
  std::function<void(Net&)> prepare = nullptr;   // changes the leaves
  std::function<Tensor(const std::function<Tensor()>&)> forward = nullptr;  // runs the forward
  bool needs_z = false;
};

std::vector<Tensor> leaves(const Net& n) {
  std::vector<Tensor> list;
  for (const Tensor* t : {&n.x, &n.w, &n.b, &n.v, &n.c})
    list.push_back(t->defined() ? t->grad() : Tensor());
  return list;
}
/// The gradients of the leaves, and one more.
std::vector<Tensor> leaves_and(const Net& n, T more) {
  std::vector<Tensor> list = leaves(n);
  list.push_back(more);
  return list;
}
std::vector<Tensor> backward_of(const Net& n) {
  n.y.backward(n.dy);
  return leaves(n);
}
/// Watches the gradient of a tensor by a hook.
std::vector<Tensor> watched(const Net& n, T t) {
  Tensor seen;
  t.register_hook([&](T g) { seen = g; });
  n.y.backward(n.dy);
  return leaves_and(n, seen);
}

const std::vector<Situation>& situations() {
  static const std::vector<Situation> list{
      {"nothing else", backward_of},
      {"a hook looks at the output", [](Net& n) { return watched(n, n.h); }},
      {"a hook looks at the input", [](Net& n) { return watched(n, n.z); }, {}, {}, true},
      {"a hook changes the gradient of the output",
       [](Net& n) {
         n.h.register_hook([](T g) { return g * 2.0; });
         return backward_of(n);
       }},
      {"the output retains its gradient",
       [](Net& n) {
         n.h.retain_grad();
         n.y.backward(n.dy);
         return leaves_and(n, n.h.grad());
       }},
      {"the input retains its gradient",
       [](Net& n) {
         n.z.retain_grad();
         n.y.backward(n.dy);
         return leaves_and(n, n.z.grad());
       },
       {},
       {},
       true},
      {"grad() of the output",
       [](Net& n) {
         return grad(std::vector<Tensor>{n.y}, std::vector<Tensor>{n.x, n.h, n.w},
                     std::vector<Tensor>{n.dy});
       }},
      {"grad() of the input",
       [](Net& n) {
         return grad(std::vector<Tensor>{n.y}, std::vector<Tensor>{n.z, n.b},
                     std::vector<Tensor>{n.dy});
       },
       {},
       {},
       true},
      {"another op uses the output",
       [](Net& n) {
         (n.y * n.dy).sum().backward({}, true);
         ((n.y * n.dy).sum() + (n.used * 3.0).sum()).backward();
         return leaves(n);
       }},
      {"another product uses the output",
       [](Net& n) {
         (n.y + linear(n.used, n.v * 2.0)).backward(n.dy);
         return leaves(n);
       }},
      {"a product uses the output twice",
       [](Net& n) {
         linear(n.used, n.used).sum().backward();
         return leaves(n);
       }},
      {"the output is a root too",
       [](Net& n) {
         braid::backward(std::vector<Tensor>{n.y, n.h}, std::vector<Tensor>{n.dy, ones_like(n.h)});
         return leaves(n);
       }},
      {"two backwards",
       [](Net& n) {
         n.y.backward(n.dy, true);
         return backward_of(n);
       }},
      {"a second backward of a freed graph",
       [](Net& n) {
         n.y.backward(n.dy);
         return backward_of(n);
       }},
      {"a gradient of gradients",
       [](Net& n) {
         const Tensor dx = grad(std::vector<Tensor>{n.y}, std::vector<Tensor>{n.x},
                                std::vector<Tensor>{n.dy}, false, true)[0];
         (dx * dx).sum().backward();
         return leaves(n);
       }},
      {"a gradient of gradients, of a constant second weight",
       [](Net& n) {
         const Tensor dx = grad(std::vector<Tensor>{n.y}, std::vector<Tensor>{n.x},
                                std::vector<Tensor>{n.dy}, false, true)[0];
         (dx * dx).sum().backward();
         return leaves(n);
       },
       [](Net& n) { n.v.requires_grad_(false), n.c.requires_grad_(false); }},
      {"a backward after a recorded one",
       [](Net& n) {
         (void)grad(std::vector<Tensor>{n.y}, std::vector<Tensor>{n.w}, std::vector<Tensor>{n.dy},
                    true, true);
         return backward_of(n);
       }},
      {"the second weight is constant", backward_of, [](Net& n) { n.v.requires_grad_(false); }},
      {"only the first weight has a gradient", backward_of,
       [](Net& n) {
         for (Tensor* t : {&n.x, &n.b, &n.v, &n.c}) t->requires_grad_(false);
       }},
      {"no biases", backward_of, [](Net& n) { n.b = n.c = Tensor(); }},
      {"three dims", backward_of,
       [](Net& n) {
         n.x = n.x.detach().reshape({2, n.x.size(0) / 2, n.x.size(1)}).requires_grad_();
       }},
      {"a vector", backward_of, [](Net& n) { n.x = n.x.detach()[0].clone().requires_grad_(); }},
      {"no rows", backward_of,
       [](Net& n) { n.x = n.x.detach().narrow(0, 0, 0).clone().requires_grad_(); }},
      {"gradients that are not finite",
       [](Net& n) {
         n.dy = n.dy.clone();
         n.dy[0].fill_(kInf);
         n.dy[1].fill_(kNan);
         return backward_of(n);
       }},
      {"the input was changed in place",
       [](Net& n) {
         const NoGrad guard;
         n.z.add_(1.0);
         return backward_of(n);
       },
       {},
       {},
       true},
      {"the output was changed in place",
       [](Net& n) {
         {
           const NoGrad guard;
           n.h.add_(1.0);
         }
         return backward_of(n);
       }},
      {"the second weight was changed in place",
       [](Net& n) {
         {
           const NoGrad guard;
           n.v.add_(1.0);
         }
         return backward_of(n);
       }},
      {"autocast",
       backward_of,
       {},
       [](const std::function<Tensor()>& f) {
         const Autocast autocast(DType::bfloat16);
         return f();
       }},
      {"checkpoint",
       backward_of,
       {},
       [](const std::function<Tensor()>& f) { return checkpoint(f); }},
      {"a result on another device",
       [](Net& n) {
         (n.y.to(there()) * n.dy.to(there())).sum().backward();
         return leaves(n);
       }},
      {"a product on another device",
       [](Net& n) {
         const Device far = there();
         linear(n.used.to(far), n.v.to(far)).sum().backward();
         return leaves(n);
       }},
  };
  return list;
}

struct Sizes4 {
  std::int64_t rows, in, hidden, out;
};

Outcome outcome(const Situation& s, const Activation& f, DType t, const Sizes4& k, bool together) {
  const auto leaf = [&](const Sizes& shape, std::uint64_t seed) {
    return random_tensor(shape, t, here(), seed, -1, 1).requires_grad_();
  };
  Net n;
  n.x = leaf({k.rows, k.in}, 1), n.w = leaf({k.hidden, k.in}, 2), n.b = leaf({k.hidden}, 3);
  n.v = leaf({k.out, k.hidden}, 4), n.c = leaf({k.out}, 5);
  if (s.prepare) s.prepare(n);
  const auto forward = [&] {
    if (f.fused && together) n.h = f.fused(n.x, n.w, n.b);
    else n.z = linear(n.x, n.w, n.b), n.h = f.alone(n.z);
    n.used = together ? n.h : n.h.unsqueeze(0).squeeze(0);
    return linear(n.used, n.v, n.c);
  };
  n.y = s.forward ? s.forward(forward) : forward();
  n.dy = random_tensor(sizes_of(n.y.shape()), n.y.dtype(), here(), 6);
  Outcome result;
  try {
    result.tensors = s.run(n);
  } catch (const Error& error) {
    result.error = error.what();
  }
  result.tensors.push_back(n.y.detach());
  return result;
}

/// "" if both are the same: to the bit where the compiler contracts no operations.
std::string difference_of(T got, T want) {
  if (got.defined() != want.defined()) return got.defined() ? "a gradient" : "no gradient";
  if (!got.defined()) return "";
  return on_cpu() || emulated() ? same_bits(got, want) : close(got, want, tolerance(got.dtype()));
}

}  // namespace

TEST_CASE("derivatives: an activation's, in the product before it, changes no gradient",
          "[autograd][derivatives]") {
  std::size_t larger = 0, number = 0;
  for (const Situation& s : situations())
    for (const Activation& f : activations())
      for (const DType t : floating_dtypes())
        for (const Sizes4& k : {Sizes4{6, 3, 4, 2}, Sizes4{34, 17, 68, 33}}) {
          if (s.needs_z && f.fused) continue;
          if (emulated() && k.rows > 6 && larger++ % 5 != 0) continue;
          if (!mine(number++)) continue;
          INFO(s.name << ", " << f.name << ", " << t << ", " << k.rows << " rows");
          const Outcome one = outcome(s, f, t, k, true), two = outcome(s, f, t, k, false);
          CHECK(one.error == two.error);
          REQUIRE(one.tensors.size() == two.tensors.size());
          for (std::size_t i = 0; i < one.tensors.size(); ++i) {
            INFO("tensor " << i);
            CHECK(difference_of(one.tensors[i], two.tensors[i]) == "");
          }
        }
}

TEST_CASE("derivatives: of an activation whose input is not contiguous",
          "[autograd][derivatives]") {
  for (const DType t : floating_dtypes()) {
    const Tensor x = random_tensor({5, 6}, t, here(), 1).requires_grad_(),
                 v = random_tensor({3, 5}, t, here(), 2);
    const Tensor one = gelu(x.t()), two = gelu(x.t());
    const Tensor dx = grad(linear(one, v).sum(), {x})[0],
                 want = grad(linear(two.unsqueeze(0).squeeze(0), v).sum(), {x})[0];
    CHECK(difference_of(dx, want) == "");
  }
}

TEST_CASE("derivatives: an error of what computes them again is not lost",
          "[autograd][derivatives]") {
  const Tensor x = random_tensor({5, 6}).requires_grad_(), v = random_tensor({3, 6});
  int runs = 0;
  const Tensor h = checkpoint(
      [&](const Tensor& t) {
        if (++runs == 2) throw DeviceError("only once");
        return gelu(t);
      },
      x);
  const Tensor loss = linear(h, v).sum();
  CHECK_THROWS_AS(loss.backward(), DeviceError);
}

}  // namespace braid::test::on_device
