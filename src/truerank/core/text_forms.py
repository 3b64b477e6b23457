"""The grammar of text forms: ``ndcg@10``, ``rbp(0.8)``, ``bv(0.1)``, ``uniform(100, replace)`` <-> frozen dataclasses.

A text form is a name, then parameters in brackets, then a cut-off after an @. They are the fields of the dataclass: `k`
is the cut-off, a field that is true or false is written by its name, any other by its value. A field at its default is
not written, unless a later one is. Fields can also be given by name: ``rbp(p=0.8)``, ``uniform(100, replace=true)``,
``ndcg(k=10)``.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Mapping
from dataclasses import MISSING, Field
from importlib import import_module
from typing import Any, Generic, NamedTuple, TypeVar

from truerank.core import InputError

_LONGEST = 200
_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z][a-z0-9]*)*")
_FORM = re.compile(rf"(?P<name>{_NAME.pattern})(?:\((?P<arguments>[^()@~]*)\))?(?:[@-](?P<k>\d[^()@~]*))?")
# white space is allowed only around punctuation; elsewhere "5 10" would silently become 510
_SPACED = re.compile(r"\s*([(),@~=])\s*")


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
    fields = [field for field in dataclasses.fields(value) if field.name != "k"]
    told = [getattr(value, field.name) for field in fields]
    differing = [place for place, field in enumerate(fields) if _is_positional(field) and told[place] != field.default]
    last = max(differing, default=0)
    arguments = [_argument(field, told[place], needed=place < last) for place, field in enumerate(fields)]
    k = getattr(value, "k", None)
    return str(Form(value.name, tuple(filter(None, arguments)), None if k is None else _number(k)))


def _argument(field: Field[Any], value: Any, needed: bool) -> str:
    """Return how an argument is written; `needed`: a later one is written too, so this one's place must be filled."""
    needed = (needed and value is not None) or field.metadata.get("always_written", False)
    if value == field.default and not (needed and _is_positional(field)):
        return ""
    if _by_name(field):
        return f"{field.name}={_number(value)}"
    return _number(value) if _is_positional(field) else field.name


def _is_readable(field: Field[Any]) -> bool:
    return not field.metadata.get("only_in_code", False)


def _by_name(field: Field[Any]) -> bool:
    """Whether a field is always given by name, as in ``inverse(2, decide=10)``."""
    return bool(field.metadata.get("by_name", False))


def _is_positional(field: Field[Any]) -> bool:
    return _is_readable(field) and not isinstance(field.default, bool) and field.name != "k" and not _by_name(field)


def _number(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    short = f"{value:g}" if isinstance(value, float) else str(value)
    return short if not isinstance(value, float) or float(short) == value else repr(value)


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
        Names of another kind, each with the text to show about it.
    homes : tuple of str
        Modules that register the built-in entries; they are imported when an entry is first needed.
    """

    def __init__(
        self,
        what: str,
        example: str,
        aliases: Mapping[str, str] = {},
        elsewhere: Mapping[str, str] = {},
        homes: tuple[str, ...] = (),
    ) -> None:
        self._what, self._example, self._aliases, self.elsewhere = what, example, dict(aliases), elsewhere
        self._known: dict[str, type[Kind] | Kind] = {}
        self._built_in: frozenset[str] = frozenset()
        self._homes = homes

    @property
    def _entries(self) -> dict[str, type[Kind] | Kind]:
        for home in self._homes:
            import_module(home)
        return self._known

    def add_built_in(self, *entries: type[Kind]) -> None:
        """Register classes that can't be replaced."""
        self._put(self._known, *entries)
        self._built_in |= {entry.name for entry in entries}

    def add(self, *entries: type[Kind] | Kind) -> None:
        """Register classes, or values without parameters; a later entry replaces one with the same name."""
        self._put(self._entries, *entries)  # built-in entries are loaded first: their names are taken

    def _put(self, known: dict[str, type[Kind] | Kind], *entries: type[Kind] | Kind) -> None:
        for entry in entries:
            if not _NAME.fullmatch(entry.name):
                rule = "lower-case words of letters and digits, each starting with a letter, joined by '-'"
                raise InputError(f"the name of a {self._what} must be {rule}, got {entry.name!r}.")
            if entry.name in self._built_in or entry.name in self._aliases:
                raise InputError(f"the {self._what} name {entry.name!r} is taken.")
            known[entry.name] = entry

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
        """Return the error for a text that names nothing here or in the others, with a suggestion if there is one."""
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
    fields = {field.name.replace("_", "-"): field for field in _readable(kind)}
    given = _given(form, fields)
    if given is None or not given.keys() <= fields.keys():
        raise wrong
    missing = [name for name, field in fields.items() if field.default is MISSING and name not in given]
    if missing == ["k"]:
        raise InputError(f"{kind.name} needs a cut-off, as in '{kind.name}@10', got {text!r}.")
    if missing:
        raise wrong
    try:
        values = {fields[name].name: _read(fields[name], argument) for name, argument in given.items()}
    except ValueError:
        raise wrong from None
    return kind(**values)


def _given(form: Form, fields: Mapping[str, Field[Any]]) -> dict[str, str] | None:
    """Return the arguments by the names of their fields; None if there are too many, or two for one field."""
    positional = [name for name, field in fields.items() if _is_positional(field)]
    pairs = [] if form.k is None else [("k", form.k)]
    for argument in form.arguments:
        name, named, value = argument.partition("=")
        if named:
            pairs.append((name, value))
        elif argument in fields and isinstance(fields[argument].default, bool):
            pairs.append((argument, "true"))
        elif positional:
            pairs.append((positional.pop(0), argument))
        else:
            return None
    return dict(pairs) if len(dict(pairs)) == len(pairs) else None


def _readable(kind: type[Any]) -> list[Field[Any]]:
    return [field for field in dataclasses.fields(kind) if _is_readable(field)]


def _read(field: Field[Any], text: str) -> Any:
    """Return an argument in the type of its field: bool, text, several whole numbers, one whole number, any number.

    A field for numbers may also take some words, which are listed in its metadata.
    """
    kind = str(field.type)
    if isinstance(field.default, bool):
        return bool(("false", "true").index(text))
    words = field.metadata.get("words")
    if isinstance(field.default, str) if words is None else text in words:
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
    fields = _readable(kind)
    arguments = [field for field in fields if field.name != "k"]
    ending = "".join("@k,k,..." if "tuple" in str(field.type) else "@k" for field in fields if field.name == "k")
    whole = f"({', '.join(field.name for field in arguments)})" if arguments else ""
    optional = bool(arguments) and all(field.default is not MISSING for field in arguments)
    return [kind.name + inner + ending for inner in (["", whole] if optional else [whole])]
