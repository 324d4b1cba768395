#!/usr/bin/env python3
"""Writes the generated case files of engine/query/testdata/queries: families of questions, operator by operand.

usage: cases.py DIRECTORY

What is expected comes from reference.py, reference_find.py and reference_update.py, written from MongoDB's manual; never from
the server. The files are data: they are read in review like any other, and change when this does.
"""

import itertools
import json
import os
import sys

import reference
import reference_find
import reference_update
from reference_find import MISSING

DATE, OID = {"$date": "2024-02-29T00:00:00Z"}, {"$oid": "65a1b2c3d4e5f60718293a4b"}

# A value of each kind, ordinary, empty and extreme.
SCALARS = [None, 0, 1, -1, 2, 1.5, -7, 2147483647, 4294967296, 9007199254740991, 0.1, 1e300, "", "a", "ab", "A", "10", "a\nb", True,
           False, DATE, OID]
CONTAINERS = [[], [None], [1], [1, 2], [2, 1], [[1]], [[1], 2], [[]], ["a", "b"], [True, None], [1.5, "a"], {}, {"x": 1},
              {"x": None}, {"x": 1, "y": 2}, {"y": 2, "x": 1}, {"x": [1, 2]}, {"0": 1}, [{"x": 1}], [{"x": 1}, {"x": 2}],
              [{"x": [1, 2]}], [{"x": 1}, 1], [{"y": 1}], [[{"x": 1}]], [{"x": None}, {}], [{"0": 1}], [DATE], [OID, {}]]
OPERANDS = [None, 0, 1, 1.5, -7, "", "a", True, False, DATE, OID, [], [1], [1, 2], [[1]], {}, {"x": 1}, {"x": 1, "y": 2}]
PATHS = ["a", "a.x", "a.0", "a.1", "a.0.x", "a.x.0", "a.x.y", "a.0.0", "b"]
TYPES = ["null", "number", "int", "long", "double", "string", "object", "array", "objectId", "bool", "date", 2, 3, 4, 8, 10,
         ["string", "null"], ["array", "object"]]


def documents():
    """A document for each value, and one without."""
    docs = [{"_id": i, "a": v} for i, v in enumerate(SCALARS + CONTAINERS)]
    return [*docs, {"_id": len(docs)}, {"_id": len(docs) + 1, "b": 1}]


def conditions():
    """Every operator beside a field, with its operands; by name."""
    for name in ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte"):
        yield name, [{name: v} for v in OPERANDS]
    choices = [[], [None], [1], [1, "a"], [[1]], [[]], [{}], [{"x": 1}, None], [True, DATE], [OID, 0, ""], OPERANDS]
    yield "$in", [{"$in": c} for c in choices]
    yield "$nin", [{"$nin": c} for c in choices]
    yield "$exists", [{"$exists": flag} for flag in (True, False, 1, 0, None, "x")]
    yield "$type", [{"$type": t} for t in TYPES]
    yield "$size", [{"$size": n} for n in (0, 1, 2, 3)]
    yield "$mod", [{"$mod": [d, r]} for d, r in ((2, 0), (2, 1), (2, -1), (3, 1), (-3, -1), (4, 0), (7, 0))]
    yield "$regex", [{"$regex": p, "$options": o} for p, o in (("", ""), ("a", ""), ("^a$", ""), ("A", "i"), ("^1", ""), ("b$", ""), ("z", ""))]
    yield "$all", [{"$all": c} for c in ([], [1], [1, 2], [None], [[1]], [[1], 2], ["a"], [{"x": 1}], [1, None])]
    for name in ("$bitsAllSet", "$bitsAnySet", "$bitsAllClear", "$bitsAnyClear"):
        yield name, [{name: mask} for mask in (0, 1, 2, 3, 5, [0], [0, 2], [31], [])]
    inner = [{"$gt": 0}, {"$eq": None}, {"$gte": 1, "$lt": 2}, {"$in": [1, "a"]}, {"$ne": 1}, {"$exists": True}, {"$type": "array"},
             {"$size": 1}, {"x": 1}, {"x": None}, {"x": {"$gt": 1}}, {"0": 1}, {"y": {"$exists": False}}, {"x.0": 1}, {}]
    yield "$elemMatch", [{"$elemMatch": c} for c in inner]
    yield "a literal", [v for v in OPERANDS]


def line(value):
    return json.dumps(value, ensure_ascii=True)


def filters(out):
    docs = documents()
    out.append("# Every operator by every operand, plain and negated, on a document of each kind, by names and positions.")
    for name, tests in conditions():
        out.append(f"\ncase {name} by every operand")
        out += [f"doc {line(d)}" for d in docs]
        for condition, path in itertools.product(tests, PATHS):
            asked = [{path: condition}]
            if reference_find.operators(condition) and not reference_find.is_wrapper(condition):
                asked.append({path: {"$not": condition}})
            for question in asked:
                out.append(f"find {line(question)}")
                out.append(f"ids {line(reference_find.found_ids(docs, {'filter': question}))}")
    out.append("\ncase logic of two conditions")
    out += [f"doc {line(d)}" for d in docs]
    parts = [{"a": 1}, {"a": {"$gt": 0}}, {"a.x": 1}, {"a": None}, {"b": 1}, {"a": {"$type": "array"}}, {"a": {"$ne": 1}}]
    for left, right in itertools.product(parts, parts):
        for question in ({"$and": [left, right]}, {"$or": [left, right]}, {"$nor": [left, right]}, {"$nor": [{"$and": [left, right]}]}):
            out.append(f"find {line(question)}")
            out.append(f"ids {line(reference_find.found_ids(docs, {'filter': question}))}")


def projections(out):
    docs = documents()
    out.append("# Every form of a projection on a document of each kind.")
    forms = [{p: f} for p in ("a", "a.x", "a.y", "a.x.y", "b") for f in (1, 0)]
    forms += [{"a.x": f, "b": f} for f in (1, 0)] + [{"a.x": f, "a.y": f} for f in (1, 0)]
    forms += [{**f, "_id": 0} for f in forms]
    forms += [{"a": {"$slice": s}} for s in (0, 1, -1, 2, -5, [0, 1], [1, 1], [-1, 1], [5, 1], [-9, 2])]
    forms += [{"a": {"$elemMatch": c}} for c in ({"$gt": 0}, {"x": 1}, {"x": {"$gt": 1}}, {"$eq": None}, {"$in": [1, "a"]}, {"y": {"$exists": False}})]
    for form in forms:
        out.append(f"\ncase {line(form)}")
        out += [f"doc {line(d)}" for d in docs]
        out.append(f"find {{}}\nproject {line(form)}")
        out += [f"out {line(reference_find.projected(d, form))}" for d in docs]


def sorts(out):
    docs = documents()
    out.append("# Every path and direction; what is equal stands in the order of _id.")
    out.append("\ncase sorts over all kinds")
    out += [f"doc {line(d)}" for d in docs]
    for path, direction in itertools.product(("a", "a.x", "a.y", "b"), (1, -1)):
        for skip, limit in ((0, 0), (3, 7)):
            question = {"sort": {path: direction, "_id": 1}, "skip": skip, "limit": limit}
            out.append(f"find {{}}\nsort {line(question['sort'])}")
            if limit:
                out.append(f"skip {skip}\nlimit {limit}")
            out.append(f"ordered {line(reference.sort_ids(docs, question))}")


# ---- updates


def updates():
    """Operators and operands."""
    for v in OPERANDS[::2]:
        yield from ((name, v) for name in ("$set", "$setOnInsert", "$min", "$max", "$push", "$addToSet", "$pull"))
    yield "$unset", ""
    yield from itertools.product(("$inc", "$mul"), (0, 1, -1, 1.5, 2, 0.1))
    for c in ({"$gt": 1}, {"$in": [1, "a"]}, {"$ne": 1}, {"$exists": True}, {"$type": "string"}, {"$gte": 1, "$lt": 2}, {"x": {"$gt": 1}}, {"x": None}):
        yield "$pull", c
    for values in ([], [1], [1, 2], [None, "a"], [[1]], [{"x": 1}]):
        yield "$pullAll", values
        yield "$addToSet", {"$each": values}
    for each in ([], [3], [3, 0]):
        for more in ({}, {"$position": 0}, {"$position": 1}, {"$position": -1}, {"$position": 9}, {"$slice": 0}, {"$slice": 2}, {"$slice": -1},
                     {"$sort": 1}, {"$sort": -1}, {"$sort": -1, "$slice": 2}, {"$position": 0, "$slice": -2}):
            yield "$push", {"$each": each, **more}
    yield from (("$pop", end) for end in (1, -1))
    yield from (("$bit", {name: by}) for name in ("and", "or", "xor") for by in (0, 1, 6, -1))
    yield from (("$currentDate", how) for how in (True, {"$type": "date"}))


# $inc of what an int32 and a double hold exactly or not is tested in update_tables/types.rs: here the sums are small.
STANDING = [MISSING, None, 0, 1, -1, 1.5, 7, "", "a", True, False, DATE, OID, [], [1], [1, 2], [2, 1, 1], [None, "a"], [[1]], [[1], 1],
            [{"x": 1}, {"x": 2}], [1, "a", None, {"x": 1}], {}, {"x": 1}, {"x": None}]


# Paths beyond the field itself, with an operator of each sort.
FURTHER = ["o.a", "a.x", "a.0", "a.1", "a.3", "a.0.x", "a.x.0", "a.x.y", "a.$[]", "a.$[].x", "a.$[e]", "a.$[e].x"]


def update_question(out, document, name, path, operand):
    filters = [{"e": {"$gt": 0}}] if "$[e]" in path else None
    # A case has one document, so that each question has its own answer.
    out.append(f"case {name}\ndoc {line(document)}\nfind {{}}\nupdate {line({name: {path: operand}})}")
    if filters:
        out.append(f"filters {line(filters)}")
    try:
        out.append(f"out {line(reference_update.updated(document, {name: {path: operand}}, filters))}")
    except reference_update.Refused as refused:
        out.append(f"error {refused}")


def update_cases(out):
    out.append("# Every update operator by operand on a value of each kind; each operator along paths of each kind.")
    for name, rows in itertools.groupby(sorted(updates(), key=lambda row: row[0]), key=lambda row: row[0]):
        for turn, (_, operand) in enumerate(rows):
            out.append("")
            for standing in STANDING:
                document = {"_id": 1} if standing is MISSING else {"_id": 1, "a": standing}
                update_question(out, document, name, "a", operand)
            for standing, path in itertools.product(STANDING[::2] if turn == 1 or name == "$unset" else [], FURTHER):
                document = {"_id": 1, "o": {"k": 1}}
                if standing is not MISSING:
                    (document["o"] if path == "o.a" else document)["a"] = standing
                update_question(out, document, name, path, operand)


def main():
    for name, write in (("filters", filters), ("projections", projections), ("sorts", sorts), ("updates", update_cases)):
        out = ["# Generated by scripts/oracle/cases.py."]
        write(out)
        with open(os.path.join(sys.argv[1], f"generated_{name}.case"), "w", encoding="ascii") as file:
            file.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
