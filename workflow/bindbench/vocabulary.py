"""Objects and attributes (SABER, A.1): read from two CSV lists, checked row by row, realised in their templates."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .errors import UserError
from .files import csv_rows

TYPES = {"standalone": (), "single-color": ("color",), "two-color": ("color1", "color2"), "fixed-variant": ("variant",)}
OBJECT_COLUMNS = ("object", "group", "shape")
ATTRIBUTE_COLUMNS = ("attribute", "type", "category", "template", "variants", "material")


@dataclass(frozen=True)
class Object:
    name: str
    group: str
    shape: str  # noto:NAME, own:NAME or a path to an SVG file


@dataclass(frozen=True)
class Attribute:
    name: str  # the text form: "striped"
    type: str
    category: str
    template: str  # the generation form: "{color1} and {color2} striped"
    variants: tuple[str, ...]
    material: str  # the renderer's material, perhaps with a colour: "striped", "plain:red"

    @property
    def slots(self) -> tuple[str, ...]:
        return TYPES[self.type]

    def realise(self, values: tuple[str, ...]) -> str:
        """The generation form with its slots filled: ("white", "orange") -> "white and orange striped"."""
        return self.template.format(**dict(zip(self.slots, values, strict=True)))


@dataclass(frozen=True)
class Vocabulary:
    objects: dict[str, Object]
    attributes: dict[str, Attribute]
    palette: tuple[str, ...]

    @cached_property
    def realisations(self) -> dict[str, tuple[tuple[tuple[str, ...], str, frozenset[str]], ...]]:
        """For each attribute every way to realise it: slot values, generation form, palette words it uses up."""
        return {a.name: tuple(self._realisations(a)) for a in self.attributes.values()}

    def _realisations(self, attribute: Attribute):
        colours = self.palette
        values = {
            "standalone": [()],
            "single-color": [(c,) for c in colours],
            "two-color": [(c, d) for c in colours for d in colours if c != d],
            "fixed-variant": [(v,) for v in attribute.variants],
        }[attribute.type]
        for filled in values:
            form = attribute.realise(filled)
            yield filled, form, self.palette_words(form) | self.palette_words(attribute.name)

    def palette_words(self, text: str) -> frozenset[str]:
        """Palette colours named in a text: "white marble" names white, "light-blue denim" names blue."""
        return frozenset(re.findall(r"[a-z]+", text.lower())) & frozenset(self.palette)


def read_vocabulary(objects: str | Path, attributes: str | Path, palette: tuple[str, ...]) -> Vocabulary:
    """Reads and checks both lists. Raises UserError that names the file, the row and the fault."""
    return Vocabulary(_read_objects(Path(objects)), _read_attributes(Path(attributes), palette), tuple(palette))


def _name(path: Path, line: int, column: str, value: str, seen: dict) -> str:
    if not value:
        raise UserError(f"{path}: row {line}: {column} is empty")
    if value.lower() in seen:
        raise UserError(f"{path}: row {line}: {column} {value!r} stands already in row {seen[value.lower()]}")
    if not re.fullmatch(r"\w[\w' .-]*", value) or re.search(r"\s\s|\band\b", value):
        raise UserError(f"{path}: row {line}: {column} {value!r} must be plain words without commas or 'and'")
    seen[value.lower()] = line
    return value


def _read_objects(path: Path) -> dict[str, Object]:
    objects, seen = {}, {}
    for line, row in csv_rows(path, OBJECT_COLUMNS):
        name = _name(path, line, "object", row["object"], seen)
        if not row["shape"]:
            raise UserError(f"{path}: row {line}: shape is empty (noto:NAME, own:NAME or the path of an SVG file)")
        objects[name] = Object(name, row["group"], row["shape"])
    return objects


def _read_attributes(path: Path, palette: tuple[str, ...]) -> dict[str, Attribute]:
    attributes, seen = {}, {}
    for line, row in csv_rows(path, ATTRIBUTE_COLUMNS):
        name = _name(path, line, "attribute", row["attribute"], seen)
        where = f"{path}: row {line}: {name}"
        if row["type"] not in TYPES:
            raise UserError(f"{where}: type must be one of {', '.join(TYPES)} (got {row['type']!r})")
        if not row["category"]:
            raise UserError(f"{where}: category is empty")
        slots = TYPES[row["type"]]
        found = re.findall(r"\{([^{}]*)\}", row["template"])
        if sorted(found) != sorted(slots) or re.search(r"[{}]", re.sub(r"\{[^{}]*\}", "", row["template"])):
            wanted = " and ".join("{" + slot + "} once" for slot in slots) or "no {slot}"
            raise UserError(f"{where}: template of a {row['type']} attribute needs {wanted} (got {row['template']!r})")
        if not row["template"]:
            raise UserError(f"{where}: template is empty")
        variants = tuple(v.strip() for v in row["variants"].split("|")) if row["variants"] else ()
        if row["type"] == "fixed-variant" and (not variants or "" in variants or len(set(variants)) != len(variants)):
            raise UserError(f"{where}: variants must be different words separated by | (got {row['variants']!r})")
        if row["type"] != "fixed-variant" and variants:
            raise UserError(f"{where}: only fixed-variant attributes have variants (got {row['variants']!r})")
        if row["type"] == "two-color" and len(palette) < 2:
            raise UserError(f"{where}: needs two colours, the palette has {len(palette)}")
        attributes[name] = Attribute(name, row["type"], row["category"], row["template"], variants, row["material"])
    return attributes
