// 10.4: what replicas print comes out by replica where that is asked for, whoever comes first. In
// processes of their own: stdout is read.
#include <braid/parallel/print_order.hpp>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>

#include <braid/core/print.hpp>
#include <braid/parallel/data_parallel.hpp>
#include <braid/parallel/parallel_apply.hpp>

#include "group.hpp"
#include "support/child.hpp"
#include "support/errors.hpp"

namespace braid::test::on_device {

using parallel::PrintOrder;

namespace {

constexpr int kLines = 2;

/// Two lines of each replica, the last one's first.
void print_backwards(bool one_throws = false) {
  const int n = device_count();
  std::atomic<int> printed{0};
  std::vector<std::function<Tensor(const Tensor&)>> modules;
  std::vector<Tensor> inputs;
  for (int i = 0; i < n; ++i) {
    inputs.push_back(ones({1}, {.device = device(i)}));
    modules.push_back([&, i](const Tensor& x) {
      while (printed != n - 1 - i) std::this_thread::yield();
      for (int line = 0; line < kLines; ++line) print("replica ", i, " line ", line);
      ++printed;
      if (one_throws && i == n - 1) throw std::runtime_error("thrown on purpose");
      return x;
    });
  }
  parallel::parallel_apply(modules, inputs);
}

std::string lines_of(int replica) {
  std::string text;
  for (int line = 0; line < kLines; ++line) text += str("replica ", replica, " line ", line, "\n");
  return text;
}
std::string forwards() {
  std::string text;
  for (int i = 0; i < device_count(); ++i) text += lines_of(i);
  return text;
}
std::string backwards() {
  std::string text;
  for (int i = device_count(); i-- > 0;) text += lines_of(i);
  return text;
}

void check_prints(const char* environment, const char* filter, const std::string& lines) {
  const ChildResult child = run_child(environment, filter);
  INFO(environment << ' ' << filter << ":\n" << child.output);
  CHECK(child.status == 0);
  CHECK(child.output.find(lines) != std::string::npos);
}

}  // namespace

TEST_CASE("10.4: replicas' lines come out by thread, or by replica", "[parallel][print_order]") {
  check_prints("BRAID_PRINT_ORDER=replica", "[.child][print_order_of_environment]",
               "begin\n" + forwards() + "end\n");
  check_prints("BRAID_PRINT_ORDER=thread", "[.child][print_order_of_environment]",
               "begin\n" + backwards() + "end\n");
  check_prints("BRAID_PRINT_ORDER=", "[.child][print_order_of_environment]",
               "begin\n" + backwards() + "end\n");
  check_prints("BRAID_PRINT_ORDER=replica", "[.child][print_order_set]",
               "begin\n" + backwards() + forwards() + "end\n");
  check_prints("BRAID_PRINT_ORDER=replica", "[.child][print_order_error]",
               "begin\n" + forwards() + "end\n");
  check_prints("BRAID_PRINT_ORDER=device", "[.child][print_order_wrong]", "All tests passed");
}
TEST_CASE("10.4: shards' lines come out by shard", "[parallel][print_order]") {
  std::string lines;
  for (int shard = 0; shard < 2 * device_count(); ++shard)
    lines += str("rows from ", 3 * shard, "\n");
  check_prints("BRAID_PRINT_ORDER=replica", "[.child][print_order_of_shards]", lines);
}

TEST_CASE("10.4: in a child, the environment's order", "[.child][print_order_of_environment]") {
  print("begin");
  print_backwards();
  print("end");
}
TEST_CASE("10.4: in a child, set_print_order", "[.child][print_order_set]") {
  parallel::set_print_order(PrintOrder::thread);
  CHECK(parallel::print_order() == PrintOrder::thread);
  print("begin");
  print_backwards();
  parallel::set_print_order(PrintOrder::replica);
  print_backwards();
  print("end");
}
TEST_CASE("10.4: in a child, lines of a replica that throws", "[.child][print_order_error]") {
  print("begin");
  CHECK_THROWS_AS(print_backwards(true), ReplicaError);
  print("end");
}
TEST_CASE("10.4: in a child, a wrong name", "[.child][print_order_wrong]") {
  if (device_count() > 1)
    CHECK_THROWS_TEXT(ArgumentError, "BRAID_PRINT_ORDER: expected thread or replica, got 'device'",
                      print_backwards());
  CHECK_THROWS_TEXT(ArgumentError, "BRAID_PRINT_ORDER: expected thread or replica, got 'device'",
                    (void)parallel::print_order());
}
TEST_CASE("10.4: in a child, shards", "[.child][print_order_of_shards]") {
  struct Prints : nn::Module {
    nn::Linear fc{1, 1};
    Tensor operator()(const Tensor& x) const {
      print("rows from ", static_cast<int>(x.to(Device()).to_vector<float>().front()));
      return fc(x);
    }
    BRAID_FIELDS(fc)
  };
  const int shards = 2 * device_count();
  std::vector<float> rows;
  for (int i = 0; i < 3 * shards; ++i) rows.push_back(static_cast<float>(i));
  const parallel::DataParallel model(home(Prints{}), group(device_count()),
                                     parallel::DataParallelOptions{.shards = shards});
  (void)model(tensor(rows, {.device = device(0)}).view({3 * shards, 1}));
}

}  // namespace braid::test::on_device
