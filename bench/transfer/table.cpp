#include "transfer/table.hpp"

#include <cstdio>

namespace bench::transfer {
namespace {

double rate(double bytes, double us) { return bytes / us * 1e-3; }  // GB/s

Json named(const Column& c) {
  Json row;
  row.set("name", "move")
      .set("direction", c.direction)
      .set("memory", c.memory)
      .set("mode", c.mode)
      .set("call", c.call)
      .set("from", c.from)
      .set("to", c.to);
  return row;
}

}  // namespace

void print(const Column& column, bool queued) {
  std::printf(
      "\n%s\n     size          us   GB/s   +-%%  %sx memcpy  x torch  with a tuned malloc\n",
      column.text.c_str(), queued ? "   call us  " : "");
  for (const Sample& s : column.samples) {
    const auto bytes = static_cast<double>(s.bytes);
    std::printf("%9s  %10.2f  %5.1f  %4.0f", text_of_bytes(bytes).c_str(), s.us, rate(bytes, s.us),
                100 * s.noise);
    if (queued) std::printf("  %10.2f", s.call_us);
    std::printf("  %8.2f", s.memcpy_us / s.us);
    if (s.peer_us > 0) std::printf("  %7.2f", s.peer_us / s.us);
    if (s.tuned_us > 0) std::printf("  %7.2f", s.tuned_us / s.us);
    std::printf("\n");
  }
  const Curve& c = column.curve;
  std::printf("  fit: %s, off by %.0f %% at most\n", text_of(c.line).c_str(), 100 * c.misfit);
  if (c.bend > 0)
    std::printf("  two lines: below %s %s, from there on %s, off by %.0f %% at most\n",
                text_of_bytes(c.bend).c_str(), text_of(c.small).c_str(), text_of(c.large).c_str(),
                100 * c.bent_misfit);
}

void add_rows(const Column& column, const std::string& peer, bool simulated,
              std::vector<Json>& rows) {
  for (const Sample& s : column.samples) {
    Json row = named(column);
    row.set("bytes", static_cast<int>(s.bytes))
        .set("us", s.us)
        .set("gb_per_s", rate(static_cast<double>(s.bytes), s.us))
        .set("call_us", s.call_us);
    row.set("noise", s.noise).set("memcpy_us", s.memcpy_us).set("ratio_memcpy", s.memcpy_us / s.us);
    if (s.peer_us > 0)
      row.set("peer", peer).set("peer_us", s.peer_us).set("ratio", s.peer_us / s.us);
    else row.set("peer", nullptr).set("peer_us", nullptr).set("ratio", nullptr);
    if (s.tuned_us > 0) row.set("tuned_peer_us", s.tuned_us).set("tuned_ratio", s.tuned_us / s.us);
    rows.push_back(row.set("simulated", simulated));
  }
  const auto fit = [&](const braid::parallel::CostLine& line, const char* sizes, double misfit) {
    Json row = named(column);
    row.set("fit", sizes)
        .set("bend_bytes", static_cast<int>(column.curve.bend))
        .set("latency_us", line.latency * 1e6)
        .set("gb_per_s", 1e-9 / line.slope);
    rows.push_back(row.set("worst_misfit", misfit).set("simulated", simulated));
  };
  fit(column.curve.line, "all", column.curve.misfit);
  if (column.curve.bend <= 0) return;
  fit(column.curve.small, "below the bend", column.curve.bent_misfit);
  fit(column.curve.large, "from the bend on", column.curve.bent_misfit);
}

}  // namespace bench::transfer
