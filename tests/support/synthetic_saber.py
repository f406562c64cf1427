"""A tiny SABER of our own for the tests: questions, scenes and embeddings that are known by construction."""

from pathlib import Path

import numpy as np
from bindbench.tables import QUESTIONS, SCENES, embeddings_table, write_table

ATTRIBUTES = [f"attribute{i}" for i in range(12)]
OBJECTS = [f"object{i}" for i in range(30)]


def scene(question: str, role: str, kind: str, pairs: list[tuple[str, str]]) -> dict:
    return {
        "scene": f"{question}.{role}",
        "question": question,
        "role": role,
        "kind": kind,
        "bindings": [{"attribute": a, "realised": a, "object": o, "slots": []} for a, o in pairs],
        "caption": " and ".join(f"a {a} {o}" for a, o in pairs),
        "generation_caption": " and ".join(f"a {a} {o}" for a, o in pairs),
        "moved": 0,
    }


def five_scenes(question: str, pairs: list[tuple[str, str]], outside: str = "object29") -> list[dict]:
    """Query, preserving candidate and three wrong ones (other sets of bindings, save for N = 2 where two coincide)."""
    attributes, objects = [a for a, _ in pairs], [o for _, o in pairs]
    shifted = attributes[1:] + attributes[:1]
    if len(pairs) == 2:
        swapped = list(zip(shifted, objects, strict=True))
        wrong = [
            ("attribute_swap", swapped),
            ("object_swap", swapped[::-1]),
            ("replacement", [pairs[0], (attributes[1], outside)]),
        ]
    else:
        first_two = [attributes[1], attributes[0], *attributes[2:]]
        last_two = [*attributes[:-2], attributes[-1], attributes[-2]]
        wrong = [
            ("attribute_swap", list(zip(first_two, objects, strict=True))),
            ("object_swap", list(zip(last_two, objects, strict=True))),
            ("joint_swap", list(zip(shifted, objects, strict=True))[::-1]),
        ]
    kinds = [("query", pairs), ("preserving", pairs[::-1]), *wrong]
    roles = ["query", "candidate_1", "candidate_2", "candidate_3", "candidate_4"]
    return [scene(question, role, kind, p) for role, (kind, p) in zip(roles, kinds, strict=True)]


def tiny_saber(object_counts=(2, 3, 4), independent: int = 3, nested: int = 2, seed: int = 0) -> tuple[list, list]:
    """Rows of QUESTIONS and SCENES."""
    generator = np.random.default_rng(seed)
    questions, scenes = [], []

    def draw(n):
        attributes = generator.choice(ATTRIBUTES, n, replace=False).tolist()
        objects = generator.choice(OBJECTS[:29], n, replace=False).tolist()
        return list(zip(attributes, objects, strict=True))

    def add(question, subset, chain, pairs):
        questions.append({"question": question, "subset": subset, "chain": chain, "n_objects": len(pairs)})
        scenes.extend(five_scenes(question, pairs))

    for n in object_counts:
        for index in range(independent):
            add(f"i{n}-{index}", "independent", None, draw(n))
    for index in range(nested):
        pairs = draw(max(object_counts))
        for n in object_counts:
            add(f"c{index}-{n}", "nested", f"c{index}", pairs[:n])
    return questions, scenes


def write_saber(folder: Path, **sizes) -> tuple[Path, Path]:
    questions, scenes = tiny_saber(**sizes)
    return write_rows(folder, questions, scenes)


def write_rows(folder: Path, questions: list, scenes: list) -> tuple[Path, Path]:
    write_table(QUESTIONS, questions, folder / "questions.parquet")
    write_table(SCENES, scenes, folder / "scenes.parquet")
    return folder / "questions.parquet", folder / "scenes.parquet"


def write_embeddings(path: Path, items: list[str], matrix: np.ndarray) -> Path:
    """matrix: (n_items, dimensions); rows are normalised here."""
    matrix = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    rows = {"item": items, "embedding": list(matrix.astype(np.float32))}
    write_table(embeddings_table(matrix.shape[1]), rows, path)
    return path


def binding_embeddings(scenes: list[dict]) -> np.ndarray:
    """A perfect embedder: one dimension a binding, so that equal sets are nearest and subsets are near."""
    return _one_hot([[(b["attribute"], b["object"]) for b in s["bindings"]] for s in scenes])


def word_embeddings(scenes: list[dict]) -> np.ndarray:
    """A bag of words: which attributes and which objects there are, but not which belongs to which."""
    return _one_hot([[word for b in s["bindings"] for word in (b["attribute"], b["object"])] for s in scenes])


def _one_hot(features: list[list]) -> np.ndarray:
    columns = {feature: i for i, feature in enumerate(sorted({f for row in features for f in row}))}
    matrix = np.zeros((len(features), len(columns)))
    for row, names in enumerate(features):
        matrix[row, [columns[name] for name in names]] = 1
    return matrix
