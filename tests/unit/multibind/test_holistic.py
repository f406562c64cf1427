"""Whole images (section 5.1): FID's formula, what each model sees, and that what nothing measures is empty with its reason."""

import csv
import json
import sys
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
from bindbench.config import check
from bindbench.config.embedders import DEFAULT_EMBEDDERS, Embedder
from bindbench.config.multibind_holistic import Holistic
from bindbench.config.multibind_scoring import Scoring
from bindbench.errors import UserError
from bindbench.files import sha256
from bindbench.multibind.evaluation_tables import THRESHOLDS
from bindbench.multibind.generated_tables import GENERATED
from bindbench.multibind.generators.scene import resized
from bindbench.multibind.holistic import measuring, models
from bindbench.multibind.holistic.aesthetic import read_head
from bindbench.multibind.holistic.frechet import frechet_distance
from bindbench.multibind.holistic.measuring import measure_holistic, measures_of
from bindbench.multibind.holistic.reading import KEYS, models_of
from bindbench.multibind.holistic.tabulating import HEADER, difference_rows, rows_of, summarise
from bindbench.multibind.holistic_tables import HOLISTIC
from bindbench.multibind.pictures import png_of
from bindbench.multibind.rates import freeze_subjects
from bindbench.multibind.tabulate import tabulate_multibind
from bindbench.tables import read_table, write_table
from hypothesis import given, settings
from hypothesis import strategies as st
from made_instances import make_instances
from PIL import Image
from scipy.linalg import sqrtm
from synthetic_people import MadeEvaluation
from tiny_models import aesthetic_head, clip, dino, inception

# Frechet --------------------------------------------------------------------------------------------------------------


def exact(n: int, mean, deviations, seed: int) -> np.ndarray:
    """n samples whose own mean and covariance are exactly these."""
    values = np.random.default_rng(seed).normal(size=(n, len(mean)))
    values -= values.mean(axis=0)
    white = values @ np.linalg.inv(np.linalg.cholesky(np.cov(values, rowvar=False))).T
    return white * deviations + mean


class TestFrechet:
    @given(st.integers(0, 10**6))
    @settings(max_examples=30, deadline=None)
    def test_of_two_gaussians_along_the_axes_it_is_the_closed_form(self, seed):
        draw = np.random.default_rng(seed)
        (mean, other_mean), (deviations, others) = draw.normal(size=(2, 4)), draw.random((2, 4)) + 0.1
        expected = ((mean - other_mean) ** 2).sum() + ((deviations - others) ** 2).sum()
        found = frechet_distance(exact(40, mean, deviations, seed), exact(40, other_mean, others, seed + 1))
        assert found == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize("n", [12, 60, 400])
    def test_it_is_what_scipy_s_root_and_torch_fidelity_say(self, n):
        from torch_fidelity.metric_fid import fid_features_to_statistics, fid_statistics_to_metric

        draw = np.random.default_rng(n)
        first, second = draw.normal(size=(n, 30)), draw.normal(size=(n, 30)) @ draw.normal(size=(30, 30)) + 0.3
        stats = [fid_features_to_statistics(torch.from_numpy(values)) for values in (first, second)]
        (theirs,) = fid_statistics_to_metric(*stats, False).values()
        assert frechet_distance(first, second) == pytest.approx(theirs, rel=1e-5)
        if n > 30:
            covariances = [np.cov(values, rowvar=False) for values in (first, second)]
            root = sqrtm(covariances[0] @ covariances[1]).real
            mean = ((first.mean(axis=0) - second.mean(axis=0)) ** 2).sum()
            expected = mean + np.trace(covariances[0] + covariances[1] - 2 * root)
            assert frechet_distance(first, second) == pytest.approx(expected, rel=1e-7)

    def test_a_pair_that_is_drawn_twice_counts_twice(self):
        draw = np.random.default_rng(0)
        first, second, counts = draw.normal(size=(9, 4)), draw.normal(size=(9, 4)), draw.integers(0, 4, 9)
        drawn = np.repeat(np.arange(9), counts)
        assert frechet_distance(first, second, counts) == pytest.approx(frechet_distance(first[drawn], second[drawn]))

    def test_the_same_is_zero_and_one_image_has_none(self):
        features = np.random.default_rng(0).normal(size=(6, 50)).astype(np.float32)
        assert frechet_distance(features, features.copy()) == pytest.approx(0, abs=1e-9)
        assert np.isnan(frechet_distance(features[:1], features[:1]))
        assert np.isnan(frechet_distance(features, features, np.eye(6)[0]))


# Models ---------------------------------------------------------------------------------------------------------------

NAMES = ("coco-1", "coco-2")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Instances, and generators that return the photograph, a blurred one, half a one and, but for one instance, nothing."""
    folder = tmp_path_factory.mktemp("holistic")
    data = make_instances(folder, dict.fromkeys(NAMES, 2))
    pictures, rows = {}, []
    for name in NAMES:
        target = data.scene(name).target
        pictures["target", name] = target
        pictures["blur", name] = cv2.GaussianBlur(target, (0, 0), 9)
        pictures["half", name] = resized(target, (target.shape[1] // 2, target.shape[0] // 2))
        pictures["few", name] = target if name == "coco-2" else None
    for (generator, name), pixels in pictures.items():
        png = None if pixels is None else png_of(pixels)
        file = None if png is None else f"{generator}-{name}.png"
        if png is not None:
            (folder / file).write_bytes(png)
        height, width = (data.scene(name).target if pixels is None else pixels).shape[:2]
        rows.append(
            {"generator": generator, "instance": name, "file": file, "sha256": png and sha256(png), "width": width,
             "height": height, "model": "made", "settings": "{}", "changes": [], "problem": None if png else "refused"}
        )  # fmt: skip
    write_table(GENERATED, rows, folder / "generated.parquet")
    instances, _, place = data.tables

    def measure(cache, section, embedders=DEFAULT_EMBEDDERS, out=folder / "holistic.parquet"):
        measures = measures_of(section, embedders, threads=1)
        measure_holistic(folder / "generated.parquet", folder, instances, place, measures, cache, out)
        return read_table(HOLISTIC, out).to_pylist()

    return SimpleNamespace(
        folder=folder, measure=measure, pictures=pictures, target=lambda name: data.scene(name).target
    )


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """Real ones in miniature, of random weights, and FID's network whole."""
    folder = tmp_path_factory.mktemp("checkpoints")
    return SimpleNamespace(
        folder=folder,
        clip=clip(folder / "clip"),
        dino=dino(folder / "dinov2-tiny"),
        vit=dino(folder / "dino-vit", "vit"),
        inception=inception(folder / "inception.pth"),
        head=aesthetic_head(folder / "head.pth", 24),
    )


def values_of(rows, measure: str) -> dict[tuple[str, str], float]:
    return {(row["generator"], row["instance"]): row["value"] for row in rows if row["measure"] == measure}


class TestMeasuring:
    @pytest.fixture(scope="class")
    def rows(self, made, checkpoints):
        section = Holistic(
            fid={"weights": str(checkpoints.inception)},
            clip_i={"embedder": "tiny-clip"},
            dino={"checkpoint": str(checkpoints.dino)},
            aesthetic={"head": str(checkpoints.head), "embedder": "tiny-clip"},
            similarities=("efficientnet-lite0",),
        )
        embedders = {**DEFAULT_EMBEDDERS, "tiny-clip": Embedder(path=str(checkpoints.clip))}
        return made.measure(made.folder / "cache", section, embedders)

    def test_every_measure_of_every_image_by_the_name_of_what_measured(self, rows):
        names = {row["measure"]: row["model"] for row in rows}
        assert names == {
            "fid": "inception-v3/inception",
            "clip_i": "tiny-clip",
            "dino": "dino/dinov2-tiny",
            "aesthetic": "head on tiny-clip",
            "similarity": "efficientnet-lite0",
        }
        assert len(rows) == 5 * 4 * 2 and len({row["fingerprint"] for row in rows}) == 5

    @pytest.mark.parametrize("measure", ["clip_i", "dino", "similarity"])
    def test_the_photograph_is_exactly_alike_in_any_size_and_a_blurred_one_less(self, rows, measure):
        found = values_of(rows, measure)
        for name in NAMES:
            assert found["target", name] == pytest.approx(1, abs=1e-6) == found["half", name]
            assert found["blur", name] < 0.9999
        if measure == "similarity":
            assert max(found["blur", name] for name in NAMES) < 0.9

    def test_an_instance_without_an_image_has_no_figure_never_zero(self, rows):
        lost = [row for row in rows if row["generator"] == "few" and row["instance"] != "coco-2"]
        assert len(lost) == 5 and all((row["value"], row["reason"]) == (None, "no_picture") for row in lost)
        assert all(row["generated_features"] is None for row in lost)
        assert all(row["reason"] is None for row in rows if row not in lost)

    def test_clip_i_is_the_cosine_of_clip_s_projected_features(self, rows, made, checkpoints):
        from transformers import CLIPModel, CLIPProcessor

        model, processor = (kind.from_pretrained(checkpoints.clip) for kind in (CLIPModel, CLIPProcessor))
        pictures = [Image.fromarray(made.pictures[kind, "coco-1"]) for kind in ("blur", "target")]
        with torch.inference_mode():
            features = model.get_image_features(**processor(images=pictures, return_tensors="pt"))
        features = features if isinstance(features, torch.Tensor) else features.pooler_output
        expected = torch.nn.functional.cosine_similarity(features[0], features[1], dim=0).item()
        assert values_of(rows, "clip_i")["blur", "coco-1"] == pytest.approx(expected, abs=1e-5)
        # The aesthetic score is of the same features, by LAION's own layout.
        head = torch.nn.Sequential(
            torch.nn.Linear(24, 1024), torch.nn.Dropout(0.2), torch.nn.Linear(1024, 128), torch.nn.Dropout(0.2),
            torch.nn.Linear(128, 64), torch.nn.Dropout(0.1), torch.nn.Linear(64, 16), torch.nn.Linear(16, 1),
        ).eval()  # fmt: skip
        weights = torch.load(checkpoints.head, weights_only=True)
        head.load_state_dict({name.removeprefix("layers."): tensor for name, tensor in weights.items()})
        with torch.inference_mode():
            scores = head(torch.nn.functional.normalize(features, dim=-1))[:, 0].tolist()
        found = values_of(rows, "aesthetic")
        assert [found["blur", "coco-1"], found["target", "coco-1"]] == pytest.approx(scores, abs=1e-5)

    @pytest.mark.parametrize("kind", ["dino", "vit"])
    def test_dino_is_the_cosine_of_the_class_tokens(self, made, checkpoints, tmp_path, kind):
        from transformers import AutoImageProcessor, Dinov2Model, ViTModel

        folder = getattr(checkpoints, kind)
        rows = made.measure(made.folder / "cache", Holistic(dino={"checkpoint": str(folder)}), out=tmp_path / "out")
        model = Dinov2Model.from_pretrained(folder) if kind == "dino" else ViTModel.from_pretrained(folder)
        pictures = [Image.fromarray(made.pictures[kind, "coco-2"]) for kind in ("blur", "target")]
        inputs = AutoImageProcessor.from_pretrained(folder)(pictures, return_tensors="pt")
        with torch.inference_mode():
            first, second = model.eval()(**inputs).last_hidden_state[:, 0]
        expected = torch.nn.functional.cosine_similarity(first, second, dim=0).item()
        assert values_of(rows, "dino")["blur", "coco-2"] == pytest.approx(expected, abs=1e-5)

    def test_fid_s_features_are_inception_s_and_equal_for_equal_images(self, rows, made, checkpoints):
        from torch_fidelity import FeatureExtractorInceptionV3

        found = {(row["generator"], row["instance"]): row for row in rows if row["measure"] == "fid"}
        row = found["target", "coco-1"]
        assert len(row["true_features"]) == models.FID_FEATURES and row["value"] is None
        assert row["generated_features"] == pytest.approx(row["true_features"], abs=1e-6)
        assert found["blur", "coco-1"]["generated_features"] != pytest.approx(row["true_features"], rel=1e-2)
        network = FeatureExtractorInceptionV3("x", ["2048"], feature_extractor_weights_path=checkpoints.inception)
        pixels = torch.from_numpy(made.target("coco-1").transpose(2, 0, 1).copy())[None]
        assert network(pixels)[0][0].tolist() == pytest.approx(row["true_features"], abs=1e-5)

    def test_a_second_run_reads_no_picture_and_another_head_loads_no_clip(
        self, rows, made, checkpoints, tmp_path, monkeypatch
    ):
        for name in ("read_generated", "decoded"):
            monkeypatch.setattr(measuring, name, lambda *arguments: pytest.fail("read"))
        weights = {"weight": torch.zeros(1, 24), "bias": torch.tensor([5.5])}
        torch.save(weights, tmp_path / "v1.pth")
        embedders = {**DEFAULT_EMBEDDERS, "tiny-clip": Embedder(path=str(checkpoints.clip))}
        section = Holistic(
            similarities=("efficientnet-lite0",),
            aesthetic={"head": str(tmp_path / "v1.pth"), "embedder": "tiny-clip"},
        )
        again = made.measure(made.folder / "cache", section, embedders, tmp_path / "out")
        assert values_of(again, "similarity") == values_of(rows, "similarity")
        assert {value for value in values_of(again, "aesthetic").values() if value is not None} == {5.5}


class TestMistakes:
    def test_what_is_no_clip_is_never_called_one(self, made, tmp_path):
        section = Holistic(clip_i={"embedder": "efficientnet-lite0"})
        with pytest.raises(
            UserError, match=r"clip_i\.embedder: efficientnet-lite0 is a EfficientNet, no CLIP; name it in"
        ):
            made.measure(made.folder / "cache-no-clip", section, out=tmp_path / "out")

    def test_a_checkpoint_that_is_no_dino_or_not_whole_is_named(self, made, checkpoints, tmp_path):
        def measure(folder):
            return made.measure(tmp_path / "cache", Holistic(dino={"checkpoint": str(folder)}), out=tmp_path / "out")

        with pytest.raises(UserError, match=r"dino\.checkpoint: .*no such folder"):
            measure(tmp_path / "nowhere")
        with pytest.raises(UserError, match="a clip, no DINO"):
            measure(checkpoints.clip)
        broken = dino(tmp_path / "broken")
        config = json.loads((broken / "config.json").read_text())
        (broken / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
        with pytest.raises(UserError, match=r"has no weights for .*layer\.2"):
            measure(broken)

    @pytest.mark.parametrize(
        ("content", "fault"),
        [
            (None, "no such file"),
            (b"no weights", "not a file of weights"),
            ({"fc.weight": torch.zeros(3)}, "not torch-fidelity's InceptionV3"),
            ({"epoch": 3}, "holds other things than tensors"),
        ],
    )
    def test_fid_s_weights_that_are_none_are_named(self, made, tmp_path, content, fault):
        path = tmp_path / "w.pth"
        if content is not None:
            path.write_bytes(content) if isinstance(content, bytes) else torch.save(content, path)
        with pytest.raises(UserError, match=rf"multibind\.holistic\.fid\.weights: .*{fault}"):
            made.measure(tmp_path / "cache", Holistic(fid={"weights": str(path)}), out=tmp_path / "out")

    def test_without_torch_fidelity_it_says_what_to_install(self, made, tmp_path, monkeypatch):
        torch.save({}, tmp_path / "w.pth")
        monkeypatch.setitem(sys.modules, "torch_fidelity", None)
        with pytest.raises(UserError, match="pip install torch-fidelity"):
            made.measure(tmp_path / "cache", Holistic(fid={"weights": str(tmp_path / "w.pth")}), out=tmp_path / "out")

    def test_weights_that_would_run_something_do_not(self, tmp_path):
        class Runs:
            def __reduce__(self):
                return (open, (str(tmp_path / "ran"), "w"))

        torch.save({"weight": Runs()}, tmp_path / "head.pth")
        with pytest.raises(UserError, match="not a file of weights"):
            read_head(tmp_path / "head.pth")
        assert not (tmp_path / "ran").exists()

    def test_a_head_whose_layers_cannot_be_told_or_do_not_fit_is_refused(self, made, checkpoints, tmp_path):
        relu = aesthetic_head(tmp_path / "relu.pth", 24, relu=True)
        with pytest.raises(UserError, match="has other layers than LAION's predictors"):
            read_head(relu)
        torch.save({"weight": torch.zeros(2, 24), "bias": torch.zeros(2)}, tmp_path / "two.pth")
        with pytest.raises(UserError, match="do not fit one another"):
            read_head(tmp_path / "two.pth")
        torch.save({"weight": torch.zeros(1, 768), "bias": torch.zeros(1)}, tmp_path / "large.pth")
        section = Holistic(aesthetic={"head": str(tmp_path / "large.pth"), "embedder": "tiny-clip"})
        embedders = {"tiny-clip": Embedder(path=str(checkpoints.clip))}
        with pytest.raises(UserError, match="is for 768 features, and tiny-clip has 24"):
            made.measure(made.folder / "cache", section, embedders, tmp_path / "out")

    def test_v1_by_hand(self, tmp_path):
        weight = torch.tensor([[2.0, -1.0, 0.5]])
        torch.save({"weight": weight, "bias": torch.tensor([4.0])}, tmp_path / "v1.pth")
        assert read_head(tmp_path / "v1.pth").score(np.array([0.6, 0.8, 0.0])) == pytest.approx(4 + 1.2 - 0.8)

    @pytest.mark.parametrize(
        ("section", "line"),
        [
            ({"aesthetic": {"head": "x.pth"}}, "multibind.holistic.aesthetic.*embedder: head alone measures nothing"),
            (
                {"clip_i": {"embedder": "nowhere"}},
                "multibind.holistic.clip_i.embedder: nowhere is not among the embedders",
            ),
            ({"similarities": ["minilm"]}, "multibind.holistic.similarities.0: minilm embeds no images"),
            ({"similarities": ["nano", "nano"]}, "similarities: an embedder is given twice"),
        ],
    )
    def test_a_mistake_in_the_config_is_one_line(self, section, line):
        with pytest.raises(UserError, match=line):
            check({"multibind": {"holistic": section}}, lambda key: "mine.yaml")


# Tables ---------------------------------------------------------------------------------------------------------------

GENERATORS, MANY = ("one", "two"), tuple(f"i{number:02}" for number in range(12))
FEW = Scoring(bootstrap_rounds=200, fid_rounds=50)


def made_rows(seed: int = 0, features: int = 5) -> list[dict]:
    """DINO, FID and a similarity; generator two has no image of i03 and none of i04."""
    draw = np.random.default_rng(seed)
    rows = []
    for measure, model in (("fid", "inception"), ("dino", "dino/x"), ("similarity", "nano")):
        for generator in GENERATORS:
            for instance in MANY:
                lost = generator == "two" and instance in ("i03", "i04")
                true = draw.normal(size=features)
                made = true if generator == "one" else true + draw.normal(size=features)
                is_fid = measure == "fid" and not lost
                rows.append(
                    {"generator": generator, "instance": instance, "measure": measure, "model": model,
                     "fingerprint": sha256(model), "reason": "no_picture" if lost else None,
                     "value": None if lost or measure == "fid" else float(draw.random()),
                     "generated_features": made.tolist() if is_fid else None,
                     "true_features": true.tolist() if is_fid else None}
                )  # fmt: skip
    return rows


def written(rows, folder, files: int = 1):
    paths = [folder / f"{number}.parquet" for number in range(files)]
    for number, path in enumerate(paths):
        write_table(HOLISTIC, rows[number::files], path)
    return paths


class TestTables:
    def test_a_mean_is_of_the_images_that_all_have_and_beside_it_of_its_own(self, tmp_path):
        rows = made_rows()
        summary = summarise(written(rows, tmp_path), GENERATORS, GENERATORS, MANY, FEW)
        table = {(r["generator"], r["subset"], r["measure"]): r for r in map(named, rows_of(summary, GENERATORS))}
        value = {(r["generator"], r["instance"]): r["value"] for r in rows if r["measure"] == "dino"}
        both = [name for name in MANY if name not in ("i03", "i04")]
        for generator, subset, names in (
            *(("one", "compared", both), ("one", "own", MANY), ("two", "compared", both), ("two", "own", both)),
        ):
            row = table[generator, subset, "dino"]
            expected = np.mean([value[generator, name] for name in names])
            assert float(row["value"]) == pytest.approx(expected, abs=1e-6)
            assert float(row["low"]) < float(row["value"]) < float(row["high"]) and row["note"] == ""
            assert (row["images"], row["without_image"]) == (len(names), 0 if generator == "one" else 2)

    def test_fid_is_of_all_pairs_with_an_interval_around_it_and_none_for_a_perfect_copy(self, tmp_path):
        rows = made_rows()
        summary = summarise(written(rows, tmp_path), GENERATORS, GENERATORS, MANY, FEW)
        table = {(r["generator"], r["subset"], r["measure"]): r for r in map(named, rows_of(summary, GENERATORS))}
        pairs = [
            (r["generated_features"], r["true_features"])
            for r in rows
            if r["measure"] == "fid" and r["generator"] == "two"
        ]
        made, true = (np.array([pair[n] for pair in pairs if pair[n]], np.float32) for n in range(2))
        row = table["two", "own", "fid"]
        assert float(row["value"]) == pytest.approx(frechet_distance(made, true), abs=1e-5)
        assert 0 < float(row["low"]) < float(row["value"]) < float(row["high"])
        assert [float(table["one", "own", "fid"][name]) for name in ("value", "low", "high")] == [0, 0, 0]

    def test_who_does_not_decide_takes_no_image_from_the_others_and_its_row_says_so(self, tmp_path):
        summary = summarise(written(made_rows(), tmp_path), GENERATORS, ("one",), MANY, FEW)
        rows = {
            (r["generator"], r["subset"]): r for r in map(named, rows_of(summary, GENERATORS)) if r["measure"] == "dino"
        }
        found = {place: (row["images"], row["same_images"]) for place, row in rows.items()}
        assert found["one", "compared"] == found["one", "own"] == (12, "true")
        assert found["two", "compared"] == found["two", "own"] == (10, "false")
        (row,) = [row for row in difference_rows(summary, GENERATORS, FEW) if row[0] == "dino"]
        both = summarise(written(made_rows(), tmp_path), GENERATORS, GENERATORS, MANY, FEW)
        one, two = (float(part) for part in both.estimates["compared"]["dino"].mean)
        assert float(row[3]) == pytest.approx(one - two, abs=1e-6), "the difference is of the same images"

    @pytest.mark.parametrize(("features", "biased"), [(5, False), (12, True)])
    def test_fewer_images_than_features_are_marked_as_biased(self, tmp_path, features, biased):
        summary = summarise(written(made_rows(features=features), tmp_path), GENERATORS, GENERATORS, MANY, FEW)
        notes = {r["note"] for r in map(named, rows_of(summary, GENERATORS)) if r["measure"] == "fid"}
        assert all(note.startswith("biased upwards: 1") == biased for note in notes)

    def test_what_nothing_measured_is_empty_with_the_reason(self):
        summary = summarise([], GENERATORS, GENERATORS, MANY, FEW)
        rows = [named(row) for row in rows_of(summary, GENERATORS)]
        assert len(rows) == 2 * 2 * len(KEYS)
        for row in rows:
            assert [row[name] for name in ("value", "low", "high", "images", "without_image")] == ["", "", "", 0, ""]
            assert row["note"].startswith(f"no checkpoint configured (multibind.holistic.{row['measure']}.")

    def test_neither_the_order_of_rows_nor_files_nor_another_measure_change_a_figure(self, tmp_path):
        rows = made_rows()
        expected = rows_of(summarise(written(rows, tmp_path), GENERATORS, GENERATORS, MANY, FEW), GENERATORS)
        (tmp_path / "three").mkdir()
        paths = written(rows[::-1], tmp_path / "three", 3)
        assert rows_of(summarise(paths, GENERATORS, GENERATORS, MANY, FEW), GENERATORS) == expected
        (tmp_path / "less").mkdir()
        without = [row for row in rows if row["measure"] != "fid"]
        found = rows_of(summarise(written(without, tmp_path / "less"), GENERATORS, GENERATORS, MANY, FEW), GENERATORS)
        assert [row for row in found if row[2] != "fid"] == [row for row in expected if row[2] != "fid"]
        assert [model["model"] for model in models_of(paths)] == ["dino/x", "inception", "nano"]

    def test_tables_that_do_not_belong_together_are_named(self, tmp_path):
        rows = made_rows()
        with pytest.raises(UserError, match="dino by dino/x of two, i07 is missing"):
            lacking = [
                row for row in rows if (row["measure"], row["instance"], row["generator"]) != ("dino", "i07", "two")
            ]
            summarise(written(lacking, tmp_path), GENERATORS, GENERATORS, MANY, FEW)
        for change in ({"fingerprint": "0"}, {"model": "dino/y"}):
            other = [row | change if (row["measure"], row["generator"]) == ("dino", "two") else row for row in rows]
            with pytest.raises(UserError, match=r"by two models|is missing"):
                summarise(written(other, tmp_path), GENERATORS, GENERATORS, MANY, FEW)

    def test_they_stand_beside_the_rates_in_the_differences_and_on_the_page(self, tmp_path):
        made = MadeEvaluation()
        for instance in MANY:
            for generator in GENERATORS:
                made.fault(generator, instance, [0, 1])
        tables = (GENERATORS, *made.write(tmp_path).values())
        freeze_subjects(GENERATORS, tables[1], tmp_path / "compared.parquet")
        write_table(THRESHOLDS, [], tmp_path / "thresholds.parquet")
        (tmp_path / "holistic").mkdir()
        scores = written(made_rows(), tmp_path / "holistic")
        settings = FEW.model_copy(update={"dimensions": ("face",)})
        files = tmp_path / "compared.parquet", tmp_path / "thresholds.parquet"
        tabulate_multibind(*tables, *files, settings, tmp_path, scores)
        rates, holistic, differences = (
            list(csv.DictReader((tmp_path / f"multibind_{name}.csv").open()))
            for name in ("table", "holistic", "differences")
        )
        value = {(r["generator"], r["subset"], r["measure"]): r["value"] for r in holistic}
        for row in rates:
            place = row["generator"], row["subset"]
            assert (row["fid"], row["dino"]) == (value[*place, "fid"], value[*place, "dino"])
            assert row["similarity_nano"] == value[*place, "similarity"] and row["clip_i"] == row["aesthetic_low"] == ""
            assert "clip_i: no checkpoint configured (multibind.holistic.clip_i.embedder)" in row["holistic_notes"]
        (row,) = [row for row in differences if row["measure"] == "dino"]
        gap = float(value["one", "compared", "dino"]) - float(value["two", "compared", "dino"])
        assert float(row["difference"]) == pytest.approx(gap, abs=2e-6)
        assert float(row["low"]) < gap < float(row["high"])
        page = (tmp_path / "multibind_table.html").read_text()
        assert "Whole images" in page and "similarity by nano" in page
        assert "<li>CLIP-I: no checkpoint configured (multibind.holistic.clip_i.embedder)</li>" in page


def named(row: list) -> dict:
    return dict(zip(HEADER, row, strict=True))
