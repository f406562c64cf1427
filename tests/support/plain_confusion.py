"""The rates of MultiBind written a second time, from the paper's definitions, as loops over the rows of the tables.

Nothing of the package is used. Rates are fractions of whole numbers, so that they can be compared without a tolerance; what
is a mean of measured numbers is summed by math.fsum.
"""

import math
from fractions import Fraction

LETTERS = "ABCD"
FLAGS = ("consistent", "confused", "success", "drift", "replaced", "mixed")
IMAGE_FLAGS = ("swap", "swap_partial", "swap_2cycle", "dominance", "dominance_total", "blending")


def read_instance(validity: list[dict], similarities: list[dict], allowed: set[str]) -> dict:
    """Of one generator, instance and dimension: R_d, V_d, both matrices as dicts, and the matched rows that are lost."""
    columns = [row["slot"] for row in validity if row["valid_true"]]
    s_gen = {(row["row"], row["column"]): row["s_gen"] for row in similarities}
    s_gt = {(row["row"], row["column"]): row["s_gt"] for row in similarities}
    rows, lost = [], []
    for row in validity:
        slot = row["slot"]
        if not row["matched"] or slot not in allowed or not row["valid_true"]:
            continue
        good = row["valid_generated"]
        for column in columns:
            if good and not (math.isfinite(s_gen[slot, column]) and math.isfinite(s_gt[slot, column])):
                good = False
        (rows if good else lost).append(slot)
    return {"rows": sorted(rows), "columns": sorted(columns), "lost": sorted(lost), "s_gen": s_gen, "s_gt": s_gt}


def binary(case: dict, tau_self: float, tau_confusion: float) -> dict:
    """The combined matrix C as a dict of zeros and ones."""
    combined = {}
    for i in case["rows"]:
        for j in case["columns"]:
            delta = case["s_gen"][i, j] - case["s_gt"][i, j]
            combined[i, j] = 1 if delta >= (tau_self if i == j else tau_confusion) else 0
    return combined


def row_flags(consistent: bool, confused: bool) -> dict[str, bool]:
    return {
        "consistent": consistent,
        "confused": confused,
        "success": consistent and not confused,
        "drift": not consistent and not confused,
        "replaced": not consistent and confused,
        "mixed": consistent and confused,
    }


def image_flags(case: dict, combined: dict) -> dict[str, bool]:
    rows, columns = case["rows"], case["columns"]
    row_degree = {i: sum(combined[i, j] for j in columns) for i in rows}
    column_degree = {j: sum(combined[i, j] for i in rows) for j in columns}
    off_diagonal = sum(value for (i, j), value in combined.items() if i != j)
    two_cycle = False
    for i in rows:
        for j in rows:
            if i != j and combined[i, j] and combined[j, i]:
                two_cycle = True
    columns_at_most_one = all(degree <= 1 for degree in column_degree.values())
    return {
        "swap": all(degree == 1 for degree in row_degree.values()) and columns_at_most_one and off_diagonal >= 1,
        "swap_partial": all(degree <= 1 for degree in row_degree.values())
        and columns_at_most_one
        and off_diagonal >= 1,
        "swap_2cycle": two_cycle,
        "dominance": any(degree >= 2 for degree in column_degree.values()),
        "dominance_total": any(degree == len(rows) >= 2 for degree in column_degree.values()),
        "blending": any(degree >= 2 for degree in row_degree.values()),
    }


def shift(case: dict, row: str, temperature: float) -> float:
    """Jensen-Shannon divergence in nats."""
    distributions = []
    for matrix in (case["s_gen"], case["s_gt"]):
        logits = [matrix[row, column] / temperature for column in case["columns"]]
        weights = [math.exp(logit - max(logits)) for logit in logits]
        distributions.append([weight / math.fsum(weights) for weight in weights])
    p, q = distributions
    terms = []
    for a, b in zip(p, q, strict=True):
        m = (a + b) / 2
        terms += [part / 2 * math.log(part / m) for part in (a, b) if part > 0]
    return math.fsum(terms)


def plain_rates(
    slots: list[dict],
    validity: list[dict],
    similarities: list[dict],
    compared: set[tuple[str, str]] | None,
    thresholds: dict[str, tuple[float, float]],
    temperature: float = 0.1,
    limit: float = 0.95,
) -> dict[tuple[str, str], dict]:
    """Every rate by (generator, dimension or "any") and name; None where nothing has it.

    compared: the subjects that are looked at, None: all. thresholds: of self-consistency and confusion; a dimension that is
    not in it has none. Counts are whole numbers, shares fractions, means of measured numbers floats.
    """
    generators = sorted({row["generator"] for row in slots})
    dimensions = list(dict.fromkeys(row["dimension"] for row in validity))
    instances = sorted({row["instance"] for row in slots})
    by_case: dict[tuple, tuple[list, list]] = {}
    for table, rows in enumerate((validity, similarities)):
        for row in rows:
            key = (row["generator"], row["instance"], row["dimension"])
            by_case.setdefault(key, ([], []))[table].append(row)
    result = {}
    for generator in generators:
        own = [row for row in slots if row["generator"] == generator]
        shared = {
            "miss": _share([not row["matched"] for row in own]),
            "mean_iou": _mean([row["iou"] for row in own if row["matched"] and _in(compared, row)]),
            "matched": sum(row["matched"] and _in(compared, row) for row in own),
            "dropped": sum(row["matched"] and not _in(compared, row) for row in own),
        }
        cases = {}
        for instance in instances:
            allowed = {row["slot"] for row in own if row["instance"] == instance and _in(compared, row)}
            for dimension in dimensions:
                case = read_instance(*by_case[generator, instance, dimension], allowed)
                if dimension in thresholds:
                    case["combined"] = binary(case, *thresholds[dimension])
                cases[instance, dimension] = case
        for dimension in dimensions:
            of_dimension = [cases[instance, dimension] for instance in instances]
            result[generator, dimension] = shared | one_dimension(of_dimension, temperature, limit)
        result[generator, "any"] = shared | any_dimension(cases, instances, dimensions, set(thresholds), limit)
    return result


def plain_compared(slots: list[dict], deciders: list[str]) -> set[tuple[str, str]]:
    """The subjects that each of the deciders has: the frozen intersection."""
    subjects = {(row["instance"], row["slot"]) for row in slots}
    for row in slots:
        if row["generator"] in deciders and not row["matched"]:
            subjects.discard((row["instance"], row["slot"]))
    return subjects


def plain_found(slots: list[dict], generator: str) -> set[tuple[str, str]]:
    return {(row["instance"], row["slot"]) for row in slots if row["generator"] == generator and row["matched"]}


def plain_differences(
    slots: list[dict],
    validity: list[dict],
    similarities: list[dict],
    compared: set[tuple[str, str]],
    pair: tuple[str, str],
    thresholds: dict[str, tuple[float, float]],
) -> tuple[int, dict[tuple[str, str], Fraction | float]]:
    """How many compared subjects both have, and first minus second on these, by dimension or "any" and name of the rate.

    Without what one of the two has no value of.
    """
    common = compared & plain_found(slots, pair[0]) & plain_found(slots, pair[1])
    tables = ([row for row in rows if row["generator"] in pair] for rows in (slots, validity, similarities))
    rates = plain_rates(*tables, common, thresholds)
    found = {}
    for dimension in {key[1] for key in rates}:
        first, second = rates[pair[0], dimension], rates[pair[1], dimension]
        for name in first:
            if first[name] is not None and second[name] is not None:
                found[dimension, name] = first[name] - second[name]
    return len(common), found


def one_dimension(cases: list[dict], temperature: float, limit: float) -> dict:
    found = {
        "subjects": sum(len(case["rows"]) for case in cases),
        "instances": sum(len(case["rows"]) >= 1 for case in cases),
        "images": sum(len(case["rows"]) >= 2 for case in cases),
        "images_one_row": sum(len(case["rows"]) == 1 and len(case["columns"]) >= 2 for case in cases),
        "invalid": _share([slot in case["lost"] for case in cases for slot in case["rows"] + case["lost"]]),
        "undiagnosable": _share([_is_alike(case, row, limit) for case in cases for row in case["rows"]]),
    }
    judged = [case for case in cases if "combined" in case]
    rows = [
        [
            row_flags(bool(case["combined"][i, i]), any(case["combined"][i, j] for j in case["columns"] if j != i))
            for i in case["rows"]
        ]
        for case in judged
    ]
    found |= _row_rates(rows)
    images = [image_flags(case, case["combined"]) for case in judged if len(case["rows"]) >= 2]
    found |= {name: _share([image[name] for image in images]) for name in IMAGE_FLAGS}
    single = [case for case in judged if len(case["rows"]) == 1 and len(case["columns"]) >= 2]
    found["blending_one_row"] = _share([image_flags(case, case["combined"])["blending"] for case in single])
    shifts, diagonal, means, largest = [], [], [], []
    for case in cases:
        delta = {pair: case["s_gen"][pair] - case["s_gt"][pair] for pair in case["s_gen"]}
        others = {i: [delta[i, j] for j in case["columns"] if j != i] for i in case["rows"]}
        shifts.append([shift(case, i, temperature) for i in case["rows"] if len(case["columns"]) >= 2])
        diagonal.append([delta[i, i] for i in case["rows"]])
        means.append([math.fsum(values) / len(values) for values in others.values() if values])
        largest.append([max(values) for values in others.values() if values])
    for name, values in (
        ("js", shifts),
        ("diagonal", diagonal),
        ("off_diagonal_mean", means),
        ("off_diagonal_max", largest),
    ):
        found[name] = _mean([value for part in values for value in part])
        found[name + "_macro"] = _mean([_mean(part) for part in values if part])
    return found


def any_dimension(cases: dict, instances: list[str], dimensions: list[str], judged: set[str], limit: float) -> dict:
    rows, images, single = [], [], []
    lost, alike = [], []
    n_single = 0
    for instance in instances:
        known = [cases[instance, dimension] for dimension in dimensions if dimension in judged]
        flags = []
        for slot in LETTERS:
            seen = [case for case in known if slot in case["rows"]]
            if seen or any(slot in case["lost"] for case in known):
                lost.append(any(slot in case["lost"] for case in known))
            if seen:
                alike.append(any(_is_alike(case, slot, limit) for case in seen))
                consistent = all(case["combined"][slot, slot] for case in seen)
                confused = any(case["combined"][slot, j] for case in seen for j in case["columns"] if j != slot)
                flags.append(row_flags(consistent, confused))
        rows.append(flags)
        several = [image_flags(case, case["combined"]) for case in known if len(case["rows"]) >= 2]
        if several:
            images.append({name: any(flags[name] for flags in several) for name in IMAGE_FLAGS})
        alone = [case for case in known if len(case["rows"]) == 1 and len(case["columns"]) >= 2]
        if alone:
            n_single += 1
            single.append(any(image_flags(case, case["combined"])["blending"] for case in alone))
    found = _row_rates(rows) | {name: _share([image[name] for image in images]) for name in IMAGE_FLAGS}
    found |= {"blending_one_row": _share(single), "invalid": _share(lost), "undiagnosable": _share(alike)}
    found |= {"subjects": sum(map(len, rows)), "instances": sum(map(bool, rows)), "images": len(images)}
    found["images_one_row"] = n_single
    for name in ("js", "diagonal", "off_diagonal_mean", "off_diagonal_max"):
        found |= {name: None, name + "_macro": None}
    return found


def _row_rates(rows: list[list[dict]]) -> dict:
    """Over subjects, and over instances."""
    found = {}
    for name in FLAGS:
        found[name] = _share([flags[name] for part in rows for flags in part])
        of_instances = [_share([flags[name] for flags in part]) for part in rows if part]
        found[name + "_macro"] = sum(of_instances, Fraction(0)) / len(of_instances) if of_instances else None
    return found


def _is_alike(case: dict, row: str, limit: float) -> bool:
    return any(case["s_gt"][row, column] > limit for column in case["columns"] if column != row)


def _in(compared: set[tuple[str, str]] | None, row: dict) -> bool:
    return compared is None or (row["instance"], row["slot"]) in compared


def _share(values: list[bool]) -> Fraction | None:
    return Fraction(sum(map(bool, values)), len(values)) if values else None


def _mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
