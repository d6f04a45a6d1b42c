// With PrintOrder::replica, output appears in replica order, whichever replica prints first. The
// tests run in separate processes, because they read stdout.
#include "group.hpp"
#include "support/child.hpp"

namespace braid::test::on_device {

using parallel::PrintOrder;

namespace {

/// Each replica prints two lines, the last replica first.
void print_backwards(bool one_throws = false) {
  const int n = device_count();
  std::atomic<int> printed{0};
  std::vector<std::function<Tensor(const Tensor&)>> modules;
  std::vector<Tensor> inputs;
  for (int i = 0; i < n; ++i) {
    inputs.push_back(ones({1}, {.device = device(i)}));
    modules.push_back([&, i](const Tensor& x) {
      while (printed != n - 1 - i) std::this_thread::yield();
      for (const int line : {0, 1}) print("replica ", i, " line ", line);
      ++printed;
      if (one_throws && i == n - 1) throw std::runtime_error("thrown on purpose");
      return x;
    });
  }
  parallel::parallel_apply(modules, inputs);
}

/// The expected two lines of each replica.
std::string lines(PrintOrder order) {
  std::string text;
  for (int i = 0; i < device_count(); ++i) {
    const std::string of = str("replica ", i, " line 0\nreplica ", i, " line 1\n");
    text = order == PrintOrder::replica ? text + of : of + text;
  }
  return text;
}

}  // namespace

TEST_CASE("print: lines come out by thread, by replica, or by shard", "[print_order]") {
  const std::string forwards = lines(PrintOrder::replica), backwards = lines(PrintOrder::thread);
  std::string of_shards;
  for (int shard = 0; shard < 2 * device_count(); ++shard)
    of_shards += str("rows from ", 3 * shard, "\n");
  const struct {
    const char *order, *filter;
    std::string lines;
  } rows[] = {{"replica", "environment", "begin\n" + forwards + "end\n"},
              {"thread", "environment", "begin\n" + backwards + "end\n"},
              {"", "environment", "begin\n" + backwards + "end\n"},
              {"replica", "set", "begin\n" + backwards + forwards + "end\n"},
              {"replica", "error", "begin\n" + forwards + "end\n"},
              {"device", "wrong", "All tests passed"},
              {"replica", "shards", of_shards}};
  for (const auto& row : rows) {
    const ChildResult child = run_child(str("BRAID_PRINT_ORDER=", row.order),
                                        str("[.child][print_order_", row.filter, "]"));
    INFO(row.order << ' ' << row.filter << ":\n" << child.output);
    CHECK(child.status == 0);
    CHECK(child.output.find(row.lines) != std::string::npos);
  }
}

TEST_CASE("print: in a child, the environment's order", "[.child][print_order_environment]") {
  print("begin");
  print_backwards();
  print("end");
}
TEST_CASE("print: in a child, set_print_order", "[.child][print_order_set]") {
  parallel::set_print_order(PrintOrder::thread);
  CHECK(parallel::print_order() == PrintOrder::thread);
  print("begin");
  print_backwards();
  parallel::set_print_order(PrintOrder::replica);
  print_backwards();
  print("end");
}
TEST_CASE("print: in a child, lines of a replica that throws", "[.child][print_order_error]") {
  print("begin");
  CHECK_THROWS_AS(print_backwards(true), ReplicaError);
  print("end");
}
TEST_CASE("print: in a child, a wrong name", "[.child][print_order_wrong]") {
  constexpr const char* kText = "BRAID_PRINT_ORDER: expected thread or replica, got 'device'";
  if (device_count() > 1) CHECK_THROWS_TEXT(ArgumentError, kText, print_backwards());
  CHECK_THROWS_TEXT(ArgumentError, kText, parallel::print_order());
}
TEST_CASE("print: in a child, shards", "[.child][print_order_shards]") {
  const int shards = 2 * device_count();
  const Made prints = home(Made([](const Tensor& weight, const Tensor& x) {
    print("rows from ", static_cast<int>(x.to(Device()).to_vector<float>().front()));
    return x * weight;
  }));
  (void)data_parallel(prints, counting({3 * shards, 1}), devices(), {.shards = shards});
}

}  // namespace braid::test::on_device
