#include "simt/profiler.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <map>
#include <mutex>
#include <tuple>

#include <braid/core/error.hpp>

#include "simt/grid_lock.hpp"

namespace braid::simt {

namespace {

std::atomic<Profiler*> living{nullptr};

// Passes over the banks. Accesses of 8 or 16 bytes per lane are split into 2 or 4 parts of the
// warp. Within a part, lanes that read the same word share it.
std::uint64_t wavefronts(const std::uintptr_t* address, std::uint32_t lanes, unsigned bytes) {
  const unsigned part = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
  std::uint64_t total = 0;
  for (unsigned begin = 0; begin < 32; begin += part) {
    std::vector<std::uintptr_t> words;
    for (unsigned i = begin; i < begin + part; ++i)
      if (lanes >> i & 1)
        for (std::uintptr_t w = address[i] / 4; w <= (address[i] + bytes - 1) / 4; ++w)
          words.push_back(w);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    std::uint64_t banks[32] = {}, most = 0;
    for (const std::uintptr_t w : words) most = std::max(most, ++banks[w % 32]);
    total += most;
  }
  return total;
}

std::uint64_t sectors(const std::uintptr_t* address, std::uint32_t lanes, unsigned bytes,
                      std::uint64_t& ideal) {
  std::vector<std::uintptr_t> touched, words;
  for (unsigned i = 0; i < 32; ++i) {
    if (!(lanes >> i & 1)) continue;
    for (std::uintptr_t s = address[i] / 32; s <= (address[i] + bytes - 1) / 32; ++s)
      touched.push_back(s);
    for (std::uintptr_t b = 0; b < bytes; ++b) words.push_back(address[i] + b);
  }
  const auto distinct = [](std::vector<std::uintptr_t>& v) {
    std::sort(v.begin(), v.end());
    return static_cast<std::uint64_t>(std::unique(v.begin(), v.end()) - v.begin());
  };
  ideal = (distinct(words) + 31) / 32;
  return distinct(touched);
}

}  // namespace

Profiler* Profiler::current() noexcept { return living.load(); }

void Profiler::access(Site site, unsigned thread, std::uintptr_t address, std::size_t bytes,
                      bool shared) {
  const std::uint32_t turn = turns_[{site, thread, 0}]++;
  WarpAccess& w = pending_[{site, thread / 32, turn}];
  w.address[thread % 32] = address;
  w.lanes |= 1u << (thread % 32);
  w.bytes = static_cast<std::uint8_t>(std::min<std::size_t>(bytes, 16));
  w.shared = shared;
}

void Profiler::flush() {
  for (const auto& [key, w] : pending_) {
    Counter& c = (w.shared ? shared_ : global_)[key.site];
    ++c.accesses;
    if (w.shared) {
      c.cost += wavefronts(w.address, w.lanes, w.bytes);
      const unsigned part = w.bytes <= 4 ? 32 : w.bytes <= 8 ? 16 : 8;
      for (unsigned begin = 0; begin < 32; begin += part)
        c.ideal += (w.lanes >> begin & (part == 32 ? ~0u : (1u << part) - 1)) != 0 ? 1 : 0;
    } else {
      std::uint64_t ideal = 0;
      c.cost += sectors(w.address, w.lanes, w.bytes, ideal);
      c.ideal += ideal;
    }
  }
  pending_.clear();
  turns_.clear();
}

Profile::Profile() {
  const std::lock_guard lock(grid_mutex());
  if (living.load()) throw braid::Error("Profile: expected that no other one is alive, got two");
  living = new Profiler;
}

Profile::~Profile() {
  const std::lock_guard lock(grid_mutex());
  delete living.exchange(nullptr);
}

std::vector<ProfileLine> Profile::lines() const {
  const std::lock_guard lock(grid_mutex());
  const Profiler& p = *living.load();
  std::vector<Site> sites;
  for (const auto* map : {&p.shared_, &p.global_})
    for (const auto& [site, counter] : *map) sites.push_back(site);
  const std::vector<SourceLine> where = source_lines(sites);
  std::map<std::tuple<std::string, int, bool>, ProfileLine> merged;
  std::size_t i = 0;
  for (const auto* map : {&p.shared_, &p.global_})
    for (const auto& [site, counter] : *map) {
      const SourceLine& at = where[i++];
      ProfileLine& line = merged[{at.file, at.line, map == &p.shared_}];
      line.file = at.file;
      line.line = at.line;
      line.shared = map == &p.shared_;
      line.accesses += counter.accesses;
      line.cost += counter.cost;
      line.ideal += counter.ideal;
    }
  std::vector<ProfileLine> result;
  for (auto& [key, line] : merged) result.push_back(std::move(line));
  return result;
}

ProfileLine Profile::at(std::string_view file, int line, bool shared) const {
  for (ProfileLine& l : lines())
    if (l.file == file && l.line == line && l.shared == shared) return l;
  ProfileLine none;
  none.file = file;
  none.line = line;
  none.shared = shared;
  return none;
}

std::string Profile::table() const {
  std::string text;
  for (const ProfileLine& l : lines()) {
    char row[200];
    std::snprintf(row, sizeof row, "%-28s %-6s %9llu warp accesses, %6.2f %s each (ideal %.2f)%s\n",
                  str(l.file, ":", l.line).c_str(), l.shared ? "shared" : "global",
                  static_cast<unsigned long long>(l.accesses), l.each(),
                  l.shared ? "wavefronts" : "sectors", l.ideal_each(),
                  2 * l.cost > 3 * l.ideal ? "  <--" : "");
    text += row;
  }
  return text;
}

}  // namespace braid::simt
