// Compares every op of the table (op_cases.hpp) with its reference, over dtypes, layouts and
// devices.
#include <iostream>
#include <map>
#include <set>

#include <braid/core/autograd.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "op_cases.hpp"
#include "support/errors.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
namespace {

struct Call {
  std::vector<Tensor> inputs;
  std::vector<Array> values;
  std::vector<Tensor> outputs;
};

Call run(const OpCase& c, DType dtype, Device device, const std::vector<Layout>& layout) {
  Call call;
  call.inputs = inputs_of(c, dtype, layout, device);
  for (const Tensor& t : call.inputs) call.values.push_back(array_of(t));
  call.outputs = c.call(call.inputs);
  return call;
}

}  // namespace

TEST_CASE("ops: every op agrees with its reference in every type and layout on every device",
          "[ops]") {
  std::int64_t ran = 0, defined = 0, of_others = 0;
  std::size_t number = 0;
  for (const OpCase& c : op_cases()) {
    const std::vector<std::vector<Layout>> combinations = layout_combinations(c);
    const auto cells =
        static_cast<std::int64_t>(c.dtypes.size() * combinations.size() * test_devices().size());
    defined += cells;
    if (!mine_of_table(number++)) {
      of_others += cells;
      continue;
    }
    for (const DType dtype : c.dtypes)
      for (const Device device : test_devices())
        for (const auto& layout : combinations) {
          Call call;
          try {
            call = run(c, dtype, device, layout);
          } catch (const std::exception& e) {
            FAIL_CHECK(describe(c.name(), dtype, device, layout) << ": " << e.what());
            continue;
          }
          std::string problem;
          for (std::size_t k = 0; k < call.outputs.size() && problem.empty(); ++k) {
            const Tensor& y = call.outputs[k];
            problem = evaluate(c, k, y, call.values);
            if (problem.empty() && y.dtype() != c.result(dtype))
              problem = str("result type ", y.dtype());
            if (problem.empty() && y.device() != device)
              problem = str("result device ", y.device());
            if (problem.empty() && y.requires_grad()) problem = "the result requires a gradient";
          }
          for (std::size_t i = 0; i < call.inputs.size() && problem.empty(); ++i)
            if (array_of(call.inputs[i]).data != call.values[i].data ||
                call.inputs[i].version() != 0)
              problem = str("input ", i, " was changed");
          ++ran;
          if (!problem.empty())
            FAIL_CHECK(describe(c.name(), dtype, device, layout) << ": " << problem);
        }
  }
  CHECK(ran + of_others == defined);
  CHECK(ran > 10000);
  std::set<std::string> ops;
  for (const OpCase& c : op_cases()) ops.insert(c.op);
  std::cout << "SHOWS: ops on " << names_of_devices() << ": " << ran << " of " << defined
            << " cells (op x dtype x layout x device), " << op_cases().size() << " cases of "
            << ops.size() << " ops" << std::endl;
}

TEST_CASE("ops: a layout does not change a bit of what is not a sum", "[ops]") {
  std::size_t number = 0;
  for (const OpCase& c : op_cases()) {
    // sums may be added in memory order, which depends on the layout
    if (c.accuracy == Accuracy::bound || !mine(number++)) continue;
    for (const DType dtype : c.dtypes) {
      // the inputs of `again`: most layouts hold the same numbers
      std::vector<std::vector<double>> values;
      std::vector<Tensor> again;
      for (const auto& layout : layout_combinations(c)) {
        const Call call = run(c, dtype, here(), layout);
        std::vector<Tensor> copies;
        std::vector<std::vector<double>> now;
        for (std::size_t i = 0; i < call.inputs.size(); ++i) {
          copies.push_back(tensor_of(call.values[i], call.inputs[i].dtype()));
          now.push_back(call.values[i].data);
        }
        if (again.empty() || now != values) {
          again = c.call(copies);
          values = now;
        }
        for (std::size_t k = 0; k < again.size(); ++k) {
          const std::string problem = same_bits(call.outputs[k], again[k]);
          if (!problem.empty())
            FAIL_CHECK(describe(c.name(), dtype, here(), layout) << ": " << problem);
        }
      }
    }
  }
}

TEST_CASE("ops: every device gives the same bits", "[ops]") {
  REQUIRE(there() != here());
  for (const OpCase& c : op_cases())
    for (const DType dtype : c.dtypes) {
      const Call first = run(c, dtype, here(), dense(c)), last = run(c, dtype, there(), dense(c));
      for (std::size_t k = 0; k < first.outputs.size(); ++k) {
        const std::string problem = same_bits(first.outputs[k], last.outputs[k]);
        if (!problem.empty())
          FAIL_CHECK(describe(c.name(), dtype, there(), dense(c)) << ": " << problem);
      }
    }
}

TEST_CASE("ops: tensors of two devices are refused by name", "[ops][errors]") {
  int refused = 0;
  for (const OpCase& c : op_cases()) {
    // this case consists of several ops
    if (c.inputs.size() < 2 || c.across_devices || c.variant == "one tensor twice") continue;
    for (std::size_t other = 0; other < c.inputs.size(); ++other) {
      std::vector<Tensor> inputs = inputs_of(c, DType::float32, dense(c), here());
      inputs[other] = inputs_of(c, DType::float32, dense(c), there())[other];
      INFO(c.name() << ", input " << other);
      for (const std::string& part : {std::string("expected *got *"), str(here()), str(there()),
                                      c.op == "operator[]" ? std::string(": ") : c.op + ": "})
        CHECK(thrown<DeviceError>(part, [&] { c.call(inputs); }) == "");
      ++refused;
    }
  }
  CHECK(refused > 100);
}

TEST_CASE("ops: a type that no case of an op has is refused by name", "[ops][errors]") {
  std::map<std::string, std::set<DType>> types;
  for (const OpCase& c : op_cases()) types[c.op].insert(c.dtypes.begin(), c.dtypes.end());
  int refused = 0;
  for (const OpCase& c : op_cases())
    for (const DType t : all_dtypes()) {
      if (types[c.op].count(t) != 0) continue;
      // a bool with a number is promoted: test_promotion.cpp
      if (t == DType::bool_ && c.variant.find("number") != std::string::npos &&
          (c.op == "fmod" || c.op == "remainder" || c.op == "floor_divide"))
        continue;
      const std::vector<Tensor> inputs = inputs_of(c, t, dense(c), here());
      INFO(c.name() << ", " << t);
      CHECK(thrown<DTypeError>(c.op + ": expected ", [&] { c.call(inputs); }) == "");
      ++refused;
    }
  CHECK(refused > 100);
}

TEST_CASE("ops: an undefined tensor is refused", "[ops][errors]") {
  for (const OpCase& c : op_cases())
    for (std::size_t missing = 0; missing < c.inputs.size(); ++missing) {
      if (c.op.rfind("linear", 0) == 0 && missing == 2 &&
          c.variant.find("no bias") == std::string::npos)
        continue;  // the bias
      if (c.inputs[missing].optional) continue;
      if (c.op == "clamp" && missing > 0) continue;  // no bound
      std::vector<Tensor> inputs = inputs_of(c, DType::float32, dense(c), here());
      inputs[missing] = Tensor();
      INFO(c.name() << ", input " << missing);
      CHECK_THROWS_AS(c.call(inputs), Error);
    }
}

TEST_CASE("ops: under no_grad, and for numbers that are not floating point, nothing is recorded",
          "[ops]") {
  for (const OpCase& c : op_cases()) {
    const std::vector<Tensor> inputs = inputs_of(c, DType::float32, dense(c), here());
    bool floating = false;
    for (const Tensor& t : inputs)
      if (t.dtype() == DType::float32) t.requires_grad_(), floating = true;
    REQUIRE(floating);
    INFO(c.name());
    bool recorded = false;
    for (const Tensor& y : c.call(inputs)) recorded = recorded || y.requires_grad();
    const bool itself = c.op == "contiguous";               // returns the same tensor
    const bool zeros = c.op == "fill_" || c.op == "zero_";  // the gradient is 0
    CHECK(recorded == (c.differentiable || itself || zeros));
    NoGrad guard;
    for (const Tensor& y : c.call(inputs))
      CHECK((y.is_leaf() && (!y.requires_grad() || y.id() == inputs[0].id())));
  }
}

}  // namespace braid::test::on_device
