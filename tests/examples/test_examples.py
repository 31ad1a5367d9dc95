"""The programs of examples/ run by themselves, and what they print is true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

NUMBER = r"(-?\d+\.?\d*(?:e[-+]?\d+)?)"


def output(name: str, *options: str) -> str:
    """What an example prints; the test fails where the example does, or warns."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout


def number(text: str, label: str) -> float:
    """The number after `label`."""
    found = re.search(re.escape(label) + r"\D*?" + NUMBER, text)
    assert found is not None, f"no number after {label!r} in:\n{text}"
    return float(found[1])


def test_logistic_regression() -> None:
    text = output("logistic_regression")
    assert number(text, "accuracy") > 0.9
    assert number(text, "traced") == 1


def test_mlp_reads_digits() -> None:
    assert number(output("mlp"), "accuracy") > 0.95


def test_convnet_reads_digits() -> None:
    assert number(output("convnet", "--epochs", "3"), "accuracy") > 0.95


def test_character_rnn_learns_the_text() -> None:
    text = output("character_rnn", "--steps", "300")
    assert number(text, "final loss") < 0.3
    assert "text: the moon was a ghostly galleon tossed upon cloudy seas." in text


def test_transformer_learns_the_text() -> None:
    text = output("transformer", "--steps", "200")
    assert number(text, "step   0  loss") > 2.5
    assert number(text, "final loss") < 0.4


def test_n_body_keeps_energy_and_momentum() -> None:
    text = output("n_body", "--steps", "1000")
    assert number(text, "drift") < 1e-4
    assert abs(number(text, "momentum")) < 1e-5


def test_option_price_agrees_with_the_closed_form() -> None:
    text = output("option_price")
    found = re.search(rf"simulated {NUMBER} \+- {NUMBER}; closed form {NUMBER}", text)
    assert found is not None
    price, error, exact = map(float, found.groups())
    assert abs(exact - 9.57748) < 1e-3  # by the formula in double precision
    assert error < 0.03
    assert abs(price - exact) < 4 * error
    delta = re.search(rf"delta simulated {NUMBER}; closed form {NUMBER}", text)
    assert delta is not None
    assert float(delta[1]) == pytest.approx(float(delta[2]), abs=5e-3)


def test_hamiltonian_monte_carlo_finds_the_posterior() -> None:
    text = output("hamiltonian_monte_carlo")
    assert number(text, "acceptance") > 0.8
    assert number(text, "mean off by") < 0.1
    assert number(text, "covariance by") < 0.15


def test_kalman_filter_agrees_with_numpy() -> None:
    text = output("kalman_filter")
    assert number(text, "error") < 0.5 * number(text, "of the measurements")
    assert number(text, "largest difference to NumPy") < 1e-4
    assert number(text, "learned measurement noise") == pytest.approx(0.25, abs=0.05)
    assert number(text, "log likelihood per step") > number(text, "at the true noise") - 0.01


def test_data_parallel_training_matches_one_device() -> None:
    text = output("data_parallel")
    assert number(text, "devices") == 4
    assert number(text, "largest difference of parameters") < 1e-4
    assert number(text, "accuracy") > 0.9
