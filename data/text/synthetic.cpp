#include <array>
#include <new>
#include <string_view>

#include <braid/core/error.hpp>
#include <braid/core/memory.hpp>
#include <braid/core/philox.hpp>
#include <braid/data/text.hpp>

namespace braid::data {
namespace {

// the random stream of sentence 0, far from those of the random factories
constexpr std::uint64_t kTextStream = std::uint64_t{0x74657874} << 32;

struct Noun {
  std::string_view one, many;
};
/// A verb, and the nouns that can be its object.
struct Verb {
  std::string_view one, many;
  std::array<Noun, 4> objects;
};
constexpr std::array<Noun, 10> kPeople{{{"sailor", "sailors"},
                                        {"child", "children"},
                                        {"farmer", "farmers"},
                                        {"singer", "singers"},
                                        {"queen", "queens"},
                                        {"baker", "bakers"},
                                        {"teacher", "teachers"},
                                        {"miller", "millers"},
                                        {"woman", "women"},
                                        {"doctor", "doctors"}}};
constexpr std::array<Noun, 8> kPlaces{{{"river", "rivers"},
                                       {"house", "houses"},
                                       {"garden", "gardens"},
                                       {"bridge", "bridges"},
                                       {"tower", "towers"},
                                       {"market", "markets"},
                                       {"forest", "forests"},
                                       {"harbour", "harbours"}}};
constexpr std::array<Verb, 6> kVerbs{
    {{"sings",
      "sing",
      {{{"song", "songs"}, {"ballad", "ballads"}, {"hymn", "hymns"}, {"tune", "tunes"}}}},
     {"reads",
      "read",
      {{{"book", "books"}, {"letter", "letters"}, {"poem", "poems"}, {"map", "maps"}}}},
     {"eats",
      "eat",
      {{{"apple", "apples"}, {"cake", "cakes"}, {"pear", "pears"}, {"loaf", "loaves"}}}},
     {"builds",
      "build",
      {{{"boat", "boats"}, {"wall", "walls"}, {"mill", "mills"}, {"cart", "carts"}}}},
     {"follows",
      "follow",
      {{{"road", "roads"}, {"path", "paths"}, {"star", "stars"}, {"stream", "streams"}}}},
     {"remembers",
      "remember",
      {{{"story", "stories"},
        {"winter", "winters"},
        {"promise", "promises"},
        {"name", "names"}}}}}};
constexpr std::array<std::string_view, 10> kKinds{"old",   "young",   "quiet", "clever", "tired",
                                                  "small", "strange", "happy", "tall",   "poor"};
constexpr std::array<std::string_view, 5> kWhere{"near", "behind", "from", "beyond", "beside"};
constexpr std::array<std::string_view, 6> kWhen{"today",    "again",     "slowly",
                                                "at night", "in spring", "every morning"};

/// Appends a sentence to the text.
class Writer {
 public:
  Writer(std::string& text, std::uint64_t seed, std::uint64_t stream)
      : text_(text), seed_(seed), stream_(stream) {}
  std::int64_t below(std::int64_t n) { return random_integer(seed_, stream_, next_++, 0, n); }
  bool one_in(std::int64_t n) { return below(n) == 0; }
  template <class T, std::size_t N> const T& one_of(const std::array<T, N>& list) {
    return list[static_cast<std::size_t>(below(N))];
  }
  void say(std::string_view word, char after = ' ') { (text_ += word) += after; }
  /// Appends a noun phrase such as `the quiet rivers`. Returns true if it is plural.
  bool say_noun(const Noun& noun) {
    const bool many = one_in(2);
    say(one_in(3) ? (many ? "some" : "a") : "the");
    if (one_in(2)) say(one_of(kKinds));
    say(many ? noun.many : noun.one);
    return many;
  }

 private:
  std::string& text_;
  std::uint64_t seed_, stream_, next_ = 0;
};

/// A lower bound for a sentence: `the miller sings a hymn .` is longer.
constexpr std::size_t kFewestBytes = 16;

void write_sentences(std::string& text, std::int64_t sentences, std::uint64_t seed) {
  text.reserve(static_cast<std::size_t>(sentences) *
               kFewestBytes);  // a text that cannot fit fails here
  for (std::int64_t i = 0; i < sentences; ++i) {
    Writer w(text, seed, kTextStream + static_cast<std::uint64_t>(i));
    const bool many = w.say_noun(w.one_of(kPeople));
    if (w.one_in(2)) {
      w.say(w.one_of(kWhere));
      w.say_noun(w.one_of(kPlaces));
    }
    const Verb& verb = w.one_of(kVerbs);
    w.say(many ? verb.many : verb.one);
    w.say_noun(w.one_of(verb.objects));
    if (w.one_in(3)) w.say(w.one_of(kWhen));
    w.say(".", '\n');
  }
}

}  // namespace

std::string synthetic_text(std::int64_t sentences, std::uint64_t seed) {
  if (sentences < 0)
    throw ArgumentError(str("synthetic_text: expected sentences >= 0, got ", sentences));
  std::string text;
  if (static_cast<std::uint64_t>(sentences) > text.max_size() / kFewestBytes)
    throw ArgumentError(str("synthetic_text: expected sentences of 0 to ",
                            text.max_size() / kFewestBytes, ", got ", sentences));
  try {
    write_sentences(text, sentences, seed);
  } catch (const std::bad_alloc&) {
    const MemoryStats now = memory_stats(Device());
    throw OutOfMemoryError(Device(), static_cast<std::size_t>(sentences) * kFewestBytes, now.in_use,
                           now.cached, now.capacity, str("a text of ", sentences, " sentences"));
  }
  return text;
}

}  // namespace braid::data
