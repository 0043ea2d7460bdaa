"""The base class of all immutable values: messages, events, decisions, specifications, requests."""

from __future__ import annotations

from typing import Any, ClassVar, Self, dataclass_transform

_MISSING: Any = object()


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Record:
    """An immutable value with keyword-only fields, declared like a dataclass.

    A frozen dataclass compiles its methods when the class is created, which costs a millisecond of start-up each.
    Records share the methods below instead. Default values are shared between instances and must therefore be
    immutable.

    Raises:
        TypeError: at construction, for a missing or unknown field; at class creation, for a mutable default.
    """

    _defaults: ClassVar[dict[str, Any]] = {}
    _required: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        fields = dict(cls._defaults)
        for name, annotation in cls.__annotations__.items():
            if "ClassVar" in str(annotation):
                continue
            default = cls.__dict__.get(name, _MISSING)
            if isinstance(default, (list, dict, set)):
                raise TypeError(f"{cls.__name__}.{name}: a default must be immutable, not {type(default).__name__}")
            fields[name] = default
        cls._defaults = fields
        cls._required = frozenset(name for name, default in fields.items() if default is _MISSING)

    def __init__(self, **values: Any) -> None:
        state = self.__dict__
        state.update(self._defaults)
        state.update(values)
        # By name: looking for what is missing among the values would compare each of them.
        if len(state) != len(self._defaults) or not values.keys() >= self._required:
            self._refuse(values)

    def _refuse(self, values: dict[str, Any]) -> None:
        name = type(self).__name__
        unknown = sorted(set(values) - set(self._defaults))
        if unknown:
            raise TypeError(f"{name} has no field {', '.join(unknown)}; it has {', '.join(self._defaults)}")
        missing = [field for field, value in self.__dict__.items() if value is _MISSING]
        if missing:
            raise TypeError(f"{name} needs {', '.join(missing)}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; call replace({name}=...) instead")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; {name} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), tuple(self.__dict__[field] for field in self._defaults)))

    def __repr__(self) -> str:
        shown = ", ".join(f"{field}={self.__dict__[field]!r}" for field in self._defaults)
        return f"{type(self).__name__}({shown})"

    def replace(self, **changes: Any) -> Self:
        """A copy with these fields changed."""
        made = object.__new__(type(self))
        state = made.__dict__
        state.update(self.__dict__)
        state.update(changes)
        if len(state) != len(self._defaults):
            made._refuse(changes)
            for name in state.keys() - self._defaults.keys():  # a cached property of the original
                del state[name]
        return made

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, in the order of declaration; nested records stay records."""
        return {field: self.__dict__[field] for field in self._defaults}
