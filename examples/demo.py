"""The demo: a photograph blurred in the three modes.  `make demo` runs it.

Writes to out/: photograph.png, blurred.png (original and blurred side by side), modes.png (times
of the three modes) and modes.json (all numbers).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import matplotlib.figure
import matplotlib.image
import numpy as np
from matplotlib.cbook import get_sample_data

import jato
import jato.image
from jato.tools.bench.programs import blur, read_image
from jato.tools.command_line import main as run_command

# The width of the blur; 5 is the tutorials' task, 25 is what the eye sees.
TIMED_SIZE = 5
SHOWN_SIZE = 25


def enlarged_photograph(path: Path, width: int = 1024) -> np.ndarray:
    """The portrait of Grace Hopper that comes with matplotlib, as grey levels, `width` wide."""
    small = read_image(str(get_sample_data("grace_hopper.jpg", asfileobj=False)))
    height = round(small.shape[0] * width / small.shape[1])
    image = np.asarray(jato.image.resize(small, (height, width), method="lanczos3"))
    image = np.clip(image, 0, 1)
    matplotlib.image.imsave(path, image, cmap="gray", vmin=0, vmax=1)
    return image


def save_side_by_side(before: np.ndarray, after: np.ndarray, path: Path) -> None:
    figure = matplotlib.figure.Figure(figsize=(9, 5.5), layout="constrained")
    titles = "original", f"Gaussian blur, {SHOWN_SIZE} x {SHOWN_SIZE}"
    for axes, picture, title in zip(figure.subplots(1, 2), (before, after), titles, strict=True):
        axes.imshow(picture, cmap="gray", vmin=0, vmax=1)
        axes.set_title(title, loc="left")
        axes.axis("off")
    figure.savefig(path, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the pictures")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    image = enlarged_photograph(out / "photograph.png")
    program = blur(jato, image, SHOWN_SIZE)
    blurred = np.asarray(jato.jit(program.function)(*program.inputs))
    save_side_by_side(image, blurred, out / "blurred.png")

    print(f"A photograph of {image.shape[1]} x {image.shape[0]} pixels, blurred.")
    options = ["--image", str(out / "photograph.png"), "--size", str(TIMED_SIZE)]
    options += ["--plot", str(out / "modes.png"), "--json", str(out / "modes.json")]
    status = run_command(["bench", "blur", *options])
    print(f"Pictures: {out / 'blurred.png'}, {out / 'modes.png'}.  Numbers: {out / 'modes.json'}.")
    return status


if __name__ == "__main__":
    sys.exit(main())
