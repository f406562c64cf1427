"""score_saber from files to file: what the table says of embedders whose behaviour is known."""

import numpy as np
import pytest
from bindbench.errors import UserError
from bindbench.saber import scoring
from bindbench.saber.scoring import (
    binding_set,
    first_equal_row,
    read_benchmark,
    score_pairing,
    score_saber,
    similarity_blocks,
)
from bindbench.tables import PAIRINGS, SCORES, embeddings_table, read_embeddings, read_table
from synthetic_saber import (
    binding_embeddings,
    five_scenes,
    tiny_saber,
    word_embeddings,
    write_embeddings,
    write_rows,
)


@pytest.fixture
def saber(tmp_path):
    questions, scenes = tiny_saber()
    return tmp_path, *write_rows(tmp_path, questions, scenes), scenes


def scores_of(saber, embed, images=None):
    folder, questions, scenes, rows = saber
    items = [scene["scene"] for scene in rows]
    texts = write_embeddings(folder / "text.parquet", items, embed(rows))
    if images is not None:
        images = write_embeddings(folder / "image.parquet", items, images(rows))
    score_saber(questions, scenes, texts, images, folder / "scores.parquet")
    return read_table(SCORES, folder / "scores.parquet").to_pandas()


def test_perfect_embedder_is_right_everywhere(saber):
    scores = scores_of(saber, binding_embeddings, binding_embeddings)
    assert list(scores.pairing.unique()) == list(PAIRINGS)
    assert scores.correct.all()
    assert not scores.tied.any()
    assert (scores["rank"] == 1).all()
    assert (scores.average_precision == 1).all()
    assert (scores.subset_above_exact == 0).all()


def test_bag_of_words_ties_and_is_wrong(saber):
    scores = scores_of(saber, word_embeddings)
    swaps = scores[scores.n_objects > 2]
    assert not scores.correct.any()
    assert scores.tied.all()
    assert np.ptp(np.stack(swaps.similarities), axis=1).max() == 0
    assert (swaps["rank"] >= 4).all()


def test_constant_embedder_has_the_last_rank_and_no_place_in_the_top_four(saber):
    scores = scores_of(saber, lambda rows: np.ones((len(rows), 7)) * np.arange(1, 8))
    n_candidates = 4 * 15
    assert (scores["rank"] == n_candidates).all()
    assert scores.tied.all()
    assert not scores.top_four.any()
    single = scores[scores.n_positives == 1]
    assert single.average_precision.to_numpy() == pytest.approx(1 / n_candidates)


def test_missing_modality_leaves_its_pairings_out(saber):
    scores = scores_of(saber, binding_embeddings)
    assert scores.pairing.unique().tolist() == ["text_text"]


def test_queries_are_not_in_the_gallery(saber):
    _, questions, scenes, rows = saber
    benchmark = read_benchmark(questions, scenes)
    assert len(benchmark.gallery_scenes) == 4 * len(benchmark.query_scenes)
    assert not any(scene.endswith("query") for scene in benchmark.gallery_scenes)
    # A query that meets its own embedding in the gallery would outrank candidate 1.
    noise = np.random.default_rng(0).normal(size=(len(rows), 16))
    scores = scores_of(saber, lambda _: noise)
    assert scores["rank"].max() <= len(benchmark.gallery_scenes)
    assert scores["rank"].min() >= 1


def test_nested_queries_have_the_later_preserving_scenes_as_positives(saber):
    scores = scores_of(saber, binding_embeddings)
    nested = scores[scores.subset == "nested"]
    assert (nested.n_positives >= 5 - nested.n_objects).all()
    assert (scores[scores.subset == "independent"].n_positives >= 1).all()
    largest = nested[nested.n_objects == 4]
    assert (largest.subset_exact_pairs >= 2).all()  # the chain's scenes of two and of three objects
    assert (nested[nested.n_objects == 2].subset_superset_pairs == 0).all()


def test_later_negative_that_happens_to_hold_all_bindings_is_a_positive(tmp_path):
    two = [("red", "cube"), ("pink", "kite")]
    four = [*two, ("sandy", "boot"), ("wooden", "horn")]
    questions = [{"question": q, "subset": "nested", "chain": "c", "n_objects": n} for q, n in (("q2", 2), ("q4", 4))]
    scenes = five_scenes("q2", two) + five_scenes("q4", four)  # q4's object swap exchanges only the last two attributes
    benchmark = read_benchmark(*write_rows(tmp_path, questions, scenes))
    positives = [benchmark.gallery_scenes[i] for i in benchmark.relations[0].positives]
    assert positives == ["q2.candidate_1", "q4.candidate_1", "q4.candidate_3"]


def test_colours_that_an_attribute_is_drawn_in_do_not_matter(tmp_path):
    questions, scenes = tiny_saber(independent=1, nested=0)
    for scene in scenes:
        for binding in scene["bindings"]:
            binding["realised"] = f"{scene['role']} {binding['attribute']}"
    benchmark = read_benchmark(*write_rows(tmp_path, questions, scenes))
    assert all(len(relations.exact) for relations in benchmark.relations)


def plain_scores(query, gallery, own, query_set, gallery_sets):
    """One question, written out: the ranking sorted with the model's worst case among equals."""
    cosines = [sum(a * b for a, b in zip(query, candidate, strict=True)) for candidate in gallery]
    positives = {i for i, bindings in enumerate(gallery_sets) if bindings >= query_set}
    ranking = sorted(range(len(gallery)), key=lambda i: (-cosines[i], i in positives))
    precisions = [
        sum(j in positives for j in ranking[: place + 1]) / (place + 1)
        for place, i in enumerate(ranking)
        if i in positives
    ]
    exact = [i for i in positives if gallery_sets[i] == query_set]
    superset = [i for i in positives if gallery_sets[i] != query_set]
    subset = [i for i, bindings in enumerate(gallery_sets) if bindings < query_set]
    first, *others = (cosines[i] for i in own)
    rest = [cosines[i] for i in range(len(gallery)) if i not in own]
    return {
        "correct": first > max(others),
        "tied": first == max(others),
        "rank": sum(c >= first for c in cosines),
        "average_precision": sum(precisions) / len(precisions),
        "top_four": min(first, *others) > max(rest),
        "subset_above_exact": sum(cosines[a] > cosines[b] for a in subset for b in exact),
        "subset_above_superset": sum(cosines[a] > cosines[b] for a in subset for b in superset),
    }


@pytest.mark.parametrize(("levels", "dimensions"), [(2, 3), (4, 5), (60, 6)])
def test_every_column_equals_a_plain_reference_with_few_or_many_ties(saber, levels, dimensions):
    _, questions, scenes, rows = saber
    benchmark = read_benchmark(questions, scenes)
    generator = np.random.default_rng(levels)
    # Small whole numbers: products and sums are exact, so equal means equal.
    queries, gallery = (
        generator.integers(0, levels, (len(names), dimensions)).astype(np.float32)
        for names in (benchmark.query_scenes, benchmark.gallery_scenes)
    )
    scores = score_pairing(queries, gallery, benchmark.own, benchmark.relations)
    set_of = {row["scene"]: binding_set(row) for row in rows}
    gallery_sets = [set_of[name] for name in benchmark.gallery_scenes]
    for number, name in enumerate(benchmark.query_scenes):
        own = benchmark.own[number].tolist()
        plain = plain_scores(queries[number].tolist(), gallery.tolist(), own, set_of[name], gallery_sets)
        assert {column: scores[column][number] for column in plain} == pytest.approx(plain)


def test_top_four_counts_only_places_strictly_above_all_others(saber):
    scores = scores_of(saber, binding_embeddings)
    benchmark = read_benchmark(*saber[1:3])
    embeddings = binding_embeddings(saber[3])
    row_of = {scene["scene"]: row for row, scene in enumerate(saber[3])}
    for number, held in enumerate(scores.top_four):
        query = embeddings[row_of[benchmark.query_scenes[number]]]
        cosines = {
            s: query @ embeddings[row_of[s]] / np.linalg.norm(embeddings[row_of[s]]) for s in benchmark.gallery_scenes
        }
        own = {benchmark.gallery_scenes[i] for i in benchmark.own[number]}
        rest = max(value for scene, value in cosines.items() if scene not in own)
        assert held == (min(cosines[scene] for scene in own) > rest + 1e-9)


@pytest.mark.parametrize("gallery_size", [3, 37, 101, 259])
def test_equal_embeddings_have_equal_similarities_to_the_last_bit(gallery_size):
    generator = np.random.default_rng(gallery_size)
    matrix = generator.normal(size=(gallery_size, 333)).astype(np.float32)
    copies = generator.permutation(gallery_size)[: gallery_size // 2]
    matrix[copies] = matrix[copies[0]]
    ((_, similarities),) = similarity_blocks(matrix[:5], matrix)
    assert (similarities[:, copies] == similarities[:, copies[:1]]).all()


def test_blocks_cover_every_query_once_and_equal_the_whole_product(monkeypatch):
    generator = np.random.default_rng(0)
    queries, gallery = (generator.normal(size=(n, 24)).astype(np.float32) for n in (23, 41))
    monkeypatch.setattr(scoring, "BLOCK_BYTES", 7 * 41 * 4)
    blocks = [(rows, block.copy()) for rows, block in similarity_blocks(queries, gallery)]
    assert len(blocks) > 2
    assert [i for rows, _ in blocks for i in range(rows.start, rows.stop)] == list(range(23))
    assert np.concatenate([block for _, block in blocks]) == pytest.approx(queries @ gallery.T, abs=1e-5)


def test_first_equal_row_tells_apart_what_differs_in_one_component_only():
    matrix = np.ones((4, 50), np.float32)
    matrix[1, 7] = 2
    matrix[3] = matrix[1]
    assert first_equal_row(matrix).tolist() == [0, 1, 0, 1]


def test_minus_zero_is_zero():
    matrix = np.zeros((2, 6), np.float32)
    matrix[:, 1], matrix[1, 0] = 1, -0.0
    assert first_equal_row(matrix).tolist() == [0, 0]


def test_order_of_the_embeddings_file_changes_nothing(saber):
    folder, questions, scenes, rows = saber
    matrix = np.random.default_rng(1).normal(size=(len(rows), 12))
    items = [scene["scene"] for scene in rows]
    order = np.random.default_rng(2).permutation(len(rows))
    one = write_embeddings(folder / "one.parquet", items, matrix)
    other = write_embeddings(folder / "other.parquet", [items[i] for i in order], matrix[order])
    for embeddings in (one, other):
        score_saber(questions, scenes, embeddings, None, folder / f"{embeddings.stem}.scores.parquet")
    assert (folder / "one.scores.parquet").read_bytes() == (folder / "other.scores.parquet").read_bytes()


def test_scene_without_embedding_is_named(saber):
    folder, questions, scenes, rows = saber
    items = [scene["scene"] for scene in rows][:-1]
    texts = write_embeddings(folder / "text.parquet", items, np.ones((len(items), 3)))
    with pytest.raises(UserError, match=rf"text.parquet: no embedding of 1 scenes \(first: {rows[-1]['scene']}\)"):
        score_saber(questions, scenes, texts, None, folder / "scores.parquet")
    assert not (folder / "scores.parquet").exists()


@pytest.mark.parametrize("bad", [np.nan, np.inf, 3.0])
def test_embedding_that_is_not_normalised_is_named(saber, bad):
    folder, questions, scenes, rows = saber
    vectors = np.tile(np.array([1, 0, 0], np.float32), (len(rows), 1))
    vectors[7] = bad
    items = [scene["scene"] for scene in rows]
    path = folder / "text.parquet"
    scoring.write_table(embeddings_table(3), {"item": items, "embedding": list(vectors)}, path)
    with pytest.raises(
        UserError, match=rf"text\.parquet: the embedding of {items[7]} has norm .*; delete it and run again"
    ):
        score_saber(questions, scenes, path, None, folder / "scores.parquet")


def test_damaged_embeddings_are_never_scored(tmp_path):
    """A flipped bit in the vectors leaves the file readable: only the checksums of its pages tell."""
    matrix = np.random.default_rng(0).normal(size=(50, 64))
    path = write_embeddings(tmp_path / "text.parquet", [f"s{i}" for i in range(50)], matrix)
    data = bytearray(path.read_bytes())
    for place in range(len(data) // 4, len(data) // 2, 97):
        broken = data.copy()
        broken[place] ^= 1
        path.write_bytes(broken)
        with pytest.raises(UserError, match=r"text\.parquet: .*; delete it and run again"):
            read_embeddings(path)


def test_text_and_images_of_different_width_are_refused(saber):
    folder, questions, scenes, rows = saber
    items = [scene["scene"] for scene in rows]
    texts = write_embeddings(folder / "text.parquet", items, np.ones((len(items), 3)))
    images = write_embeddings(folder / "image.parquet", items, np.ones((len(items), 4)))
    with pytest.raises(UserError, match=r"3 dimensions and .* 4 dimensions"):
        score_saber(questions, scenes, texts, images, folder / "scores.parquet")


def test_model_without_any_modality_is_refused(saber):
    folder, questions, scenes, _ = saber
    with pytest.raises(UserError, match="neither text nor image"):
        score_saber(questions, scenes, None, None, folder / "scores.parquet")


def test_file_of_another_kind_is_refused(saber):
    folder, questions, scenes, _ = saber
    with pytest.raises(UserError, match="not a table of embeddings"):
        score_saber(questions, scenes, questions, None, folder / "scores.parquet")
    with pytest.raises(UserError, match="no such file"):
        score_saber(questions, scenes, folder / "absent.parquet", None, folder / "scores.parquet")


def test_questions_and_scenes_of_different_benchmarks_are_refused(saber):
    folder, questions, _, rows = saber
    other = folder / "other"
    _, fewer = write_rows(other, [], rows[:-1])
    with pytest.raises(UserError, match="do not belong together"):
        read_benchmark(questions, fewer)
