"""Disagreements that are understood. Each row: who differs, on which kinds of question, when, and why.

All rows here are faults or gaps of the oracle; what differs from MongoDB on purpose stands in engine/query/LANGUAGE.md. A
row is as narrow as its cause can be told from the question and the two answers. Where MongoDB's manual does not say it, its
behaviour on a running server is the measure.
"""

import json
import re

import reference
import reference_find
import reference_update
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


def missing_beside_null(q, docs, ours, theirs):
    """One gives a null where the other gives nothing."""
    values = [side[1][0].get("v") if side[0] == "ok" and isinstance(side[1], list) and side[1] else 1 for side in (ours, theirs)]
    return values == [None, None]


def positional(q, docs, ours, theirs):
    return re.search(r'\.\$["\.]', text(q)) is not None


def about(pattern):
    """Something in the question, in its document or in our answer."""
    return lambda q, docs, ours, theirs: re.search(pattern, json.dumps([q, ours])) is not None


def lacks(pattern):
    return lambda q, docs, ours, theirs: re.search(pattern, text(q)) is None


def nested_arrays(q, docs, ours, theirs):
    return re.search(r"\[\[|, \[", json.dumps(q.get("doc"))) is not None


def both(*conditions):
    return lambda *case: all(c(*case) for c in conditions)


def reference_answer(q, docs):
    """What a reference answers; None where it does not know the question. We are held to it whatever the oracles say."""
    if q["kind"] == "update":
        return updated(q)
    if q["kind"] == "distinct":
        return ("ok", reference_find.distinct(docs, q["key"]))
    if q["kind"] != "find" or q.get("sort"):
        return None
    expected = [d for d in docs if reference_find.matches(d, q.get("filter", {}))]
    if q.get("projection"):
        expected = [reference_find.projected(d, q["projection"]) for d in expected]
    return ("ok", expected)


def updated(q):
    """What becomes of the document where it matches, as the server answers it."""
    try:
        if not reference_find.matches(q["doc"], q.get("filter", {})):
            return ("ok", q["doc"])
        return ("ok", reference_update.updated(q["doc"], q["update"], q.get("arrayFilters")))
    except reference_update.Refused as refused:
        return ("error", str(refused))
    except NotImplementedError:
        return None


def agree(q, ours, expected):
    """Whether ours is what a reference says: the same answer, or an error of the same number."""
    if expected[0] == "error" or ours[0] == "error":
        return expected[0] == ours[0] and str(ours[1]).split(" ")[0] == expected[1]
    return answer_text(q, ours[1]) == answer_text(q, expected[1])


def found_as_the_manual_says(q, docs, ours, theirs):
    expected = reference_answer(q, docs)
    return expected is not None and agree(q, ours, expected)


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
    (ANY, "distinct", found_as_the_manual_says, "ours is what the reference gives (reference_find.py, from the manual)"),
    # Updates. About: paths through scalars (28), array operators on what is no array (2), arithmetic on what is no number
    # (14), the order of types in $min, $max and $sort, what $pull takes.
    (ANY, "^update", found_as_the_manual_says, "ours is what the reference gives (reference_update.py, from the manual)"),
    # What the reference does not know: pipelines, $rename, the positional $.
    (ANY, "update", our_error(r"^(40180|51272|51270) "), "an empty object as a computed field is refused by MongoDB"),
    (ANY, "update", both(positional, our_error(r"^2 .*positional")), "the positional $ without a condition on the array is refused by MongoDB (2)"),
    (ANY, "update", both(positional, our_error(r"^(2|14|28) ")), "what does not fit at the matched element is refused by MongoDB"),
    (ANY, "update", both(positional, nested_arrays), "positional $ with a filter on a nested array"),
    ("mongomock", "update", both(positional, refused("them")), "the positional $ ends in a fault of its own"),
    (ANY, "update", both(has(r"\$rename"), our_error(r"^(2|28) ")), "$rename through arrays and scalars is refused by MongoDB"),
    ("mongomock", "update", both(has(r"\$rename"), refused("them")), "$rename through arrays ends in a fault of its own"),
    ("mongomock", "update", both(has(r"\$rename"), lambda q, docs, ours, theirs: ours == ("ok", q["doc"])), "$rename of what is missing does nothing in MongoDB"),
    ("mingo", "update pipeline", has(r'"update": \[\{"\$(set|project|unset)": \{?"[abc]\.'), "a path into an array sets a field of each element, never a position"),
    ("mingo", "update pipeline", has(r'"\$set": \{"[abc]": \{"'), "an object under $set goes into each element of an array, also of an empty one"),
    # Expressions.
    ("mongomock", "expression|pipeline", refused("them"), "lacks the expression, or ends in a fault of its own"),
    (ANY, "expression|pipeline", both(has(r"\$(last|first|arrayElemAt|getField|slice)"), missing_beside_null), "null where nothing is, or the other way round"),
    ("mingo", "expression|pipeline", has(r"\$(last|first|arrayElemAt|getField)"), "what is missing is null on the way to another value"),
    ("mongomock", "expression|pipeline", both(has(r"\$arrayToObject"), our_error(r"^4039[0-8] ")), "brackets around pairs are the one argument: what is in them are no pairs"),
    ("mingo", "expression|pipeline", has(r"\$indexOf(CP|Bytes)"), "$indexOfCP is registered as something else; $indexOfBytes counts UTF-16"),
    ("mingo", "expression|pipeline", has(r"\$substr(CP|Bytes)"), "$substrBytes with -1 is the rest; numbers and dates are made strings"),
    ("mingo", "expression|pipeline", our_error(r"^40400 "), "$mergeObjects of what is no object is refused by MongoDB (40400)"),
    ("mingo", "expression|pipeline", our_error(r"^16020 "), "a wrong number of arguments is refused by MongoDB (16020)"),
    ("mingo", "expression|pipeline", our_error(r"^(2|16610|5733415) .*by zero"), "a division by zero is refused by MongoDB"),
    ("mingo", "expression|pipeline", has(r"\$(week|isoWeek|isoWeekYear)|%G|%V|%U"), "weeks at the turn of a year"),
    ("mingo", "expression|pipeline", both(has(r"\$dateAdd"), has(r'"(month|quarter|year)"')), "$dateAdd of months and years keeps within the month"),
    ("mingo", "expression|pipeline", both(has(r"\$(round|trunc)"), about(r"\d{10}|e[+]?\d\d")), "$round at tens is wrong above 32 bits"),
    ("mingo", "expression|pipeline", both(has(r"\$round"), has(r", -\d+\]")), "$round at tens takes the even neighbour of a half"),
    ("mongomock", "expression|pipeline", has(r"\$strcasecmp"), "$strcasecmp of what is missing is that of an empty string"),
    ("mingo", "expression|pipeline", both(has(r"\$zip"), lacks("useLongestLength\": true")), "$zip without useLongestLength is as long as the shortest"),
    ("mingo", "expression|pipeline", both(has(r"\$(eq|ne)\b"), about("null")), "what is missing is null to it"),
    ("mingo", "expression|pipeline", has(r"\$arrayToObject"), "$arrayToObject of an empty array is an empty object, of null null"),
    ("mingo", "expression|pipeline", both(has(r"\$dateToParts"), has(r"\$objectToArray")), "$dateToParts begins with the year"),
    ("mingo", "expression|pipeline", both(has(r"\$type"), about("objectId")), "$type names objectId in lower case"),
    ("mingo", "expression|pipeline", both(has(r"\$type"), about(r'"v": "(int|long|double|decimal)"')), "JavaScript has one type of numbers"),
    (ANY, "expression|pipeline", both(has(r"\$to(Upper|Lower)"), about(r"\\u[0-9a-f]{4}")), "$toUpper and $toLower are for ASCII"),
    (ANY, "expression|pipeline", both(has(r"\$to(Upper|Lower)"), about(r'"v": ""')), "$toUpper and $toLower of null and of what is missing are an empty string"),
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
