"""Specifications of tools and validation of their arguments, with pydantic.

pydantic takes long to import: what runs before the first tool call must not import this module.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    Field,
    ValidationError,
    create_model,
)
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError, PydanticUndefined

from ..api import tools
from ..api.errors import ToolError
from ..api.tool_context import ToolContext
from ..api.tools import Tool, ToolGroup, ToolSpec
from ..util.schemas.normal_form import normal_form
from ..util.schemas.texts import reason_text, type_text
from ..util.text import cut, to_json, unknown_name
from .argument_errors import refusal
from .arguments import coerce

_PROBLEMS_SHOWN = 10
_VALUE_SHOWN = 80


def describe(tool: Tool, *, source: str = "", module: str = "", group: ToolGroup | str = "") -> ToolSpec:
    """The specification of a tool, with its JSON schema in the normal form.

    Args:
        source: the distribution of the tool.
        module: the module of its function; by default the one that defines it.
        group: defaults for the declarations of the tool; a string is the name of the group.

    Raises:
        ToolError: the signature cannot be converted to a schema; the text says what to change.
    """
    group = ToolGroup(name=group, module="", tools=()) if isinstance(group, str) else group
    parameters = _fitting(tool, _parameters(tool, validator(tool).model))
    return ToolSpec(
        name=tool.name,
        description=inspect.cleandoc(tool.__doc__ or ""),
        parameters=parameters,
        access=tool.access,
        group=tool.group or group.name,
        confirm=tool.confirm,
        timeout=None if callable(tool.timeout) else tool.timeout,
        own_timeout=callable(tool.timeout),
        requires=tool.requires,
        labels=tool.labels,
        settings=tool.settings,
        secrets=tool.secrets,
        sets=group.sets if tool.sets is None else tool.sets,
        passes=tool.passes,
        interactive=tool.interactive,
        parallel=tool.parallel,
        snapshot=tool.snapshot,
        typed=tool.typed,
        too_long=tool.too_long or group.too_long,
        known_as=tool.known_as,
        probe=tool.probe,
        guidance=group.guidance,
        in_code=group.place(tool.name, group.in_code),
        in_chat=group.place(tool.name, group.in_chat),
        source=source,
        module=module or tool.function.__module__,
    )


def validator(tool: Tool) -> Validator:
    """The validator of this tool's arguments, created on first use and stored on the tool.

    Raises:
        ToolError: the signature cannot be converted to a schema; the text says what to change.
    """
    kept: Validator | None = vars(tool).get("_validator")
    if kept is None:
        kept = vars(tool)["_validator"] = Validator(tool)
    return kept


class Validator:
    """Validates the arguments of one tool and converts them to keyword arguments of its function.

    `context_parameter` is the parameter that receives the `ToolContext`, or an empty string. `model` is the
    pydantic model of the arguments.
    """

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        shape = _shape(tool)
        self.model = shape.model
        self.context_parameter = shape.context_parameter
        self._parameter_of = shape.parameter_of
        self._whole = shape.whole
        self._open = self.model.model_config.get("extra") == "allow"
        self._known: dict[str, str] = {}
        self._aliases: dict[str, str] = {}
        self._null_is_absent: set[str] = set()
        self._listed: dict[str, None] = {}
        for field, info in self.model.model_fields.items():
            names = _names(field, info, self.model)
            self._known.update(dict.fromkeys(names, names[0]))
            self._aliases.update(
                (other, names[0]) for other in names[1:] if other != names[0] and other in _choices(info)
            )
            if names[0] not in tool.unlisted:
                self._listed[names[0]] = None
            if not info.is_required() and not _accepts_none(info.annotation):
                self._null_is_absent.update(names)

    def __call__(self, values: Mapping[str, Any], spec: ToolSpec | None = None) -> dict[str, Any]:
        """The keyword arguments for the function, from arguments under any of their names. See `named` and `check`."""
        return self.check(self.named(values, spec), spec)

    def named(self, values: Mapping[str, Any], spec: ToolSpec | None = None) -> dict[str, Any]:
        """The arguments under the names of the schema and in the tool's own form, not validated yet.

        An alias without a value, or with the same value as the parameter, is removed; one with another value is
        kept.

        Raises:
            ToolError: the tool says what to send instead.
        """
        found = {name: value for name, value in values.items() if name not in self._aliases}
        for name, value in values.items():
            target = self._aliases.get(name)
            if target is None or value is None:
                continue
            if found.get(target) is None:
                found[target] = value
            elif found[target] != value:
                found[name] = value
        adapted = found if self._tool.adapt is None else dict(self._tool.adapt(dict(found)))
        return adapted if spec is None or adapted == values else coerce(adapted, spec)

    def check(self, values: Mapping[str, Any], spec: ToolSpec | None = None) -> dict[str, Any]:
        """The keyword arguments for the function, with defaults, without the context.

        `spec` is the specification of the tool; its phrases improve the correct call in errors.
        Null for a parameter that has a default and does not accept null means the default.

        Raises:
            ArgumentError: names every invalid parameter, with the reason and a correct call.
        """
        given = {
            name: value
            for name, value in values.items()
            if (value is not None or name not in self._null_is_absent)
            and (name in self._known or name not in self._tool.ignores)
        }
        problems = [] if self._open else self._unknown(given)
        try:
            checked = self.model.model_validate(given)
        except ValidationError as error:
            raise self._refusal(problems, error.errors(include_url=False), spec) from None
        if problems:
            raise self._refusal(problems, [], spec)
        if self._whole:
            return {self._whole: checked}
        return {self._parameter_of[field]: value for field, value in checked}

    def _unknown(self, given: Mapping[str, Any]) -> list[str]:
        problems: list[str] = []
        seen: dict[str, str] = {}
        for name in given:
            target = self._known.get(name)
            if len(problems) > _PROBLEMS_SHOWN:
                break
            if target is None:
                problems.append(unknown_name("parameter", name, self._listed))
            elif target in seen:
                problems.append(f"{seen[target]} and {name} are the same parameter; give only one of them.")
            else:
                seen[target] = name
        return problems

    def _refusal(self, problems: list[str], errors: list[ErrorDetails], spec: ToolSpec | None) -> ToolError:
        spec = spec or describe(self._tool)
        blamed: list[str] = []
        for error in errors[:_PROBLEMS_SHOWN]:
            location = error["loc"]
            if location and isinstance(location[0], str):
                location = (self._known.get(location[0], location[0]), *location[1:])
                blamed.append(str(location[0]))
            problems.append(_problem(error, location, spec.parameters))
        lines = [f"- {problem}" for problem in dict.fromkeys(problems)]
        if len(lines) > _PROBLEMS_SHOWN or len(errors) > _PROBLEMS_SHOWN:
            lines[_PROBLEMS_SHOWN:] = ["- and more"]
        head = f"{spec.name} was not run, because its arguments are wrong:"
        return refusal(spec, "\n".join([head, *lines]), also=blamed)


class _Shape(NamedTuple):
    """Maps a function's parameters to the fields of its model.

    The fields of a generated model have names of their own, so that no parameter name can clash with an attribute of
    pydantic's models; `whole` is the parameter that takes the model itself.
    """

    model: type[BaseModel]
    parameter_of: dict[str, str]
    whole: str
    context_parameter: str


def _shape(tool: Tool) -> _Shape:
    parameters = dict(inspect.signature(tool.function).parameters)
    hints = _hints(tool)
    context_parameter = ""
    for name, parameter in list(parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ToolError(f"The tool {tool.name} declares {parameter}; declare each parameter by its own name.")
        if name not in hints:
            raise ToolError(f"The tool {tool.name} needs an annotation for its parameter {name}.")
        if _bare(hints[name]) is ToolContext:
            context_parameter = name
            del parameters[name]
    if len(parameters) == 1:
        (only,) = parameters
        model = _bare(hints[only])
        if isinstance(model, type) and issubclass(model, BaseModel):
            return _Shape(model, {}, only, context_parameter)
    fields = {f"a{number}": name for number, name in enumerate(parameters)}
    definitions: dict[str, Any] = {
        field: _definition(name, hints[name], parameters[name].default, tool.aliases.get(name, ()))
        for field, name in fields.items()
    }
    try:
        made = create_model(tool.name, **definitions)
    except (PydanticUserError, NameError) as error:
        raise _no_schema(tool, error) from None
    return _Shape(made, fields, "", context_parameter)


def _hints(tool: Tool) -> dict[str, Any]:
    # Packs import names for annotations under TYPE_CHECKING, so that ToolContext may be undefined.
    names = {**vars(tools), **inspect.unwrap(tool.function).__globals__}
    try:
        return get_type_hints(tool.function, globalns=names, include_extras=True)
    except NameError as error:
        raise ToolError(
            f"The tool {tool.name} has an annotation that is unknown when the tool is registered ({error}). "
            "Define or import it at the top of the module, not under TYPE_CHECKING."
        ) from None


def _definition(name: str, annotation: Any, default: Any, aliases: Sequence[str]) -> tuple[Any, Any]:
    """A parameter as a field for `create_model`: `Annotated` with everything but the default, and the default."""
    base, *metadata = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    texts = [extra for extra in metadata if isinstance(extra, str)]
    extras = [extra for extra in metadata if not isinstance(extra, str)]
    if isinstance(default, FieldInfo):
        extras.append(default)
        default = ... if default.default is PydanticUndefined else default.default
    elif default is inspect.Parameter.empty:
        default = ...
    choices = [choice for extra in extras if isinstance(extra, FieldInfo) for choice in _choices(extra)]
    choices += aliases
    settings: dict[str, Any] = {"validation_alias": AliasChoices(name, *choices) if choices else name}
    if texts:
        settings["description"] = " ".join(texts)
    kinds = _members(base) - {types.NoneType}
    if kinds == {bool}:
        extras.append(BeforeValidator(_true_or_false))
    elif kinds and kinds <= {int, float}:
        extras.append(BeforeValidator(_no_truth_value))
    return Annotated[(base, *extras, Field(**settings))], default


def _true_or_false(value: Any) -> Any:
    # pydantic also accepts "yes", "on" and 1, which is a guess.
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise PydanticCustomError("bool_type", "must be true or false")


def _no_truth_value(value: Any) -> Any:
    # pydantic converts true to 1.
    if isinstance(value, bool):
        raise PydanticCustomError("int_type", "must be a number")
    return value


def _bare(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _members(annotation: Any) -> set[Any]:
    if get_origin(annotation) in (Union, types.UnionType):
        return set(get_args(annotation))
    return {annotation} if isinstance(annotation, type) else set()


def _accepts_none(annotation: Any) -> bool:
    return annotation is Any or not {types.NoneType, object}.isdisjoint(_members(annotation))


def _choices(info: FieldInfo) -> list[str | AliasPath]:
    alias = info.validation_alias or info.alias
    if alias is None:
        return []
    return list(alias.choices) if isinstance(alias, AliasChoices) else [alias]


def _names(field: str, info: FieldInfo, model: type[BaseModel]) -> list[str]:
    """The accepted names of the field, that of the schema first."""
    names = [str(choice.path[0]) if isinstance(choice, AliasPath) else choice for choice in _choices(info)]
    config = model.model_config
    if not names or config.get("populate_by_name") or config.get("validate_by_name"):
        names.append(field)
    return names


def _problem(error: ErrorDetails, location: tuple[int | str, ...], schema: Mapping[str, Any]) -> str:
    """One validation error of pydantic, in plain words."""
    where = ""
    for part in location:
        members = schema.get("properties", {})
        if isinstance(part, int) and isinstance(schema.get("items"), Mapping):
            where, schema = f"{where}[{part}]", schema["items"]
        elif part in members:
            where, schema = f"{where}.{part}" if where else str(part), members[part]
        else:
            break
    prefix = f"{where}: " if where else ""
    if error["type"] == "missing":
        return f"{prefix}missing; it must be {type_text(schema)}"
    return f"{prefix}{reason_text(error, schema)}; received {cut(to_json(error['input']), _VALUE_SHOWN)}"


def _parameters(tool: Tool, model: type[BaseModel]) -> dict[str, Any]:
    try:
        schema = normal_form(model.model_json_schema())
    except PydanticUserError as error:
        raise _no_schema(tool, error) from None
    except ValueError as error:
        raise ToolError(f"The tool {tool.name} takes {error}; limit its depth.") from None
    schema.pop("description", None)  # a model's docstring: the description is the tool's own
    if schema.get("type") != "object":
        raise ToolError(f"The tool {tool.name} takes a model that is not an object; give it named fields.")
    properties = schema.setdefault("properties", {})
    for name in tool.unlisted:
        properties.pop(name, None)
    return schema


def _fitting(tool: Tool, parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a tool; one that can be typed needs exactly one text, and `parallel` names one of them."""
    if isinstance(tool.parallel, str) and tool.parallel not in parameters["properties"]:
        raise ToolError(
            f"The tool {tool.name} declares parallel={tool.parallel!r}, which is not one of its parameters."
        )
    required = parameters.get("required", ())
    if tool.typed and [parameters["properties"][name].get("type") for name in required] != ["string"]:
        raise ToolError(
            f"The tool {tool.name} declares typed={tool.typed!r}, so it must require exactly one string parameter; "
            f"it requires {', '.join(required) or 'nothing'}."
        )
    return parameters


def _no_schema(tool: Tool, error: Exception) -> ToolError:
    how, cause = "annotate it with a plain type or a pydantic model", str(error).splitlines()[0]
    return ToolError(f"The tool {tool.name} has a parameter that JSON cannot describe; {how}. ({cause})")
