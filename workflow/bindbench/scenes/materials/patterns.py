"""Flat patterns: printed, woven or laid; most of them in two colours of the palette."""

import numpy as np

from ..colours import PALETTE, linear, mix, spectrum, step
from ..noise import cells, coordinates, fractal_noise, generator, value_noise
from ..surface import Surface, Tile, look_up
from .coat import Coat, material

TURN = np.float32(2 * np.pi)


def _two_colours(surface: Surface, pattern, first: np.ndarray, second: np.ndarray) -> Coat:
    share, _ = look_up(pattern, surface)
    return Coat(mix(first, second, share), roughness=0.4, tone=0.48, groove=0.85)


def _edge(value: np.ndarray, softness: float = 0.12) -> np.ndarray:
    return step(-softness, softness, value)


def _stripes(size: int) -> Tile:
    x, y = coordinates(size)
    return Tile(_edge(np.sin(TURN * (6 * x + 2 * y))))


@material("striped", PALETTE, PALETTE)
def striped(surface: Surface, first: np.ndarray, second: np.ndarray) -> Coat:
    return _two_colours(surface, _stripes, first, second)


def _checks(size: int) -> Tile:
    x, y = coordinates(size)
    return Tile(_edge(np.sin(TURN * (3 * x + 0.1)) * np.sin(TURN * (3 * y + 0.1)), 0.1))


@material("checkered", PALETTE, PALETTE)
def checkered(surface: Surface, first: np.ndarray, second: np.ndarray) -> Coat:
    return _two_colours(surface, _checks, first, second)


def _dots(size: int) -> Tile:
    x, y = coordinates(size)
    row = np.floor(y * 8)
    column = x * 7 + 0.5 * (row % 2)
    from_middle = np.hypot(column - np.floor(column) - 0.5, (y * 8 - row - 0.5) * 7 / 8)
    return Tile(step(0.345, 0.285, from_middle))


@material("polka-dotted", PALETTE, PALETTE)
def polka_dotted(surface: Surface, ground: np.ndarray, dots: np.ndarray) -> Coat:
    return _two_colours(surface, _dots, ground, dots)


def _zigzags(size: int) -> Tile:
    x, y = coordinates(size)
    return Tile(_edge(np.sin(TURN * (np.abs((x * 6) % 1 - 0.5) * 0.9 + y * 4)), 0.15))


@material("zigzag", PALETTE, PALETTE)
def zigzag(surface: Surface, first: np.ndarray, second: np.ndarray) -> Coat:
    return _two_colours(surface, _zigzags, first, second)


def _flowers(size: int) -> Tile:
    """Three channels: petals, their dark outline, the flower's eye."""
    x, y = coordinates(size)
    row = np.floor(y * 4)
    column = x * 4 + 0.5 * (row % 2)
    across, down = column - np.floor(column) - 0.5, y * 4 - row - 0.5
    radius, angle = np.hypot(across, down), np.arctan2(down, across)
    beyond = radius - (0.33 + 0.12 * np.cos(5 * angle + np.floor(column) + row))
    petals, outline = step(0.02, -0.02, beyond), step(0.045, 0.025, beyond) * step(-0.03, -0.01, beyond)
    return Tile(np.dstack([petals, outline, step(0.10, 0.075, radius)]))


@material("floral", PALETTE, PALETTE)
def floral(surface: Surface, ground: np.ndarray, petals: np.ndarray) -> Coat:
    (flower, outline, eye), _ = look_up(_flowers, surface, 0.7)
    # a golden eye, unless it would vanish in the petals
    golden = linear("8a4b10") if petals is PALETTE["yellow"] or petals is PALETTE["orange"] else linear("f2b632")
    colour = mix(mix(ground, petals, flower), golden, eye) * (1 - 0.75 * outline)
    return Coat(colour, roughness=0.4, tone=0.48, groove=0.85)


def _zebra(size: int) -> Tile:
    x, y = coordinates(size)
    bend = 1.7 * (fractal_noise("zebra", size, 3, 2) - 0.5) + 0.25 * np.sin(TURN * y)
    return Tile(_edge(np.sin(TURN * (7 * x + bend))))


@material("zebra-print")
def zebra_print(surface: Surface) -> Coat:
    share, _ = look_up(_zebra, surface)
    return Coat(mix(linear("f6f4ee"), linear("141210"), share), roughness=0.6, tone=0.5, groove=0.9)


def _leopard(size: int) -> Tile:
    """Two channels: the spots' lighter middle, and the broken rings around it."""
    nearest, _, _ = cells("leopard", size, 11, 12)
    ragged = nearest + 0.22 * (fractal_noise("leopard/edge", size, 28, 2) - 0.5)
    ring = step(0.18, 0.23, ragged) * step(0.42, 0.36, ragged)
    broken = step(0.30, 0.38, fractal_noise("leopard/gap", size, 14, 2))
    return Tile(np.dstack([step(0.24, 0.18, ragged), ring * broken]))


@material("leopard-print")
def leopard_print(surface: Surface) -> Coat:
    (middle, ring), _ = look_up(_leopard, surface, 0.7)
    fur = mix(linear("dca454"), linear("a4682a"), middle)
    return Coat(mix(fur, linear("1d120a"), ring), roughness=0.8, specular=0.02, tone=0.5, groove=0.85)


def _camouflage(size: int) -> Tile:
    """Four colours, each patch laid over the ones before."""
    greens = [linear(code) for code in ("4b5a2a", "7d7a48", "2a2e1c", "a39a6b")]
    image = np.broadcast_to(greens[0], (size, size, 3))
    for index, threshold in enumerate((0.53, 0.59, 0.6)):
        patch = fractal_noise(f"camouflage/{index}", size, 8, 2, 0.45)
        image = image + (greens[index + 1] - image) * step(threshold - 0.012, threshold + 0.012, patch)[..., None]
    return Tile(image)


@material("camouflage")
def camouflage(surface: Surface) -> Coat:
    colour, _ = look_up(_camouflage, surface)
    return Coat(colour, roughness=0.85, specular=0.02, tone=0.5, groove=0.85)


def _tie_dye(size: int) -> Tile:
    """A two-armed spiral of all hues; it meets itself at the tile's border only by its colour."""
    x, y = coordinates(size)
    across, down = 2 * x - 0.9, 2 * y - 1.05
    radius, angle = np.hypot(across, down), np.arctan2(down, across)
    phase = (2 * angle / TURN + 1.35 * radius + 0.28 * fractal_noise("tie-dye", size, 10, 4)) % 1
    bleached = 0.7 * step(0.62, 0.8, fractal_noise("tie-dye/white", size, 14, 4))
    hue = spectrum(phase.reshape(-1)).reshape(3, size, size).transpose(1, 2, 0)
    return Tile((hue + (1 - hue) * bleached[..., None]) * 0.9 + 0.03)


@material("tie-dye")
def tie_dye(surface: Surface) -> Coat:
    colour, _ = look_up(_tie_dye, surface, 0)
    return Coat(colour, roughness=0.9, specular=0.02, tone=0.5, groove=0.8)


def _honeycomb(size: int) -> Tile:
    """Walls of hexagonal cells, from the distances to the nearest two centres of a hexagonal lattice."""
    x, y = coordinates(size)
    columns, rows = 9, 5  # pairs of rows
    nearest, second = np.full((size, size), 9, np.float32), np.full((size, size), 9, np.float32)
    for offset in (0, 0.5):
        for dx in (-1, 0, 1):
            for dy in (-1, 0, 1):
                across = x * columns - (np.floor(x * columns + offset) + 0.5 - offset + dx)
                down = (y * rows - (np.floor(y * rows + offset) + 0.5 - offset + dy)) * np.sqrt(3)
                distance = np.hypot(across, down)
                second = np.minimum(np.maximum(distance, nearest), second)
                nearest = np.minimum(nearest, distance)
    wall = step(0.15, 0.05, second - nearest)
    return Tile(wall, wall * 6)


@material("honeycomb")
def honeycomb(surface: Surface) -> Coat:
    wall, slope = look_up(_honeycomb, surface)
    return Coat(mix(linear("f0a51c"), linear("8a4c05"), wall), roughness=0.25, slope=slope, tone=0.62, groove=0.95)


def _mosaic(size: int) -> Tile:
    nearest, second, number = cells("mosaic", size, 12)
    grout = step(0.14, 0.06, second - nearest)
    hue = spectrum(number.reshape(-1) * 0.94).reshape(3, size, size).transpose(1, 2, 0) * 0.75 + 0.08
    return Tile(hue + (np.float32([0.82, 0.8, 0.76]) - hue) * grout[..., None], 2 * number - 4 * grout)


@material("mosaic")
def mosaic(surface: Surface) -> Coat:
    colour, slope = look_up(_mosaic, surface, 0.9)
    return Coat(colour, roughness=0.15, slope=slope, tone=0.68, groove=1.0)


def _circuit(size: int) -> Tile:
    """Two channels: copper (tracks and pads), and black (chips and holes)."""
    x, y = coordinates(size)
    count = 14
    x, y = np.broadcast_to(x * count, (size, size)), np.broadcast_to(y * count, (size, size))
    column, row = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
    kind, padded, chipped = generator("circuit").random((3, count, count), dtype=np.float32)[:, row, column]
    across, down = x - column - 0.5, y - row - 0.5

    def track(distance):
        return step(0.12, 0.06, np.abs(distance))

    tracks = np.where(kind < 0.42, track(down), np.where(kind < 0.8, track(across), track((across - down) * 0.7)))
    radius = np.hypot(across, down)
    pad, hole = (padded < 0.42) * step(0.25, 0.2, radius), (padded < 0.42) * step(0.12, 0.08, radius)
    chip = (np.abs(across) < 0.42) & (np.abs(down) < 0.3) & (chipped < 0.13)
    copper = np.maximum(tracks, pad)
    return Tile(np.dstack([copper, np.maximum(hole, chip)]), np.maximum(copper * 1.5, chip * 4.0))


@material(
    "circuit-board",
    {"green": (linear("0d5a2c"), linear("d9b24a")), "blue": (linear("123a7a"), linear("c9ccd2"))},
)
def circuit_board(surface: Surface, board_and_tracks: tuple[np.ndarray, np.ndarray]) -> Coat:
    (copper, black), slope = look_up(_circuit, surface, 0.5)
    colour = mix(mix(*board_and_tracks, copper), np.float32([0.01, 0.01, 0.012]), black)
    return Coat(colour, roughness=0.3, slope=slope, tone=0.6, groove=0.95)


def _newspaper(size: int) -> Tile:
    """Ink: columns of text lines, some headlines, some pictures."""
    x, y = coordinates(size)
    lines, columns = 28, 3
    row, column = np.floor(y * lines) + 0 * x, np.floor(x * columns) + 0 * y
    in_line, in_column = y * lines - row, x * columns - column
    letters = step(0.40, 0.48, value_noise("newspaper", size, 60, lines))
    words = (in_line > 0.26) & (in_line < 0.80) & (in_column > 0.06) & (in_column < 0.94)
    ink = 0.88 * words * letters
    headline = ((row + 3 * column) % 9 < 2) & (in_column > 0.06) & (in_column < 0.9)
    big = step(0.36, 0.44, value_noise("newspaper/headline", size, 34, lines // 2))
    tall = ((row + 3 * column) % 9 + in_line > 0.2) & ((row + 3 * column) % 9 + in_line < 1.75)
    ink = np.where((row + 3 * column) % 9 < 2, headline * tall * big, ink)
    picture = ((row + 5 * column) % 14 >= 10) & (in_column > 0.08) & (in_column < 0.92)
    grey = 0.15 + 0.6 * fractal_noise("newspaper/picture", size, 24, 3)
    return Tile(np.where(picture, grey, ink))


@material("newspaper", {"white": linear("f1efe9"), "yellowed": linear("dcc48d")})
def newspaper(surface: Surface, paper: np.ndarray) -> Coat:
    ink, _ = look_up(_newspaper, surface, 0.4)
    return Coat(mix(paper, linear("1b1a19"), ink), roughness=0.95, specular=0.01, tone=0.5, groove=0.9)


def _terrazzo(size: int) -> Tile:
    """Four channels: weight of the ground, then colour of the chips times their weight."""
    image, ground = np.zeros((size, size, 3), np.float32), np.ones((size, size), np.float32)
    for layer, (across, codes) in enumerate(
        (
            (11, ("c7553b", "2f5d62", "d9a441", "37343a", "e7b7a0")),
            (19, ("3f6f8f", "b9483a", "efe6d8", "58705a", "2b2b2b")),
        )
    ):
        nearest, second, number = cells(f"terrazzo/{layer}", size, across)
        chip = step(0.10, 0.14, second - nearest) * (number > 0.38) * step(0.44, 0.40, nearest)
        colours = np.stack([linear(code) for code in codes])[np.floor(number * 97).astype(np.int64) % 5]
        image = image + (colours - image) * chip[..., None]
        ground = ground * (1 - chip)
    return Tile(np.dstack([ground, image * (1 - ground)[..., None]]))


@material("terrazzo", {"white": linear("efebe4"), "gray": linear("8f9094")})
def terrazzo(surface: Surface, ground: np.ndarray) -> Coat:
    channels, _ = look_up(_terrazzo, surface, 0.6)
    return Coat(channels[1:] + ground[:, None] * channels[0], roughness=0.2, tone=0.55, groove=0.95)


def _knit(size: int) -> Tile:
    """Columns of V-shaped stitches."""
    x, y = coordinates(size)
    across = (x * 16) % 1 - 0.5
    fall = (y * 20 - 1.1 * np.abs(across)) % 1
    strand = np.clip(1 - 3 * np.abs(np.abs(across) - 0.25), 0, 1) ** 0.5
    stitch = np.clip((1 - (2 * np.abs(fall - 0.5)) ** 2) * strand, 0, 1)
    return Tile(stitch, stitch * 8)


@material("knitted", {**PALETTE, "cream": linear("eadfc6"), "gray": linear("8a8c90")})
def knitted(surface: Surface, wool: np.ndarray) -> Coat:
    stitch, slope = look_up(_knit, surface, 0.8)
    return Coat(
        wool[:, None] * (0.35 + 0.75 * stitch), roughness=0.95, specular=0.01, slope=slope, tone=0.62, groove=0.9
    )


def _denim(size: int) -> Tile:
    """Two channels: brightness of the weave, and the yellow seams."""
    x, y = coordinates(size)
    twill = 0.5 + 0.5 * np.sin(TURN * 24 * (x + y))
    worn = fractal_noise("denim/worn", size, 8, 3)
    thread = value_noise("denim/thread", size, min(140, size // 2), min(48, size // 4))
    seam = np.maximum(step(0.011, 0.004, np.abs(x - 0.25)), step(0.011, 0.004, np.abs(y - 0.7)))
    stitched = seam * (np.sin(TURN * 20 * (x + y)) > -0.2)
    return Tile(
        np.dstack([0.62 + 0.35 * twill + 0.5 * (thread - 0.5) + 0.6 * (worn - 0.5), stitched]), 1.5 * twill + 2 * thread
    )


@material("denim", {"light-blue": linear("86acd0"), "dark-blue": linear("27406f")})
def denim(surface: Surface, cloth: np.ndarray) -> Coat:
    (weave, seam), slope = look_up(_denim, surface, 0.3)
    colour = mix(cloth[:, None] * weave, linear("d99a3c"), seam)
    return Coat(colour, roughness=0.95, specular=0.01, slope=slope, tone=0.5, groove=0.85)


def _wicker(size: int) -> Tile:
    """Two channels: brightness, height of willow strands that go over and under."""
    x, y = coordinates(size)
    across, down = x * 14, y * 28
    under = (np.floor(across) + np.floor(down)) % 2
    strand = np.abs(np.sin(np.pi * down)) ** 0.6 * (0.35 + 0.65 * np.abs(np.sin(np.pi * (across + 0.5 * under))))
    strand = np.where(under > 0, strand, 0.72 * strand)
    grain = value_noise("wicker", size, 30, min(100, size // 2))
    return Tile(0.22 + 0.85 * strand + 0.2 * (grain - 0.5), 9 * strand)


@material("wicker", {"tan": linear("cf9d5c"), "dark-brown": linear("6a4020")})
def wicker(surface: Surface, willow: np.ndarray) -> Coat:
    brightness, slope = look_up(_wicker, surface, 0.5)
    return Coat(willow[:, None] * brightness, roughness=0.6, slope=slope, tone=0.62, groove=0.95)


def _bricks(size: int) -> Tile:
    """Two channels: brightness of the bricks, mortar."""
    x, y = coordinates(size)
    rows, columns = 14, 7
    row = np.floor(y * rows)
    along = x * columns + 0.5 * (row % 2)
    to_joint = np.minimum(np.abs(along - np.round(along)) * 2, np.abs(y * rows - np.round(y * rows)))
    mortar = step(0.12, 0.06, to_joint)
    shades = generator("brick").random((rows, columns), dtype=np.float32)
    shade = shades[row.astype(np.int64), np.floor(along).astype(np.int64) % columns]
    rough = fractal_noise("brick/rough", size, 40, 2)
    return Tile(np.dstack([0.62 + 0.5 * shade + 0.3 * (rough - 0.5), mortar]), 3 * rough - 5 * mortar)


@material("brick", {"red": linear("9c3f2a"), "gray": linear("85827d")})
def brick(surface: Surface, clay: np.ndarray) -> Coat:
    (brightness, mortar), slope = look_up(_bricks, surface)
    colour = mix(clay[:, None] * brightness, linear("c9c2b6"), mortar)
    return Coat(colour, roughness=0.95, specular=0.01, slope=slope, tone=0.66, groove=1.0)


def _scales(size: int) -> Tile:
    """Two channels: brightness of the scales, the dark diamonds of the skin's drawing."""
    x, y = coordinates(size)
    row = np.floor(y * 28)
    column = x * 18 + 0.5 * (row % 2)
    across, down = column - np.floor(column) - 0.5, y * 28 - row - 0.5
    border = step(0.36, 0.52, np.abs(across) * 1.1 + np.abs(down) * 0.85)
    diamond = np.abs((x * 4 + 0.25) % 1 - 0.5) + np.abs((y * 3 + 0.5) % 1 - 0.5)
    return Tile(np.dstack([1 - 0.65 * border, step(0.42, 0.46, diamond)]), -5 * border)


@material("snakeskin", {"green": (linear("7fa636"), linear("1e3412")), "brown": (linear("c79d62"), linear("4a3018"))})
def snakeskin(surface: Surface, light_and_dark: tuple[np.ndarray, np.ndarray]) -> Coat:
    (brightness, diamond), slope = look_up(_scales, surface, 0.5)
    return Coat(mix(*light_and_dark, diamond) * brightness, roughness=0.3, slope=slope, tone=0.68, groove=1.0)
