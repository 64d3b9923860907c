"""Reading plain values out of a Python 2 pickle without unpickling it.

The standard library's ``pickletools`` takes a pickle apart and executes nothing. What is put together here
from its parts is numbers, strings, lists, tuples and dicts, and :class:`Call` where the pickle asks for a
function: the call is written down, never made.
"""

from __future__ import annotations

import pickletools
from dataclasses import dataclass
from typing import Any

_VALUES = frozenset({"BININT", "BININT1", "BININT2", "SHORT_BINSTRING", "BINSTRING"})
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWFALSE": False, "NEWTRUE": True}
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_MARK = object()


@dataclass(frozen=True)
class Name:
    """A function or class that the pickle names, as ``module name``."""

    path: str


@dataclass
class Call:
    """A call that the pickle asks for, and the state it would give to the result."""

    function: Any
    arguments: Any
    state: Any = None


def read_plain(data: bytes, *, names: frozenset[str], max_steps: int) -> Any:
    """The value that a pickle of protocol 2 describes.

    Raises:
        ValueError: It holds an instruction that plain data does not need, a name that is not in ``names``, or
            more than ``max_steps`` instructions. A stream that makes no sense raises whatever it leads to.
    """
    machine = _Machine(names)
    for step, (opcode, argument, _) in enumerate(pickletools.genops(data)):
        if step > max_steps:
            raise ValueError(f"more than {max_steps} instructions")
        if opcode.name == "STOP":
            break
        machine.run(opcode.name, argument)
    (value,) = machine.stack
    return value


class _Machine:
    """The stack that a pickle is a program for, reduced to what builds data."""

    def __init__(self, names: frozenset[str]) -> None:
        self.stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._names = names

    def run(self, name: str, argument: Any) -> None:
        if name in _VALUES:
            self.stack.append(argument)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name in _TUPLES:
            self.stack.append(tuple(self._pop(_TUPLES[name])))
        else:
            method = getattr(self, f"_do_{name.lower()}", None)
            if method is None:
                raise ValueError(f"the instruction {name}, which plain data does not need")
            method(argument)

    def _pop(self, n: int) -> list[Any]:
        if n > len(self.stack):
            raise ValueError("more values taken than there are")
        cut = len(self.stack) - n
        values, self.stack[cut:] = self.stack[cut:], []
        return values

    def _pop_to_mark(self) -> list[Any]:
        n = next(i for i, value in enumerate(reversed(self.stack)) if value is _MARK)
        values = self._pop(n)
        self._pop(1)
        return values

    def _do_proto(self, argument: Any) -> None:
        if argument != 2:
            raise ValueError(f"protocol {argument}, not 2")

    def _do_mark(self, _: Any) -> None:
        self.stack.append(_MARK)

    def _do_empty_dict(self, _: Any) -> None:
        self.stack.append({})

    def _do_empty_list(self, _: Any) -> None:
        self.stack.append([])

    def _do_tuple(self, _: Any) -> None:
        self.stack.append(tuple(self._pop_to_mark()))

    def _do_binput(self, argument: int) -> None:
        self._memo[argument] = self.stack[-1]

    _do_long_binput = _do_binput

    def _do_binget(self, argument: int) -> None:
        self.stack.append(self._memo[argument])

    _do_long_binget = _do_binget

    def _do_append(self, _: Any) -> None:
        self._extend(self._pop(1))

    def _do_appends(self, _: Any) -> None:
        self._extend(self._pop_to_mark())

    def _do_setitem(self, _: Any) -> None:
        self._update(self._pop(2))

    def _do_setitems(self, _: Any) -> None:
        self._update(self._pop_to_mark())

    def _do_global(self, argument: str) -> None:
        if argument not in self._names:
            raise ValueError(f"the name {argument!r}, which this data does not need")
        self.stack.append(Name(argument))

    def _do_reduce(self, _: Any) -> None:
        self.stack.append(Call(*self._pop(2)))

    def _do_build(self, _: Any) -> None:
        (state,) = self._pop(1)
        call = self.stack[-1]
        if not isinstance(call, Call):
            raise ValueError("a state for something that is no call")
        call.state = state

    def _extend(self, values: list[Any]) -> None:
        if not isinstance(self.stack[-1], list):
            raise ValueError("items for something that is no list")
        self.stack[-1].extend(values)

    def _update(self, values: list[Any]) -> None:
        if not isinstance(self.stack[-1], dict):
            raise ValueError("items for something that is no dict")
        self.stack[-1].update(zip(values[::2], values[1::2], strict=True))
