// Tests of in-place changes of views: what is refused, what becomes part of the graph, hooks,
// versions, memory, threads. test_inplace_view_programs.cpp has values and gradients.
#include <string>
#include <thread>

#include <braid/core/internal/body.hpp>

#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

Tensor w_leaf() {
  return tensor({{1.0, 2, 3}, {4, 5, 6}}, {.dtype = DType::float64}).requires_grad_();
}
Tensor u_leaf() { return tensor({0.5, -1.0, 2.0}, {.dtype = DType::float64}).requires_grad_(); }

}  // namespace

TEST_CASE("in place through views: what has no clear meaning is refused, and changes nothing",
          "[inplace][errors]") {
  const Tensor w = w_leaf(), u = u_leaf(), y = w * 1,
               buffer = zeros({2, 3}, {.dtype = DType::float64});
  const Tensor quiet = [&] {
    const NoGrad guard;
    return buffer[0];
  }();
  const std::string leaf = "expected a view of a tensor that is not a leaf requiring grad",
                    many = "got one of several results of an op",
                    no_grad = "got one made under NoGrad";
  const auto refused = [](T view, T by, const std::string& text) {
    const Array before = array_of(view);
    const std::uint64_t version = view.version();
    for (const auto& change : std::vector<std::function<void()>>{
             [&] { view.copy_(by); }, [&] { view.add_(by); }, [&] { view.sub_(by); },
             [&] { view.mul_(by); }, [&] { view.div_(by); }})
      CHECK_THROWS_TEXT(AutogradError, text, change());
    CHECK_EXACT(view, before);
    CHECK(view.version() == version);
  };
  refused(w[0], u, leaf);
  refused(w.t()[0].view({2, 1}), u[0], leaf);
  CHECK_THROWS_TEXT(AutogradError, leaf, w[0].fill_(1));
  CHECK_THROWS_TEXT(AutogradError, leaf, w[0].mul_(2));
  refused(quiet, u, no_grad);
  refused(quiet.narrow(0, 0, 3), u, no_grad);
  for (const auto& parts : {split(y, 1), chunk(y, 2), unbind(y), split(y, IntList{1, 1})}) {
    refused(parts[0], u, many);
    refused(parts[1].unsqueeze(0), u, many);
  }
  CHECK_THROWS_TEXT(LayoutError, "memory", y[0].expand({2, 3}).mul_(2));
  // what records nothing is free
  quiet.add_(1);
  unbind(buffer)[1].fill_(2);
  CHECK(list(buffer) == List{1, 1, 1, 2, 2, 2});
  const Tensor integers = zeros({2, 3}, {.dtype = DType::int64});
  integers[1].copy_(u);
  split(integers, 1)[0].add_(1);
  CHECK(whole(integers) == Whole{1, 1, 1, 0, -1, 2});
  CHECK_FALSE(integers.requires_grad());
  const NoGrad guard;
  w[0].mul_(2);
  CHECK(list(w) == List{2, 4, 6, 4, 5, 6});
  CHECK(w.is_leaf());
}

TEST_CASE("in place through views: what is part of the graph", "[inplace][gradients]") {
  const Tensor u = u_leaf(), x = zeros({2, 3}, {.dtype = DType::float64}), first = x[0],
               second = x[1];
  CHECK_FALSE((x.requires_grad() || second.requires_grad()));
  first.copy_(u);
  // PyTorch too tells of a view what is true of its base
  for (const Tensor& t : {x, first, second, x[1]}) {
    CHECK(t.requires_grad());
    CHECK_FALSE(t.is_leaf());
  }
  CHECK_THROWS_TEXT(AutogradError, "expected a leaf, got the output of as_strided",
                    second.requires_grad_(false));
  for (const bool through_view : {false, true}) {  // constants: 0 is the gradient of u
    first.copy_(u);
    if (through_view) x.view({6}).zero_();
    else x.fill_(1);
    for (const Tensor& t : {x, first, second}) CHECK(t.requires_grad());
    CHECK(list(grad(x.sum(), {u})[0]) == List{0, 0, 0});
  }
  // a detached tensor shares the values, not the graph
  const Tensor apart = x.detach();
  first.copy_(u);
  CHECK_FALSE(apart.requires_grad());
  CHECK(list(apart) == list(x));
  // nothing is left of the old values
  for (const bool through_view : {false, true})
    for (const Tensor& source : {u[0], ones({})}) {
      const Tensor w = w_leaf(), y = w * 1;
      (through_view ? y.view({6}) : y).copy_(source);
      CHECK(list(grad(y.sum(), {w})[0]) == List(6, 0));
    }
  CHECK(str(second).find("grad_fn=<as_strided>") != std::string::npos);
}

TEST_CASE("in place through views: a hook on the base gets the gradient of the old values",
          "[inplace][gradients]") {
  const Tensor w = w_leaf(), y = w * 1;
  List seen, of_view;
  const auto hook = y.register_hook([&](T g) { seen = list(g); });
  y[0].mul_(3);
  const Tensor row = y[0];
  const auto other = row.register_hook([&](T g) { of_view = list(g); });
  ((y * 2).sum() + row.sum()).backward();
  CHECK(seen == List{9, 9, 9, 2, 2, 2});
  CHECK(of_view == List{1, 1, 1});
  hook.remove(), other.remove();
}

TEST_CASE("in place through views: a change of what backward needs is found", "[inplace][errors]") {
  const Tensor w = w_leaf(), y = w * 1, v = y[0], z = (v * v).sum();
  y[1].add_(1);  // the version belongs to the whole memory, as in PyTorch
  CHECK_THROWS_TEXT(AutogradError, "version", z.backward());
  const Tensor sum = y.sum() + v.sum();
  y.mul_(2);  // neither saves anything
  CHECK_NOTHROW(sum.backward());
  CHECK(list(w.grad()) == List{2, 2, 2, 1, 1, 1});
}

TEST_CASE("in place through views: graphs are freed, and hold no cycle", "[inplace]") {
  const std::size_t before = memory_stats(here()).in_use;
  for (int i = 0; i < 3; ++i) {
    // the graph of `states` holds rows of it
    const Tensor w = ones({16, 16}).requires_grad_(), states = zeros({4, 16});
    states[0].fill_(1);
    for (int t = 1; t < 4; ++t) states[t].copy_(tanh(matmul(w, states[t - 1])));
    CHECK(states.requires_grad());
    const Tensor y = w * 1, row = y[0];
    y[1].mul_(row);
    (y.sum() + row.sum()).backward();
  }
  CHECK(memory_stats(here()).in_use == before);
}

TEST_CASE("in place through views: rows written one by one cost no copy of the whole each",
          "[inplace]") {
  constexpr std::int64_t kRows = 64, kWidth = 256;
  const Tensor w = ones({kWidth}).requires_grad_(), out = zeros({kRows, kWidth});
  for (std::int64_t i = 0; i < kRows; ++i) out[i].copy_(w * static_cast<double>(i));
  const Tensor dy = ones({kRows, kWidth}), loss = (out * dy).sum();
  const std::size_t whole = kRows * kWidth * 4;
  reset_peak_memory(here());
  const std::size_t before = memory_stats(here()).in_use;
  loss.backward();
  CHECK(memory_stats(here()).peak - before < 6 * whole);
  CHECK(list(w.grad())[0] == 2016);  // 0 + 1 + … + 63
  CHECK(list(dy)[0] == 1);
  // a gradient that the caller holds is not written to
  const Tensor again = w_leaf() * 1, u = u_leaf(), given = ones({2, 3}, {.dtype = DType::float64});
  again[0].copy_(u);
  again.backward(given);
  CHECK(list(given) == List{1, 1, 1, 1, 1, 1});
  CHECK(list(u.grad()) == List{1, 1, 1});
}

TEST_CASE("in place through views: threads may read one view after a change of its base",
          "[inplace][threads]") {
  for (int round = 0; round < 20; ++round) {
    const Tensor w = w_leaf(), y = w * 1, v = y[0];
    y.mul_(2);
    std::vector<std::thread> threads;
    std::vector<List> results(4);
    for (List& r : results)
      threads.emplace_back([&v, &r] {
        const Tensor scaled = v * 3;
        r = list(scaled);
      });
    for (std::thread& t : threads) t.join();
    for (const List& r : results) CHECK(r == List{6, 12, 18});
    (v * 3).sum().backward();
    CHECK(list(w.grad()) == List{6, 6, 6, 0, 0, 0});
  }
}

TEST_CASE("in place through views: overlapping views, which no op makes, are refused",
          "[inplace][errors]") {
  const Tensor w = ones({4}).requires_grad_(), y = w * 1, windows = make_view(y, {3, 2}, {1, 1}, 0);
  CHECK_FALSE(windows.requires_grad());
  y.mul_(2);
  CHECK_THROWS_TEXT(AutogradError, "as_strided: expected views whose elements each have their own",
                    windows.requires_grad());
}

TEST_CASE("in place through views: a base that gets other memory leaves its views as they are",
          "[inplace]") {
  const Tensor x = ones({2, 3}, {.dtype = DType::float64}), v = x[0], u = u_leaf();
  detail::replace_body(x, zeros({2, 3}, {.dtype = DType::float64}));
  v.mul_(u);
  CHECK_FALSE(x.requires_grad());
  CHECK(list(x) == List{0, 0, 0, 0, 0, 0});
  v.sum().backward();
  CHECK(list(u.grad()) == List{1, 1, 1});
}

TEST_CASE("in place through views: a view made under NoGrad of a tensor with a graph is refused",
          "[inplace][errors]") {
  const auto quiet = [](const auto& f) {
    const NoGrad guard;
    return f();
  };
  const std::string text = "got one made under NoGrad";
  const auto check = [&](T base, T view) {
    const Array before = array_of(base);
    const std::uint64_t version = base.version();
    for (const auto& change : std::vector<std::function<void()>>{
             [&] { view.mul_(2); }, [&] { view.fill_(5); }, [&] { view.zero_(); },
             [&] { view.copy_(zeros_like(view)); }, [&] { view.exp_(); }, [&] { view[0] = 5; },
             [&] { view.index_put_({0}, 1); }, [&] { view.index_put_({tensor({0})}, 1); },
             [&] { view.narrow(0, 0, 1).mul_(2); },
             [&] { quiet([&] { return view.narrow(0, 0, 1); }).mul_(2); },
             [&] { view.uniform_(); }})
      CHECK_THROWS_TEXT(AutogradError, text, change());
    CHECK_EXACT(base, before);
    CHECK(base.version() == version);
  };
  const Tensor w = w_leaf(), b = w * 1, recorded = b[1];
  check(b, quiet([&] { return b.slice(0, 0, 1); }));
  check(b, quiet([&] { return b.t().slice(0, 0, 1); }));
  check(b, quiet([&] { return recorded.slice(0, 0, 1); }));
  check(w, quiet([&] { return w.slice(0, 0, 1); }));
  b.sum().backward();
  CHECK(list(w.grad()) == List{1, 1, 1, 1, 1, 1});
  // the graph may come later; then the view follows
  const Tensor late = ones({2, 3}, {.dtype = DType::float64}),
               early = quiet([&] { return late[0]; });
  early.mul_(2);
  late.mul_(w);
  check(late, early);
  CHECK(early.requires_grad());
  CHECK(list(early) == List{2, 4, 6});
  CHECK(list(grad(early.sum(), {w}, true)[0]) == List{2, 2, 2, 0, 0, 0});
  const NoGrad guard;
  early.mul_(3);
  CHECK(list(late) == List{6, 12, 18, 4, 5, 6});
}

TEST_CASE("in place through views: a view of a view whose base got other memory",
          "[inplace][gradients]") {
  const Tensor b = zeros({4}), v = b.slice(0, 0, 2);
  detail::replace_body(b, zeros({4}, {.dtype = DType::float64}));
  const Tensor w = v.narrow(0, 0, 1), t = ones({4}, {.dtype = DType::float64}).requires_grad_();
  for (int i = 0; i < 2; ++i) {
    b.mul_(t);
    CHECK_FALSE(v.requires_grad());
    CHECK_FALSE(w.requires_grad());
  }
  const Tensor u = ones({2}).requires_grad_();
  for (int i = 1; i < 4; ++i) {  // each change of v is one of w
    v.copy_(u * static_cast<double>(i));
    CHECK(v.requires_grad());
    CHECK(list(grad(w.sum(), {u})[0]) == List{static_cast<double>(i), 0});
    b.mul_(t);
    (void)v.requires_grad();
  }
}

TEST_CASE("in place through views: the result of an op is no view", "[inplace][gradients]") {
  const Tensor w = w_leaf(), u = u_leaf(), image = w.reshape({1, 2, 3}),
               weight = ones({1, 2, 2}, {.dtype = DType::float64}), q = w.to(DType::float32);
  const auto results = [&]() -> std::vector<Tensor> {
    return {var(w, 0), std::get<1>(std_mean(w, {0})), var_mean(w, {0}).mean, var_mean(w, {0}).var,
            matmul(w, u), mv(w, u), dot(w[0], u), matmul(u, w.t()), max(w, 0).values,
            min(w, 1).values, sort(w, 0).values, topk(w, 1, 0).values, tensordot(w, w, 2),
            conv1d(image, weight), conv1d(image[0], weight), avg_pool1d(image, 2),
            max_pool1d(image, 2), einsum("ij,j->i", {w, u}), einsum("ij,kj->ki", {w, w}),
            // these save their result, so a change of it is an error in backward, as in PyTorch
            std::get<0>(std_mean(w, {0})), logsumexp(w, 0), logsumexp(image, 1), norm(w, 2, {0}),
            norm(w, 3, {0}), linalg_norm(w, 1, {0}), pairwise_distance(w, w * 2), softmax(w, 0),
            scaled_dot_product_attention(q, q, q)};
  };
  const std::size_t count = results().size(), saved = 9;
  const auto first = [](Tensor t) {
    while (t.dim() > 0) t = t.select(0, 0);
    return t;
  };
  const auto gradient = [&](T y) { return list(grad(y.sum(), {w})[0]); };
  for (std::size_t i = 0; i < count; ++i) {
    INFO("result " << i);
    const Tensor detached = results()[i];
    detached.detach_();
    CHECK_FALSE(detached.requires_grad());
    // a change of a part of it keeps the gradient of the rest
    const Tensor y = results()[i], z = results()[i], more = results()[i],
                 kept = on_device::ones(y.shape(), {.dtype = y.dtype()});
    first(kept).zero_();
    const List expected = gradient(y * kept);
    first(z).fill_(1);
    more.unsqueeze_(0);
    more.squeeze_(0);
    CHECK(more.requires_grad());
    if (i + saved >= count) {
      CHECK_THROWS_TEXT(AutogradError, "got it changed in place", gradient(z));
    } else {
      CHECK(gradient(z) == expected);
      CHECK(gradient(more * kept) == expected);
    }
  }
  CHECK_NOTHROW(max(w, 0).indices.detach_());
}

TEST_CASE("in place through views: a view that becomes a leaf does not hold its base",
          "[inplace]") {
  const std::size_t before = memory_stats(here()).in_use;
  {
    const Tensor b = zeros({2, 1000}), v = b[0].requires_grad_();
    b[1].copy_(v * v);
    CHECK(b.requires_grad());
    CHECK_THROWS_TEXT(AutogradError, "expected a tensor that is not a leaf", v.mul_(2));
    v.requires_grad_(false);
    CHECK_THROWS_TEXT(AutogradError, "expected a view", v.copy_(w_leaf()[0][0]));
  }
  CHECK(memory_stats(here()).in_use == before);
}

}  // namespace braid::test::on_device
