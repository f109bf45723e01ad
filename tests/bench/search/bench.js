// What searching costs in MiniSearch (words) and LanceDB (vectors, compared one by one), over the rows that `bench_data rows`
// wrote: bench.js text|vectors DIR. Prints one JSON object; milliseconds are time of the processor, all threads.
import { readFileSync } from "node:fs";

const [what, dir] = process.argv.slice(2);
const DIMS = 384;
const lines = (name) => readFileSync(`${dir}/${name}.jsonl`, "utf8").trimEnd().split("\n").map((x) => JSON.parse(x));
const floats = (name) => {
  const bytes = readFileSync(`${dir}/${name}.f32`);
  return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
};
const cpuMs = () => {
  const u = process.cpuUsage();
  return (u.user + u.system) / 1000;
};
async function measure(name, n, ask) {
  const took = [];
  for (let i = 0; i < n; i++) {
    const since = cpuMs();
    const found = await ask(i);
    took.push(cpuMs() - since);
    if (found !== 10) throw new Error(`${found} results`);
  }
  const rest = took.slice(1).sort((a, b) => a - b);
  return { [`${name}_cold_ms`]: took[0], [`${name}_ms`]: rest[Math.floor(rest.length / 2)] };
}

const rows = lines("rows");
const queries = lines("queries");
let out;
if (what === "text") {
  const { default: MiniSearch } = await import("minisearch");
  const index = new MiniSearch({ fields: ["name", "content"], storeFields: ["name"] });
  const since = cpuMs();
  index.addAll(rows.map((row, id) => ({ id, ...row })));
  const wrote = cpuMs() - since;
  out = await measure("words", queries.length, async (i) => index.search(queries[i]).slice(0, 10).length);
  out.rows_per_s = (rows.length * 1000) / wrote;
} else {
  const lancedb = await import("@lancedb/lancedb");
  const all = floats("rows");
  const asked = floats("queries");
  const db = await lancedb.connect(`${dir}/lance`);
  const since = cpuMs();
  const table = await db.createTable(
    "rows",
    rows.map((row, id) => ({ id, name: row.name, vector: Array.from(all.subarray(id * DIMS, (id + 1) * DIMS)) })),
    { mode: "overwrite" },
  );
  const wrote = cpuMs() - since;
  out = await measure("vectors", queries.length, async (i) => {
    const vector = Array.from(asked.subarray(i * DIMS, (i + 1) * DIMS));
    return (await table.query().nearestTo(vector).distanceType("cosine").limit(10).toArray()).length;
  });
  out.rows_per_s = (rows.length * 1000) / wrote;
}
console.log(JSON.stringify({ rows: rows.length, ...out }));
