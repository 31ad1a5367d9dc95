"""`python -m jato bench`: what it measures, compares and writes."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import jato
from jato.tools.bench import modes
from jato.tools.bench.measure import Timing, measure
from jato.tools.bench.modes import largest_difference, run_modes
from jato.tools.bench.peer import read_outcome, write_outcome
from jato.tools.bench.programs import Program, gaussian_kernel, test_image as make_image
from jato.tools.bench.report import Report, table_of
from jato.tools.bench.target import TargetError, arrays_of, load_target
from jato.tools.command_line import main


@pytest.fixture(autouse=True)
def one_device_afterwards(real_jax_aside):
    yield
    jato.config.update("jax_num_cpu_devices", 1)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(
        "import jax.numpy as jnp\n"
        "import numpy as np\n"
        "def forward(x, w):\n"
        "    return jnp.tanh(x @ w)\n"
        "def scaled(p):\n"
        "    return {'y': p['x'] * p['s']}\n"
        "def scaled_inputs():\n"
        "    return ({'x': np.ones((8, 3), np.float32), 's': np.float32(2)},)\n"
    )
    return path


def test_command_with_a_users_function(model: Path, tmp_path: Path, capsys) -> None:
    picture, numbers = tmp_path / "new" / "modes.png", tmp_path / "modes.json"
    options = ["--shape", "16x8,8x4", "--repeats", "2", "--devices", "3"]
    files = ["--plot", str(picture), "--json", str(numbers)]
    assert main(["bench", f"{model}:forward", *options, *files]) == 0
    printed = capsys.readouterr().out
    assert "forward: time of one item" in printed
    assert "a batch of 3" in printed
    assert picture.read_bytes().startswith(b"\x89PNG")
    data = json.loads(numbers.read_text())
    assert data["program"] == "forward" and data["devices"] == 3 and data["agree"]
    assert set(data["packages"]["jato"]["modes"]) == {"eager", "jit", "pmap"}
    for mode in data["packages"]["jato"]["modes"].values():
        assert len(mode["repeats"]) == 2
        assert mode["quartiles"][0] <= mode["median"] <= mode["quartiles"][1]
        assert mode["first_call"] > 0


def test_inputs_function_and_pytrees(model: Path) -> None:
    assert main(["bench", f"{model}:scaled", "--repeats", "1"]) == 0


@pytest.mark.parametrize(
    ("target", "shape", "message"),
    [
        ("nothing", None, "expected FILE:FUNCTION, `blur` or `dense`, got 'nothing'"),
        ("missing.py:f", None, "there is no file 'missing.py'"),
        ("MODEL:backward", None, "has no function 'backward'; it has forward, scaled"),
        ("MODEL:forward", None, "Give --shape, for example --shape 1024x1024,5x5, or define"),
        ("MODEL:forward", "3xA", "--shape expects shapes like 1024x1024,5x5 or scalar, got '3xA'"),
    ],
)
def test_mistakes(model: Path, target: str, shape: str | None, message: str, capsys) -> None:
    jato.compat.importer.install()
    target = target.replace("MODEL", str(model))
    with pytest.raises(TargetError) as caught:
        load_target(target, shape)
    assert message in str(caught.value)
    options = [] if shape is None else ["--shape", shape]
    assert main(["bench", target, *options]) == 2
    assert capsys.readouterr().err.startswith("jato: bench:")


def test_even_blur(capsys) -> None:
    assert main(["bench", "blur", "--size", "4"]) == 2
    assert "must be odd" in capsys.readouterr().err


def test_peer_that_is_not_installed(model: Path, capsys) -> None:
    options = ["--shape", "3x3,3x3", "--repeats", "1", "--peer", "no_such_package"]
    assert main(["bench", f"{model}:forward", *options]) == 2
    assert "'no_such_package' is not installed" in capsys.readouterr().err


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs jax")
def test_peer(model: Path, tmp_path: Path, capsys) -> None:
    numbers = tmp_path / "modes.json"
    options = ["--shape", "16x8,8x4", "--repeats", "1", "--peer", "jax", "--json", str(numbers)]
    assert main(["bench", f"{model}:forward", *options]) == 0
    assert "vs jax" in capsys.readouterr().out
    data = json.loads(numbers.read_text())
    assert set(data["packages"]) == {"jato", "jax"} and data["agree"]


def test_results_that_differ_are_an_error(model: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(modes, "largest_difference", lambda found, expected: 0.5)
    assert main(["bench", f"{model}:forward", "--shape", "3x3,3x3", "--repeats", "1"]) == 1
    printed = capsys.readouterr().out
    assert "The results differ" in printed and "NO, 5e-01" in printed


def test_times_of_pmap_are_per_item() -> None:
    program = Program("double", lambda x: x * 2, (np.ones(4, np.float32),))
    results = run_modes(jato, program, devices=4, repeats=1)
    assert results.difference == {"eager": 0.0, "jit": 0.0, "pmap": 0.0}
    assert np.array_equal(results.result[0], [2, 2, 2, 2])


def test_measure_calls_everything_in_turns() -> None:
    order: list[str] = []
    ticks: list[str] = []
    calls = {name: lambda name=name: order.append(name) for name in "ab"}
    timings = measure(calls, repeats=2, least_seconds=0.0, tick=ticks.append)
    assert "".join(order) == "aabbabab"
    assert ticks == ["a: first call", "b: first call", "a", "b", "a", "b"]
    assert all(len(t.repeats) == 2 for t in timings.values())


def test_timing() -> None:
    timing = Timing(9.0, (1.0, 2.0, 3.0, 4.0, 100.0))
    assert timing.median == 3.0
    assert timing.spread == (2.0, 4.0)
    assert timing.divided(2).median == 1.5 and timing.divided(2).first == 9.0


def test_largest_difference() -> None:
    one = np.array([1.0, np.nan, np.inf])
    assert largest_difference([one], [one]) == 0
    assert largest_difference([one], [np.array([1.5, np.nan, np.inf])]) == pytest.approx(1 / 3)
    assert largest_difference([one], [np.array([1.0, 2.0, np.inf])]) == np.inf
    assert largest_difference([np.ones((3, 2))], [np.ones((1, 2))]) == 0
    assert largest_difference([np.array([True])], [np.array([False])]) > 1


def test_outcome_file(tmp_path: Path) -> None:
    program = Program("double", lambda x: x * 2, (np.ones(4, np.float32),))
    results = run_modes(jato, program, devices=2, repeats=2)
    write_outcome(results, tmp_path / "outcome")
    read = read_outcome(tmp_path / "outcome")
    assert read.timings == results.timings
    assert np.array_equal(read.result[0], results.result[0])
    report = Report("double", 2, {"jato": results, "jax": read})
    assert report.agree
    assert table_of(report).row_count == 3


def test_programs_inputs() -> None:
    kernel = gaussian_kernel(5)
    assert kernel.sum() == pytest.approx(1) and np.array_equal(kernel, kernel.T)
    image = make_image(20, 30)
    assert image.shape == (20, 30) and image.dtype == np.float32
    assert 0 <= image.min() and image.max() <= 1
    assert [x.dtype.name for x in arrays_of("2,scalar")] == ["float32", "float32"]
