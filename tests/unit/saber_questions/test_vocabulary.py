"""A.1: the lists that ship, and lists of users that must be refused with their row."""

from collections import Counter

import pytest
from bindbench.config.questions import PALETTE
from bindbench.errors import UserError
from bindbench.vocabulary import read_vocabulary

OBJECTS = "object,group,shape\nteapot,kitchen,noto:teapot\nkite,toy,noto:kite\n"
ATTRIBUTES = (
    "attribute,type,category,template,variants,material\n"
    "red,standalone,color,red,,plain:red\n"
    "striped,two-color,pattern,{color1} and {color2} striped,,striped\n"
    "wooden,fixed-variant,material,{variant} wooden,light-brown|dark-brown,wooden\n"
)


@pytest.fixture
def read(tmp_path):
    def read(objects=OBJECTS, attributes=ATTRIBUTES, palette=PALETTE):
        (tmp_path / "objects.csv").write_text(objects)
        (tmp_path / "attributes.csv").write_text(attributes)
        return read_vocabulary(tmp_path / "objects.csv", tmp_path / "attributes.csv", palette)

    return read


def test_232_objects_and_50_attributes(vocabulary):
    assert len(vocabulary.objects) == 232
    assert len(vocabulary.attributes) == 50


def test_27_standalone_4_single_color_6_two_color_13_fixed_variant(vocabulary):
    counts = Counter(attribute.type for attribute in vocabulary.attributes.values())
    assert counts == {"standalone": 27, "single-color": 4, "two-color": 6, "fixed-variant": 13}


def test_six_semantic_categories(vocabulary):
    assert len({attribute.category for attribute in vocabulary.attributes.values()}) == 6


def test_objects_that_the_paper_names_are_there(vocabulary):
    assert {
        "toothbrush",
        "teapot",
        "kayak",
        "cannon",
        "submarine",
        "giraffe",
        "cube",
        "kite",
        "snowboard",
        "cherry",
    } <= set(vocabulary.objects)


def test_palette_is_the_paper_s_nine_basic_colors():
    assert set(PALETTE) == {"red", "orange", "yellow", "green", "blue", "purple", "pink", "white", "black"}


def test_two_color_attributes_never_take_one_colour_twice(vocabulary):
    for name, attribute in vocabulary.attributes.items():
        if attribute.type == "two-color":
            slots = [values for values, _, _ in vocabulary.realisations[name]]
            assert len(slots) == 9 * 8 and all(first != second for first, second in slots)


def test_realisations_fill_the_template_and_name_the_colours_they_use(read):
    vocabulary = read()
    assert ("white", "orange") in [values for values, _, _ in vocabulary.realisations["striped"]]
    assert vocabulary.attributes["striped"].realise(("white", "orange")) == "white and orange striped"
    assert {form for _, form, _ in vocabulary.realisations["wooden"]} == {"light-brown wooden", "dark-brown wooden"}
    assert vocabulary.palette_words("white marble") == {"white"}
    assert vocabulary.palette_words("light-blue denim") == {"blue"}, "a shade of blue is mistaken for blue"
    assert vocabulary.palette_words("rusty") == frozenset(), "letters inside a word are no colour"


@pytest.mark.parametrize(
    ("change", "row", "reason"),
    [
        ({"objects": OBJECTS + "Teapot,kitchen,noto:teapot\n"}, "row 4", "stands already in row 2"),
        ({"objects": OBJECTS + ",kitchen,noto:mug\n"}, "row 4", "object is empty"),
        ({"objects": OBJECTS + "mug,kitchen,\n"}, "row 4", "shape is empty"),
        ({"objects": OBJECTS + "mug,kitchen\n"}, "row 4", "fewer cells"),
        ({"objects": OBJECTS + "salt and pepper,kitchen,own:x\n"}, "row 4", "without commas or 'and'"),
        ({"objects": "object,group,shape\n"}, "row 2", "empty"),
        ({"objects": "thing,group,shape\nteapot,k,noto:teapot\n"}, "row 1", "no column object"),
        ({"attributes": ATTRIBUTES + "red,standalone,color,red,,plain:red\n"}, "row 5", "stands already in row 2"),
        ({"attributes": ATTRIBUTES + "shiny,sparkly,optical,shiny,,x\n"}, "row 5", "type must be one of"),
        (
            {"attributes": ATTRIBUTES + "dotted,two-color,pattern,{color1} dotted,,x\n"},
            "row 5",
            "{color1} once and {color2} once",
        ),
        ({"attributes": ATTRIBUTES + "dotted,single-color,pattern,{color dotted,,x\n"}, "row 5", "{color} once"),
        ({"attributes": ATTRIBUTES + "dotted,standalone,pattern,{color} dotted,,x\n"}, "row 5", "no {slot}"),
        ({"attributes": ATTRIBUTES + "dotted,standalone,pattern,,,x\n"}, "row 5", "template is empty"),
        ({"attributes": ATTRIBUTES + "stone,fixed-variant,material,{variant} stone,,x\n"}, "row 5", "variants"),
        (
            {"attributes": ATTRIBUTES + "stone,fixed-variant,material,{variant} stone,grey|grey,x\n"},
            "row 5",
            "variants",
        ),
        ({"attributes": ATTRIBUTES + "shiny,standalone,optical,shiny,a|b,x\n"}, "row 5", "only fixed-variant"),
        ({"attributes": ATTRIBUTES + "shiny,standalone,,shiny,,x\n"}, "row 5", "category is empty"),
        ({"palette": ("red",)}, "row 3", "needs two colours"),
    ],
)
def test_broken_list_is_refused_with_its_row(read, change, row, reason):
    with pytest.raises(UserError) as error:
        read(**change)
    assert row in str(error.value) and reason in str(error.value)
    assert "\n" not in str(error.value)


def test_missing_list_is_named(tmp_path):
    with pytest.raises(UserError, match=r"nothing\.csv: no such file"):
        read_vocabulary(tmp_path / "nothing.csv", tmp_path / "nothing.csv", PALETTE)


def test_a_list_saved_by_a_spreadsheet_with_a_byte_order_mark_is_read(read):
    assert "teapot" in read(objects="\ufeff" + OBJECTS).objects
