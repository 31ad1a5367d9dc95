"""Code in memory: loading, sharing, freeing, threads."""

import gc
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from kernel_runner import TARGETS, call

from jato.base.errors import InternalError
from jato.compiler import disk_cache
from jato.compiler.llvm import abi, elf, link
from jato.compiler.llvm.target import host
from jato.loopir.builder import Builder


def scale_kernel(factor: float, name: str = "scale", op: str = "mul"):
    b = Builder()
    x, y = b.input("x", "f32"), b.output("y", "f32")
    with b.for_("i", b.grid_begin(), b.grid_end(), lanes=16) as i:
        b.store(y, i, b.op(op, b.load(x, i), b.const(factor, "f32")))
    return b.kernel(name)


def apply(code, x):
    y = np.zeros_like(x)
    call(code, [x, y], end=len(x))
    return y


X = np.linspace(-3, 3, 37).astype(np.float32)


def test_many_kernels_in_one_module():
    codes = link.compile_kernels([scale_kernel(k, f"k{k}") for k in range(5)])
    assert [c.name for c in codes] == [f"k{k}" for k in range(5)]
    for k, code in enumerate(codes):
        np.testing.assert_array_equal(apply(code, X), X * np.float32(k))


def test_object_code_round_trip():
    codes = link.compile_kernels([scale_kernel(2.0), scale_kernel(3.0)], keys=["a", "b"])
    loaded = link.load_object(codes[0].object)
    assert [c.key for c in loaded] == ["a", "b"]
    del codes
    gc.collect()
    np.testing.assert_array_equal(apply(loaded[1], X), X * np.float32(3))


def test_damaged_object_is_an_error():
    with pytest.raises(ValueError, match="not object code"):
        link.load_object(b"garbage")


def test_symbols_of_the_c_library():
    """fmod is called: through a stub, wherever the library lies."""
    (code,) = link.compile_kernels([scale_kernel(0.7, op="rem")])
    np.testing.assert_array_equal(apply(code, X), np.fmod(X, np.float32(0.7)))


def test_llvm_loader_agrees():
    (code,) = link.compile_kernels([scale_kernel(0.7, op="rem")])
    size = int.from_bytes(code.object[5:9], "little")
    image = link._EngineImage(code.object[9 + size :])
    assert image.symbols["k0"] != 0


def test_code_is_freed_with_the_last_kernel():
    def mappings():
        return Path("/proc/self/maps").read_text().count("\n")

    link.compile_kernels([scale_kernel(1.5)])
    gc.collect()
    before = mappings()
    kept = link.compile_kernels([scale_kernel(2.5)])[0]
    for _ in range(200):
        link.load_object(kept.object)
    gc.collect()
    assert mappings() <= before + 4
    np.testing.assert_array_equal(apply(kept, X), X * np.float32(2.5))


def test_threads_compile_and_run_together():
    failures = []

    def work(seed):
        for k in range(6):
            factor = float(seed * 10 + k)
            (code,) = link.compile_kernels([scale_kernel(factor)])
            if not np.array_equal(apply(code, X), X * np.float32(factor)):
                failures.append(factor)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_compiles_while_parent_threads_do():
    stop = threading.Event()

    def work():
        k = 0
        while not stop.is_set():
            link.compile_kernels([scale_kernel(100.0 + k)])
            k += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(3):
            child = os.fork()
            if child == 0:
                (code,) = link.compile_kernels([scale_kernel(3.0)])
                os._exit(0 if np.array_equal(apply(code, X), X * np.float32(3)) else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()


def test_build_uses_the_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("JATO_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(link._native, "num_threads", lambda: 1)  # one module, for "bb" a reference
    kernels = {"aa": scale_kernel(2.0), "bb": scale_kernel(3.0)}
    codes, compiled = link.build(kernels)
    assert compiled == 2 and set(codes) == {"aa", "bb"}
    codes, compiled = link.build(kernels)
    assert compiled == 0
    np.testing.assert_array_equal(apply(codes["bb"], X), X * np.float32(3))
    codes, compiled = link.build({"bb": kernels["bb"], "cc": scale_kernel(4.0)})
    assert compiled == 1 and set(codes) == {"bb", "cc"}
    # an entry whose module is gone, or does not load, is compiled again
    disk_cache.drop("aa")
    codes, compiled = link.build({"bb": kernels["bb"]})
    assert compiled == 1
    disk_cache.put("bb", b"not a module")
    codes, compiled = link.build({"bb": kernels["bb"]})
    assert compiled == 1
    np.testing.assert_array_equal(apply(codes["bb"], X), X * np.float32(3))


def many_kernels(count):
    return {f"key {k}": scale_kernel(k + 0.5, f"k{k}") for k in range(count)}


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_modules_in_several_threads(threads, monkeypatch):
    monkeypatch.setenv("JATO_CACHE_DIR", "")
    monkeypatch.setattr(link._native, "num_threads", lambda: threads)
    monkeypatch.setattr(link, "MODULE_KERNELS", 3)
    for count in (1, 2, 7, 20):
        codes, compiled = link.build(many_kernels(count))
        assert compiled == count
        for k in range(count):
            np.testing.assert_array_equal(apply(codes[f"key {k}"], X), X * np.float32(k + 0.5))


def test_an_error_in_one_module_is_the_error_of_all(monkeypatch):
    monkeypatch.setattr(link._native, "num_threads", lambda: 4)
    before = threading.active_count()
    texts = [lambda: "define void @f() { ret void }"] * 3 + [lambda: "nonsense"]
    for order in (texts, texts[::-1]):
        with pytest.raises(InternalError, match="refuses"):
            link.codegen.generate_all(order, link.host(), 4)

    def fails():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        link.codegen.generate_all([*texts[:3], fails], link.host(), 4)
    assert threading.active_count() == before


def test_unknown_formats_are_refused():
    with pytest.raises(elf.Unsupported):
        elf.load(b"\x7fELF" + bytes(100))
    with pytest.raises(elf.Unsupported):
        elf.load(b"MZ" + bytes(100))


def test_scratch_layout():
    b = Builder()
    x, s, t = b.input("x", "f32"), b.local("s", "f32", 3), b.local("t", "f64", 100)
    offsets, total = abi.scratch_layout([x, s, t])
    assert offsets == {s: 0, t: 64} and total == 64 + 832
    assert abi.argument_buffers([s, x, t]) == [x]


def test_targets():
    assert host() is host()
    assert host().key != TARGETS[1].key
    assert host().lanes("f32") * 32 == host().vector_bits


def test_abi_offsets_match_the_runtime():
    native = pytest.importorskip("jato._native")
    if not hasattr(native, "abi_offsets"):
        pytest.skip("the native module is not built")
    assert dict(native.abi_offsets()) == {**abi.OFFSETS, "size": abi.SIZE}


def test_code_generation_goes_around_the_lock():
    """If llvmlite changes so that it cannot, this says so; the code still works."""
    for name in ("LLVMPY_TargetMachineEmitToMemory", "LLVMPY_ParseAssembly"):
        assert link.codegen._without_lock(name) is not None
