// Tests of collate, which combines items into batches.
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

struct Labelled {
  Tensor image, label;
  BRAID_FIELDS(image, label)
};

static_assert(std::same_as<Collated<Tensor>, Tensor>);
static_assert(std::same_as<Collated<Labelled>, Labelled>);
static_assert(std::same_as<Collated<int>, Tensor>);
static_assert(std::same_as<Collated<std::tuple<Tensor, int>>, std::tuple<Tensor, Tensor>>);
static_assert(std::same_as<Collated<std::pair<Labelled, bool>>, std::pair<Labelled, Tensor>>);
static_assert(std::same_as<Collated<std::tuple<int, std::pair<float, Tensor>>>,
                           std::tuple<Tensor, std::pair<Tensor, Tensor>>>);
static_assert(std::same_as<Collated<std::array<double, 2>>, std::array<Tensor, 2>>);
static_assert(std::same_as<Collated<std::map<std::string, Tensor>>, std::map<std::string, Tensor>>);

}  // namespace

TEST_CASE("collate: tensors of every dtype and layout are stacked", "[collate]") {
  for (const Device device : test_devices())
    for (const DType dtype : all_dtypes())
      for (const Layout& layout : layouts({3, 4})) {
        INFO(device << " " << dtype << ", " << layout.name);
        std::vector<Tensor> items;
        Numbers numbers(5);
        for (int i = 0; i < 3; ++i)
          items.push_back(strided({3, 4}, layout.strides, layout.offset, dtype, device,
                                  [&] { return numbers.of(dtype); }));
        const Tensor batch = collate(items);
        REQUIRE(batch.shape() == Shape{3, 3, 4});
        CHECK(batch.dtype() == dtype);
        CHECK(batch.device() == device);
        CHECK(batch.is_contiguous());
        for (int i = 0; i < 3; ++i) CHECK_SAME_BITS(batch[i], items[static_cast<std::size_t>(i)]);
      }
  CHECK(collate(std::vector<Tensor>{zeros({0, 3}), zeros({0, 3})}).shape() == Shape{2, 0, 3});
  CHECK(list(collate(std::vector<Tensor>{full({}, 2.0), full({}, 3.0)})) == List{2, 3});
}

TEST_CASE("collate: structs, containers and numbers", "[collate]") {
  const Tensor zero = zeros({}, {.dtype = DType::int64}), one = ones({}, {.dtype = DType::int64});
  const Labelled batch =
      collate(std::vector<Labelled>{{full({2}, 1.0), zero}, {full({2}, 2.0), one}});
  using Item = std::tuple<Tensor, int, std::pair<double, bool>, std::uint8_t>;
  const auto [image, label, pair, byte] =
      collate(std::vector<Item>{{full({1}, 4.0), -7, {0.5, true}, std::uint8_t{200}},
                                {full({1}, 5.0), 8, {1.5, false}, std::uint8_t{1}}});
  constexpr std::int64_t kBig = std::int64_t{1} << 60;
  const auto lists =
      collate(std::vector<std::vector<Tensor>>{{one, zero}, {zero, one}, {one, one}});
  const auto maps =
      collate(std::vector<std::map<std::string, Tensor>>{{{"a", one}}, {{"a", zero}}});
  const auto some = collate(std::vector<std::optional<Tensor>>{one, zero});
  REQUIRE(lists.size() == 2);
  check_lists({{batch.image, {1, 1, 2, 2}},
               {batch.label, {0, 1}},
               {image, {4, 5}},
               {label, {-7, 8}},
               {pair.first, {0.5, 1.5}},
               {pair.second, {1, 0}},
               {byte, {200, 1}},
               {lists[0], {1, 0, 1}},
               {maps.at("a"), {1, 0}},
               {some.value(), {1, 0}}});
  CHECK(batch.label.shape() == Shape{2});
  CHECK(label.dtype() == DType::int64);
  CHECK(pair.first.dtype() == DType::float32);
  CHECK(pair.second.dtype() == DType::bool_);
  CHECK(whole(collate(Whole{1, 2, kBig})) == Whole{1, 2, kBig});
  CHECK_FALSE(collate(std::vector<Labelled>{{one, {}}, {zero, {}}}).label.defined());
  // The batch shares no memory with its items.
  const std::vector<Labelled> items{{ones({2}), ones({1})}};
  const Labelled other = collate(items);
  other.image.fill_(3);
  CHECK(list(items[0].image) == List{1, 1});
  CHECK(other.image.storage() != items[0].image.storage());
}

TEST_CASE("collate: gradients flow to the items", "[collate]") {
  const std::vector<Tensor> items{ones({2}, {.requires_grad = true}), ones({2}),
                                  ones({2}, {.requires_grad = true})};
  (collate(items) * tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}})).sum().backward();
  check_lists({{items[0].grad(), {1, 2}}, {items[1].grad(), {}}, {items[2].grad(), {5, 6}}});
  const NoGrad guard;
  CHECK_FALSE(collate(items).requires_grad());
}

TEST_CASE("collate: items that differ are refused by path", "[collate][errors]") {
  const Tensor a = ones({2}), i = ones({2}, {.dtype = DType::int64});
  CHECK_THROWS_TEXT(ArgumentError, "collate: expected at least one item, got 0",
                    collate(std::vector<Tensor>()));
  CHECK_THROWS_TEXT(ShapeError, "collate: expected shape [2] as in item 0, got [3] in item 2",
                    collate(std::vector<Tensor>{a, a, ones({3})}));
  CHECK_THROWS_TEXT(ShapeError,
                    "collate: 'label': expected shape [2] as in item 0, got [2, 1] in item 1",
                    collate(std::vector<Labelled>{{a, a}, {a, ones({2, 1})}}));
  CHECK_THROWS_TEXT(DTypeError,
                    "collate: 'image': expected float32 as in item 0, got int64 in item 1",
                    collate(std::vector<Labelled>{{a, a}, {i, a}}));
  CHECK_THROWS_TEXT(DeviceError,
                    here("collate: 'image': expected cpu:0 as in item 0, got cpu:1 in item 1"),
                    collate(std::vector<Labelled>{{a, a}, {a.to(there()), a}}));
  using Item = std::pair<std::map<std::string, Tensor>, int>;
  CHECK_THROWS_TEXT(
      ShapeError,
      "collate: '0': expected items of one structure, got one in item 1 where 'a' is missing",
      collate(std::vector<Item>{{{{"a", a}}, 1}, {{{"b", a}}, 2}}));
  CHECK_THROWS_TEXT(ShapeError,
                    "collate: '0.a': expected shape [2] as in item 0, got [1] in item 1",
                    collate(std::vector<Item>{{{{"a", a}}, 1}, {{{"a", ones({1})}}, 2}}));
  CHECK_THROWS_TEXT(
      ShapeError,
      "collate: expected items of one structure, got one in item 1 where 'label' is undefined",
      collate(std::vector<Labelled>{{a, a}, {a, {}}}));
  const std::string none =
      "collate: expected items with a defined tensor, got an item 0 that has none";
  CHECK_THROWS_TEXT(ArgumentError, none, collate(std::vector<Tensor>{{}, {}}));
  CHECK_THROWS_TEXT(ArgumentError, none, collate(std::vector<Labelled>{{{}, {}}, {{}, {}}}));
  // A field that is undefined in all items stays undefined.
  CHECK_FALSE(collate(std::vector<Labelled>{{a, {}}, {a, {}}}).label.defined());
}

}  // namespace braid::test::on_device
