"""The grammar of text forms: ``ndcg@10``, ``rbp(0.8)``, ``bv(0.1)``, ``uniform(100, replace)`` <-> frozen dataclasses.

A text form is a name, then parameters in brackets, then a cut-off behind an @. The fields of the dataclass decide: the
field `k` is the cut-off, a field that is true or false is written by its name, any other by its value. What is left at
its default is not written, unless a value behind it is.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Mapping
from dataclasses import MISSING, Field
from typing import Any, Generic, NamedTuple, TypeVar

from truerank.errors import InputError

_LONGEST = 200
_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z][a-z0-9]*)*")
_FORM = re.compile(rf"(?P<name>{_NAME.pattern})(?:\((?P<arguments>[^()@~]*)\))?(?:[@-](?P<k>\d[^()@~]*))?")
# white space is allowed only around punctuation; elsewhere "5 10" would silently become 510
_SPACED = re.compile(r"\s*([(),@~])\s*")


class Named:
    """A frozen dataclass with a text form; subclasses have a `name`."""

    name: str

    def __str__(self) -> str:
        return write(self)


class Form(NamedTuple):
    """The parts of a text form."""

    name: str
    arguments: tuple[str, ...]
    k: str | None

    def __str__(self) -> str:
        inner = f"({', '.join(self.arguments)})" if self.arguments else ""
        return self.name + inner + ("" if self.k is None else f"@{self.k}")


def plain(text: str) -> str:
    """Return a text form in lower case, with ``-`` for ``_`` and without spaces around punctuation."""
    return _SPACED.sub(r"\1", text.strip().lower().replace("_", "-"))


def write(value: Any) -> str:
    """Return the text form of a frozen dataclass with a name.

    Examples
    --------
    >>> from truerank.metrics import NDCG, RBP
    >>> write(NDCG(10)), write(NDCG()), write(RBP(0.8))
    ('ndcg@10', 'ndcg', 'rbp(0.8)')
    """
    told = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    k = told.pop("k", None)
    fields = _arguments(type(value))
    differing = [
        place for place, field in enumerate(fields) if _is_positional(field) and told[field.name] != field.default
    ]
    arguments = [
        _argument(field, told[field.name], needed=place < max(differing, default=0))
        for place, field in enumerate(fields)
    ]
    return str(Form(value.name, tuple(filter(None, arguments)), None if k is None else _number(k)))


def _argument(field: Field[Any], value: Any, needed: bool) -> str:
    """Return how an argument is written; `needed` says that one behind it is, so that its place must be filled."""
    if value == field.default and not (needed and _is_positional(field) and value is not None):
        return ""
    return _number(value) if _is_positional(field) else field.name


def _is_positional(field: Field[Any]) -> bool:
    return _is_readable(field) and not isinstance(field.default, bool)


def _number(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    short = f"{value:g}" if isinstance(value, float) else str(value)
    return short if not isinstance(value, float) or float(short) == value else repr(value)


def _fields(kind: type[Any]) -> tuple[Field[Any], ...]:
    return dataclasses.fields(kind)


def _arguments(kind: type[Any]) -> list[Field[Any]]:
    return [field for field in _fields(kind) if field.name != "k"]


def _is_readable(field: Field[Any]) -> bool:
    return not field.metadata.get("only_in_code", False)


Kind = TypeVar("Kind", bound=Named)


class Registry(Generic[Kind]):
    """All metrics, corrections or designs by name; it reads their text forms.

    Parameters
    ----------
    what : str
        What to call one of them in messages.
    example : str
        Text forms to show in messages about unreadable text.
    aliases : dict of str to str
        Other names, and the names that they stand for, some with arguments.
    elsewhere : dict of str to str
        Names of another kind, and what to say about them.
    """

    def __init__(
        self, what: str, example: str, aliases: Mapping[str, str] = {}, elsewhere: Mapping[str, str] = {}
    ) -> None:
        self._what, self._example, self._aliases, self.elsewhere = what, example, dict(aliases), elsewhere
        self._entries: dict[str, type[Kind] | Kind] = {}
        self._built_in: frozenset[str] = frozenset()

    def add(self, *entries: type[Kind] | Kind) -> None:
        """Register classes, or values without parameters; a later entry replaces one with the same name."""
        for entry in entries:
            if not _NAME.fullmatch(entry.name):
                rule = "lower-case words of letters and digits, each starting with a letter, joined by '-'"
                raise InputError(f"the name of a {self._what} must be {rule}, got {entry.name!r}.")
            if entry.name in self._built_in or entry.name in self._aliases:
                raise InputError(f"the {self._what} name {entry.name!r} is taken.")
            self._entries[entry.name] = entry

    def add_built_in(self, *entries: type[Kind]) -> None:
        """Register classes that can't be replaced."""
        self.add(*entries)
        self._built_in |= {entry.name for entry in entries}

    @property
    def names(self) -> list[str]:
        """Every registered name."""
        return sorted(self._entries)

    def get(self, name: str) -> type[Kind] | Kind:
        """Return the entry with this name."""
        return self._entries[name]

    def has(self, text: str) -> bool:
        """Whether a text is the name of an entry, with or without parameters."""
        name = re.split(r"[(@~]|-(?=\d)", plain(text))[0]
        return name in self._entries or name in self._aliases

    def read(self, text: str) -> Kind:
        """Return the value that a text form describes."""
        form = self._resolved(self._form(text))
        entry = self._entries.get(form.name)
        if entry is None and form.name in self.elsewhere:
            raise InputError(f"{text!r} is {self.elsewhere[form.name]}.")
        if entry is None:
            raise self.unknown(text)
        if isinstance(entry, type):
            return _build(entry, form, text)
        if form.arguments or form.k:
            raise InputError(f"the {self._what} {entry.name!r} takes no parameters, got {text!r}.")
        return entry

    def _form(self, text: str) -> Form:
        found = _FORM.fullmatch(plain(text)) if len(text) <= _LONGEST else None
        if found is None:
            shown = text if len(text) <= _LONGEST else text[:20] + "..."
            raise InputError(f"can't read the {self._what} {shown!r}; write it like {self._example}.")
        inner = found["arguments"]
        return Form(found["name"], tuple(inner.split(",")) if inner else (), found["k"])

    def _resolved(self, form: Form) -> Form:
        """Return the form that an alias stands for, with the arguments of both."""
        if form.name not in self._aliases:
            return form
        meant = self._form(self._aliases[form.name])
        return Form(meant.name, meant.arguments + form.arguments, form.k)

    def unknown(self, text: str, *others: Registry[Any]) -> InputError:
        """Return the error for a text that names nothing here or in the others, with what may have been meant."""
        form, registries = self._form(text), (self, *others)
        owners = {name: each for each in reversed(registries) for name in (*each._entries, *each._aliases)}
        begun = [name for name in owners if name.startswith(form.name) and len(form.name) > 2]
        close = [*begun, *difflib.get_close_matches(form.name, owners, cutoff=0.6)]
        shapes = (form, form._replace(k=None), form._replace(k="10"), Form("", (), form.k), Form("", (), None))
        for shape in shapes:
            for name in close:
                if owners[name]._can_read(meant := str(shape._replace(name=name))):
                    return InputError(f"unknown {self._what} {text!r}; did you mean {meant!r}?")
        choices = ", ".join(sorted({name for each in registries for name in each.names}))
        return InputError(f"unknown {self._what} {text!r}; choose from {choices}.")

    def _can_read(self, text: str) -> bool:
        try:
            self.read(text)
        except InputError:
            return False
        return True


def _build(kind: type[Kind], form: Form, text: str) -> Kind:
    wrong = InputError(f"{kind.name} is written {' or '.join(map(repr, patterns(kind)))}, got {text!r}.")
    fields = [field for field in _arguments(kind) if _is_readable(field)]
    flags = {field.name: True for field in fields if isinstance(field.default, bool)}
    positional = [field for field in fields if field.name not in flags]
    given = [argument for argument in form.arguments if argument not in flags]
    needed = sum(field.default is MISSING for field in positional)
    cutoff = {field.name: field for field in _fields(kind)}.get("k")
    if not needed <= len(given) <= len(positional) or (form.k and cutoff is None):
        raise wrong
    if cutoff is not None and cutoff.default is MISSING and not form.k:
        raise InputError(f"{kind.name} needs a cut-off, as in '{kind.name}@10', got {text!r}.")
    try:
        values = {field.name: _read(field, argument) for field, argument in zip(positional, given, strict=False)}
        if form.k and cutoff is not None:
            values["k"] = _read(cutoff, form.k)
    except ValueError:
        raise wrong from None
    return kind(**values, **{name: True for name in flags if name in form.arguments})


def _read(field: Field[Any], text: str) -> Any:
    """Return an argument in the type of its field: text, several whole numbers, one whole number, or any number.

    A field for numbers may also take some words, which its metadata name.
    """
    kind = str(field.type)
    if isinstance(field.default, str) or text in field.metadata.get("words", ()):
        return text
    if "tuple[int" in kind:
        return tuple(sorted({_whole(part) for part in text.split(",")}))
    return _whole(text) if "int" in kind else float(text)


def _whole(text: str) -> int:
    if not re.fullmatch(r"[0-9]+", text):
        raise ValueError(f"not a whole number: {text}")
    return int(text)


def patterns(kind: type[Named]) -> list[str]:
    """Return how the text form of a class may be written, as in ``rbp(p)``, ``ap@k`` or ``marp@k,k,...``."""
    arguments = [field for field in _arguments(kind) if _is_readable(field)]
    cutoffs = [field for field in _fields(kind) if field.name == "k"]
    ending = "".join("@k,k,..." if "tuple" in str(field.type) else "@k" for field in cutoffs)
    whole = f"({', '.join(field.name for field in arguments)})" if arguments else ""
    optional = bool(arguments) and all(field.default is not MISSING for field in arguments)
    return [kind.name + inner + ending for inner in (["", whole] if optional else [whole])]
