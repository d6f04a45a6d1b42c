// Which kernels a program launches, and where.
#include <cstdlib>
#include <set>

#include <braid/braid.hpp>

#include "child.hpp"
#include "simt/runtime/control.hpp"
#include "support/catch.hpp"

using namespace braid;

TEST_CASE("a batch split over three devices runs linear_forward on each of them",
          "[simt][launches]") {
  const std::string seen = test::in_child([] {
    setenv("BRAID_SIMT_DEVICES", "3", 1);
    unsetenv("BRAID_DEVICE");
    parallel::DataParallel model(nn::Linear(5, 2));
    to(model, default_device());
    simt::clear_launch_log();
    const Tensor y = model(randn({30, 5}, {.device = default_device()}));
    synchronize(y.device());
    std::set<int> on;
    for (const simt::LaunchRecord& launch : simt::launch_log())
      if (launch.kernel.find("linear_forward") != std::string::npos) on.insert(launch.device);
    std::string text = str(y.shape(), " on", "");
    for (const int device : on) text += str(" ", device);
    return text;
  });
  CHECK(seen == "[30, 2] on 0 1 2");
}
