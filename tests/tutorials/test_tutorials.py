"""The programs of two tutorials on jit, unchanged, run as they stand: `python -m jato run FILE`.

What the texts promise is checked on what the programs print and on the names they leave behind.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jato
import jato.compat
import jato.numpy as jnp

HERE = Path(__file__).parent
SCRIPTS = ["introducing_jit", "convolution", "static_arguments", "three_modes", "benchmark"]


def run(name: str, **environment: str) -> str:
    """What the script prints, run with 8 logical devices."""
    done = subprocess.run(
        [sys.executable, "-m", "jato", "run", str(HERE / f"{name}.py")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "JATO_NUM_CPU_DEVICES": "8", "PYTHONIOENCODING": "utf-8", **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def eight_devices(real_jax_aside: None) -> Iterator[None]:
    jato.config.update("jax_num_cpu_devices", 8)
    jato.compat.install()
    yield
    jato.config.update("jax_num_cpu_devices", 1)


def names_after(name: str) -> dict[str, Any]:
    """The names that the script leaves behind, run in this process."""
    return runpy.run_path(str(HERE / f"{name}.py"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_runs(name: str) -> None:
    run(name)


def test_introducing_jit() -> None:
    """The first call compiles, the others do not; on a busy machine one of three runs shows it."""
    for _ in range(3):
        printed = run("introducing_jit", JATO_CACHE_DIR="")
        assert "结果匹配: True" in printed
        seconds = [float(number) for number in re.findall(r"(\d+\.\d+) seconds", printed)]
        _, first_call, cached, functional = seconds
        if cached < first_call / 2 and functional < first_call / 2:
            return
    pytest.fail(printed)


def test_convolution(eight_devices: None) -> None:
    names = names_after("convolution")
    expected = np.convolve(np.ones(1024), [0.5, 0.25, 0.125], mode="same")
    np.testing.assert_allclose(names["result"], expected, rtol=1e-6)
    f = names["compute_convolution"]
    f(names["x"], names["kernel"])
    assert f.stats().traces == 1  # the second call is cached


def test_a_second_size_compiles_no_kernel(eight_devices: None) -> None:
    names = names_after("static_arguments")
    assert names["img1"].shape == names["img2"].shape == (128, 128)
    resize = names["resize_image"]
    stats = resize.stats()
    assert stats.traces == 2
    alone = jato.jit(resize.__wrapped__, static_argnums=1)
    alone(names["image_256"], (128, 128))  # its kernels exist by now
    per_size = alone.stats().kernels_reused
    assert stats.kernels_compiled + stats.kernels_reused == 2 * per_size
    assert stats.kernels_compiled <= per_size


def test_an_array_as_static_argument_is_refused(eight_devices: None) -> None:
    names = names_after("static_arguments")
    with pytest.raises(ValueError) as caught:
        names["resize_image"](names["image_256"], jnp.array([128, 128]))
    message = str(caught.value)
    assert "resize_image" in message
    assert "target_size" in message
    assert "tuple" in message


def test_a_batch_of_64_on_8_devices(eight_devices: None) -> None:
    names = names_after("three_modes")
    outputs = names["outputs"]
    assert outputs.shape == (64, 4)
    np.testing.assert_allclose(outputs, np.full((64, 4), np.tanh(1.0)), rtol=1e-5)
    assert len(jato.devices()) == 8
    assert len(outputs.devices()) == 8


def test_missing_batch_axis(eight_devices: None) -> None:
    names = names_after("three_modes")
    with pytest.raises(ValueError, match="in_axes=None"):
        names["forward_pass"](names["params"], names["batch"][0])


def test_benchmark() -> None:
    printed = run("benchmark")
    eager, jitted = map(float, re.search(r"Eager: (.*)s, JIT: (.*)s", printed).groups())
    assert 0 <= eager < 60 and 0 <= jitted < 60  # two decimals: 4 ms are 0.00s
    assert "加速比" in printed


def test_benchmark_results_agree(eight_devices: None) -> None:
    names = names_after("benchmark")
    image, kernel = np.asarray(names["image"]), np.asarray(names["kernel"])
    expected = np.convolve(image.ravel(), kernel.ravel(), mode="same").reshape(image.shape)
    for result in ("result_eager", "result_jit"):
        np.testing.assert_allclose(names[result], expected, rtol=1e-4, atol=1e-5)
