"""custom_linear_solve and custom_root: solutions that are differentiated as solutions.

    linear_solve_p      operands: what the functions captured, then b -> x, auxiliary values
                        functions: `Functions`, graphs of captured values, then x or b

The derivative of a solution does not depend on how it was found.  For A x = b it is the solution of
A dx = db - dA x, and in reverse mode one of A^T y = ct; for f(x) = 0, of f'(x) dx = -df.  So the
algorithm itself needs no derivative: it may be a `while_loop`.  (The implicit function theorem; A.
Griewank and A. Walther, "Evaluating derivatives", 2008, chapter 15.)  Start reading at `LinearSolve`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jato.base.errors import check
from jato.base.pytree import function_name, tree_flatten, tree_structure
from jato.control.custom_jvp import custom_jvp
from jato.control.staged_functions import flat_values, match_types
from jato.core.graph import Graph, constants_to_inputs, evaluate
from jato.core.primitive import AxisData, Primitive, UndefinedPrimal
from jato.core.staging import trace_to_graph
from jato.core.trace import current_trace
from jato.core.types import ArrayType, Zero, type_of
from jato.ops.arithmetic import neg, sub
from jato.ops.shapes import instantiate
from jato.transforms.batching import batch_graph, with_dim
from jato.transforms.jvp import as_value, jvp, jvp_graph, tangent_out, zero_of
from jato.transforms.transpose import transpose_graph

Closed = tuple[Graph, Sequence[Any]]  # a graph, and the values of its first inputs


class Functions(NamedTuple):
    """The product with the matrix and with its transpose, and what solves with each.

    matvec, vecmat: captured, x -> A x;  solve, transpose_solve: captured, b -> x, auxiliary.  The
    two of the transpose are None where reverse mode was not provided for."""

    matvec: Graph
    vecmat: Graph | None
    solve: Graph
    transpose_solve: Graph | None


class LinearSolve(Primitive):
    """`linear_solve(*captured, *b, functions, counts)`; counts: of captured values per function."""

    multiple_results = True

    def type_rule(self, *avals: Any, functions: Functions, counts: tuple[int, ...]) -> list[Any]:
        return functions.solve.out_avals

    def expand(self, *operands: Any, functions: Functions, counts: tuple[int, ...]) -> list[Any]:
        captured, b = _split(operands, counts)
        return evaluate(functions.solve, *captured[2], *b)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, functions: Functions,
        counts: tuple[int, ...],
    ) -> tuple[list[Any], list[Any]]:  # fmt: skip
        params = {"functions": functions, "counts": counts}
        outs = self.bind(*primals, **params)
        captured, b = _split(primals, counts)
        moved, change = _split(tangents, counts)
        zeros = [zero_of(type_of(x)) for x in outs]
        nonzero = tuple(type(t) is not Zero for t in moved[0])
        if any(nonzero):  # db - dA x
            x = outs[: len(b)]
            derivative = jvp_graph(functions.matvec, nonzero + (False,) * len(x))
            given = [t for t in moved[0] if type(t) is not Zero]
            found = evaluate(derivative.graph, *derivative.consts, *captured[0], *x, *given)
            products = iter(found[len(x) :])
            change = [
                _difference(t, next(products)) if nz else t
                for t, nz in zip(change, derivative.out_nonzero, strict=True)
            ]
        if all(type(t) is Zero for t in change):
            return outs, zeros
        known = [c for group in captured for c in group]
        solved = self.bind(*known, *map(instantiate, change), **params)
        return outs, [*solved[: len(b)], *zeros[len(b) :]]

    def transpose(
        self, cotangent: Sequence[Any], *operands: Any, functions: Functions,
        counts: tuple[int, ...],
    ) -> list[Any]:  # fmt: skip
        captured, b = _split(operands, counts)
        check(
            functions.transpose_solve is not None,
            TypeError,
            "custom_linear_solve: reverse mode needs transpose_solve, or symmetric=True",
        )
        check(
            not any(type(x) is UndefinedPrimal for group in captured for x in group),
            TypeError,
            "custom_linear_solve: it is linear in b, not in what matvec or solve captured",
        )
        check(
            all(type(ct) is Zero for ct in cotangent[len(b) :]),
            TypeError,
            "custom_linear_solve: auxiliary values cannot be differentiated",
        )
        matvec, vecmat, solve, transpose_solve = functions
        turned = Functions(vecmat, matvec, transpose_solve, solve)  # type: ignore[arg-type]
        found = self.bind(
            *captured[1], *captured[0], *captured[3], *captured[2],
            *map(instantiate, cotangent[: len(b)]),
            functions=turned, counts=(counts[1], counts[0], counts[3], counts[2]),
        )  # fmt: skip
        given = zip(found, b, strict=False)  # auxiliary values come after
        return [None] * sum(counts) + [
            ct if type(x) is UndefinedPrimal else None for ct, x in given
        ]

    def batch(
        self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None], *,
        functions: Functions, counts: tuple[int, ...],
    ) -> tuple[list[Any], list[int | None]]:  # fmt: skip
        """Maps b and x, even where only the matrix is mapped."""
        captured, b = _split(operands, counts)
        captured_dims, b_dims = _split(dims, counts)
        front = [0] * len(b)
        graphs: list[Graph | None] = []
        values: list[Any] = []
        new_counts: list[int] = []
        for graph, group, group_dims in zip(functions, captured, captured_dims, strict=True):
            if graph is None:
                graphs.append(None)
                new_counts.append(0)
                continue
            forced = [True] * len(graph.outputs)
            batched = batch_graph(graph, axis, [*group_dims, *front], forced)
            graphs.append(batched.graph)
            values += [*batched.consts, *group]
            new_counts.append(len(batched.consts) + len(group))
        outs = self.bind(
            *values,
            *[with_dim(axis, x, d, 0) for x, d in zip(b, b_dims, strict=True)],
            functions=Functions(*graphs),  # type: ignore[arg-type]
            counts=tuple(new_counts),
        )
        return outs, [0] * len(outs)

    def subgraphs(self, params: dict[str, Any]) -> Sequence[Graph]:
        return [g for g in params["functions"] if g is not None]


linear_solve_p = LinearSolve("linear_solve")


def _split(operands: Sequence[Any], counts: Sequence[int]) -> tuple[list[Any], Sequence[Any]]:
    """(captured values of each function, b)."""
    groups, start = [], 0
    for count in counts:
        groups.append(operands[start : start + count])
        start += count
    return groups, operands[start:]


def _difference(x: Any, y: Any) -> Any:
    return neg(y) if type(x) is Zero else sub(x, y)


# ---- the user's side


def _traced(
    what: str, fun: Callable[..., Any], tree: Any, avals: Sequence[Any]
) -> tuple[Closed, Any]:
    """(graph of fun(tree), what it captured), and the structure of its result."""
    trees: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        outs, out_tree = tree_flatten(fun(tree.unflatten(leaves)))
        trees.append(out_tree)
        return [as_value(x, lambda: f"{what}: a result of {function_name(fun)}") for x in outs]

    closed = constants_to_inputs(trace_to_graph(flat, avals, function_name(fun), what))
    return closed, trees[-1]


def _strong(x: Any) -> Any:
    aval = type_of(x)
    return ArrayType(aval.shape, aval.dtype_code, False)


def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    transpose_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """x of matvec(x) = b, differentiated as a solution and not through the steps of `solve`.

    matvec: a linear function from pytrees like b to such; solve(matvec, b): what finds x, which
    needs no derivative; transpose_solve(vecmat, b): the same for the transpose of matvec, needed in
    reverse mode unless `symmetric`; has_aux: the two give (x, auxiliary), and so does this.
    Raises: TypeError if matvec or solve do not give pytrees of the types of b.

    >>> import jato
    >>> import jato.numpy as jnp
    >>> a = jnp.array([[2.0, 0.0], [0.0, 4.0]])
    >>> by_jacobi = lambda matvec, b: b / jnp.diagonal(a)
    >>> f = lambda b: custom_linear_solve(lambda x: a @ x, b, by_jacobi, symmetric=True).sum()
    >>> jato.grad(f)(jnp.ones(2))
    Array([0.5 , 0.25], dtype=float32)
    """
    what = "custom_linear_solve"
    check(callable(matvec), TypeError, f"{what}: matvec must be a function, got {matvec!r}")
    check(callable(solve), TypeError, f"{what}: solve must be a function, got {solve!r}")
    leaves, tree = flat_values(f"{what}: b", b)
    avals = [_strong(x) for x in leaves]
    if current_trace() is None:
        return _checked(what, function_name(solve), solve(matvec, b), tree, avals, has_aux)
    product, product_tree = _traced(what, matvec, tree, avals)
    _same(what, function_name(matvec), product_tree, product[0].out_avals, tree, avals)
    solver, out_tree = _traced(what, lambda v: solve(matvec, v), tree, avals)
    name = function_name(solve)
    _check_solution(what, name, out_tree, solver[0].out_avals, tree, avals, has_aux)
    turned: Closed | None = None
    turned_solver: Closed | None = None
    if symmetric:
        turned, turned_solver = product, solver
    elif transpose_solve is not None:
        turned = _transposed(product, len(avals))
        graph, captured = turned

        def vecmat(x: Any) -> Any:
            return tree.unflatten(evaluate(graph, *captured, *tree_flatten(x)[0]))

        turned_solver, turned_tree = _traced(
            what, lambda v: transpose_solve(vecmat, v), tree, avals
        )
        name = function_name(transpose_solve)
        got = turned_solver[0].out_avals
        _check_solution(what, name, turned_tree, got, tree, avals, has_aux)
    parts: list[Closed | None] = [product, turned, solver, turned_solver]
    outs = linear_solve_p.bind(
        *[c for p in parts if p is not None for c in p[1]],
        *leaves,
        functions=Functions(*(None if p is None else p[0] for p in parts)),  # type: ignore[arg-type]
        counts=tuple(0 if p is None else len(p[1]) for p in parts),
    )
    return out_tree.unflatten(outs)


def _transposed(product: Closed, count: int) -> Closed:
    """The transpose of a linear function; `count`: its operands and its results."""
    graph, captured = product
    linear = (False,) * len(captured) + (True,) * count
    backwards = transpose_graph(graph, linear, (True,) * count, True)
    return backwards.graph, [*backwards.consts, *captured]


def _same(what: str, name: str, tree: Any, got: Any, wanted: Any, avals: Any) -> None:
    operand = "b" if what == "custom_linear_solve" else "initial_guess"
    match_types(what, (operand, wanted, avals), (f"the result of {name}", tree, got))


def _check_solution(
    what: str, name: str, out_tree: Any, got: Sequence[Any], tree: Any, avals: Any, has_aux: bool
) -> None:
    solution = out_tree
    if has_aux:
        example = out_tree.unflatten([0] * out_tree.num_leaves)
        check(
            isinstance(example, tuple) and len(example) == 2,
            TypeError,
            f"{what}: with has_aux, {name} must return (solution, auxiliary), got {out_tree}",
        )
        solution = tree_flatten(example[0])[1]
    _same(what, name, solution, got[: solution.num_leaves], tree, avals)


def _checked(what: str, name: str, found: Any, tree: Any, avals: Any, has_aux: bool) -> Any:
    leaves, out_tree = tree_flatten(found)
    _check_solution(what, name, out_tree, [type_of(x) for x in leaves], tree, avals, has_aux)
    return found


def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any],
    has_aux: bool = False,
) -> Any:
    """x of f(x) = 0, differentiated as a root: with respect to what f captured.

    f: a function from pytrees like initial_guess to such; solve(f, initial_guess): what finds the
    root, which needs no derivative; tangent_solve(g, y): x of g(x) = y for a linear g, f's derivative
    at the root; has_aux: solve gives (root, auxiliary), and so does this.
    Raises: TypeError if f, solve or tangent_solve do not give pytrees of the types of initial_guess.

    >>> import jato
    >>> def newton(f, x):
    ...     return jato.lax.fori_loop(0, 20, lambda _, x: x - f(x) / jato.grad(f)(x), x)
    >>> def square_root(a):
    ...     return custom_root(lambda x: x * x - a, a, newton, lambda g, y: y / g(1.0))
    >>> float(jato.grad(square_root)(4.0))
    0.25
    """
    what = "custom_root"
    for name, fun in (("f", f), ("solve", solve), ("tangent_solve", tangent_solve)):
        check(callable(fun), TypeError, f"{what}: {name} must be a function, got {fun!r}")
    leaves, tree = flat_values(f"{what}: initial_guess", initial_guess)
    avals = [_strong(x) for x in leaves]
    if current_trace() is None:
        found = solve(f, initial_guess)
        return _checked(what, function_name(solve), found, tree, avals, has_aux)
    (graph, captured), f_tree = _traced(what, f, tree, avals)
    _same(what, function_name(f), f_tree, graph.out_avals, tree, avals)
    solver, out_tree = _traced(what, lambda x: solve(f, x), tree, avals)
    name = function_name(solve)
    _check_solution(what, name, out_tree, solver[0].out_avals, tree, avals, has_aux)
    count, size = len(captured), len(avals)

    def tangent_of(values: Sequence[Any]) -> Any:
        """What f captured, x, y -> the t of f'(x) t = y."""
        consts, x, y = values[:count], values[count : count + size], values[count + size :]
        of_x = lambda v: tree.unflatten(evaluate(graph, *consts, *tree_flatten(v)[0]))  # noqa: E731
        derivative = lambda t: jvp(of_x, (tree.unflatten(x),), (t,))[1]  # noqa: E731
        return tangent_solve(derivative, tree.unflatten(y))

    types = [*map(type_of, captured), *avals, *avals]
    tangent, tangent_tree = _traced(what, tangent_of, tree_structure(types), types)
    name = function_name(tangent_solve)
    _same(what, name, tangent_tree, tangent[0].out_avals, tree, avals)

    @custom_jvp
    def root(of_f: Any, of_solve: Any, of_tangent: Any, guess: Any) -> list[Any]:
        return evaluate(solver[0], *of_solve, *guess)

    @root.defjvp
    def root_jvp(primals: Any, tangents: Any) -> Any:
        of_f, _, of_tangent, _ = primals
        outs = root(*primals)
        x = outs[:size]
        moved = jvp(lambda c: evaluate(graph, *c, *x), (of_f,), (tangents[0],))[1]
        change = evaluate(tangent[0], *of_tangent, *of_f, *x, *map(neg, moved))
        rest = [tangent_out(zero_of(type_of(v))) for v in outs[size:]]
        return outs, [*change, *rest]

    outs = root(list(captured), list(solver[1]), list(tangent[1]), leaves)
    return out_tree.unflatten(outs)
