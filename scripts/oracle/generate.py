"""Random documents and questions about them, by seed: small alphabets, so that things meet.

Gives plain Python values in relaxed Extended JSON. Integers stay within what a JavaScript number holds exactly.
"""

DATES = ["2026-01-02T03:04:05.678Z", "2024-02-29T00:00:00Z", "1969-12-31T23:59:59Z"]
OIDS = ["65a1b2c3d4e5f60718293a4b", "5ab9cbfa31c2ab715d42129e"]
FIELDS = ["a", "b", "c"]
INNER = ["x", "y", "0"]
MISSING = object()


class Gen:
    def __init__(self, rng):
        self.r = rng

    def pick(self, *choices):
        return self.r.choice(choices)

    def number(self):
        return self.pick(0, 1, 2, 3, 5, -1, -7, 1.5, 2.5, 10, 100, 4294967296)

    def scalar(self):
        r = self.r.random()
        if r < 0.45:
            return self.number()
        if r < 0.68:
            return self.pick("a", "b", "ab", "A", "", "abc", "10", "x y")
        if r < 0.78:
            return None
        if r < 0.87:
            return self.pick(True, False)
        if r < 0.94:
            return {"$date": self.pick(*DATES)}
        return {"$oid": self.pick(*OIDS)}

    def value(self, depth=2):
        r = self.r.random()
        if depth == 0 or r < 0.5:
            return self.scalar()
        if r < 0.78:
            return [self.value(depth - 1) for _ in range(self.r.choice([0, 1, 1, 2, 2, 3]))]
        return self.object(depth - 1)

    def object(self, depth=1):
        out = {}
        for name in INNER[: self.r.choice([0, 1, 1, 2, 2, 3])]:
            if self.r.random() < 0.8:
                out[name] = self.value(depth)
        return out

    def objects(self):
        """An array of objects, as people have them."""
        return [self.object(1) if self.r.random() < 0.9 else self.scalar() for _ in range(self.r.randint(0, 3))]

    def document(self, ident):
        out = {"_id": ident}
        for name in FIELDS:
            r = self.r.random()
            if r < 0.15:
                continue
            out[name] = self.objects() if r < 0.35 else self.value(2)
        return out

    def path(self):
        r = self.r.random()
        if r < 0.5:
            return self.pick(*FIELDS)
        if r < 0.9:
            return self.pick(*FIELDS) + "." + self.pick("x", "y", "0", "1")
        return self.pick(*FIELDS) + "." + self.pick("x", "0", "1") + "." + self.pick("x", "y", "0")

    # ---- filters

    def predicate(self):
        kind = self.pick("eq", "literal", "ne", "gt", "gte", "lt", "lte", "in", "nin", "exists", "type", "mod", "regex",
                         "all", "size", "elemMatch", "elemField", "bits", "not", "range")
        if kind == "literal":
            value = self.value(1)
            return value
        if kind in ("eq", "ne"):
            return {"$" + kind: self.value(1)}
        if kind in ("gt", "gte", "lt", "lte"):
            return {"$" + kind: self.value(1) if self.r.random() < 0.3 else self.scalar()}
        if kind in ("in", "nin"):
            return {"$" + kind: [self.value(1) for _ in range(self.r.randint(0, 3))]}
        if kind == "exists":
            return {"$exists": self.pick(True, False, 1, 0)}
        if kind == "type":
            return {"$type": self.pick("string", "number", "int", "double", "null", "array", "object", "bool", "date",
                                       "objectId", ["string", "null"], 2, 10)}
        if kind == "mod":
            return {"$mod": [self.pick(2, 3, -2, 5), self.pick(0, 1, -1)]}
        if kind == "regex":
            return {"$regex": self.pick("a", "^a", "b$", "^$", "A", "[0-9]+"), **self.pick({}, {"$options": "i"})}
        if kind == "all":
            return {"$all": [self.value(1) for _ in range(self.r.randint(0, 2))]}
        if kind == "size":
            return {"$size": self.r.randint(0, 3)}
        if kind == "elemMatch":
            return {"$elemMatch": self.pick({"$gt": self.number()}, {"$gt": 0, "$lt": 5}, {"$eq": self.scalar()},
                                            {"$in": [self.scalar(), self.scalar()]}, {"$exists": True})}
        if kind == "elemField":
            return {"$elemMatch": {self.pick("x", "y"): self.scalar(), **self.pick({}, {"y": {"$gt": 0}})}}
        if kind == "bits":
            return {self.pick("$bitsAllSet", "$bitsAnySet", "$bitsAllClear", "$bitsAnyClear"): self.pick(1, 2, 5, [0, 2])}
        if kind == "range":
            return {"$gte": self.number(), "$lt": self.number()}
        inner = self.predicate()
        return {"$not": inner if isinstance(inner, dict) and inner and all(k.startswith("$") for k in inner)
                and not wrapper(inner) else {"$eq": inner}}

    def filter(self, depth=2):
        r = self.r.random()
        if depth == 0 or r < 0.8:
            return {self.path(): self.predicate()}
        if r < 0.9:
            return {self.pick("$or", "$and", "$nor"): [self.filter(depth - 1) for _ in range(self.r.randint(1, 3))]}
        return {self.path(): self.predicate(), self.path(): self.predicate()}

    # ---- projection, sort

    def projection(self):
        kind = self.pick("in", "in", "out", "out", "slice", "elem")
        if kind in ("in", "out"):
            flag = 1 if kind == "in" else 0
            paths = []
            for _ in range(self.r.randint(1, 3)):
                new = self.path() if self.r.random() < 0.7 else self.pick(*FIELDS)
                new = ".".join(p for p in new.split(".") if not p.isdigit())
                if not any(new == p or new.startswith(p + ".") or p.startswith(new + ".") for p in paths):
                    paths.append(new)
            out = {p: flag for p in paths}
            if self.r.random() < 0.3:
                out["_id"] = 0
            return out
        if kind == "slice":
            return {self.pick(*FIELDS): {"$slice": self.pick(1, -1, 2, 0, [1, 1], [-2, 1], [5, 2])}}
        return {self.pick(*FIELDS): {"$elemMatch": {self.pick("x", "y"): self.predicate()}}}

    def sort(self):
        out = {}
        for _ in range(self.r.randint(1, 2)):
            path = self.path() if self.r.random() < 0.5 else self.pick(*FIELDS)
            if not any(path.startswith(p) or p.startswith(path) for p in out):
                out[path] = self.pick(1, -1)
        # What is equal has no order of its own; a last key settles it.
        out["_id"] = 1
        return out

    # ---- updates

    def update(self):
        """(filter beyond _id, update, array filters)."""
        kind = self.pick("$set", "$unset", "$inc", "$mul", "$min", "$max", "$rename", "$push", "$pushEach", "$addToSet",
                         "$pull", "$pullCond", "$pullAll", "$pop", "$bit", "positional", "all", "filtered", "pipeline")
        path = self.path()
        field = self.pick(*FIELDS)
        if kind in ("$set", "$min", "$max"):
            return {}, {kind: {path: self.value(1)}}, None
        if kind == "$unset":
            return {}, {kind: {path: ""}}, None
        if kind in ("$inc", "$mul"):
            return {}, {kind: {path: self.number()}}, None
        if kind == "$rename":
            return {}, {kind: {path: self.pick("d", "c", "d.e")}}, None
        if kind in ("$push", "$addToSet"):
            return {}, {kind: {path: self.value(1)}}, None
        if kind == "$pushEach":
            more = {"$each": [self.value(1) for _ in range(self.r.randint(0, 3))]}
            for name, value in (("$position", self.pick(0, 1, -1, 9)), ("$slice", self.pick(0, 2, -2, 9)),
                                ("$sort", self.pick(1, -1))):
                if self.r.random() < 0.4:
                    more[name] = value
            if self.r.random() < 0.2:
                return {}, {"$addToSet": {path: {"$each": more["$each"]}}}, None
            return {}, {"$push": {path: more}}, None
        if kind == "$pull":
            return {}, {kind: {path: self.value(1)}}, None
        if kind == "$pullCond":
            return {}, {"$pull": {path: self.pick({"$gt": self.number()}, {"$in": [self.scalar(), self.scalar()]},
                                                  {"x": self.scalar()}, {"x": {"$gte": 1}})}}, None
        if kind == "$pullAll":
            return {}, {kind: {path: [self.value(1) for _ in range(2)]}}, None
        if kind == "$pop":
            return {}, {kind: {path: self.pick(1, -1)}}, None
        if kind == "$bit":
            return {}, {kind: {path: {self.pick("and", "or", "xor"): self.pick(1, 5, 6)}}}, None
        if kind == "positional":
            return {field: self.pick({"$gt": self.number()}, self.scalar(), {"$elemMatch": {"x": self.scalar()}})}, \
                {self.pick("$set", "$inc"): {field + ".$" + self.pick("", "", ".x"): self.number()}}, None
        if kind == "all":
            return {}, {self.pick("$set", "$inc", "$unset"): {field + ".$[]" + self.pick("", ".x"): 1}}, None
        if kind == "filtered":
            return {}, {self.pick("$set", "$inc", "$max"): {field + ".$[e]" + self.pick("", ".y"): 1}}, \
                [self.pick({"e": {"$gt": 0}}, {"e": self.scalar()}, {"e.x": self.scalar()}, {"e.x": {"$gt": 0}})]
        return {}, [self.pick({"$set": {path: self.expression(1)}}, {"$unset": field}, {"$set": {field: self.value(1)}},
                              {"$project": {field: 1}}, {"$replaceWith": {"_id": "$_id", "z": self.expression(1)}})], None

    # ---- expressions

    def operand(self, depth):
        r = self.r.random()
        if depth > 0 and r < 0.3:
            return self.expression(depth - 1)
        if r < 0.7:
            return "$" + self.path()
        return self.pick(self.number(), self.scalar(), {"$literal": self.value(1)})

    def array(self, depth):
        return self.pick("$" + self.pick(*FIELDS), [self.operand(0) for _ in range(self.r.randint(0, 3))],
                         {"$literal": [self.value(1) for _ in range(self.r.randint(0, 3))]})

    def expression(self, depth=1):
        o, n = lambda: self.operand(depth), self.r.randint
        two = lambda name: {name: [o(), o()]}
        text = lambda: self.pick("$" + self.pick(*FIELDS), "abcabc", "x y", " ab ", "\u00e9a", "")
        arr = lambda: self.array(depth)
        kind = self.r.choice(EXPRESSIONS)
        if kind in ("$add", "$multiply", "$concat", "$max", "$min", "$sum", "$avg", "$and", "$or", "$ifNull", "$concatArrays",
                    "$setUnion", "$setIntersection", "$mergeObjects"):
            if kind == "$concat":
                return {kind: [text() for _ in range(n(1, 3))]}
            if kind in ("$concatArrays", "$setUnion", "$setIntersection"):
                return {kind: [arr(), arr()]}
            return {kind: [o() for _ in range(n(2, 3))]}
        if kind in ("$subtract", "$divide", "$mod", "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$cmp"):
            return two(kind)
        if kind in ("$round", "$trunc"):
            return {kind: [o(), self.pick(0, 1, -1, 2)]}
        if kind in ("$setDifference", "$setEquals", "$setIsSubset"):
            return {kind: [arr(), arr()]}
        if kind in ("$in", "$indexOfArray"):
            return {kind: [o(), arr()] if kind == "$in" else [arr(), o()]}
        if kind in ("$arrayElemAt",):
            return {kind: [arr(), self.pick(0, 1, -1, 5)]}
        if kind == "$slice":
            return {kind: [arr(), *self.pick([1], [-1], [0, 1], [1, 2], [-2, 1])]}
        if kind in ("$reverseArray", "$size", "$first", "$last", "$isArray", "$anyElementTrue", "$allElementsTrue",
                    "$arrayToObject"):
            return {kind: [arr()] if kind != "$reverseArray" else arr()}
        if kind == "$range":
            return {kind: [n(-2, 3), n(0, 6), self.pick(1, 2, -1)]}
        if kind == "$cond":
            return {kind: [o(), o(), o()]}
        if kind == "$switch":
            return {kind: {"branches": [{"case": o(), "then": 1}], "default": o()}}
        if kind == "$map":
            return {kind: {"input": arr(), "as": "e", "in": self.pick("$$e", {"$eq": ["$$e", 1]}, {"v": "$$e"}, "$$e.x")}}
        if kind == "$filter":
            return {kind: {"input": arr(), "as": "e", "cond": self.pick({"$gt": ["$$e", 1]}, "$$e.x", {"$isArray": ["$$e"]})}}
        if kind == "$reduce":
            return {kind: {"input": arr(), "initialValue": [], "in": {"$concatArrays": ["$$value", ["$$this"]]}}}
        if kind == "$zip":
            return {kind: {"inputs": [arr(), arr()], **self.pick({}, {"useLongestLength": True})}}
        if kind == "$sortArray":
            return {kind: {"input": arr(), "sortBy": self.pick(1, -1, {"x": 1})}}
        if kind == "$let":
            return {kind: {"vars": {"q": o()}, "in": {"$ifNull": ["$$q", "none"]}}}
        if kind in ("$toUpper", "$toLower", "$strLenCP", "$strLenBytes"):
            return {kind: text()}
        if kind in ("$substrCP", "$substrBytes"):
            return {kind: [text(), n(0, 3), self.pick(1, 2, -1 if kind == "$substrBytes" else 9)]}
        if kind in ("$indexOfCP", "$indexOfBytes"):
            return {kind: [text(), self.pick("a", "b", "", "zz"), *self.pick([], [1], [1, 3])]}
        if kind == "$split":
            return {kind: [text(), self.pick("a", " ", "b")]}
        if kind in ("$trim", "$ltrim", "$rtrim"):
            return {kind: {"input": text(), **self.pick({}, {"chars": "a "})}}
        if kind in ("$replaceOne", "$replaceAll"):
            return {kind: {"input": text(), "find": self.pick("a", "b"), "replacement": "Q"}}
        if kind in ("$regexMatch", "$regexFind", "$regexFindAll"):
            return {kind: {"input": text(), "regex": self.pick("a", "(b)(c)?", "^$"), **self.pick({}, {"options": "i"})}}
        if kind == "$strcasecmp":
            return {kind: [text(), text()]}
        if kind == "$getField":
            return {kind: {"field": self.pick("x", "a"), "input": self.pick("$a", "$$ROOT")}}
        if kind == "$setField":
            return {kind: {"field": "x", "input": "$a", "value": o()}}
        if kind == "$dateAdd":
            return {kind: {"startDate": {"$date": self.pick(*DATES)}, "unit": self.pick("month", "day", "hour", "year"),
                           "amount": n(-3, 13)}}
        if kind == "$dateDiff":
            return {kind: {"startDate": {"$date": self.pick(*DATES)}, "endDate": {"$date": self.pick(*DATES)},
                           "unit": self.pick("month", "day", "hour", "year", "week", "quarter")}}
        if kind == "$dateTrunc":
            return {kind: {"date": {"$date": self.pick(*DATES)}, "unit": self.pick("month", "day", "hour", "year", "week"),
                           "binSize": self.pick(1, 2, 5)}}
        if kind == "$dateToString":
            return {kind: {"date": {"$date": self.pick(*DATES)}, "format": self.pick("%Y-%m-%d", "%H:%M:%S.%L", "%j %u %V %G")}}
        if kind in ("$year", "$month", "$dayOfMonth", "$dayOfWeek", "$dayOfYear", "$week", "$isoWeek", "$isoDayOfWeek",
                    "$isoWeekYear", "$hour", "$minute", "$second", "$millisecond", "$dateToParts"):
            date = {"$date": self.pick(*DATES)}
            return {kind: {"date": date} if kind == "$dateToParts" else date}
        return {kind: o()}


EXPRESSIONS = """$add $subtract $multiply $divide $mod $abs $ceil $floor $round $trunc $sqrt $exp $max $min $sum $avg $eq $ne
$gt $gte $lt $lte $cmp $and $or $not $cond $ifNull $switch $let $concat $toUpper $toLower $strLenCP $strLenBytes $substrCP
$substrBytes $indexOfCP $indexOfBytes $split $trim $ltrim $rtrim $replaceOne $replaceAll $regexMatch $regexFind $regexFindAll
$strcasecmp $arrayElemAt $first $last $size $slice $concatArrays $reverseArray $sortArray $range $in $indexOfArray $isArray
$map $filter $reduce $zip $setUnion $setIntersection $setDifference $setEquals $setIsSubset $anyElementTrue $allElementsTrue
$mergeObjects $objectToArray $arrayToObject $getField $setField $dateAdd $dateDiff $dateTrunc $dateToString $dateToParts
$year $month $dayOfMonth $dayOfWeek $dayOfYear $week $isoWeek $isoDayOfWeek $isoWeekYear $hour $minute $second $millisecond
$type $isNumber $toInt $toDouble $toString $toBool $toDate""".split()


def wrapper(value):
    """Whether an object is Extended JSON for a scalar."""
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)) in ("$date", "$oid", "$numberDouble")
