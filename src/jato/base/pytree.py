"""Pytrees: nested containers whose leaves are arrays or anything else.

Flattening runs in the native runtime (`tree_flatten`, `PyTreeDef`); this file is its Python face:
registration, mapping, key paths, prefixes.  Containers are tuple, list, dict (keys sorted), None
(no leaves), OrderedDict, defaultdict, namedtuples and every registered type.

A *prefix* of a tree is the same tree with some subtrees replaced by a leaf that stands for the
whole subtree: `in_axes=(0, None)`.  Start reading at `tree_flatten`; `broadcast_prefix` is what
the transforms use, `prefix_mismatch` its error message.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from jato import _native

PyTreeDef = _native.PyTreeDef
IsLeaf = Callable[[Any], bool]
_ClassT = TypeVar("_ClassT", bound=type)


# ---- key paths


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """Position in a tuple or list."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx}]"


@dataclasses.dataclass(frozen=True)
class DictKey:
    """Key of a dict."""

    key: Hashable

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """Attribute of a namedtuple or dataclass."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclasses.dataclass(frozen=True)
class FlattenedIndexKey:
    """Position among the children of a type registered without keys."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyEntry = Any  # SequenceKey, DictKey, GetAttrKey, FlattenedIndexKey, or a registered type's own
KeyPath = tuple[KeyEntry, ...]


def keystr(keys: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """A key path as text.

    >>> keystr((DictKey("w"), SequenceKey(0)))
    "['w'][0]"
    >>> keystr((DictKey("w"), SequenceKey(0)), simple=True, separator="/")
    'w/0'
    """
    if not simple:
        return separator.join(map(str, keys))
    return separator.join(_simple_key(k) for k in keys)


def _simple_key(key: Any) -> str:
    for field in ("idx", "key", "name"):
        if hasattr(key, field):
            return str(getattr(key, field))
    return str(key)


# ---- flattening


def tree_flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], Any]:
    """(leaves, treedef) of a tree.

    >>> tree_flatten({"b": 2, "a": (1, None)})[0]
    [1, 2]
    """
    return _native.tree_flatten(tree, is_leaf)


def tree_unflatten(treedef: Any, leaves: Iterable[Any]) -> Any:
    """The tree of structure `treedef` with these leaves.  ValueError if their number differs."""
    return treedef.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves of a tree, in order."""
    return _native.tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf | None = None) -> Any:
    """The structure (`PyTreeDef`) of a tree."""
    return _native.tree_flatten(tree, is_leaf)[1]


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any:
    """Applies `f` to corresponding leaves; `tree` must be a prefix of each of `rest`.

    >>> tree_map(lambda x, y: x + y, {"a": 1}, {"a": 10})
    {'a': 11}

    Raises ValueError naming the place where the structures differ.
    """
    leaves, treedef = _native.tree_flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(x) for x in leaves])
    columns = [leaves]
    for i, other in enumerate(rest):
        try:
            columns.append(treedef.flatten_up_to(other))
        except (ValueError, TypeError, KeyError):
            problem = prefix_mismatch(tree, other, is_leaf)
            if problem is None:
                raise
            raise ValueError(
                f"tree_map: tree {i + 2} differs in structure from the first one{problem}"
            ) from None
    return treedef.unflatten([f(*xs) for xs in zip(*columns, strict=True)])


def tree_reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = dataclasses.MISSING,
    is_leaf: IsLeaf | None = None,
) -> Any:
    """Folds the leaves from the left.

    >>> tree_reduce(lambda total, leaf: total + leaf, [1, (2, 3)])
    6
    """
    leaves = tree_leaves(tree, is_leaf)
    if initializer is dataclasses.MISSING:
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Any,
    *,
    identity: Any = dataclasses.MISSING,
    is_leaf: IsLeaf | None = None,
) -> Any:
    """Folds the leaves in halves, so that rounding errors grow with the logarithm of their number.

    operation: associative; identity: the result for a tree without leaves, which is a TypeError
    otherwise.

    >>> tree_reduce_associative(lambda a, b: f"({a}{b})", list("abcde"))
    '((ab)(c(de)))'
    """
    leaves = tree_leaves(tree, is_leaf)
    if not leaves:
        if identity is dataclasses.MISSING:
            raise TypeError("tree_reduce_associative: the tree has no leaves; give identity")
        return identity

    def reduced(first: int, end: int) -> Any:
        if end - first == 1:
            return leaves[first]
        middle = (first + end) // 2
        return operation(reduced(first, middle), reduced(middle, end))

    return reduced(0, len(leaves))


def tree_all(tree: Any, *, is_leaf: IsLeaf | None = None) -> bool:
    """Are all leaves true?"""
    return all(tree_leaves(tree, is_leaf))


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf | None = None) -> bool:
    """Is every element itself a leaf?"""
    items = list(iterable)
    found = tree_leaves(items, is_leaf)
    return len(found) == len(items) and all(a is b for a, b in zip(found, items, strict=True))


def treedef_tuple(treedefs: Iterable[Any]) -> Any:
    """The structure of a tuple of trees."""
    return _native.treedef_tuple(list(treedefs))


def treedef_children(treedef: Any) -> list[Any]:
    """The structures of the root's children."""
    return list(treedef.children())


def treedef_is_leaf(treedef: Any) -> bool:
    """Is this the structure of a single leaf?"""
    return bool(treedef.num_nodes == 1 and treedef.num_leaves == 1)


def tree_transpose(outer_treedef: Any, inner_treedef: Any | None, pytree_to_transpose: Any) -> Any:
    """Turns a tree of trees inside out.

    >>> tree_transpose(tree_structure([0, 0]), tree_structure({"a": 0}), [{"a": 1}, {"a": 2}])
    {'a': [1, 2]}
    """
    leaves, treedef = tree_flatten(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = tree_structure(outer_treedef.flatten_up_to(pytree_to_transpose)[0])
    rows, columns = outer_treedef.num_leaves, inner_treedef.num_leaves
    expected = tree_structure(
        outer_treedef.unflatten([inner_treedef.unflatten([0] * columns)] * rows)
    )
    if treedef != expected:
        raise TypeError(f"tree_transpose: expected a tree of structure {expected}, got {treedef}")
    columns_first = [
        outer_treedef.unflatten(leaves[j::columns] if columns else []) for j in range(columns)
    ]
    return inner_treedef.unflatten(columns_first)


# ---- registration

# type -> children with keys; consulted for key paths only
_children_with_keys: dict[type, Callable[[Any], Iterable[tuple[Any, Any]]]] = {}
_children: dict[type, Callable[[Any], tuple[Iterable[Any], Any]]] = {}


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Makes `nodetype` a container.

    flatten_func(x) gives (children, auxiliary data, hashable and comparable);
    unflatten_func(auxiliary, children) rebuilds it.  ValueError if it is registered already.
    """
    _native.register_node(nodetype, flatten_func, unflatten_func)
    _children[nodetype] = flatten_func
    if flatten_with_keys_func is not None:
        with_keys = flatten_with_keys_func
        _children_with_keys[nodetype] = lambda x: with_keys(x)[0]


def register_pytree_node_class(cls: _ClassT) -> _ClassT:
    """Class decorator: the class has methods `tree_flatten` and (class) `tree_unflatten`."""
    register_pytree_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """`register_pytree_node` for a type that names its children: (key, child) pairs."""

    def without_keys(x: Any) -> tuple[Iterable[Any], Any]:
        pairs, auxiliary = flatten_with_keys(x)
        return [child for _, child in pairs], auxiliary

    register_pytree_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: _ClassT) -> _ClassT:
    """Class decorator: methods `tree_flatten_with_keys` and (class) `tree_unflatten`."""
    own_flatten = getattr(cls, "tree_flatten", None)
    register_pytree_with_keys(
        cls,
        lambda x: x.tree_flatten_with_keys(),
        cls.tree_unflatten,  # type: ignore[attr-defined]
        (lambda x: x.tree_flatten()) if own_flatten is not None else None,
    )
    return cls


def register_dataclass(
    nodetype: _ClassT,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> _ClassT:
    """Makes a dataclass a container whose children are the data fields; meta fields are static.

    Without lists, every field is data but those made with `field(metadata={"static": True})`.

    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Point:
    ...     x: float
    ...     y: float
    >>> tree_map(lambda v: 2 * v, Point(1.0, 2.0)).y
    4.0
    """
    if (data_fields is None) != (meta_fields is None):
        raise TypeError("register_dataclass: give both data_fields and meta_fields, or neither")
    if data_fields is None or meta_fields is None:
        if not dataclasses.is_dataclass(nodetype):
            raise TypeError(
                f"register_dataclass: {nodetype.__name__} is no dataclass. "
                "Give data_fields and meta_fields."
            )
        fields = [f for f in dataclasses.fields(nodetype) if f.init]
        data_fields = [f.name for f in fields if not f.metadata.get("static", False)]
        meta_fields = [f.name for f in fields if f.metadata.get("static", False)]
        data_fields = [n for n in data_fields if n not in drop_fields]
    elif dataclasses.is_dataclass(nodetype):
        expected = {f.name for f in dataclasses.fields(nodetype) if f.init} - set(drop_fields)
        given = set(data_fields) | set(meta_fields)
        if expected != given:
            raise ValueError(
                f"register_dataclass: the fields of {nodetype.__name__} are {sorted(expected)}, "
                f"got {sorted(given)}"
            )
    data, meta = tuple(data_fields), tuple(meta_fields)

    def flatten(x: Any) -> tuple[Iterable[Any], Any]:
        return tuple(getattr(x, n) for n in data), tuple(getattr(x, n) for n in meta)

    def flatten_with_keys(x: Any) -> tuple[Iterable[tuple[Any, Any]], Any]:
        children, auxiliary = flatten(x)
        return [(GetAttrKey(n), c) for n, c in zip(data, children, strict=True)], auxiliary

    def unflatten(auxiliary: Any, children: Any) -> Any:
        fields = dict(zip(data, children, strict=True))
        fields.update(zip(meta, auxiliary, strict=True))
        return nodetype(**fields)

    register_pytree_node(nodetype, flatten, unflatten, flatten_with_keys)
    return nodetype


def static_field(**kwargs: Any) -> Any:
    """A dataclass field that `register_dataclass` takes for static; arguments of `field`.

    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     name: str = static_field(default="dense")
    >>> tree_leaves(Layer(1.0))
    [1.0]
    """
    metadata = {**(kwargs.pop("metadata", None) or {}), "static": True}
    return dataclasses.field(metadata=metadata, **kwargs)


def register_static(cls: _ClassT) -> _ClassT:
    """Class decorator: values are containers without leaves, compared by `==` and hash."""
    register_pytree_node(cls, lambda x: ((), x), lambda x, _: x)
    return cls


class Partial(functools.partial[Any]):
    """`functools.partial` whose arguments are leaves; the function itself is static.

    >>> tree_leaves(Partial(max, 1, key=None))
    [1]
    """


def _partial_with_keys(p: Partial) -> tuple[Iterable[tuple[Any, Any]], Any]:
    return ((GetAttrKey("args"), p.args), (GetAttrKey("keywords"), p.keywords)), p.func


register_pytree_with_keys(
    Partial,
    _partial_with_keys,
    lambda function, children: Partial(function, *children[0], **children[1]),
    lambda p: ((p.args, p.keywords), p.func),
)


# ---- key paths of leaves


def _one_level(tree: Any) -> list[tuple[Any, Any]] | None:
    """(key, child) of each child, or None when `tree` is a leaf."""
    kind = type(tree)
    if tree is None:
        return []
    if kind in _children_with_keys:
        return list(_children_with_keys[kind](tree))
    if kind in _children:
        return [(FlattenedIndexKey(i), c) for i, c in enumerate(_children[kind](tree)[0])]
    if kind is tuple or kind is list:
        return [(SequenceKey(i), c) for i, c in enumerate(tree)]
    if kind is dict or kind is defaultdict:
        return [(DictKey(k), tree[k]) for k in _sorted_keys(tree)]
    if kind is OrderedDict:
        return [(DictKey(k), c) for k, c in tree.items()]
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return [(GetAttrKey(n), getattr(tree, n)) for n in tree._fields]
    return None


def is_tree_node(typ: type) -> bool:
    """Are values of this type containers, not leaves?

    >>> is_tree_node(dict), is_tree_node(int)
    (True, False)
    """
    known = typ in _children or typ in (tuple, list, dict, defaultdict, OrderedDict, type(None))
    return known or (issubclass(typ, tuple) and hasattr(typ, "_fields"))


def flatten_one_level(tree: Any) -> tuple[Sequence[Any], Any]:
    """(children of the root, its static data).  ValueError for a leaf.

    >>> flatten_one_level({"b": (1, 2), "a": 3})
    ([3, (1, 2)], ('a', 'b'))
    """
    pairs, data = flatten_one_level_with_keys(tree)
    return [child for _, child in pairs], data


def flatten_one_level_with_keys(tree: Any) -> tuple[Sequence[tuple[Any, Any]], Any]:
    """([(key, child), ...] of the root, its static data).  ValueError for a leaf.

    >>> flatten_one_level_with_keys((5,))
    ([(SequenceKey(idx=0), 5)], None)
    """
    pairs = _one_level(tree)
    kind = type(tree)
    if pairs is None:
        raise ValueError(f"flatten_one_level: expected a container, got a leaf of type {kind.__name__}")
    if kind in _children:
        return pairs, _children[kind](tree)[1]
    if isinstance(tree, dict):
        names = tuple(key.key for key, _ in pairs)
        return pairs, (tree.default_factory, names) if isinstance(tree, defaultdict) else names
    return pairs, kind if hasattr(kind, "_fields") else None


def _sorted_keys(mapping: dict[Any, Any]) -> list[Any]:
    """The order of the native runtime: sorted, or by type name when types are mixed."""
    try:
        return sorted(mapping)
    except TypeError:
        pass
    groups: dict[str, list[Any]] = {}
    for key in mapping:
        groups.setdefault(type(key).__qualname__, []).append(key)
    result: list[Any] = []
    for name in sorted(groups):
        try:
            result.extend(sorted(groups[name]))
        except TypeError:  # a type without order keeps the order of insertion
            result.extend(groups[name])
    return result


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., Any] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], Any]:
    """([(key path, leaf), ...], treedef).

    is_leaf: of a subtree, or of its key path and it with `is_leaf_takes_path`.

    >>> [(keystr(path), leaf) for path, leaf in tree_flatten_with_path({"a": [1, 2]})[0]]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    if is_leaf is None:
        return list(_walk(tree, None, ())), _native.tree_flatten(tree, None)[1]
    answers: list[bool] = []

    def answered(path: KeyPath, x: Any) -> bool:
        answers.append(bool(is_leaf(path, x) if is_leaf_takes_path else is_leaf(x)))
        return answers[-1]

    pairs = list(_walk(tree, answered, ()))
    # the native walk meets the same nodes in the same order
    known = iter(answers)
    return pairs, _native.tree_flatten(tree, lambda _: next(known))[1]


def _walk(
    tree: Any, is_leaf: Callable[[KeyPath, Any], Any] | None, path: KeyPath
) -> Iterable[tuple[KeyPath, Any]]:
    children = None if is_leaf is not None and is_leaf(path, tree) else _one_level(tree)
    if children is None:
        yield path, tree
        return
    for key, child in children:
        yield from _walk(child, is_leaf, (*path, key))


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., Any] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """[(key path, leaf), ...]; arguments as of `tree_flatten_with_path`."""
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., Any] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """`tree_map` of a function that takes the key path first.

    >>> tree_map_with_path(lambda path, x: len(path) * x, {"a": [1, 2]})
    {'a': [2, 4]}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [[leaf for _, leaf in pairs], *(treedef.flatten_up_to(r) for r in rest)]
    paths = [path for path, _ in pairs]
    return treedef.unflatten([f(*xs) for xs in zip(paths, *columns, strict=True)])


# ---- prefixes


def broadcast_prefix(prefix: Any, tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves of `prefix`, each repeated for every leaf of `tree` it stands for.

    `is_leaf` concerns the prefix.  ValueError says where the structures part.

    >>> broadcast_prefix((0, None), ([1, 2], 3), is_leaf=lambda x: x is None)
    [0, 0, None]
    """
    leaves, treedef = _native.tree_flatten(prefix, is_leaf)
    try:
        subtrees = treedef.flatten_up_to(tree)
    except (ValueError, TypeError, KeyError):
        raise ValueError(
            f"the prefix does not fit the tree{prefix_mismatch(prefix, tree, is_leaf) or ''}"
        ) from None
    result: list[Any] = []
    for leaf, subtree in zip(leaves, subtrees, strict=True):
        result.extend([leaf] * _native.tree_flatten(subtree, None)[1].num_leaves)
    return result


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None) -> Any:
    """The tree of `full_tree`'s structure whose leaves are those of the prefix."""
    leaves = broadcast_prefix(prefix_tree, full_tree, is_leaf)
    return tree_unflatten(tree_structure(full_tree), leaves)


def prefix_mismatch(
    prefix: Any, tree: Any, is_leaf: IsLeaf | None = None, path: KeyPath = ()
) -> str | None:
    """What makes `prefix` no prefix of `tree`, as the end of a sentence; None if it is one."""
    mine = None if is_leaf is not None and is_leaf(prefix) else _one_level(prefix)
    if mine is None:
        return None
    place = f" at {keystr(path)}" if path else ""
    theirs = _one_level(tree)
    if type(prefix) is not type(tree):
        shown = "a leaf" if theirs is None else f"a {type(tree).__name__}"
        return f"{place}: {_kind_name(prefix)} against {shown} ({type(tree).__name__})"
    assert theirs is not None
    my_keys, their_keys = [k for k, _ in mine], [k for k, _ in theirs]
    if len(mine) != len(theirs) and isinstance(prefix, (tuple, list)):
        return (
            f"{place}: a {type(prefix).__name__} of length {len(mine)} against one of "
            f"length {len(theirs)}"
        )
    if my_keys != their_keys:
        return (
            f"{place}: keys {', '.join(map(str, my_keys))} against "
            f"{', '.join(map(str, their_keys))}"
        )
    for (key, left), (_, right) in zip(mine, theirs, strict=True):
        problem = prefix_mismatch(left, right, is_leaf, (*path, key))
        if problem is not None:
            return problem
    if tree_structure(prefix, lambda x: x is not prefix) != tree_structure(
        tree, lambda x: x is not tree
    ):
        return f"{place}: {type(prefix).__name__} nodes with different static data"
    return None


def _kind_name(tree: Any) -> str:
    return "None" if tree is None else f"a {type(tree).__name__}"


# ---- functions of trees as functions of leaves


class FlatFunction:
    """`fun(*args, **kwargs)` as a function of flat leaves that returns a list of flat leaves.

    After a call `out_tree` is the structure of the result.  With `has_aux` the function returns
    (result, aux) and `aux` is kept apart, untouched.
    """

    __slots__ = ("aux", "fun", "has_aux", "in_tree", "out_tree")

    def __init__(self, fun: Callable[..., Any], in_tree: Any, has_aux: bool = False):
        self.fun = fun
        self.in_tree = in_tree  # of (args, kwargs)
        self.has_aux = has_aux
        self.out_tree: Any = None
        self.aux: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        args, kwargs = self.in_tree.unflatten(leaves)
        out = self.fun(*args, **kwargs)
        if self.has_aux:
            if not (isinstance(out, tuple) and len(out) == 2):
                raise TypeError(
                    f"{function_name(self.fun)}: has_aux=True needs a function that returns "
                    f"(result, aux), got {type(out).__name__}"
                )
            out, self.aux = out
        flat, self.out_tree = _native.tree_flatten(out, None)
        return flat


def function_name(fun: Any) -> str:
    """What the user calls a function."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    name = getattr(fun, "__name__", None)
    return name if isinstance(name, str) else type(fun).__name__
