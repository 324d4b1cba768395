// Answers questions with the npm package `mingo`: one JSON object a line in, one a line out.
//
// In: {kind: "docs", docs} sets the collection; {kind: "find", filter, projection?, sort?, skip?, limit?}, {kind: "update",
// filter, update, arrayFilters?, doc}, {kind: "expression", expression}. Out: {ok: ...} or {error: "..."}. Values are
// relaxed Extended JSON. The packages stand in the directory that is the one argument.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { join } from "node:path";

const require = createRequire(join(process.argv[2], "package.json"));
const mingo = require("mingo");
const { EJSON } = require("bson");

/** 64-bit integers that doubles hold become numbers: mingo knows no others. */
const read = (value) => EJSON.deserialize(value, { relaxed: true });
const write = (value) => EJSON.serialize(value === undefined ? null : value, { relaxed: true });

let docs = [];

function answer(question) {
  switch (question.kind) {
    case "docs":
      docs = question.docs;
      return docs.length;
    case "find": {
      const cursor = mingo.find(docs.map(read), read(question.filter ?? {}), question.projection && read(question.projection));
      if (question.sort) cursor.sort(question.sort);
      if (question.skip) cursor.skip(question.skip);
      if (question.limit) cursor.limit(question.limit);
      return cursor.all().map(write);
    }
    case "expression":
      return mingo.aggregate(docs.map(read), [{ $project: { v: read(question.expression) } }]).map(write);
    case "update": {
      const one = [read(question.doc)];
      const config = question.arrayFilters && { arrayFilters: read(question.arrayFilters) };
      mingo.updateOne(one, read(question.filter), read(question.update), config);
      return write(one[0]);
    }
    default:
      throw new Error(`no kind ${question.kind}`);
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  let reply;
  try {
    reply = { ok: answer(JSON.parse(line)) };
  } catch (error) {
    reply = { error: String(error?.message ?? error).slice(0, 300) };
  }
  process.stdout.write(JSON.stringify(reply) + "\n");
}
