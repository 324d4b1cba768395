"""Who is asked: our server over HTTP, mingo through node, mongomock here. Each answers with ("ok", value) or ("error", text)."""

import copy
import http.client
import json
import subprocess
from bson import json_util

import mongomock

OPTIONS = json_util.JSONOptions(json_mode=json_util.JSONMode.RELAXED, tz_aware=False)


class Ours:
    def __init__(self, url):
        self.connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
        self.collection = "c"

    def call(self, operation, body, path=None, method="POST"):
        path = path or f"/v1/db/oracle/{self.collection}/{operation}"
        self.connection.request(method, path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        body = json.loads(answer.read() or b"null")
        if answer.status >= 500 and answer.status != 501:
            raise SystemExit(f"the server answered {answer.status}: {body}")
        return ("ok", body) if answer.status < 300 else ("error", f"{body.get('code')} {body.get('error')}")

    def load(self, docs):
        self.call("", {}, "/v1/db/oracle", "DELETE")
        result = self.call("insertMany", {"documents": docs})
        assert result[0] == "ok", result

    def ask(self, q):
        kind = q["kind"]
        if kind == "find":
            result = self.call("find", {k: v for k, v in q.items() if k != "kind"})
            return (result[0], result[1]["documents"]) if result[0] == "ok" else result
        if kind == "distinct":
            result = self.call("distinct", {"key": q["key"]})
            return (result[0], result[1]["values"]) if result[0] == "ok" else result
        if kind == "expression":
            result = self.call("find", {"projection": {"v": q["expression"]}, "filter": {"_id": q["doc"]["_id"]}})
            return (result[0], result[1]["documents"]) if result[0] == "ok" else result
        body = {"filter": {"_id": q["doc"]["_id"], **q["filter"]}, "update": q["update"], "returnDocument": "after"}
        if q.get("arrayFilters"):
            body["arrayFilters"] = q["arrayFilters"]
        result = self.call("findOneAndUpdate", body)
        put = self.call("replaceOne", {"filter": {"_id": q["doc"]["_id"]}, "replacement": q["doc"]})
        assert put[0] == "ok" and put[1]["matchedCount"] == 1, put
        if result[0] == "error":
            return result
        return "ok", result[1]["document"] or q["doc"]


class Mingo:
    def __init__(self, worker, packages):
        self.command, self.docs = ["node", "--max-old-space-size=300", worker, packages], []
        self.start()

    def start(self):
        self.node = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                     text=True)

    def send(self, question):
        if question["kind"] == "docs":
            self.docs = question["docs"]
        self.node.stdin.write(json.dumps(question) + "\n")
        self.node.stdin.flush()
        line = self.node.stdout.readline()
        if not line:
            # It ended, or ran out of memory: a $range by a fraction, a loop of its own.
            self.close()
            self.start()
            self.send({"kind": "docs", "docs": self.docs})
            return "none", "ended"
        reply = json.loads(line)
        return ("ok", reply["ok"]) if "ok" in reply else ("error", reply["error"])

    def load(self, docs):
        self.send({"kind": "docs", "docs": docs})

    def ask(self, q):
        if q["kind"] == "distinct":
            return "none", None
        if q["kind"] == "expression":
            self.load([q["doc"]])
            result = self.send(q)
            return result
        if q["kind"] == "update":
            q = {**q, "filter": {"_id": q["doc"]["_id"], **q["filter"]}}
        return self.send(q)

    def close(self):
        self.node.stdin.close()
        self.node.wait()


class Mongomock:
    def load(self, docs):
        self.docs = docs
        self.collection = self.filled(docs)

    @staticmethod
    def filled(docs):
        collection = mongomock.MongoClient().db.c
        collection.insert_many([read(d) for d in docs])
        return collection

    def ask(self, q):
        try:
            return "ok", write(self.run({**read({k: v for k, v in q.items() if k != "doc"}), "doc": q.get("doc")}))
        except NotImplementedError as error:
            return "none", str(error)
        except Exception as error:  # A library's own faults of every kind: each is only a refusal here.
            return "error", f"{type(error).__name__} {error}"[:300]

    def run(self, q):
        if q["kind"] == "find":
            cursor = self.collection.find(q.get("filter") or {}, q.get("projection"))
            if q.get("sort"):
                cursor = cursor.sort(list(q["sort"].items()))
            return list(cursor.skip(q.get("skip", 0)).limit(q.get("limit", 0)))
        if q["kind"] == "distinct":
            return self.collection.distinct(q["key"])
        if q["kind"] == "expression":
            return list(self.filled([q["doc"]]).aggregate([{"$project": {"v": q["expression"]}}]))
        if isinstance(q["update"], list):
            raise NotImplementedError("pipelines as updates")
        collection = self.filled([q["doc"]])
        collection.update_one({"_id": q["doc"]["_id"], **q["filter"]}, q["update"], array_filters=q.get("arrayFilters"))
        return collection.find_one({})


def read(value):
    return json_util.loads(json.dumps(value), json_options=OPTIONS)


def write(value):
    return json.loads(json_util.dumps(copy.copy(value), json_options=OPTIONS))
