#include "support/beside.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <braid/core/device.hpp>

#include "support/machine.hpp"
#include "support/timing.hpp"

namespace bench {
namespace {

/// The fastest of several peers.
struct Best {
  std::string name, all;  ///< empty if no peer gave a time; a list of all times
  double us = 0, noise = 0;
};
Best best_of(const Beside& row, const std::vector<std::unique_ptr<Peer>>& peers,
             const Series* series) {
  Best best;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const double us = series[i].time();
    if (!(us > 0)) {
      if (peers[i]->available() && row.asks(*peers[i]))
        std::fprintf(stderr, "%s: %s: %s\n", row.name.c_str(), peers[i]->name().c_str(),
                     peers[i]->error().c_str());
      continue;
    }
    char text[120];
    std::snprintf(text, sizeof text, "%s%s %.2f us (+-%.0f %%)", best.all.empty() ? "" : ", ",
                  peers[i]->name().c_str(), us, 100 * series[i].noise());
    best.all += text;
    if (best.name.empty() || us < best.us)
      best.name = peers[i]->name(), best.us = us, best.noise = series[i].noise();
  }
  return best;
}

/// Prints one line. Returns false if the bar is missed or cannot be judged. kShown has no bar to
/// miss.
bool judge(const char* name, int threads, const Series& ours, const Best& best, double bar) {
  char verdict[64] = "";
  bool met = bar == Beside::kShown;
  if (best.name.empty()) {
    if (bar != Beside::kShown)
      std::snprintf(verdict, sizeof verdict, "bar %.1f x not judged: no peer", bar);
    std::printf("%-22s %d  %10.2f us (+-%.0f %%)  %13s  %8s  %s\n", name, threads, ours.time(),
                100 * ours.noise(), "-", "-", verdict);
    return met;
  }
  const double ratio = best.us / ours.time(), apart = std::max(ours.noise(), best.noise);
  if (bar != Beside::kShown) {
    const bool clear = apart < 0.5 && std::abs(ratio - 1) > 2 * apart;
    met = clear && ratio >= bar;
    std::snprintf(verdict, sizeof verdict, "bar %.1f x %s", bar,
                  !clear ? "TOO NOISY"
                  : met  ? "met"
                         : "MISSED");
  }
  std::printf("%-22s %d  %10.2f us (+-%.0f %%)  %10.2f us  %6.2f x  %-19s  [%s]\n", name, threads,
              ours.time(), 100 * ours.noise(), best.us, ratio, verdict, best.all.c_str());
  return met;
}

void put(Json& row, const std::string& prefix, const Best& best, double ours) {
  if (best.name.empty())
    row.set(prefix + "peer", nullptr)
        .set(prefix + "peer_us", nullptr)
        .set(prefix + "ratio", nullptr);
  else
    row.set(prefix + "peer", best.name)
        .set(prefix + "peer_us", best.us)
        .set(prefix + "ratio", best.us / ours);
}

}  // namespace

Peers::Peers(const Options& options, bool with_tuned) {
  if (options.no_peers) return;
  for (const bool is_tuned : {false, true})
    for (const char* name : {"torch-python", "torch-cpp"}) {
      if (is_tuned && !with_tuned) continue;
      const std::string program =
          options.peers +
          (std::string(name) == "torch-cpp" ? "/bin/peer-libtorch" : "/bin/peer-python");
      auto& place = is_tuned ? tuned : list;
      place.push_back(
          std::make_unique<Peer>(name, program, core_list(2), is_tuned ? kTunedMalloc : ""));
      if (!place.back()->available())
        std::printf("%s%s is missing: %s\n", name, is_tuned ? " with a tuned malloc" : "",
                    place.back()->error().c_str());
    }
}

bool measure(const Beside& row, int threads, int rounds, Peers& peers, std::vector<Json>& table,
             double& noise) {
  braid::set_num_threads(threads);
  const bool tuned = row.tuned_bar != Beside::kNotShown;
  std::vector<std::function<double()>> contenders = {[&] { return row.time(row.ours); }};
  const auto add = [&](Peer* p) {
    contenders.push_back([&row, p, threads] {
      return row.asks(*p) ? p->run(row.name, threads, row.theirs).value_or(0) : 0;
    });
  };
  for (const auto& peer : peers.list) add(peer.get());
  if (tuned)
    for (const auto& peer : peers.tuned) add(peer.get());
  const std::vector<Series> series = interleave(rounds, contenders);
  const Best best = best_of(row, peers.list, series.data() + 1);
  Json entry;
  entry.set("name", row.name)
      .set("device", "cpu:0")
      .set("threads", threads)
      .set("ours_us", series[0].time());
  put(entry, "", best, series[0].time());
  noise = std::max({noise, series[0].noise(), best.noise});
  bool met = judge(row.name.c_str(), threads, series[0], best, row.bar);
  if (tuned) {
    const Best kept = best_of(row, peers.tuned, series.data() + 1 + peers.list.size());
    put(entry, "tuned_", kept, series[0].time());
    noise = std::max(noise, kept.noise);
    met = judge("  with a tuned malloc", threads, series[0], kept, row.tuned_bar) && met;
  }
  table.push_back(entry);
  return met;
}

}  // namespace bench
