"""Pictures of digits for the examples: a bitmap font, turned, sheared, scaled, shifted and noisy.

    images, labels = digits(1000, seed=0)      # [1000, 16, 16] in 0..1, [1000]
"""

import numpy as np

SIZE = 16

# Each digit in 5 x 7 dots, a row of dots per group.
FONT = """
01110 10001 10011 10101 11001 10001 01110
00100 01100 00100 00100 00100 00100 01110
01110 10001 00001 00010 00100 01000 11111
11111 00010 00100 00010 00001 10001 01110
00010 00110 01010 10010 11111 00010 00010
11111 10000 11110 00001 00001 10001 01110
00110 01000 10000 11110 10001 10001 01110
11111 00001 00010 00100 01000 01000 01000
01110 10001 10001 01110 10001 10001 01110
01110 10001 10001 01111 00001 00010 01100
"""
GLYPHS = np.array([[list(row) for row in line.split()] for line in FONT.split("\n")[1:-1]], float)


def digits(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """`count` float32 pictures of 16 x 16 and their int32 labels."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 10, count)
    angle, shear = random.uniform(-0.35, 0.35, (2, count, 1, 1))
    scale = random.uniform(0.38, 0.55, (2, count, 1, 1))  # dots of the font to a pixel
    shift = random.uniform(-2.0, 2.0, (2, count, 1, 1))
    y, x = np.mgrid[:SIZE, :SIZE][:, None] - (SIZE - 1) / 2 - shift
    row = scale[0] * (np.cos(angle) * y - np.sin(angle) * x) + 3
    column = scale[1] * (np.sin(angle) * y + np.cos(angle) * x) + shear * (row - 3) + 2
    images = _interpolate(GLYPHS[labels], row, column)
    images += random.normal(0, 0.15, images.shape)
    return np.clip(images, 0, 1).astype(np.float32), labels.astype(np.int32)


def _interpolate(glyphs: np.ndarray, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """The brightness of each glyph at fractional places, linear between dots, 0 outside."""
    framed = np.pad(glyphs, [(0, 0), (1, 2), (1, 2)])
    row, column = np.clip(row + 1, 0, 8), np.clip(column + 1, 0, 6)
    top, left = row.astype(int), column.astype(int)
    down, right = row - top, column - left
    which = np.arange(len(glyphs))[:, None, None]
    return (
        framed[which, top, left] * (1 - down) * (1 - right)
        + framed[which, top, left + 1] * (1 - down) * right
        + framed[which, top + 1, left] * down * (1 - right)
        + framed[which, top + 1, left + 1] * down * right
    )
