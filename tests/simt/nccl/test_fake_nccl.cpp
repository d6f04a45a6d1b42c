// The rules of NCCL that the fake follows: what it refuses, when it is in progress, which ranks
// wait.
#include <cstdlib>
#include <thread>

#include <braid/core/error.hpp>
#include <braid/core/internal/native_device.hpp>

#include "communicator/nccl/table.hpp"
#include "nccl.hpp"
#include "simt/engine/child.hpp"

using namespace braid;
using namespace braid::test;
using parallel::nccl::Comm;
using parallel::nccl::Config;
using parallel::nccl::Functions;
using parallel::nccl::UniqueId;

namespace {

constexpr int kSuccess = 0, kInternalError = 3, kInvalidArgument = 4, kInvalidUsage = 5,
              kInProgress = 7;

const Functions& functions() {
  static const Functions f = [] {
    (void)native_device(Device("cuda:0"));  // its backend registers the fake
    return parallel::nccl::linked_functions();
  }();
  return f;
}

int state_of(Comm comm) {
  int state = -1;
  const int result = functions().comm_get_async_error(comm, &state);
  return result == kSuccess ? state : result;
}
/// Polls until the state is not kInProgress. Returns kInProgress if that does not happen.
int settled(Comm comm) {
  int state = kInProgress;
  for (int i = 0; i < 100 && state == kInProgress; ++i) state = state_of(comm);
  return state;
}

/// Creates communicators on the devices with these indices and polls them until they are settled.
std::vector<Comm> make(const std::vector<int>& on, int settled_as = kSuccess) {
  const Functions& f = functions();
  UniqueId id{};
  REQUIRE(f.get_unique_id(&id) == kSuccess);
  Config config;
  config.blocking = 0;
  std::vector<Comm> comms(on.size());
  REQUIRE(f.group_start() == kSuccess);
  for (std::size_t rank = 0; rank < on.size(); ++rank) {
    native_device(Device(DeviceType::cuda, on[rank]))->make_current();
    CHECK(f.comm_init_rank_config(&comms[rank], static_cast<int>(on.size()), id,
                                  static_cast<int>(rank), &config) == kInProgress);
  }
  CHECK(f.group_end() == kInProgress);
  CHECK(state_of(comms[0]) == kInProgress);
  for (Comm comm : comms) CHECK(settled(comm) == settled_as);
  return comms;
}

void end(const std::vector<Comm>& comms) {
  for (Comm comm : comms) CHECK(functions().comm_abort(comm) == kSuccess);
}

/// Tensors and a stream on each device. With `ordered`, the stream is ordered after the fill.
struct Side {
  std::vector<Tensor> x;
  std::vector<std::shared_ptr<Stream>> streams;
  explicit Side(int n, bool ordered = true) {
    for (int i = 0; i < n; ++i) {
      const Device d(DeviceType::cuda, i);
      x.push_back(zeros({8}, {.device = d}));
      synchronize(d);  // the memory itself is ordered; only the fill may not be
      x.back().fill_(i + 1);
      streams.push_back(make_stream(d));
      if (ordered) streams.back()->wait_for(current_stream(d));
    }
  }
  [[nodiscard]] parallel::nccl::Stream stream(std::size_t rank) const {
    return static_cast<parallel::nccl::Stream>(streams[rank]->native());
  }
  int all_reduce(Comm comm, std::size_t rank, std::size_t count = 8, std::size_t on = 99) const {
    void* const data = x[rank].id()->data();
    return functions().all_reduce(data, data, count, parallel::nccl::kFloat32, 0, comm,
                                  stream(on == 99 ? rank : on));
  }
};

/// Fills x on two devices, sums it over NCCL on separate streams, and reads it. The host must order
/// two things: `before` (the sum after the fill) and `after` (the read after the sum).
std::string sum_on_side_streams(bool before, bool after, std::string_view order) {
  return in_child([=] {
    simt::set_stream_order(order);
    const auto comms = make({0, 1});
    const Side side(2, before);
    (void)functions().group_start();
    for (std::size_t rank = 0; rank < 2; ++rank) (void)side.all_reduce(comms[rank], rank);
    (void)functions().group_end();
    for (Comm comm : comms) (void)settled(comm);
    for (std::size_t rank = 0; after && rank < 2; ++rank)
      current_stream(side.x[rank].device()).wait_for(*side.streams[rank]);
    std::string text;
    try {
      for (const Tensor& t : side.x) text += floats(t + 1).at(7) == 4 ? "sum " : "other ";
    } catch (const DeviceLostError&) {
      text += "lost ";
    }
    return text + all_findings();
  });
}

}  // namespace

TEST_CASE("fake NCCL: one device twice is refused, unless 2.30 is allowed to", "[fake_nccl]") {
  const Scene scene;
  const auto distinct = make({0, 2});
  const auto twice = make({1, 1}, kInvalidUsage);
  CHECK(std::string(functions().get_last_error(nullptr)).find("Duplicate GPU detected") == 0);
  nccl::set_version(23000);
  const auto not_asked = make({1, 1}, kInvalidUsage);
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  const auto shared = make({1, 1});
  nccl::set_version(22809);
  const auto too_old = make({1, 1}, kInvalidUsage);
  unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
  for (const auto* comms : {&distinct, &twice, &not_asked, &shared, &too_old}) end(*comms);
  CHECK(nccl::alive() == 0);
  CHECK(all_findings() == "");
}

TEST_CASE("fake NCCL: nothing is done before the group has ended and all were asked",
          "[fake_nccl]") {
  const Scene scene;
  const auto comms = make({0, 1});
  Side side(2);
  const Functions& f = functions();
  const auto first = [&](std::size_t rank) { return floats(side.x[rank]).at(0); };
  CHECK(f.group_start() == kSuccess);
  CHECK(f.group_start() == kSuccess);  // groups nest
  for (std::size_t rank = 0; rank < 2; ++rank)
    CHECK(side.all_reduce(comms[rank], rank) == kSuccess);
  CHECK(f.group_end() == kSuccess);
  side.streams[0]->synchronize();
  CHECK(first(0) == 1);
  CHECK(f.group_end() == kInProgress);
  side.streams[0]->synchronize();
  CHECK(first(0) == 1);  // unchanged: nobody has polled
  CHECK(settled(comms[0]) == kSuccess);
  CHECK(settled(comms[1]) == kSuccess);
  for (const auto& stream : side.streams) stream->synchronize();
  CHECK(first(0) == 3);
  CHECK(first(1) == 3);
  end(comms);
  CHECK(all_findings() == "");
}

TEST_CASE("fake NCCL: wrong calls", "[fake_nccl]") {
  const Scene scene;
  const auto comms = make({0, 1});
  Side side(2);
  const Functions& f = functions();
  CHECK(f.group_end() == kInvalidUsage);
  CHECK(side.all_reduce(comms[0], 0, 8, 1) == 1);                    // a stream of another device
  CHECK(side.all_reduce(comms[0], 1, 8, 0) == kInvalidArgument);     // another device's memory
  CHECK(side.all_reduce(comms[0], 0, 1 << 20) == kInvalidArgument);  // past the end
  CHECK(f.group_start() == kSuccess);
  CHECK(side.all_reduce(comms[0], 0, 8) == kSuccess);
  CHECK(side.all_reduce(comms[1], 1, 7) == kSuccess);
  CHECK(f.group_end() == kInvalidUsage);  // the counts differ
  CHECK(f.group_start() == kSuccess);
  CHECK(side.all_reduce(comms[0], 0, 1 << 20) == kInvalidArgument);
  CHECK(side.all_reduce(comms[1], 1) == kSuccess);
  CHECK(f.group_end() == kInvalidArgument);  // a group is all or nothing
  UniqueId id{};
  Config config;
  Comm none = nullptr;
  CHECK(f.comm_init_rank_config(&none, 1, id, 0, &config) == kInvalidUsage);  // a blocking one
  config.magic = 1;
  CHECK(f.comm_init_rank_config(&none, 1, id, 0, &config) == kInvalidArgument);
  CHECK(f.comm_init_rank_config(&none, 2, id, 2, &config) == kInvalidArgument);
  (void)simt::take_reports();
  CHECK(nccl::take_misuses().empty());
  CHECK(floats(side.x[0]) == std::vector<float>(8, 1));
  end(comms);
  CHECK(f.comm_destroy(comms[0]) == kInvalidArgument);
  CHECK(nccl::take_misuses() ==
        std::vector<std::string>{"ncclCommDestroy of a communicator that has ended or never was"});
}

TEST_CASE("fake NCCL: a rank that does not come is waited for until an abort", "[fake_nccl]") {
  const std::string seen = in_child([] {
    const auto comms = make({0, 1});
    Side side(2);
    if (side.all_reduce(comms[0], 0) != kInProgress) return std::string("not begun");
    (void)settled(comms[0]);
    const std::unique_ptr<Event> end_of = make_event(side.x[0].device());
    side.streams[0]->record(*end_of);
    const auto until = Clock::now() + 100ms;
    while (!end_of->done() && Clock::now() < until) std::this_thread::sleep_for(1ms);
    std::string text = end_of->done() ? "done alone" : "waits";
    end(comms);
    side.streams[0]->synchronize();
    const float first = floats(side.x[0]).at(0);
    return text + (first != first ? ", then NaN" : ", then a number") + all_findings();
  });
  CHECK(seen == "waits, then NaN");
}

TEST_CASE("fake NCCL: nobody waits for a rank whose numbers it does not need", "[fake_nccl]") {
  const std::string seen = in_child([] {
    const auto comms = make({0, 1});
    Side side(2);
    const Functions& f = functions();
    // Only rank 0 receives the sum. Rank 1 provides its data and continues, so nothing of rank 1 is
    // ordered after rank 0's write.
    (void)f.group_start();
    for (std::size_t rank = 0; rank < 2; ++rank) {
      void* const data = side.x[rank].id()->data();
      (void)f.reduce(data, rank == 0 ? data : nullptr, 8, parallel::nccl::kFloat32, 0, 0,
                     comms[rank], side.stream(rank));
    }
    (void)f.group_end();
    for (const Comm comm : comms) (void)settled(comm);
    current_stream(side.x[1].device()).wait_for(*side.streams[1]);
    current_stream(side.x[0].device()).wait_for(current_stream(side.x[1].device()));
    try {
      (void)(side.x[0] + 1).to(Device());
    } catch (const DeviceLostError&) {}
    const std::string text = all_findings();
    return std::string(text.find("race") != std::string::npos &&
                               text.find("ncclReduce") != std::string::npos
                           ? "found"
                           : text);
  });
  CHECK(seen == "found");
}

TEST_CASE("fake NCCL: a fault shows at the call it is meant for", "[fake_nccl]") {
  const Scene scene;
  int version = 0;
  nccl::fail_call(2, nccl::Fault::error);
  CHECK(functions().get_version(&version) == kSuccess);
  CHECK_FALSE(nccl::failed());
  CHECK(functions().get_version(&version) == kInternalError);
  CHECK(nccl::failed());
  CHECK(functions().get_version(&version) == kSuccess);
  CHECK(version == 22809);
}

TEST_CASE("nccl: the checker finds a dropped wait around a collective", "[nccl]") {
  for (const char* const order : {"fifo", "reverse", "random:1"}) {
    INFO(order);
    CHECK(sum_on_side_streams(true, true, order) == "sum sum ");
    for (const bool before : {false, true}) {
      const std::string text = sum_on_side_streams(before, !before, order);
      INFO(text);
      CHECK(text.find("race") != std::string::npos);
      CHECK(text.find("ncclAllReduce") != std::string::npos);
    }
  }
}
