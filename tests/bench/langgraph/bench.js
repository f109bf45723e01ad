// The pipelines of bench_journal as graphs of LangGraph.js: node bench.js SHAPE N REPEAT none|memory
//
// SHAPE is chain, parallel or loop. Every node returns the same small output, kept in the state under its name, as a
// stage's is. The graph is built and compiled once; only invoke() is timed, after WARM_VISITS visits of nodes. With
// "memory" each step is kept by MemorySaver, in a thread of its own that is dropped after the run. Prints one line of
// JSON; cpu_ns counts all threads of the process, so also those that compile and collect.
import { Annotation, END, MemorySaver, START, StateGraph } from "@langchain/langgraph";

const [shape, count, times, keeper] = process.argv.slice(2);
const n = Number(count);
const repeat = Number(times);
const WARM_VISITS = 2500;
if (!["chain", "parallel", "loop"].includes(shape) || !(n >= 1) || !(repeat >= 1) || !["none", "memory"].includes(keeper)) {
  console.error("usage: bench.js chain|parallel|loop N REPEAT none|memory");
  process.exit(2);
}

const State = Annotation.Root({
  raw_input: Annotation(),
  visits: Annotation({ reducer: (a, b) => a + b, default: () => 0 }),
  outputs: Annotation({ reducer: (a, b) => ({ ...a, ...b }), default: () => ({}) }),
});

const stage = (name) => () => ({ visits: 1, outputs: { [name]: { final_response: "Hello!" } } });

function build() {
  const graph = new StateGraph(State);
  if (shape === "loop") {
    graph.addNode("s0", stage("s0"));
    graph.addEdge(START, "s0");
    graph.addConditionalEdges("s0", (state) => (state.visits < n ? "s0" : END), ["s0", END]);
    return graph;
  }
  for (let i = 0; i < n; i++) graph.addNode(`s${i}`, stage(`s${i}`));
  for (let i = 0; i < n; i++) {
    const first = shape === "parallel" || i === 0;
    const last = shape === "parallel" || i === n - 1;
    if (first) graph.addEdge(START, `s${i}`);
    graph.addEdge(`s${i}`, last ? END : `s${i + 1}`);
  }
  return graph;
}

const saver = keeper === "memory" ? new MemorySaver() : undefined;
const app = build().compile({ checkpointer: saver });

async function run(i) {
  const id = `thread-${i}`;
  const config = { recursionLimit: n + 10, configurable: { thread_id: id } };
  const cpu = process.cpuUsage();
  const begun = process.hrtime.bigint();
  const state = await app.invoke({ raw_input: "how are errors made?" }, config);
  const took = Number(process.hrtime.bigint() - begun);
  const used = process.cpuUsage(cpu);
  if (state.visits !== n) throw new Error(`visited ${state.visits} stages, not ${n}`);
  if (saver) await saver.deleteThread(id);
  return { took, used: (used.user + used.system) * 1000 };
}

const runs = [];
for (let i = -Math.ceil(WARM_VISITS / n); i < repeat; i++) {
  const one = await run(i);
  if (i >= 0) runs.push(one);
}
const sorted = (key) => runs.map((one) => one[key]).sort((a, b) => a - b);
const took = sorted("took");
console.log(
  JSON.stringify({
    shape,
    stages: n,
    store: keeper,
    median_ns: Math.round(took[Math.floor(repeat / 2)] / n),
    min_ns: Math.round(took[0] / n),
    cpu_ns: Math.round(sorted("used")[0] / n),
  }),
);
