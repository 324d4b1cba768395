"""What update operators make of a value and of a document, from MongoDB's manual.

Takes relaxed Extended JSON; gives the new value, MISSING where none is left, or raises [Refused] with MongoDB's number. Knows
every operator that the generator uses but `$rename`, the positional `$` and pipelines.
"""

import functools

import reference_find
from reference import compare, kind
from reference_find import MISSING

# What $currentDate gives, where a test says so.
NOW = "2026-01-02T03:04:05.678Z"


class Refused(Exception):
    """MongoDB's number."""


def number(value):
    return kind(value) == "number"


def arithmetic(value, by, operate, start):
    if value is MISSING:
        return start
    if not number(value):
        raise Refused(14)
    return operate(value, by)


def in_array(value, missing, change, code=2):
    """What becomes of an array; `missing` where none stands."""
    if value is MISSING:
        return missing
    if not isinstance(value, list):
        raise Refused(code)
    return change(value)


def equal(a, b):
    return kind(a) == kind(b) and compare(a, b) == 0


def added(array, values):
    out = list(array)
    for v in values:
        if not any(equal(v, e) for e in out):
            out.append(v)
    return out


def pushed(array, operand):
    more = operand if isinstance(operand, dict) and "$each" in operand else {"$each": [operand]}
    each = more["$each"]
    at = more.get("$position", len(array))
    at = min(at, len(array)) if at >= 0 else max(len(array) + at, 0)
    out = array[:at] + each + array[at:]
    if "$sort" in more:
        out.sort(key=functools.cmp_to_key(lambda a, b: compare(a, b) * more["$sort"]))
    if "$slice" in more:
        n = more["$slice"]
        out = out[:n] if n >= 0 else out[n:]
    return out


def bit(value, operation, by):
    if value is MISSING:
        value = 0
    if not number(value) or isinstance(value, float):
        raise Refused(2)
    return {"and": value & by, "or": value | by, "xor": value ^ by}[operation]


def pulled(element, condition):
    """Whether $pull takes an element: a value by equality, operators by its value, an object by its fields."""
    if reference_find.operators(condition) and not reference_find.is_wrapper(condition):
        expanded, plain = reference_find.values({"e": element}, ["e"], True), [element]
        return all(reference_find.test(expanded, plain, n, o, condition) for n, o in condition.items())
    if kind(condition) == "object":
        return kind(element) == "object" and reference_find.matches(element, condition)
    return equal(element, condition)


def every(operand):
    """The values of $addToSet."""
    return operand["$each"] if isinstance(operand, dict) and "$each" in operand else [operand]


def change(name, operand, old):
    """What an operator makes of the value at its path."""
    if name == "$set":
        return operand
    if name == "$unset":
        return MISSING
    if name == "$setOnInsert":
        return old
    if name in ("$min", "$max"):
        sign = -1 if name == "$min" else 1
        return operand if old is MISSING or compare(operand, old) == sign else old
    if name == "$inc":
        return arithmetic(old, operand, lambda a, b: a + b, operand)
    if name == "$mul":
        return arithmetic(old, operand, lambda a, b: a * b, operand * 0)
    if name == "$push":
        return in_array(old, pushed([], operand), lambda a: pushed(a, operand))
    if name == "$addToSet":
        return in_array(old, added([], every(operand)), lambda a: added(a, every(operand)))
    if name == "$pull":
        return in_array(old, MISSING, lambda a: [e for e in a if not pulled(e, operand)])
    if name == "$pullAll":
        return in_array(old, MISSING, lambda a: [e for e in a if not any(equal(e, v) for v in operand)])
    if name == "$pop":
        return in_array(old, MISSING, lambda a: a[:-1] if operand == 1 else a[1:], 14)
    if name == "$bit":
        return bit(old, *next(iter(operand.items())))
    if name == "$currentDate":
        return {"$date": NOW}
    raise NotImplementedError(name)


def along(value, parts, name, operand, filters):
    """The value with what the operator makes of the place that `parts` lead to from it."""
    if not parts:
        return change(name, operand, value)
    part, rest = parts[0], parts[1:]
    if part.startswith("$["):
        if not isinstance(value, list):
            raise Refused(2)
        chosen = lambda e: part == "$[]" or all(reference_find.matches({part[2:-1]: e}, f) for f in filters)
        new = [along(e, rest, name, operand, filters) if chosen(e) else e for e in value]
        # What is taken out of an array leaves null.
        return [None if e is MISSING else e for e in new]
    if value is MISSING:
        inner = along(MISSING, rest, name, operand, filters)
        return MISSING if inner is MISSING else {part: inner}
    if kind(value) == "object":
        inner = along(value.get(part, MISSING), rest, name, operand, filters)
        out = {**value, part: inner}
        if inner is MISSING:
            out.pop(part)
        return out
    if isinstance(value, list) and part.isdigit():
        at = int(part)
        inner = along(value[at] if at < len(value) else MISSING, rest, name, operand, filters)
        if inner is MISSING:
            return [None if i == at else e for i, e in enumerate(value)]
        out = value + [None] * (at + 1 - len(value))
        out[at] = inner
        return out
    # Nothing can stand below here: an error for all that would make something, or look for it.
    if name in ("$unset", "$setOnInsert"):
        return value
    raise Refused(28)


def updated(document, update, filters):
    """The new document; raises [Refused] and, for what it does not know, NotImplementedError."""
    if not isinstance(update, dict) or any("$" in path.split(".") for fields in update.values() for path in fields):
        raise NotImplementedError("a pipeline or a position")
    for name, fields in update.items():
        if name == "$rename":
            raise NotImplementedError(name)
        for path, operand in fields.items():
            document = along(document, path.split("."), name, operand, filters or [])
    return document
