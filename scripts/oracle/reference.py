"""MongoDB's order of values and of sorts, from its manual: the measure where no oracle knows it.

"Comparison/Sort Order" of the manual: null, numbers, strings, objects, arrays, ObjectIds, booleans, dates (of the types that
the generator makes). A sort key of an array is its least element upwards and its greatest downwards; of an empty array, what
lies before null; what is missing is null.
"""

import functools

from compare import plain

RANKS = {"null": 1, "number": 2, "string": 3, "object": 4, "array": 5, "oid": 6, "bool": 7, "date": 8}


def kind(value):
    if isinstance(value, dict):
        if len(value) == 1 and next(iter(value)) in ("$oid", "$date"):
            return next(iter(value))[1:]
        return "object"
    return {list: "array", str: "string", bool: "bool", type(None): "null"}.get(type(value), "number")


def compare(a, b):
    ka, kb = kind(a), kind(b)
    if ka != kb:
        return -1 if RANKS[ka] < RANKS[kb] else 1
    if ka == "null":
        return 0
    if ka == "object":
        for (name_a, x), (name_b, y) in zip(a.items(), b.items()):
            if kind(x) != kind(y):
                return -1 if RANKS[kind(x)] < RANKS[kind(y)] else 1
            if name_a != name_b:
                return -1 if name_a.encode() < name_b.encode() else 1
            if order := compare(x, y):
                return order
        return (len(a) > len(b)) - (len(a) < len(b))
    if ka == "array":
        for x, y in zip(a, b):
            if order := compare(x, y):
                return order
        return (len(a) > len(b)) - (len(a) < len(b))
    if ka == "string":
        a, b = a.encode(), b.encode()
    elif ka in ("oid", "date"):
        a, b = plain(a)["$" + ka], plain(b)["$" + ka]
    return (a > b) - (a < b)


BEFORE_NULL = "before null"


def keys(value, parts):
    """What a sort path finds: elements for arrays at its end, null for what is missing."""
    if not parts:
        if isinstance(value, list):
            return value or [BEFORE_NULL]
        return [value]
    if kind(value) == "object":
        return keys(value[parts[0]], parts[1:]) if parts[0] in value else [None]
    if isinstance(value, list):
        found = []
        for element in value:
            found += keys(element, parts) if kind(element) == "object" else [None]
        return found or [None]
    return [None]


def compare_keys(a, b):
    if BEFORE_NULL in (a if isinstance(a, str) else None, b if isinstance(b, str) else None):
        return (b == BEFORE_NULL and isinstance(b, str)) - (a == BEFORE_NULL and isinstance(a, str))
    return compare(a, b)


def sort_ids(docs, question):
    """The ids in the order that a `find` with this sort must give."""
    def order(left, right):
        for path, direction in question["sort"].items():
            pick = min if direction == 1 else max
            a, b = (pick(keys(d, path.split(".")), key=functools.cmp_to_key(compare_keys)) for d in (left, right))
            if result := compare_keys(a, b):
                return result * direction
        return 0

    ordered = sorted(docs, key=functools.cmp_to_key(order))
    skip, limit = question.get("skip", 0), question.get("limit", 0)
    ordered = ordered[skip:]
    return [d["_id"] for d in (ordered[:limit] if limit else ordered)]
