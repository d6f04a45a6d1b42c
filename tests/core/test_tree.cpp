// Tests of trees: what counts as one, paths, traversal, sharing and mapping.
#include <any>
#include <array>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <variant>

#include "shorthand.hpp"

using namespace braid;

namespace {

struct Settings {
  int depth = 3;
  std::string name;
};

struct Pair {
  Tensor a, b;
  BRAID_FIELDS(a, b)
};

enum class Color { red, green };

/// A field of an unlisted type that holds no tensors.
struct Opaque {
  void* p = nullptr;
};

template <class T> std::vector<std::string> paths(T& tree) {
  std::vector<std::string> list;
  tree::visit(tree, [&](const std::string& path, const Tensor&) { list.push_back(path); });
  return list;
}

using Names = std::vector<std::string>;

}  // namespace

template <> inline constexpr bool braid::tree::plain<Settings> = true;

namespace {

struct Everything {
  Tensor plain;
  Pair pair;
  std::tuple<Tensor, int, Pair> tuple;
  std::array<Tensor, 2> array;
  std::vector<Pair> list = std::vector<Pair>(2);
  std::list<Tensor> linked = std::list<Tensor>(1);
  std::map<std::string, Tensor> map{{"b", {}}, {"a.x", {}}};
  std::map<int, Tensor> numbers{{7, {}}, {-2, {}}};
  std::unordered_map<std::string, Tensor> unordered{{"z", {}}, {"y", {}}, {"x", {}}};
  std::map<Color, Tensor> colors{{Color::green, {}}};
  std::optional<Pair> some = Pair();
  std::optional<Tensor> none;
  std::pair<Tensor, std::vector<std::optional<Tensor>>> nested{{},
                                                               {Tensor(), std::nullopt, Tensor()}};
  // no tensors: traversed, copied by value
  int number = 1;
  std::vector<bool> flags{true, false};
  std::variant<int, std::string> variant;
  std::optional<double> maybe;
  std::map<std::string, std::vector<int>> counts;
  std::set<std::string> words;
  Settings settings;
  Device device;
  BRAID_FIELDS(plain, pair, tuple, array, list, linked, map, numbers, unordered, colors, some, none,
               nested, number, flags, variant, maybe, counts, words, settings, device)
};

struct Base {
  Tensor first;
  BRAID_FIELDS(first)
};
struct Derived : Base {
  Tensor second, third;
  BRAID_FIELDS_OF(Base, second, third)
};
struct Third : Derived {
  int nothing_to_list = 0;
  BRAID_FIELDS_OF(Derived)
};
struct NoFields {
  BRAID_FIELDS()
};
struct OfNone : NoFields {
  Tensor own;
  BRAID_FIELDS_OF(NoFields, own)
};

struct Recursive {
  Tensor value;
  std::vector<Recursive> children;
  BRAID_FIELDS(value, children)
};

/// A member that can be constructed from anything must not count as one that can hold tensors.
struct Greedy {
  Tensor t;
  std::any any;
  BRAID_FIELDS(t)
};

template <class T> struct Outer {
  struct Inner {
    Tensor t;
    BRAID_FIELDS(t)
  };
};

template <class T> std::string name_of_local() {
  struct Local {
    T t;
  };
  return type_name<Local>();
}

static_assert(Tree<Tensor> && Tree<Pair> && Tree<const Pair&> && Tree<std::vector<Pair>> &&
              Tree<std::map<std::string, Tensor>> && Tree<std::optional<Tensor>>);
static_assert(Tree<std::pair<Tensor, int>> && Tree<std::tuple<int, double>> &&
              Tree<std::array<Pair, 3>> && Tree<Recursive>);
static_assert(!Tree<int> && !Tree<std::string> && !Tree<std::vector<int>> &&
              !Tree<std::optional<int>> && !Tree<std::variant<Tensor, int>> && !Tree<Opaque>);
static_assert(!Tree<std::pair<Tensor, Opaque>> && !Tree<std::vector<Opaque>> &&
              !Tree<std::multimap<int, Tensor>> && !Tree<std::set<Tensor*>> && !Tree<Tensor*>);

}  // namespace

TEST_CASE("tree: paths of every container, in order of the fields", "[tree]") {
  Everything all;
  const Names expected{
      "plain",   "pair.a",     "pair.b",    "tuple.0",     "tuple.2.a",   "tuple.2.b",   "array.0",
      "array.1", "list.0.a",   "list.0.b",  "list.1.a",    "list.1.b",    "linked.0",    "map.a.x",
      "map.b",   "numbers.-2", "numbers.7", "unordered.x", "unordered.y", "unordered.z", "colors.1",
      "some.a",  "some.b",     "nested.0",  "nested.1.0",  "nested.1.2"};
  CHECK(paths(all) == expected);
  const Everything& fixed = all;
  CHECK(paths(fixed) == expected);
  Tensor one;
  CHECK(paths(one) == Names{""});
  std::vector<Tensor> two(2);
  CHECK(paths(two) == Names{"0", "1"});
  Recursive r;
  r.children.resize(2);
  r.children[1].children.resize(1);
  CHECK(paths(r) ==
        Names{"value", "children.0.value", "children.1.value", "children.1.children.0.value"});
}

TEST_CASE("tree: a base's fields come first; local classes, and names that differ by case",
          "[tree]") {
  struct Local {
    Tensor f, F;
    std::tuple<Tensor, int> two;
    BRAID_FIELDS(f, F, two)
  };
  struct More : Local {
    Tensor g;
    BRAID_FIELDS_OF(Local, g)
  };
  More more;
  CHECK(paths(more) == Names{"f", "F", "two.0", "g"});
  Derived d;
  Third t;
  OfNone n;
  Greedy g;
  CHECK(paths(d) == Names{"first", "second", "third"});
  CHECK(paths(t) == Names{"first", "second", "third"});
  CHECK(paths(n) == Names{"own"});
  CHECK(paths(g) == Names{"t"});
}

TEST_CASE("tree: an object of a derived class is not visited through its base", "[tree][errors]") {
  struct Shape2 {
    Tensor w = ones({2});
    virtual ~Shape2() = default;
    BRAID_FIELDS(w)
  };
  struct Circle : Shape2 {
    Tensor radius = ones({1});
    BRAID_FIELDS_OF(Shape2, radius)
  };
  Shape2 shape;
  Circle circle;
  Shape2& seen = circle;
  CHECK((paths(shape) == Names{"w"} && paths(circle) == Names{"w", "radius"}));
  CHECK_THROWS_TEXT(ArgumentError,
                    "tree: expected a Shape2, whose fields are known, got a *Circle that is seen",
                    paths(seen));
}

TEST_CASE("tree: visit gives the tensors themselves", "[tree]") {
  Pair pair{ones({2}), zeros({3})};
  tree::visit(pair, [](const std::string& path, Tensor& t) {
    if (path == "b") t = full({1}, 5.0);
  });
  CHECK(pair.b.item<double>() == 5);
  CHECK(tree::leaves(pair).size() == 2);
  CHECK(tree::leaves(pair)[0].id() == pair.a.id());
  const Pair& fixed = pair;
  tree::visit(fixed, [](const std::string&, auto& t) {
    static_assert(std::is_same_v<decltype(t), const Tensor&>);
  });
}

TEST_CASE("tree: visit_nodes gives every struct with its own type, parents first", "[tree]") {
  Everything all;
  Names seen;
  tree::visit_nodes(all, [&](const std::string& path, auto& node) {
    seen.push_back(path + ":" + type_name<std::remove_cvref_t<decltype(node)>>());
  });
  CHECK(seen == Names{":Everything", "pair:Pair", "tuple.2:Pair", "list.0:Pair", "list.1:Pair",
                      "some:Pair"});
  int count = 0;
  const Everything& fixed = all;
  tree::visit_nodes(fixed, [&](const std::string&, const auto&) { ++count; });
  CHECK(count == 6);
  tree::visit_nodes(all, [&](const std::string&, auto& node) {
    if constexpr (std::is_same_v<decltype(node), Everything&>) node.number = 42;
  });
  CHECK(all.number == 42);
}

TEST_CASE("tree: the flat list knows first ones of ties, and sizes of containers", "[tree]") {
  const Tensor t = ones({1});
  std::vector<Pair> pairs{{t, {}}, {zeros({1}), t}, {{}, t}};
  const tree::Flat flat = tree::flatten(pairs);
  // undefined tensors are never shared
  CHECK(flat.first_of() == std::vector<std::size_t>{0, 1, 2, 0, 4, 0});
  REQUIRE(flat.nodes.size() == 4);
  CHECK(flat.nodes[0].size == 3);
  CHECK(flat.nodes[0].type->form == tree::Form::list);
  CHECK(flat.path(flat.nodes[2]) == "1");
  CHECK(flat.path(flat.leaves[3]) == "1.b");
}

TEST_CASE("tree: the difference of two structures is said in words", "[tree]") {
  const auto difference = [](const auto& a, const auto& b) {
    return tree::flatten(a).difference(tree::flatten(b));
  };
  using Map = std::map<std::string, Tensor>;
  const Tensor t = ones({1});
  CHECK(difference(Map{{"a", t}}, Map{{"a", zeros({4})}}) == "");
  CHECK(difference(Map{{"a", t}}, Map{{"b", t}}) == "'a' is missing");
  CHECK(difference(Map{{"a", t}}, Map{{"a", t}, {"b", t}}) ==
        "the root has 2 elements where 1 was expected");
  CHECK(difference(Map{{"a", t}}, Map{{"a", Tensor()}}) == "'a' is undefined");
  CHECK(difference(std::vector<Map>{{{"a", t}}}, std::vector<Map>{{{"a", t}, {"b", t}}}) ==
        "'0' has 2 elements where 1 was expected");
  CHECK(difference(std::optional<Tensor>(t), std::optional<Tensor>()) != "");
}

TEST_CASE("tree: share keeps the tensors, copies the rest", "[tree]") {
  Everything all;
  all.plain = ones({2});
  all.number = 9;
  all.flags = {false, true, true};
  all.settings.name = "x";
  const Everything copy = tree::share(all);
  CHECK(copy.plain.id() == all.plain.id());
  CHECK(copy.number == 9);
  CHECK(copy.flags == all.flags);
  CHECK(copy.settings.name == "x");
}

TEST_CASE("tree: map maps a tie once and leaves undefined tensors alone", "[tree]") {
  const Tensor t = ones({2});
  const std::vector<Pair> pairs{{t, {}}, {t, zeros({2})}};
  Names mapped;
  const auto twice = tree::map(pairs, [&](const std::string& path, const Tensor& x) {
    mapped.push_back(path);
    return full(x.shape(), 7.0);
  });
  CHECK(mapped == Names{"0.a", "1.b"});
  CHECK(twice[0].a.id() == twice[1].a.id());
  CHECK(twice[0].a.id() != t.id());
  CHECK_FALSE(twice[0].b.defined());
  test::check_lists({{twice[1].b, {7, 7}}, {t, {1, 1}}});
}

TEST_CASE("tree: names of types", "[tree]") {
  CHECK(type_name<Pair>() == "Pair");
  CHECK(type_name<Outer<std::vector<int>>::Inner>() == "Inner");
  CHECK(type_name<Outer<std::vector<std::pair<int, Pair>>>>() == "Outer");
  CHECK(type_name<std::vector<Pair>>() == "vector");
  CHECK(name_of_local<int>() == "Local");
  struct Here {};
  CHECK(type_name<Here>() == "Here");
  CHECK(type_name<int>() == "int");
}
