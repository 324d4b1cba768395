"""Disagreements that are understood. Each row: who differs, on which kinds of question, when, and why.

All rows here are faults or gaps of the oracle; what differs from MongoDB on purpose stands in engine/query/LANGUAGE.md. A
row is as narrow as its cause can be told from the question and the two answers. Where MongoDB's manual does not say it, its
behaviour on a running server is the measure.
"""

import json
import re

import reference
import reference_find
from compare import answer_text, kind_of

ANY = "mingo|mongomock"



def has(pattern):
    return lambda q, docs, ours, theirs: re.search(pattern, text(q)) is not None


def text(question):
    return json.dumps({k: v for k, v in question.items() if k != "doc"})


def refused(by):
    return lambda q, docs, ours, theirs: (ours if by == "us" else theirs)[0] == "error"


def our_error(pattern):
    return lambda q, docs, ours, theirs: ours[0] == "error" and re.search(pattern, str(ours[1])) is not None


def no_ordering_of_types(q, docs, ours, theirs):
    """$max and $min between an array or object and something else."""
    return re.search(r'"\$(max|min)"', text(q)) is not None


def reference_answer(q, docs):
    """What the reference finds; None where it does not know the question. We are held to it whatever the oracles say."""
    if q["kind"] != "find" or q.get("sort"):
        return None
    expected = [d for d in docs if reference_find.matches(d, q.get("filter", {}))]
    if q.get("projection"):
        expected = [reference_find.projected(d, q["projection"]) for d in expected]
    return expected


def found_as_the_manual_says(q, docs, ours, theirs):
    expected = reference_answer(q, docs)
    return expected is not None and ours[0] == "ok" and answer_text(q, ours[1]) == answer_text(q, expected)


def sorted_as_the_manual_says(q, docs, ours, theirs):
    return ours[0] == "ok" and [d["_id"] for d in ours[1]] == reference.sort_ids(docs, q)


ROWS = [
    # Filters and projections. What they are about, by how often: numbers in paths, null and missing, arrays in arrays,
    # comparisons across types, $elemMatch, $type, $exists, bits and $mod on what is no whole number, $slice.
    (ANY, "^(filter|projection)", found_as_the_manual_says, "ours is what the reference gives (reference_find.py, from the manual)"),
    # Sorts, distinct.
    (ANY, "^sort", our_error("parallel arrays"), "a sort by two arrays is refused by MongoDB"),
    (ANY, "^sort", sorted_as_the_manual_says, "an array sorts by its least or greatest element, in MongoDB's order of types"),
    (ANY, "^sort", has(r'"[abc](\.[xy])?\.(0|1)'), "a number in a path is a position and, in the array's objects, a field: they try one"),
    ("mongomock", "distinct", refused("them"), "distinct of objects and arrays ends in a fault"),
    ("mongomock", "distinct", has("key"), "distinct through arrays of arrays and positions"),
    # Updates.
    (ANY, "update", our_error(r"^28 "), "a path through a scalar is refused by MongoDB (28): they do nothing"),
    (ANY, "update", our_error(r"^2 .*must be an array|^2 .*must exist in the document|^2 cannot apply array updates|^2 .*positional"), "an array operator on what is no array is refused by MongoDB (2)"),
    (ANY, "update", our_error(r"^14 "), "arithmetic on what is no number is refused by MongoDB (14)"),
    (ANY, "update", our_error(r"^(40180|51272|51270) "), "an empty object as a computed field is refused by MongoDB"),
    (ANY, "update", no_ordering_of_types, "$max and $min compare across types in MongoDB's order"),
    (ANY, "update", has(r'"\$sort"'), "$push with $sort orders across types in MongoDB's order"),
    (ANY, "update", has(r"\$pull"), "$pull with a condition takes objects by their fields, scalars by operators; with {} objects alone"),
    (ANY, "update", has(r'\.\$"|\.\$\.'), "positional $ with a filter on a nested array"),
    ("mingo", "update", has(r'"update": \[\{"\$(set|project|unset)": \{?"[abc]\.'), "a path into an array sets a field of each element, never a position"),
    (ANY, "update", has(r'"\$\[e\]|\.\$\[e'), "an array filter on a field takes each element as a field's value: scalars and arrays have no field"),
    ("mingo", "update pipeline", has(r'"\$set": \{"[abc]": \{"'), "an object under $set goes into each element of an array, also of an empty one"),
    (ANY, "update", has(r"\$rename"), "$rename through arrays is refused by MongoDB"),
    ("mongomock", "update", refused("them"), "updates that end in a fault of its own"),
    ("mongomock", "update", has(r"\$(addToSet|pullAll|bit|pop|push)"), "array operators on missing fields and on objects by field order"),
    ("mingo", "update", has(r"\$(addToSet|pullAll|bit|pop|push)"), "array operators on missing fields and on objects by field order"),
    # Expressions.
    ("mongomock", "expression|pipeline", refused("them"), "lacks the expression, or ends in a fault of its own"),
    ("mingo", "expression|pipeline", has(r"\$(last|first|arrayElemAt|getField)"), "what is missing is null"),
    ("mongomock", "expression|pipeline", has(r"\$(last|first|arrayElemAt|getField)"), "what is missing is null"),
    ("mingo", "expression|pipeline", has(r"\$indexOf(CP|Bytes)"), "$indexOfCP is registered as something else; $indexOfBytes counts UTF-16"),
    ("mingo", "expression|pipeline", has(r"\$substr(CP|Bytes)"), "$substrBytes with -1 is the rest; numbers and dates are made strings"),
    ("mingo", "expression|pipeline", our_error(r"^40400 "), "$mergeObjects of what is no object is refused by MongoDB (40400)"),
    ("mingo", "expression|pipeline", our_error(r"^16020 "), "a wrong number of arguments is refused by MongoDB (16020)"),
    ("mingo", "expression|pipeline", has(r"\$(week|isoWeek|isoWeekYear)|%G|%V|%U"), "weeks at the turn of a year"),
    ("mingo", "expression|pipeline", has(r"\$dateAdd"), "$dateAdd of months and years keeps within the month"),
    ("mingo", "expression|pipeline", has(r"\$(round|trunc)"), "$round at tens is wrong above 32 bits"),
    ("mongomock", "expression|pipeline", has(r"\$strcasecmp"), "$strcasecmp of what is missing is that of an empty string"),
    ("mingo", "expression|pipeline", has(r"\$zip"), "$zip without useLongestLength is as long as the shortest"),
    ("mingo", "expression|pipeline", has(r"\$arrayToObject"), "$arrayToObject of an empty array is an empty object, of null null"),
    ("mingo", "expression|pipeline", has(r"\$type"), "$type names objectId in lower case"),
    (ANY, "expression|pipeline", has(r"\$to(Upper|Lower)"), "$toUpper and $toLower are for ASCII"),
    ("mingo", "expression|pipeline", has(r"\$(reverseArray|size|isArray|anyElementTrue|allElementsTrue)"), "one argument in brackets is that argument"),
    ("mingo", "expression|pipeline", has(r"\$set(Union|Intersection|Difference|Equals|IsSubset)"), "sets of arrays and objects; order of a union"),
    (ANY, "expression|pipeline", has(r'"\$[abc](\.[xy])?\.(0|1)'), "a number in an expression's path is a field, never a position"),
    (ANY, "expression|pipeline", has(r"\$(gt|gte|lt|lte|cmp|max|min|sortArray|sort)\b"), "comparisons across types, and with what is missing, are MongoDB's order"),
    (ANY, "expression|pipeline", has(r'"\$[abc]\.[xy]'), "a path through an array gives an array of what its objects have, not of what arrays inside have"),
    ("mongomock", "expression|pipeline", has(r"\$(setUnion|setEquals|in|indexOfArray|eq|ne|map|filter|ifNull|cond|switch|sum|avg|mergeObjects)\b"), "missing and null, true and 1 are the same to it"),
    ("mingo", "expression|pipeline", refused("them"), "refuses what MongoDB gives null for, or makes a string of"),
    ("mingo", "expression|pipeline", our_error(r"^(14|241|28765|16554|16006|16007|51081|40390|34471|50723|31109|40066|17040|17042) "), "an argument of a wrong type is refused by MongoDB: JavaScript coerces it"),
    ("mongomock", "expression|pipeline", our_error(r"^(14|241|28765|16554|16006|16007|51081|40390|34471|50723|31109|40066|17040|17042) "), "an argument of a wrong type is refused by MongoDB: Python takes it"),
]


def verdict(oracle, question, docs, ours, theirs):
    """The reason, or None where nothing here explains it."""
    label = kind_of(question)
    for who, kinds, when, why in ROWS:
        if re.search(who, oracle) and re.search(kinds, label) and when(question, docs, ours, theirs):
            return f"{label.split(' ')[0]}: {why}"
    return None
