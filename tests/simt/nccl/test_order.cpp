// Where a wait around a collective is missing, the checker finds it; where none is, it finds
// nothing.
#include <braid/core/error.hpp>
#include <braid/core/native_device.hpp>

#include "communicator/nccl/group.hpp"
#include "communicator/nccl/table.hpp"
#include "nccl.hpp"
#include "simt/engine/child.hpp"

using namespace braid;
using namespace braid::test;

namespace {

/// x on two devices is filled, summed over NCCL on streams of its own, and read: all that the host
/// has to order is `before` (the sum after the fill) and `after` (the read after the sum).
std::string sum_on_side_streams(bool before, bool after, std::string_view order) {
  return in_child([=] {
    simt::set_stream_order(order);
    const std::vector<Device> pair = group(2);
    const auto f = parallel::nccl::stand_in(*native_device(pair[0]));
    parallel::nccl::UniqueId id{};
    (void)f.get_unique_id(&id);
    parallel::nccl::Config config;
    config.blocking = 0;
    parallel::nccl::Comm comms[2]{};
    (void)f.group_start();
    for (int rank = 0; rank < 2; ++rank) {
      native_device(pair[static_cast<std::size_t>(rank)])->make_current();
      (void)f.comm_init_rank_config(&comms[rank], 2, id, rank, &config);
    }
    (void)f.group_end();
    const auto settle = [&] {
      for (parallel::nccl::Comm comm : comms)
        for (int state = 7; state == 7;)
          if (f.comm_get_async_error(comm, &state) != 0) return;
    };
    settle();
    std::vector<Tensor> x;
    std::vector<std::shared_ptr<Stream>> streams;
    for (const Device d : pair) {
      x.push_back(zeros({100}, {.device = d}));
      synchronize(d);  // its memory is in order; what is not is the fill
      x.back().fill_(d.index() + 1);
      streams.push_back(make_stream(d));
      if (before) streams.back()->wait_for(current_stream(d));
    }
    (void)f.group_start();
    for (std::size_t rank = 0; rank < 2; ++rank) {
      void* const data = x[rank].id()->data();
      (void)f.all_reduce(data, data, 100, parallel::nccl::kFloat32, 0, comms[rank],
                         static_cast<parallel::nccl::Stream>(streams[rank]->native()));
    }
    (void)f.group_end();
    settle();
    if (after)
      for (std::size_t rank = 0; rank < 2; ++rank)
        current_stream(pair[rank]).wait_for(*streams[rank]);
    std::string text;
    try {
      for (const Tensor& t : x)
        text += (t + 1).to(Device()).to_vector<float>().at(99) == 4 ? "sum " : "other ";
    } catch (const DeviceLostError&) {
      text += "lost ";
    }
    return text + all_findings();
  });
}

}  // namespace

TEST_CASE("nccl: the checker finds a dropped wait around a collective", "[nccl]") {
  for (const char* const order : {"fifo", "reverse", "random:1"}) {
    INFO(order);
    CHECK(sum_on_side_streams(true, true, order) == "sum sum ");
    const std::string unordered = sum_on_side_streams(false, true, order),
                      early = sum_on_side_streams(true, false, order);
    INFO(unordered);
    INFO(early);
    CHECK(unordered.find("race") != std::string::npos);
    CHECK(unordered.find("ncclAllReduce") != std::string::npos);
    CHECK(early.find("race") != std::string::npos);
    CHECK(early.find("ncclAllReduce") != std::string::npos);
  }
}

TEST_CASE(
    "nccl: the communicator's own waits order what comes before a collective, and what comes after",
    "[nccl]") {
  for (const char* const order : {"fifo", "reverse", "random:1", "random:2", "random:3"}) {
    INFO(order);
    const std::string seen = in_child([order] {
      simt::set_stream_order(order);
      const std::vector<Device> all = group(4);
      const auto communicator = parallel::make_nccl_communicator(all);
      std::string text;
      for (int round = 0; round < 3; ++round) {
        std::vector<Tensor> x, parts, whole, piece;
        for (const Device d : all) {
          x.push_back(full({64}, d.index() + round, {.device = d}));
          parts.push_back(full({16}, d.index() + round, {.device = d}));
          whole.push_back(empty({64}, {.device = d}));
          piece.push_back(empty({16}, {.device = d}));
        }
        communicator->all_gather(views_of(parts), views_of(whole));
        communicator->reduce_scatter(views_of(x), views_of(piece));
        communicator->all_reduce(views_of(x));
        for (const Tensor& t : parts) t.fill_(-1);
        const BufferView sum[] = {view_of(x[0])};
        communicator->reduce(views_of(x), sum);
        communicator->broadcast(views_of(x));
        const float each = static_cast<float>(6 + 4 * round);
        for (std::size_t i = 0; i < 4; ++i) {
          if ((x[i] + 0).to(Device()).to_vector<float>() != std::vector<float>(64, 4 * each))
            text += str("sum on ", i, "; ");
          if ((piece[i] + 0).to(Device()).to_vector<float>() != std::vector<float>(16, each))
            text += str("piece on ", i, "; ");
          if ((whole[i] + 0).to(Device()).to_vector<float>().at(63) !=
              static_cast<float>(3 + round))
            text += str("whole on ", i, "; ");
        }
      }
      return text + all_findings();
    });
    CHECK(seen == "");
  }
}
