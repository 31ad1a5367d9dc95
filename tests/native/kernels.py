"""Kernels for the tests of the native runtime, compiled with llvmlite.

A kernel is written as the body of a loop over the grid; `kernel` gives its address.
"""

from __future__ import annotations

import functools

import llvmlite.binding as llvm

_engines = []  # own the machine code

_HEADER = """
define void @kernel(ptr %args, i64 %begin, i64 %end) {
entry:
  %buffers = load ptr, ptr %args
  %params.at = getelementptr i8, ptr %args, i64 8
  %params = load ptr, ptr %params.at
  %cancel.at = getelementptr i8, ptr %args, i64 24
  %cancel = load ptr, ptr %cancel.at
"""

_LOOP = """
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %loop, label %done
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %latch ]
{body}
  br label %latch
latch:
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


@functools.cache
def _target() -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(opt=1, jit=True)


@functools.cache
def compile_ir(text: str) -> int:
    """The address of @kernel of a module."""
    target = _target()
    module = llvm.parse_assembly(text)
    engine = llvm.create_mcjit_compiler(module, target)
    engine.finalize_object()
    _engines.append(engine)
    return engine.get_function_address("kernel")


def elementwise(expression: str, inputs: int, dtype: str = "float") -> int:
    """buffers: the inputs, then the output.  `expression` is LLVM IR that sets %r from %x0, %x1, ...

    Buffers come in the kernel's order: input 0, 1, ..., output.
    """
    header = _HEADER
    body = ""
    for k in range(inputs + 1):
        header += f"  %at{k} = getelementptr ptr, ptr %buffers, i64 {k}\n"
        header += f"  %b{k} = load ptr, ptr %at{k}\n"
    for k in range(inputs):
        body += f"  %p{k} = getelementptr {dtype}, ptr %b{k}, i64 %i\n"
        body += f"  %x{k} = load {dtype}, ptr %p{k}\n"
    body += expression + "\n"
    body += f"  %q = getelementptr {dtype}, ptr %b{inputs}, i64 %i\n"
    body += f"  store {dtype} %r, ptr %q"
    return compile_ir(header + _LOOP.format(body=body))


def add() -> int:
    return elementwise("  %r = fadd float %x0, %x1", 2)


def scale_scalar() -> int:
    """out[i] = x[i] * s, where s is a scalar buffer."""
    header = _HEADER
    for k in range(3):
        header += f"  %at{k} = getelementptr ptr, ptr %buffers, i64 {k}\n"
        header += f"  %b{k} = load ptr, ptr %at{k}\n"
    body = """  %p = getelementptr float, ptr %b0, i64 %i
  %x = load float, ptr %p
  %s = load float, ptr %b1
  %r = fmul float %x, %s
  %q = getelementptr float, ptr %b2, i64 %i
  store float %r, ptr %q"""
    return compile_ir(header + _LOOP.format(body=body))


def spin() -> int:
    """out[i] = x[i] after params[0] rounds of a useless counter that polls `cancel`."""
    text = _HEADER + """
  %at0 = getelementptr ptr, ptr %buffers, i64 0
  %b0 = load ptr, ptr %at0
  %at1 = getelementptr ptr, ptr %buffers, i64 1
  %b1 = load ptr, ptr %at1
  %rounds = load i64, ptr %params
  br label %wait
wait:
  %n = phi i64 [ 0, %entry ], [ %n1, %wait ]
  %n1 = add i64 %n, 1
  %flag = load volatile i32, ptr %cancel
  %stop = icmp ne i32 %flag, 0
  %full = icmp sge i64 %n1, %rounds
  %out = or i1 %stop, %full
  br i1 %out, label %entry2, label %wait
entry2:
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %loop, label %done
loop:
  %i = phi i64 [ %begin, %entry2 ], [ %next, %loop ]
  %p = getelementptr float, ptr %b0, i64 %i
  %x = load float, ptr %p
  %q = getelementptr float, ptr %b1, i64 %i
  store float %x, ptr %q
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""
    return compile_ir(text)

