"""What filters and projections mean, from MongoDB's manual: the measure where an oracle differs from us.

Written apart from the server and by other rules of thumb: a path gives all its values in a list, a test asks for one that
passes. Knows the operators that the generator uses, on relaxed Extended JSON.
"""

import re

from reference import compare, kind

MISSING = object()
NAMES = {"objectId": "oid", "int": "int", "double": "double", 1: "double", 2: "string", 3: "object", 4: "array", 7: "oid",
         8: "bool", 9: "date", 10: "null", 16: "int"}


def values(value, parts, expand):
    """All values at a path from an object; what is missing is MISSING. `expand`: an array at the end gives its elements too."""
    if not parts:
        return ([*value, value] if expand else [value]) if isinstance(value, list) else [value]
    if kind(value) == "object":
        return values(value[parts[0]], parts[1:], expand) if parts[0] in value else [MISSING]
    if not isinstance(value, list):
        return [MISSING]
    found = []
    for i, element in enumerate(value):
        if kind(element) == "object":
            found += values(element, parts, expand)
        if parts[0] == str(i):
            found += at_position(element, parts[1:], expand)
    return found


def at_position(element, parts, expand):
    """What a position in a path leads to: the element as it is, or what is inside it."""
    if not parts:
        return [element]
    return values(element, parts, expand) if kind(element) in ("object", "array") else []


def equal(value, wanted):
    if wanted is None:
        return value is MISSING or value is None
    return value is not MISSING and kind(value) == kind(wanted) and compare(value, wanted) == 0


def in_order(value, wanted, signs):
    """A comparison within one type; null compares as equal alone."""
    if wanted is None:
        return 0 in signs and equal(value, None)
    return value is not MISSING and kind(value) == kind(wanted) and compare(value, wanted) in signs


def whole(value):
    return value is not MISSING and kind(value) == "number" and value == int(value) and abs(value) < 2**63


def typed(value, name):
    if value is MISSING:
        return False
    if name == "number":
        return kind(value) == "number"
    wanted = NAMES.get(name, name)
    if kind(value) == "number":
        # 32 bits are an int, more a long, a fraction a double: as the generator's numbers stand in JSON.
        return wanted == ("double" if isinstance(value, float) else "int" if abs(value) < 2**31 else "long")
    return kind(value) == wanted


def bits(value, mask, name):
    if not whole(value):
        return False
    mask = sum(1 << b for b in mask) if isinstance(mask, list) else mask
    set_bits = int(value) & mask
    return {"$bitsAllSet": set_bits == mask, "$bitsAnySet": set_bits != 0, "$bitsAllClear": set_bits == 0,
            "$bitsAnyClear": set_bits != mask}[name]


def modulo(value, divisor, remainder):
    if value is MISSING or kind(value) != "number":
        return False
    n = int(value)
    if abs(n) >= 2**63:
        # What is no int64 never matches.
        return False
    left = abs(n) % abs(divisor)
    return (-left if n < 0 else left) == remainder


def element_passes(element, condition):
    """One element of an array under $elemMatch: operators ask of its value, everything else of its fields."""
    if operators(condition):
        return all(test([element], [element], name, operand, condition) for name, operand in condition.items())
    return kind(element) in ("object", "array") and matches(as_object(element), condition)


def as_object(element):
    return {str(i): v for i, v in enumerate(element)} if isinstance(element, list) else element


def operators(condition):
    return kind(condition) == "object" and bool(condition) and next(iter(condition)).startswith("$")


def test(expanded, plain, name, operand, beside):
    """Whether the values at a path pass one operator."""
    some = lambda passes: any(passes(v) for v in expanded)
    if name == "$eq":
        return some(lambda v: equal(v, operand))
    if name == "$ne":
        return not some(lambda v: equal(v, operand))
    if name in ("$gt", "$gte", "$lt", "$lte"):
        signs = {"$gt": (1,), "$gte": (0, 1), "$lt": (-1,), "$lte": (-1, 0)}[name]
        return some(lambda v: in_order(v, operand, signs))
    if name in ("$in", "$nin"):
        return some(lambda v: any(equal(v, w) for w in operand)) == (name == "$in")
    if name == "$exists":
        return any(v is not MISSING for v in plain) == bool(operand)
    if name == "$type":
        return some(lambda v: any(typed(v, n) for n in (operand if isinstance(operand, list) else [operand])))
    if name == "$mod":
        return some(lambda v: modulo(v, *operand))
    if name == "$regex":
        flags = re.IGNORECASE if "i" in beside.get("$options", "") else 0
        return some(lambda v: isinstance(v, str) and re.search(operand, v, flags) is not None)
    if name == "$options":
        return True
    if name == "$all":
        return bool(operand) and all(some(lambda v, w=w: equal(v, w)) for w in operand)
    if name == "$size":
        return any(isinstance(v, list) and len(v) == operand for v in plain)
    if name == "$elemMatch":
        return any(isinstance(v, list) and any(element_passes(e, operand) for e in v) for v in plain)
    if name.startswith("$bits"):
        return some(lambda v: bits(v, operand, name))
    if name == "$not":
        return not all(test(expanded, plain, n, o, operand) for n, o in operand.items())
    raise NotImplementedError(name)


def matches(document, condition):
    """Whether a document passes a filter."""
    for name, operand in condition.items():
        if name in ("$and", "$or", "$nor"):
            each = [matches(document, c) for c in operand]
            passed = all(each) if name == "$and" else any(each) == (name == "$or")
        else:
            parts = name.split(".")
            expanded, plain = values(document, parts, True), values(document, parts, False)
            tests = operand if operators(operand) and not is_wrapper(operand) else {"$eq": operand}
            passed = all(test(expanded, plain, n, o, tests) for n, o in tests.items())
        if not passed:
            return False
    return True


def is_wrapper(value):
    return len(value) == 1 and next(iter(value)) in ("$date", "$oid", "$numberDouble")


def found_ids(docs, question):
    """The ids that a `find` gives, in no order."""
    return [d["_id"] for d in docs if matches(d, question.get("filter", {}))]


# ---- projections


def projected(document, projection):
    """What a projection leaves of a document."""
    name, first = next((n, v) for n, v in projection.items() if n != "_id")
    if kind(first) == "object" and "$slice" in first:
        return {n: sliced(v, first["$slice"]) if n == name and isinstance(v, list) else v for n, v in document.items()}
    if kind(first) == "object" and "$elemMatch" in first:
        array = document.get(name)
        picked = [e for e in array if element_passes(e, first["$elemMatch"])] if isinstance(array, list) else []
        return {"_id": document["_id"], **({name: picked[:1]} if picked else {})}
    paths = [n.split(".") for n in projection if n != "_id"]
    left = keep(document, [["_id"], *paths]) if first else drop(document, paths)
    if projection.get("_id", 1) == 0:
        left.pop("_id")
    return left


def sliced(array, spec):
    if isinstance(spec, list):
        skip, limit = spec
        start = min(skip, len(array)) if skip >= 0 else max(len(array) + skip, 0)
        return array[start:start + limit]
    return array[:spec] if spec >= 0 else array[spec:]


def keep(document, paths):
    out = {}
    for name, value in document.items():
        inner = [p[1:] for p in paths if p[0] == name]
        if any(not p for p in inner):
            out[name] = value
        elif inner and kind(value) in ("object", "array"):
            out[name] = kept_inside(value, inner)
    return out


def kept_inside(value, paths):
    if isinstance(value, list):
        return [kept_inside(e, paths) for e in value if kind(e) in ("object", "array")]
    return keep(value, paths)


def drop(document, paths):
    out = {}
    for name, value in document.items():
        inner = [p[1:] for p in paths if p[0] == name]
        if not any(not p for p in inner):
            out[name] = dropped_inside(value, inner) if inner else value
    return out


def dropped_inside(value, paths):
    if isinstance(value, list):
        return [dropped_inside(e, paths) for e in value]
    return drop(value, paths) if kind(value) == "object" else value


# ---- distinct


def distinct(docs, path):
    """The different values at a path: arrays on it and at its end count as their elements, a number names one of them."""
    found = []
    for document in docs:
        for value in spread(document, path.split(".")):
            if not any(kind(value) == kind(other) and compare(value, other) == 0 for other in found):
                found.append(value)
    return found


def spread(value, parts):
    if not parts:
        return value if isinstance(value, list) else [value]
    if kind(value) == "object":
        return spread(value[parts[0]], parts[1:]) if parts[0] in value else []
    if not isinstance(value, list):
        return []
    if parts[0].isdigit():
        at = int(parts[0])
        return spread(value[at], parts[1:]) if at < len(value) else []
    return [v for element in value if kind(element) == "object" for v in spread(element, parts)]
