"""The card and the page say what the summary says, the plots show it, and nothing in a sentence breaks them."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
import yaml
from bindbench.config.scoring import Figures
from bindbench.errors import UserError
from bindbench.figures import triplet_plots
from bindbench.figures.triplet_plots import OTHER_REASONS, merged_targets, plot_triplets, stacked_parts, target_numbers
from bindbench.tables import TRIPLETS
from bindbench.triplets.card import FIGURES, front_matter, write_card, write_page
from bindbench.triplets.card_facts import LOADING, marked_texts, moved_words, who_wrote
from bindbench.triplets.constructions import CONSTRUCTIONS
from bindbench.triplets.summary import summarise
from bindbench.vocabulary import Vocabulary
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from synthetic_triplets import FAMILIES, examples_table, rejects_table, rows, small_set

SETTINGS = Figures(dpi=50)
NO_SABER = Vocabulary({}, {}, ())


@pytest.fixture(scope="module")
def summary():
    return summarise(*small_set(), FAMILIES, NO_SABER)


@pytest.fixture(scope="module")
def card(summary, tmp_path_factory):
    path = tmp_path_factory.mktemp("card") / "README.md"
    write_card(summary, path)
    return path.read_text()


@pytest.fixture(scope="module")
def figures(summary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    plot_triplets(summary, folder, SETTINGS)
    return folder


@pytest.fixture(scope="module")
def page(summary, figures, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "triplets.html"
    write_page(summary, figures, path)
    return path.read_text()


def header_of(text):
    _, header, body = text.split("---\n", 2)
    return yaml.safe_load(header), body


def markdown_rows(card, caption):
    """Cells of the Markdown table under a caption, without its header."""
    lines = card[card.index(f"\n{caption}\n") :].split("\n\n")[1].splitlines()
    assert set(lines[1]) <= set("|-: ")
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def test_front_matter_names_the_files_of_every_split(card, summary):
    header, _ = header_of(card)
    assert header["license"] == "apache-2.0"
    assert header["language"] == ["en"]
    assert header["task_categories"] == ["sentence-similarity", "feature-extraction"]
    (config,) = header["configs"]
    assert config["config_name"] == "default"
    assert {entry["split"]: entry["path"] for entry in config["data_files"]} == {
        split: f"{split}.parquet" for split in summary["splits"]
    }
    assert all(re.fullmatch(r"\w+(\.\w+)*", entry["split"]) for entry in config["data_files"])  # the hub's rule


@pytest.mark.parametrize(
    ("count", "category"),
    [(999, "n<1K"), (1_000, "1K<n<10K"), (99_999, "10K<n<100K"), (100_000, "100K<n<1M"), (10**9, "100M<n<1B")],
)
def test_size_category_is_that_of_the_rows(count, category):
    header, _ = header_of(front_matter({"splits": {"train": count - 1, "test": 1}}, {"default": {}}))
    assert header["size_categories"] == [category]


def test_counts_of_the_card_are_the_summarys(card, summary):
    counts = {row[0].strip("`"): row[1:] for row in markdown_rows(card, "Examples; each gives two triplets")}
    for name, part in summary["constructions"].items():
        assert counts[name] == [f"{n:,}" for n in (part["accepted"], *part["splits"].values())]
    assert counts["all"] == [f"{n:,}" for n in (summary["examples"], *summary["splits"].values())]
    rejected = {row[0].strip("`"): row[1:] for row in markdown_rows(card, "Proposals by construction and reason")}
    for reason in {reason for part in summary["constructions"].values() for reason in part["rejects"]}:
        parts = summary["constructions"].values()
        assert rejected[reason] == [str(part["rejects"].get(reason, 0)) for part in parts]


def test_every_column_of_the_table_is_explained(card):
    explained = {row[0].strip("`"): row[2].replace("\\", "") for row in markdown_rows(card, "One row per example")}
    assert explained == {column.name: column.meaning for column in TRIPLETS.columns}


def test_every_markdown_table_is_rectangular(card):
    widths = [
        [len(re.split(r"(?<!\\)\|", line)) for line in block.splitlines()]
        for block in card.split("\n\n")
        if block.startswith("|")
    ]
    assert len(widths) > 7 * 10
    assert all(len(set(width)) == 1 for width in widths)


def test_grammar_is_said_to_be_no_language_model_and_no_data_of_the_paper():
    said = who_wrote({"sources": {"grammar": 5}})
    assert "no language model was used" in said and "not the paper's data" in said


def test_a_model_is_named_and_the_grammar_is_not_claimed():
    said = who_wrote({"sources": {"openai/gemma-4-31b-it": 5}})
    assert "openai/gemma-4-31b-it" in said and "not the paper's data" in said
    assert "grammar" not in said and "no language model" not in said
    both = who_wrote({"sources": {"openai/gemma-4-31b-it": 5, "grammar": 4}})
    assert "4 of the sentences" in both and "5 sentences were proposed" in both


def test_program_of_the_card_makes_two_triplets_of_an_example():
    source = LOADING[LOADING.index("def two_triplets") : LOADING.index("# TripletLoss")]
    compile(LOADING, "card", "exec")
    namespace = {}
    exec(source, namespace)
    made = rows("pair_swap", 3)
    batch = namespace["two_triplets"]({key: [row[key] for row in made] for key in made[0]})
    assert list(batch) == ["anchor", "positive", "negative"]
    assert batch["negative"] == [row[key] for row in made for key in ("attribute_negative", "object_negative")]
    assert batch["anchor"][:3] == [made[0]["query"]] * 2 + [made[1]["query"]]


# Moved words are bold (Table 9).


def bold(fragments):
    return [text for text, moved in fragments if moved]


@pytest.mark.parametrize(
    ("construction", "attributes", "objects"),
    [
        ("pair_swap", 2, 2),
        ("triple_bind_cycle", 3, 3),
        ("triple_bind_swap", 2, 2),
        ("attr_bundle", 2, 2),
        ("predicative", 2, 2),
        ("deferred_bind_anaphoric", 2, 2),
        ("deferred_bind_respective", 2, 2),
    ],
)
def test_as_many_words_are_bold_as_the_construction_moves(construction, attributes, objects):
    for row in rows(construction, 25):
        query, positive, attribute_negative, object_negative = marked_texts(row)
        assert not bold(query) and not bold(positive)
        assert len(bold(attribute_negative)) == attributes
        assert len(bold(object_negative)) == objects
        assert set(bold(object_negative)) <= {pair["object"] for pair in row["bindings"]}
        for fragments, key in ((attribute_negative, "attribute_negative"), (object_negative, "object_negative")):
            assert "".join(text for text, _ in fragments) == row[key]


def test_moved_words_are_whole_words_also_in_capitals_and_with_an_apostrophe():
    positive = "Mug racks: the mug's rim was red, the predicted oar blue, and blue-green paint dried."
    negative = "Mug racks: the oar's rim was blue, the predicted mug red, and blue-green paint dried."
    assert bold(moved_words(positive, negative, ["red", "blue"])) == ["blue", "red"]
    assert bold(moved_words("Red mug, blue oar", "Blue mug, red oar", ["red", "blue"])) == ["Blue", "red"]
    assert bold(moved_words("the tea towel and the mug", "the mug and the tea towel", ["mug", "tea towel"])) == [
        "mug",
        "tea towel",
    ]


# Sentences cannot break the Markdown or the page.

HOSTILE = 'It said: "a|b" <script>alert(1)</script>, `x` *y* _z_ [q](http://r) & 5 < 6,\nred mug, blue oar.'


def hostile_summary():
    made = rows("pair_swap", 12)
    for row in made:
        row |= {"positive": HOSTILE, "attribute_negative": HOSTILE, "object_negative": HOSTILE, "scene": "<b>at|fair"}
    return summarise(examples_table(made), rejects_table([], []), {"train": 12}, FAMILIES, NO_SABER)


def test_markup_in_a_sentence_stays_text_in_the_card(tmp_path):
    write_card(hostile_summary(), tmp_path / "README.md")
    text = (tmp_path / "README.md").read_text()
    widths = [
        len({len(re.split(r"(?<!\\)\|", line)) for line in block.splitlines()})
        for block in text.split("\n\n")
        if block.startswith("|")
    ]
    assert set(widths) == {1}
    assert "<script" not in text.replace("\\<script", "")
    assert "\\*y\\*" in text and "\\`x\\`" in text


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.addresses, self.text = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href")]

    def handle_data(self, data):
        self.text.append(data)


def read(page):
    reader = Reader()
    reader.feed(page)
    return reader


def test_markup_in_a_sentence_stays_text_in_the_page(figures, tmp_path):
    write_page(hostile_summary(), figures, tmp_path / "page.html")
    reader = read((tmp_path / "page.html").read_text())
    assert "script" not in reader.tags and "b" not in reader.tags
    assert "<script>alert(1)</script>" in "".join(reader.text)


def test_page_holds_all_it_shows(page):
    reader = read(page)
    assert not {"script", "link", "iframe"} & set(reader.tags)
    assert len(reader.addresses) == len(FIGURES)
    assert all(address.startswith("data:image/svg+xml;base64,") for address in reader.addresses)
    assert "url(" not in page and "@import" not in page


def test_page_has_the_cards_facts_and_ten_examples_of_each_construction(page, card, summary):
    reader = read(page)
    text = " ".join(reader.text)
    assert reader.tags.count("article") == 10 * len(CONSTRUCTIONS)
    for name, part in summary["constructions"].items():
        assert f'id="only-{name}"' in page and f'class="group {name}"' in page
        for example in part["random"]:
            assert example["example"] in text and example["example"] in card
    for title in re.findall(r"^## (.*)$", card, re.MULTILINE):
        assert f"<h2>{title}</h2>" in page


def test_page_without_its_figures_says_what_to_do(summary, tmp_path):
    with pytest.raises(UserError, match=r"triplets_accepted\.svg: cannot be read .*run snakemake"):
        write_page(summary, tmp_path, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_a_card_that_cannot_be_written_leaves_the_old_one(card, summary, tmp_path, monkeypatch):
    path = tmp_path / "README.md"
    write_card(summary, path)
    monkeypatch.setattr("pathlib.Path.write_bytes", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_card({**summary, "examples": 1}, path)
    assert path.read_text() == card
    assert [entry.name for entry in tmp_path.iterdir()] == ["README.md"]


# Plots.


def test_every_plot_is_written_and_is_shown_on_the_page(figures):
    assert set(FIGURES) == set(triplet_plots.NAMES)
    for name in triplet_plots.NAMES:
        image = Image.open(figures / f"{name}.png").convert("L")
        assert np.asarray(image).std() > 5
        svg = (figures / f"{name}.svg").read_text()
        assert svg.rstrip().endswith("</svg>") and "<dc:date>" not in svg


def test_plots_of_the_same_summary_are_the_same_bytes(summary, figures, tmp_path):
    with triplet_plots.rc_context(triplet_plots.RC | triplet_plots.HATCHING):
        triplet_plots.plot_accepted(summary, tmp_path / "triplets_accepted", SETTINGS)
    for ending in ("png", "svg"):
        name = f"triplets_accepted.{ending}"
        assert (tmp_path / name).read_bytes() == (figures / name).read_bytes()


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.dictionaries(st.sampled_from("abcdefghijk"), st.integers(1, 40))), min_size=1
    )
)
def test_bars_hold_every_proposal_once(pairs):
    constructions = {
        str(number): {"accepted": accepted, "rejects": rejects} for number, (accepted, rejects) in enumerate(pairs)
    }
    parts = stacked_parts(constructions)
    expected = [accepted + sum(rejects.values()) for accepted, rejects in pairs]
    assert sum(parts.values()).tolist() == expected
    assert len(parts) <= 8  # as many as there are colours, and grey
    assert OTHER_REASONS not in parts or len({r for _, rejects in pairs for r in rejects}) > 6


def test_shifts_of_a_band_are_drawn_as_one_and_windows_apart():
    targets = [
        {"low": 12, "high": 17, "band": [10, 15], "counts": [[12, 3], [13, 1]]},
        {"low": 14, "high": 19, "band": [10, 15], "counts": [[13, 2]]},
        {"low": 3, "high": 5, "band": [3, 5], "counts": [[4, 7]]},
    ]
    merged = merged_targets(targets, 20)
    ends, counts = merged[10, 15]
    assert ends == (12, 19)
    assert counts[12] == 3 and counts[13] == 3 and counts.sum() == 6
    assert merged[3, 5][0] == (3, 5) and merged[3, 5][1].sum() == 7


def test_a_length_band_has_one_colour_in_all_constructions_a_window_counts_in_its_own():
    def part(*bands):
        return {what: {"targets": [{"band": list(band)} for band in bands]} for what in ("length", "distance")}

    constructions = {"pair_swap": part((10, 15), (16, 22)), "deferred_bind_anaphoric": part((16, 22))}
    assert target_numbers(constructions, "deferred_bind_anaphoric", "length")[16, 22] == 1
    assert target_numbers(constructions, "deferred_bind_anaphoric", "distance")[16, 22] == 0


def test_histograms_and_caps_on_the_plots_are_the_summarys(summary, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(triplet_plots, "_save", lambda figure, output, settings: drawn.append(figure))
    triplet_plots.plot_ranges(summary, "length", tmp_path / "x", SETTINGS)
    triplet_plots.plot_words(summary, tmp_path / "x", SETTINGS)
    lengths, words = drawn
    for panel, part in zip(lengths.axes, summary["constructions"].values(), strict=False):
        top = [patch.get_data() for patch in panel.patches if hasattr(patch, "get_data")]
        assert sum((values - baseline).sum() for values, _, baseline in top) == part["accepted"]
    caps = [line.get_xdata()[0] for panel in words.axes for line in panel.lines if line.get_linestyle() == "--"]
    assert sorted(caps) == sorted(2 * [part["words"]["cap"] for part in summary["constructions"].values()])


def test_a_set_of_one_construction_has_plots_too(tmp_path):
    made = rows("predicative", 3)
    summary = summarise(examples_table(made), rejects_table([], []), {"train": 3}, FAMILIES, NO_SABER)
    with triplet_plots.rc_context(triplet_plots.RC):
        triplet_plots.plot_ranges(summary, "distance", tmp_path / "distances", SETTINGS)
        triplet_plots.plot_accepted(summary, tmp_path / "accepted", SETTINGS)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{n}.{e}" for n in ("distances", "accepted") for e in ("png", "svg")
    }
