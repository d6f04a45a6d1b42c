#include "shorthand.hpp"

namespace braid::test {

List list(T t) { return t.defined() ? t.to_vector<double>() : List(); }
Whole whole(T t) { return t.defined() ? t.to_vector<std::int64_t>() : Whole(); }
Bools bools(T t) { return t.defined() ? t.to_vector<bool>() : Bools(); }

namespace {

template <class V, class F>
void check_rows(const std::vector<std::pair<Tensor, V>>& rows, const F& read) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INFO("row " << i << ": " << rows[i].first);
    CHECK(read(rows[i].first) == rows[i].second);
  }
}

}  // namespace

void check_lists(const std::vector<std::pair<Tensor, List>>& rows) { check_rows(rows, list); }
void check_whole(const std::vector<std::pair<Tensor, Whole>>& rows) { check_rows(rows, whole); }
void check_bools(const std::vector<std::pair<Tensor, Bools>>& rows) { check_rows(rows, bools); }
void check_shapes(const std::vector<std::pair<Tensor, Shape>>& rows) {
  check_rows(rows, [](T t) { return t.shape(); });
}

void check_same(T got, const List& want) {
  const List v = list(got);
  REQUIRE(v.size() == want.size());
  for (std::size_t i = 0; i < v.size(); ++i) {
    INFO(got.dtype() << ", place " << i << ": got " << v[i] << ", expected " << want[i]);
    if (std::isnan(want[i])) CHECK(std::isnan(v[i]));
    else CHECK((v[i] == want[i] && std::signbit(v[i]) == std::signbit(want[i])));
  }
}

std::vector<Tensor> pulled(T y, const std::vector<Tensor>& inputs, T dy, bool create_graph) {
  return grad(std::span(&y, 1), inputs, std::span(&dy, 1), create_graph, create_graph);
}

List gradient_at(const std::function<Tensor(T)>& f, const List& at) {
  const Tensor x = on_device::tensor(at).requires_grad_();
  return list(grad(f(x).sum(), {x})[0]);
}

}  // namespace braid::test
