#!/usr/bin/env python3
"""Differential tests: our server against mingo (npm) and mongomock (PyPI), on random documents and questions.

usage: oracle.py --server quarrydb --packages DIR [--seed 1] [--rounds 40] [--only find,update] [--show 2] [--all]

Starts the server on a free port in a directory of its own, or asks one at --url. Prints the disagreements that
`known.py` does not explain, grouped by kind, and how many of each that it does. Exit 1 where there is one that is not
explained. The oracles are partial: what one does not have counts for nothing; where the two differ and one agrees with
us, it is counted as outvoted.
"""

import argparse
import collections
import json
import os
import random
import subprocess
import sys
import tempfile

from compare import answer_text, kind_of
from generate import Gen
from known import agree, reference_answer, verdict
from oracles import Mingo, Mongomock, Ours

KINDS = ("find", "projection", "sort", "distinct", "update", "expression")


def questions(gen, docs, kind):
    """Questions of one kind about a collection."""
    if kind == "find":
        return [{"kind": "find", "filter": gen.filter()} for _ in range(60)]
    if kind == "projection":
        return [{"kind": "find", "projection": gen.projection()} for _ in range(25)]
    if kind == "sort":
        paging = lambda: gen.pick({}, {}, {"skip": 2, "limit": 3})
        return [{"kind": "find", "sort": gen.sort(), **paging()} for _ in range(15)]
    if kind == "distinct":
        return [{"kind": "distinct", "key": gen.path()} for _ in range(8)]
    if kind == "update":
        out = []
        for _ in range(60):
            extra, update, filters = gen.update()
            question = {"kind": "update", "doc": gen.r.choice(docs), "filter": extra, "update": update}
            out.append({**question, "arrayFilters": filters} if filters else question)
        return out
    return [{"kind": "expression", "expression": gen.expression(), "doc": gen.r.choice(docs)} for _ in range(100)]


def start(binary, directory):
    server = subprocess.Popen([binary, "serve", "--data", directory, "--listen", "127.0.0.1:0", "--durability", "interval:1s"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    line = server.stdout.readline()
    if not line.startswith("listening on "):
        sys.exit(f"the server said {line!r}")
    return server, line.split()[2].rstrip("/")


def short(value, width=600):
    line = json.dumps(value)
    return line if len(line) <= width else line[:width] + " ..."


def differing(question, docs, ours, theirs):
    """The question as small as it gets without asking again: the documents that make the difference."""
    if question["kind"] != "find" or not (ours[0] == theirs[0] == "ok") or question.get("sort"):
        return docs
    mine, other = ({json.dumps(d["_id"]): d for d in side[1]} for side in (ours, theirs))
    keys = [d for d in docs if json.dumps(d["_id"]) in mine.keys() ^ other.keys()
            or answer_text({"kind": "x"}, mine.get(json.dumps(d["_id"]))) != answer_text({"kind": "x"}, other.get(json.dumps(d["_id"])))]
    return keys[:1]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--server")
    arguments.add_argument("--url")
    arguments.add_argument("--packages", required=True)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--rounds", type=int, default=40)
    arguments.add_argument("--only", default=",".join(KINDS))
    arguments.add_argument("--show", type=int, default=2)
    arguments.add_argument("--all", action="store_true", help="show the explained ones too")
    args = arguments.parse_args()

    with tempfile.TemporaryDirectory() as directory:
        server, url = (None, args.url) if args.url else start(args.server, directory)
        worker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mingo_worker.mjs")
        ours, oracles = Ours(url), {"mingo": Mingo(worker, os.path.abspath(args.packages)), "mongomock": Mongomock()}
        try:
            code = compare(args, ours, oracles)
        finally:
            oracles["mingo"].close()
            if server:
                server.terminate()
                server.wait()
    sys.exit(code)


def compare(args, ours, oracles):
    asked = collections.Counter()
    explained = collections.Counter()
    found = collections.defaultdict(list)
    for turn in range(args.rounds):
        for kind in args.only.split(","):
            gen = Gen(random.Random(f"{args.seed} {turn} {kind}"))
            docs = [gen.document(i) for i in range(12)]
            for party in (ours, *oracles.values()):
                party.load(docs)
            for question in questions(gen, docs, kind):
                asked[kind] += 1
                mine = ours.ask(question)
                answers = {name: oracle.ask(question) for name, oracle in oracles.items()}
                judge(question, docs, mine, answers, explained, found, args.all)
            if kind == "expression":
                oracles["mingo"].load(docs)
    for name, count in sorted(explained.items()):
        print(f"{count:7}  {name}")
    print(f"asked: {dict(asked)}")
    for (oracle, name), cases in sorted(found.items(), key=lambda item: -len(item[1])):
        print(f"\n{oracle} differs {len(cases)} times: {name}")
        for question, docs, mine, theirs in cases[: args.show]:
            print("  asked  " + short({k: v for k, v in question.items() if k != "kind"}, 900))
            if question["kind"] in ("find", "distinct"):
                print("  docs   " + short(docs, 900))
            print("  ours   " + short(mine))
            print("  theirs " + short(theirs))
    print(f"\n{sum(map(len, found.values()))} disagreements without an explanation, of {len(found)} kinds")
    return 1 if found and not args.all else 0


def judge(question, docs, mine, answers, explained, found, show_all):
    """Counts and keeps the disagreements of one question."""
    expected = reference_answer(question, docs)
    if expected is not None and not agree(question, mine, expected):
        found["reference", kind_of(question)].append((question, docs, mine, expected))
    same = {}
    for name, theirs in answers.items():
        if theirs[0] == "none":
            continue
        if mine[0] != theirs[0]:
            same[name] = False
        else:
            same[name] = mine[0] == "error" or answer_text(question, mine[1]) == answer_text(question, theirs[1])
    for name, agrees in same.items():
        if agrees:
            explained[f"{name} agrees"] += 1
            continue
        theirs = answers[name]
        reason = verdict(name, question, docs, mine, theirs)
        if reason:
            explained[f"{name}, known: {reason}"] += 1
            if show_all:
                found[name, f"known: {reason}"].append((question, differing(question, docs, mine, theirs), mine, theirs))
        elif any(same.values()):
            explained[f"{name}, outvoted"] += 1
        else:
            form = {"ok": "differs", "error": "refuses"}
            label = f"{kind_of(question)} (we {'answer' if mine[0] == 'ok' else 'refuse'}, they {'answer' if theirs[0] == 'ok' else 'refuse'})"
            found[name, label].append((question, differing(question, docs, mine, theirs), mine, theirs))


if __name__ == "__main__":
    main()
