"""What is compared, and how a disagreement is named.

A disagreement's kind is its question's operators and the types they met; its name stands in `known.py` with a verdict.
"""

import datetime
import json
import math


def plain(value):
    """Numbers by value, whatever their width; doubles that JavaScript and Python print differently alike."""
    if isinstance(value, dict):
        if len(value) == 1:
            name, inner = next(iter(value.items()))
            if name in ("$numberInt", "$numberLong", "$numberDouble") and inner not in ("NaN", "Infinity", "-Infinity"):
                return plain(float(inner))
            if name == "$date":
                return {"$date": milliseconds(inner)}
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    value = float(value)
    if math.isfinite(value):
        value = float(f"{value:.13g}")
        return int(value) if value == int(value) else value
    return str(value)


def milliseconds(date):
    """A date's number, whichever way it is written."""
    if isinstance(date, dict):
        return int(date["$numberLong"])
    moment = datetime.datetime.fromisoformat(date.replace("Z", "+00:00"))
    return round((moment - EPOCH) / datetime.timedelta(milliseconds=1))


EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def text(value):
    # Fields in no order: JavaScript puts those that look like numbers first.
    return json.dumps(plain(value), sort_keys=True)


SET_LIKE = ("$setUnion", "$setIntersection", "$setDifference")


def answer_text(question, value):
    kind = question["kind"]
    if kind == "distinct":
        return sorted(text(v) for v in value)
    if kind == "find" and not question.get("projection"):
        ids = [text(d["_id"]) for d in value]
        return ids if question.get("sort") else sorted(ids)
    if kind == "find" and not question.get("sort"):
        return sorted(text(d) for d in value)
    if kind == "expression":
        operator = next(iter(question["expression"]))
        if operator in SET_LIKE and value and isinstance(value[0].get("v"), list):
            return sorted(text(v) for v in value[0]["v"])
    return text(value)


def type_name(value):
    if isinstance(value, dict):
        if len(value) == 1 and next(iter(value)) in ("$date", "$oid"):
            return next(iter(value))[1:]
        return "object"
    return {list: "array", str: "string", bool: "bool", type(None): "null"}.get(type(value), "number")


def operators(value, out=None):
    """The names that begin with `$`, in order, values' wrappers left out."""
    out = [] if out is None else out
    if isinstance(value, dict):
        for k, v in value.items():
            if k.startswith("$") and k not in ("$date", "$oid", "$literal"):
                if k not in out:
                    out.append(k)
            operators(v, out)
    elif isinstance(value, list):
        for v in value:
            operators(v, out)
    return out


def kind_of(question):
    """A short name for a question's form, such as `find $gt`."""
    if question["kind"] == "find":
        parts = []
        for part in ("filter", "projection", "sort"):
            if question.get(part):
                names = [n for n in operators(question[part])]
                parts.append(part + " " + ("+".join(names) if names else "plain"))
        return ", ".join(parts) or "find all"
    if question["kind"] == "expression":
        return "expression " + next(iter(question["expression"]))
    if question["kind"] == "update":
        update = question["update"]
        place = "".join(x for x in (".$[]", ".$[e]", ".$") if x in json.dumps(update))[:4]
        return "update " + ("pipeline " if isinstance(update, list) else "") + "+".join(operators(update)) + (" at " + place if place else "")
    return question["kind"]
